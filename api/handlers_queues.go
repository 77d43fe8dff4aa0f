package api

import (
	"context"

	"github.com/lubdub-io/lubdub/internal/shares"
	"github.com/lubdub-io/lubdub/tracker/model"
	"github.com/lubdub-io/lubdub/tracker/queues"
)

// QueueService is what the handlers need of the domain's queues.
type QueueService interface {
	// Claim may wait as long as the request says, or until the context ends.
	Claim(context.Context, queues.ClaimRequest) ([]*model.Envelope, error)
	List(context.Context, model.Scope) ([]*queues.Queue, error)
	Get(ctx context.Context, scope model.Scope, queue string) (*queues.Queue, error)
	Pause(ctx context.Context, scope model.Scope, queue string) (created bool, err error)
	Resume(ctx context.Context, scope model.Scope, queue string) error
}

// queueHandlers answer the routes of queues.
type queueHandlers struct {
	Queues    QueueService
	Envelopes envelopes
	Waiting   *shares.Pool // of claims that wait
	Refused   func()       // counts a claim that was refused for its wait
}
