package api

import (
	"context"
	"time"

	"github.com/lubdub-io/lubdub/tracker/events"
	"github.com/lubdub-io/lubdub/tracker/model"
)

// Events answers with none; what the domain does is tested against the real one.
func (f fakeEvents) List(context.Context, events.Query) (*events.Page, error) {
	return &events.Page{Next: "n"}, nil
}

func (f fakeEvents) Follow(context.Context, events.Filter, string, string) (*events.Listener, error) {
	return nil, &model.Error{Code: model.Unavailable, RetryAfter: time.Second}
}
