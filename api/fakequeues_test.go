package api

import (
	"context"

	"github.com/lubdub-io/lubdub/tracker/beats"
	"github.com/lubdub-io/lubdub/tracker/holdings"
	"github.com/lubdub-io/lubdub/tracker/model"
	"github.com/lubdub-io/lubdub/tracker/queues"
	"github.com/lubdub-io/lubdub/tracker/stats"
	"github.com/lubdub-io/lubdub/tracker/store"
)

// What the fake Tracker answers about queues; what the domain does is tested against the real one.

func (f fakeQueues) Claim(context.Context, queues.ClaimRequest) ([]*model.Envelope, error) {
	return nil, nil
}

func (f *fakeTracker) Owned(_ context.Context, _ model.Scope, _ string, names []holdings.OwnedAttempt) ([]*model.Attempt, error) {
	found := make([]*model.Attempt, len(names))
	for i := range found {
		if f.owns {
			found[i] = testAttempt()
		}
		if f.doubts {
			found[i] = beats.AttemptInDoubt
		}
	}
	return found, nil
}

func (f *fakeTracker) Notified(*holdings.WorkerBeatResponse) {}

func (f fakeQueues) List(context.Context, model.Scope) ([]*queues.Queue, error) {
	return []*queues.Queue{{Name: "default", Kinds: []queues.QueueKind{{Type: "send_email", Depth: 2}}}}, nil
}

func (f fakeQueues) Get(_ context.Context, _ model.Scope, name string) (*queues.Queue, error) {
	return &queues.Queue{Name: name, Paused: true}, nil
}

func (f fakeQueues) Pause(context.Context, model.Scope, string, string) (bool, error) {
	return true, nil
}

func (f fakeQueues) Resume(context.Context, model.Scope, string) error { return nil }

func (f fakeStats) Get(context.Context, model.Scope) (*stats.Stats, error) {
	counts := &stats.Counts{}
	return &stats.Stats{At: fakeTime, Counts: counts, Steps: []*stats.Step{{Began: fakeTime, Replicas: 1, Levels: counts,
		Refused: map[string]int64{}, Verdicts: map[string]int64{}, Claims: map[string]int64{}}}}, nil
}

func (f fakeStats) PoisonTasks(context.Context, model.Scope) ([]stats.PoisonTask, error) {
	return nil, nil
}

func (f fakeStats) RecentFailures(context.Context, model.Scope) (*stats.Failures, error) {
	return &stats.Failures{}, nil
}

func (f fakeStats) RecentlyLost(context.Context, model.Scope) (*stats.LostWorkers, error) {
	return &stats.LostWorkers{}, nil
}

func (f fakeStats) Verdicts(context.Context, stats.VerdictQuery) (*stats.Verdicts, error) {
	return &stats.Verdicts{Since: fakeTime}, nil
}

func (f *fakeTracker) NodesHealth(context.Context) []store.NodeHealth {
	if f.systemHeld != nil {
		close(f.systemHeld)
	}
	return f.nodes
}

func (f fakeStats) System(context.Context) (*stats.System, error) {
	if f.systemHeld != nil {
		<-f.systemHeld
	}
	return &stats.System{At: fakeTime, Nodes: []store.NodeHealth{{Version: "7.0.15"}}}, f.systemErr
}

func (f fakeStats) QueuesNow(ctx context.Context, scope model.Scope) ([]*queues.Queue, error) {
	return fakeQueues(f).List(ctx, scope)
}

func (f fakeStats) Scopes(context.Context, stats.ScopeFilter) (*stats.ScopePage, error) {
	return &stats.ScopePage{}, nil
}
