package events

import (
	"context"
	"time"

	"github.com/lubdub-io/lubdub/internal/shares"
	"github.com/lubdub-io/lubdub/tracker/events"
)

// Service is what the handlers need of the domain's events.
type Service interface {
	List(context.Context, events.Query) (*events.Page, error)
	// Follow returns a listener from a cursor on, which field names in refusals; "": from now on.
	Follow(ctx context.Context, f events.Filter, field, after string) (*events.Listener, error)
}

// Handlers answer the route of events, with pages and streams.
type Handlers struct {
	Events    Service
	Streams   *shares.Pool  // of open streams
	Refused   func()        // counts a refused stream
	KeepAlive time.Duration // interval of keep-alives
}
