package api

import (
	"context"

	"github.com/lubdub-io/lubdub/tracker"
)

// What the fake Tracker answers about queues; what the domain does is tested against the real one.

func (f *fakeTracker) Claim(context.Context, tracker.ClaimRequest) ([]*tracker.Envelope, error) {
	return nil, nil
}

func (f *fakeTracker) Owned(_ context.Context, _ tracker.Scope, _ string, names []tracker.OwnedAttempt) ([]*tracker.Attempt, error) {
	found := make([]*tracker.Attempt, len(names))
	for i := range found {
		if f.owns {
			found[i] = testAttempt()
		}
		if f.doubts {
			found[i] = tracker.AttemptInDoubt
		}
	}
	return found, nil
}

func (f *fakeTracker) Notified(*tracker.WorkerHeard) {}

func (f *fakeTracker) Queues(context.Context, tracker.Scope) ([]*tracker.Queue, error) {
	return []*tracker.Queue{{Name: "default", Kinds: []tracker.QueueKind{{Type: "send_email", Depth: 2}}}}, nil
}

func (f *fakeTracker) Queue(_ context.Context, _ tracker.Scope, name string) (*tracker.Queue, error) {
	return &tracker.Queue{Name: name, Paused: true}, nil
}

func (f *fakeTracker) PauseQueue(context.Context, tracker.Scope, string) (bool, error) {
	return true, nil
}

func (f *fakeTracker) ResumeQueue(context.Context, tracker.Scope, string) error { return nil }
