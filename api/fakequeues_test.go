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

func (f *fakeTracker) Stats(context.Context, tracker.Scope) (*tracker.Stats, error) {
	counts := &tracker.StatsCounts{}
	return &tracker.Stats{At: fakeTime, Counts: counts, Steps: []*tracker.StatsStep{{Began: fakeTime, Replicas: 1, Levels: counts,
		Refused: map[string]int64{}, Verdicts: map[string]int64{}, Claims: map[string]int64{}}}}, nil
}

func (f *fakeTracker) RecentlyLost(context.Context, tracker.Scope) (*tracker.LostWorkers, error) {
	return &tracker.LostWorkers{}, nil
}

func (f *fakeTracker) Verdicts(context.Context, tracker.VerdictQuery) (*tracker.Verdicts, error) {
	return &tracker.Verdicts{Since: fakeTime}, nil
}

func (f *fakeTracker) System(context.Context) (*tracker.System, error) {
	return &tracker.System{At: fakeTime, Nodes: []tracker.NodeHealth{{Version: "7.0.15"}}}, nil
}

func (f *fakeTracker) QueuesNow(ctx context.Context, scope tracker.Scope) ([]*tracker.Queue, error) {
	return f.Queues(ctx, scope)
}

func (f *fakeTracker) Scopes(context.Context, tracker.ScopeFilter) (*tracker.ScopePage, error) {
	return &tracker.ScopePage{}, nil
}
