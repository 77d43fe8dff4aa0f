package queues

import (
	"context"

	"github.com/lubdub-io/lubdub/api/convert"
	"github.com/lubdub-io/lubdub/internal/shares"
	"github.com/lubdub-io/lubdub/tracker/model"
	"github.com/lubdub-io/lubdub/tracker/queues"
)

// Service is what the handlers need of the domain's queues.
type Service interface {
	// Claim may wait as long as the request allows, or until the context ends.
	Claim(context.Context, queues.ClaimRequest) ([]*model.Envelope, error)
	List(context.Context, model.Scope) ([]*queues.Queue, error)
	Get(ctx context.Context, scope model.Scope, queue string) (*queues.Queue, error)
	Pause(ctx context.Context, scope model.Scope, queue, reason string) (created bool, err error)
	Resume(ctx context.Context, scope model.Scope, queue string) error
}

// Handlers answer the routes of queues.
type Handlers struct {
	Queues    Service
	Envelopes convert.Envelopes
	Waiting   *shares.Pool // of waiting claims
	Refused   func()       // counts a claim that was refused because of its wait
}
