package api

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/lubdub-io/lubdub/tracker/beats"
	"github.com/lubdub-io/lubdub/tracker/model"
	"github.com/lubdub-io/lubdub/tracker/revocations"
	"github.com/lubdub-io/lubdub/tracker/store"
	"github.com/lubdub-io/lubdub/tracker/tasks"
)

// fakeTracker responds as the test defines. It is for the HTTP layer only: what the domain does is tested against the real one in
// contract_test.go. A nil function has the default of its method.
type fakeTracker struct {
	beat        func(*beats.Beat)
	start       func(*model.Attempt, model.Report) (model.Acknowledged, error)
	complete    func(*model.Attempt, model.Completion) (model.Completed, error)
	create      func(model.NewTask) (*model.Created, error)
	nextAttempt func(model.Scope, string, int) (*model.Created, error)
	beatWorker  func() error // of a worker's heartbeat
	cancel      func(model.Scope, string, string) (*model.Task, error)
	get         func(model.Scope, string) (*model.Task, error)
	list        func(model.TaskFilter) (*model.TaskPage, error)
	run         func(model.Scope, string) (*model.Run, error)
	ready       func() error
	nodes       []store.NodeHealth
	systemErr   error
	systemHeld  chan struct{} // System waits for it, and NodesHealth closes it
	owns        bool          // workers own every attempt that they name
	doubts      bool          // the store has lost writes

	onRevocation func(all, news []revocations.Revocation)
	revoke       func(revocations.Revocation) error
	naming       func() // before Attempt answers; nil: nothing

	skew      time.Duration
	mu        sync.Mutex
	listedFor string // the tenant whose turn the last list took
	named     int    // how often Attempt was called
	delivered []*model.Attempt
	created   []model.NewTask
}

// services are its views, one for each interface.
func (f *fakeTracker) services() Services {
	return Services{
		Beats: f, Tasks: f, Workers: fakeWorkers{f}, Machines: fakeWorkers{f}, Holdings: f, Queues: fakeQueues{f},
		Schedules: fakeSchedules{f}, Webhooks: fakeWebhooks{f}, Events: fakeEvents{f}, Stats: fakeStats{f}, Revocations: f,
		Sweeper: f, Brake: f, Store: f,
	}
}

// Views of it whose methods have the names of others'.
type (
	fakeWorkers   struct{ *fakeTracker }
	fakeQueues    struct{ *fakeTracker }
	fakeSchedules struct{ *fakeTracker }
	fakeWebhooks  struct{ *fakeTracker }
	fakeEvents    struct{ *fakeTracker }
	fakeStats     struct{ *fakeTracker }
)

func (f *fakeTracker) Skew() time.Duration { return f.skew }

// Revoke takes effect immediately.
func (f *fakeTracker) Revoke(_ context.Context, r revocations.Revocation) error {
	if f.revoke != nil {
		return f.revoke(r)
	}
	f.onRevocation([]revocations.Revocation{r}, []revocations.Revocation{r})
	return nil
}

func (f *fakeTracker) Subscribe(apply func(all, news []revocations.Revocation)) {
	f.onRevocation = apply
	apply(nil, nil)
}

var fakeTime = time.Date(2025, 1, 15, 10, 5, 0, 0, time.UTC)

func (f *fakeTracker) Attempt(a model.Attempt) *model.Attempt {
	if f.naming != nil {
		f.naming()
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.named++
	return &a
}

func (f *fakeTracker) Beat(b *beats.Beat) {
	b.At = fakeTime
	if f.beat != nil {
		f.beat(b)
	}
}

func (f *fakeTracker) BeatMany(beats []*beats.Beat) {
	for _, b := range beats {
		f.Beat(b)
	}
}

// Submit stores each beat separately, in order; a panic becomes an unexpected error.
func (f *fakeTracker) Submit(batch []*beats.Beat, done func([]*beats.Beat)) {
	for _, b := range batch {
		go func() {
			defer func() {
				if p := recover(); p != nil {
					b.Err = &model.Error{Code: "panic", Cause: fmt.Errorf("%v", p)}
				}
				done([]*beats.Beat{b})
			}()
			b.Cancel, b.Err = nil, nil
			f.Beat(b)
		}()
	}
}

func (f *fakeTracker) CancelDelivered(a *model.Attempt) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.delivered = append(f.delivered, a)
}

func (f *fakeTracker) deliveredCount() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.delivered)
}

func (f *fakeTracker) Start(_ context.Context, a *model.Attempt, r model.Report) (model.Acknowledged, error) {
	if f.start != nil {
		return f.start(a, r)
	}
	return model.Acknowledged{At: fakeTime}, nil
}

func (f *fakeTracker) CompleteMany(_ context.Context, all []*beats.Completing) {
	for _, c := range all {
		if c.Completed = (model.Completed{At: fakeTime, Outcome: c.Completion.Outcome}); f.complete != nil {
			c.Completed, c.Err = f.complete(c.Attempt, c.Completion)
		}
	}
}

func (f *fakeTracker) Create(_ context.Context, n model.NewTask) (*model.Created, error) {
	f.mu.Lock()
	f.created = append(f.created, n)
	f.mu.Unlock()
	if f.create != nil {
		return f.create(n)
	}
	return fakeCreated(n, 1), nil
}

