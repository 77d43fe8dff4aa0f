package api

import (
	"context"
	"time"

	"github.com/lubdub-io/lubdub/tracker"
)

// Events answers with none; what the domain does is tested against the real one.
func (f *fakeTracker) Events(context.Context, tracker.EventQuery) (*tracker.EventPage, error) {
	return &tracker.EventPage{Next: "n"}, nil
}

func (f *fakeTracker) FollowEvents(context.Context, tracker.EventFilter, string, string) (*tracker.EventListener, error) {
	return nil, &tracker.Error{Code: tracker.Unavailable, RetryAfter: time.Second}
}