func (f *fakeTracker) CreateBatch(ctx context.Context, news []model.NewTask) []tasks.CreateResult {
	results := make([]tasks.CreateResult, len(news))
	for i, n := range news {
		results[i].Created, results[i].Err = f.Create(ctx, n)
	}
	return results
}

func (f *fakeTracker) lastCreated() model.NewTask {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.created[len(f.created)-1]
}

func (f *fakeTracker) createdCount() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.created)
}

func (f *fakeTracker) NextAttempt(_ context.Context, s model.Scope, id string, from int) (*model.Created, error) {
	if f.nextAttempt != nil {
		return f.nextAttempt(s, id, from)
	}
	return fakeCreated(model.NewTask{Scope: s, TaskID: id}, from+1), nil
}

func (f *fakeTracker) Cancel(_ context.Context, s model.Scope, id string, how model.CancelRequest) (*model.Task, error) {
	if f.cancel != nil {
		return f.cancel(s, id, how.Reason)
	}
	t := fakeTask(model.NewTask{Scope: s, TaskID: id})
	t.CancelRequested, t.CancelReason = true, how.Reason
	return t, nil
}

func (f *fakeTracker) GetWhenEnded(_ context.Context, s model.Scope, id string, _ time.Duration) (*model.Task, error) {
	if f.get != nil {
		return f.get(s, id)
	}
	return fakeTask(model.NewTask{Scope: s, TaskID: id}), nil
}

func (f *fakeTracker) Wait(_ context.Context, r tasks.WaitRequest) (*tasks.Ended, error) {
	return &tasks.Ended{NotFound: r.TaskIDs}, nil
}

func (f *fakeTracker) List(ctx context.Context, filter model.TaskFilter) (*model.TaskPage, error) {
	f.mu.Lock()
	f.listedFor = store.TenantOf(ctx)
	f.mu.Unlock()
	if f.list != nil {
		return f.list(filter)
	}
	return &model.TaskPage{}, nil
}

func (f *fakeTracker) Run(_ context.Context, s model.Scope, id string) (*model.Run, error) {
	if f.run != nil {
		return f.run(s, id)
	}
	return &model.Run{Scope: s, ID: id, Counts: map[model.State]int{model.Running: 2}, Total: 2}, nil
}

func (f *fakeTracker) CancelMany(
	_ context.Context, _ model.TaskFilter, _ model.CancelRequest, dryRun bool,
) (*tasks.Acted, error) {
	return f.RetryMany(context.Background(), model.TaskFilter{}, dryRun)
}

func (f *fakeTracker) RetryMany(_ context.Context, _ model.TaskFilter, dryRun bool) (*tasks.Acted, error) {
	a := &tasks.Acted{Matched: 3, Next: "task_3"}
	if !dryRun {
		a.Done, a.Refused = 2, map[model.Code]int{model.AlreadyTerminal: 1}
	}
	return a, nil
}

func (f *fakeTracker) CancelRun(ctx context.Context, s model.Scope, id string, _ model.CancelRequest) (*model.Run, error) {
	return f.Run(ctx, s, id)
}

func (f *fakeTracker) Ready(context.Context) error {
	if f.ready != nil {
		return f.ready()
	}
	return nil
}

func fakeTask(n model.NewTask) *model.Task {
	t := &model.Task{
		Scope: n.Scope, ID: n.TaskID, RunID: n.RunID, Key: n.Key, Asset: n.Asset, Type: n.Type, Queue: n.Queue,
		State: model.Dispatched, Attempt: 1, CreatedAt: fakeTime, DispatchedAt: fakeTime,
		Deadline: n.Deadline, Payload: n.Payload, Resources: n.Resources, Labels: n.Labels, Retry: n.Retry,
		HeartbeatInterval: n.HeartbeatInterval, HeartbeatTimeout: n.HeartbeatTimeout, CancelGrace: n.CancelGrace,
	}
	if t.ID == "" {
		t.ID = "task_01HGW5N7XHJM4GX29KZRXQP6N9"
	}
	if t.RunID == "" {
		t.RunID = "run_01HGW5N7XHJM4GX29KZRXQP6N8"
	}
	if n.Queue != "" {
		t.State, t.Attempt, t.DispatchedAt = model.Queued, 0, time.Time{}
	}
	return t
}

func fakeCreated(n model.NewTask, attempt int) *model.Created {
	t := fakeTask(n)
	if n.Queue != "" {
		return &model.Created{Task: t}
	}
	ttl := n.TokenTTL
	if ttl == 0 {
		ttl = model.DefaultTokenTTL
	}
	return &model.Created{Task: t, Envelope: &model.Envelope{
		Task: t, TokenTTL: ttl, RenewToken: !n.NoRenewToken,
		Attempt: &model.Attempt{
			Scope: n.Scope, TaskID: t.ID, RunID: t.RunID, Number: attempt, Fence: "f3nc",
			Timeout: n.HeartbeatTimeout, Interval: n.HeartbeatInterval, IssuedAt: fakeTime,
		},
	}}
}
