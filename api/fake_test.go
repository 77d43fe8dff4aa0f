package api

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/lubdub-io/lubdub/tracker"
)

// fakeTracker answers as a test tells it to. It is for the HTTP layer only: what the domain does is tested
// against the real one in contract_test.go. A nil function has the default of its method.
type fakeTracker struct {
	beat        func(*tracker.Beat)
	start       func(*tracker.Attempt, tracker.Report) (tracker.Acknowledged, error)
	complete    func(*tracker.Attempt, tracker.Completion) (tracker.Completed, error)
	create      func(tracker.NewTask) (*tracker.Created, error)
	nextAttempt func(tracker.Scope, string, int) (*tracker.Created, error)
	beatWorker  func() error // of a worker's heartbeat
	cancel      func(tracker.Scope, string, string) (*tracker.Task, error)
	get         func(tracker.Scope, string) (*tracker.Task, error)
	list        func(tracker.TaskFilter) (*tracker.TaskPage, error)
	run         func(tracker.Scope, string) (*tracker.Run, error)
	ready       func() error
	nodes       []tracker.NodeHealth
	systemErr   error
	owns        bool // workers own every attempt that they name
	doubts      bool // the store has lost writes

	heed   func(all, news []tracker.Revocation)
	revoke func(tracker.Revocation) error
	naming func() // before Attempt answers; nil: nothing

	skew      time.Duration
	mu        sync.Mutex
	named     int // how often Attempt was asked
	delivered []*tracker.Attempt
	created   []tracker.NewTask
}

func (f *fakeTracker) Skew() time.Duration { return f.skew }

// Revoke is heeded at once.
func (f *fakeTracker) Revoke(_ context.Context, r tracker.Revocation) error {
	if f.revoke != nil {
		return f.revoke(r)
	}
	f.heed([]tracker.Revocation{r}, []tracker.Revocation{r})
	return nil
}

func (f *fakeTracker) HeedRevocations(heed func(all, news []tracker.Revocation)) {
	f.heed = heed
	heed(nil, nil)
}

var fakeTime = time.Date(2025, 1, 15, 10, 5, 0, 0, time.UTC)

func (f *fakeTracker) Attempt(a tracker.Attempt) *tracker.Attempt {
	if f.naming != nil {
		f.naming()
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.named++
	return &a
}

func (f *fakeTracker) Beat(b *tracker.Beat) {
	b.At = fakeTime
	if f.beat != nil {
		f.beat(b)
	}
}

func (f *fakeTracker) Beats(beats []*tracker.Beat) {
	for _, b := range beats {
		f.Beat(b)
	}
}

// Land lands each beat by itself, as it came, and a panic is an error that nobody knows.
func (f *fakeTracker) Land(beats []*tracker.Beat, landed func([]*tracker.Beat)) {
	for _, b := range beats {
		go func() {
			defer func() {
				if p := recover(); p != nil {
					b.Err = &tracker.Error{Code: "panic", Cause: fmt.Errorf("%v", p)}
				}
				landed([]*tracker.Beat{b})
			}()
			b.Cancel, b.Err = nil, nil
			f.Beat(b)
		}()
	}
}

func (f *fakeTracker) CancelDelivered(a *tracker.Attempt) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.delivered = append(f.delivered, a)
}

func (f *fakeTracker) deliveredCount() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.delivered)
}

func (f *fakeTracker) Start(_ context.Context, a *tracker.Attempt, r tracker.Report) (tracker.Acknowledged, error) {
	if f.start != nil {
		return f.start(a, r)
	}
	return tracker.Acknowledged{At: fakeTime}, nil
}

func (f *fakeTracker) Complete(_ context.Context, a *tracker.Attempt, c tracker.Completion) (tracker.Completed, error) {
	if f.complete != nil {
		return f.complete(a, c)
	}
	return tracker.Completed{At: fakeTime, Outcome: c.Outcome}, nil
}

func (f *fakeTracker) Create(_ context.Context, n tracker.NewTask) (*tracker.Created, error) {
	f.mu.Lock()
	f.created = append(f.created, n)
	f.mu.Unlock()
	if f.create != nil {
		return f.create(n)
	}
	return fakeCreated(n, 1), nil
}

func (f *fakeTracker) CreateBatch(ctx context.Context, news []tracker.NewTask) []tracker.CreateResult {
	results := make([]tracker.CreateResult, len(news))
	for i, n := range news {
		results[i].Created, results[i].Err = f.Create(ctx, n)
	}
	return results
}

func (f *fakeTracker) lastCreated() tracker.NewTask {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.created[len(f.created)-1]
}

func (f *fakeTracker) createdCount() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.created)
}

func (f *fakeTracker) NextAttempt(_ context.Context, s tracker.Scope, id string, from int) (*tracker.Created, error) {
	if f.nextAttempt != nil {
		return f.nextAttempt(s, id, from)
	}
	return fakeCreated(tracker.NewTask{Scope: s, TaskID: id}, from+1), nil
}

func (f *fakeTracker) Cancel(_ context.Context, s tracker.Scope, id string, how tracker.CancelRequest) (*tracker.Task, error) {
	if f.cancel != nil {
		return f.cancel(s, id, how.Reason)
	}
	t := fakeTask(tracker.NewTask{Scope: s, TaskID: id})
	t.CancelRequested, t.CancelReason = true, how.Reason
	return t, nil
}

func (f *fakeTracker) Get(_ context.Context, s tracker.Scope, id string) (*tracker.Task, error) {
	if f.get != nil {
		return f.get(s, id)
	}
	return fakeTask(tracker.NewTask{Scope: s, TaskID: id}), nil
}

func (f *fakeTracker) List(_ context.Context, filter tracker.TaskFilter) (*tracker.TaskPage, error) {
	if f.list != nil {
		return f.list(filter)
	}
	return &tracker.TaskPage{}, nil
}

func (f *fakeTracker) Run(_ context.Context, s tracker.Scope, id string) (*tracker.Run, error) {
	if f.run != nil {
		return f.run(s, id)
	}
	return &tracker.Run{Scope: s, ID: id, Counts: map[tracker.State]int{tracker.Running: 2}, Total: 2}, nil
}

func (f *fakeTracker) CancelTasks(
	_ context.Context, _ tracker.TaskFilter, _ tracker.CancelRequest, dryRun bool,
) (*tracker.ActedOnTasks, error) {
	return f.RetryTasks(context.Background(), tracker.TaskFilter{}, dryRun)
}

func (f *fakeTracker) RetryTasks(_ context.Context, _ tracker.TaskFilter, dryRun bool) (*tracker.ActedOnTasks, error) {
	a := &tracker.ActedOnTasks{Matched: 3, Next: "task_3"}
	if !dryRun {
		a.Done, a.Refused = 2, map[tracker.Code]int{tracker.AlreadyTerminal: 1}
	}
	return a, nil
}

func (f *fakeTracker) CancelRun(ctx context.Context, s tracker.Scope, id string, _ tracker.CancelRequest) (*tracker.Run, error) {
	return f.Run(ctx, s, id)
}

func (f *fakeTracker) Ready(context.Context) error {
	if f.ready != nil {
		return f.ready()
	}
	return nil
}

func fakeTask(n tracker.NewTask) *tracker.Task {
	t := &tracker.Task{
		Scope: n.Scope, ID: n.TaskID, RunID: n.RunID, Key: n.Key, Asset: n.Asset, Type: n.Type, Queue: n.Queue,
		State: tracker.Dispatched, Attempt: 1, CreatedAt: fakeTime, DispatchedAt: fakeTime,
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
		t.State, t.Attempt, t.DispatchedAt = tracker.Queued, 0, time.Time{}
	}
	return t
}

func fakeCreated(n tracker.NewTask, attempt int) *tracker.Created {
	t := fakeTask(n)
	if n.Queue != "" {
		return &tracker.Created{Task: t}
	}
	ttl := n.TokenTTL
	if ttl == 0 {
		ttl = tracker.DefaultTokenTTL
	}
	return &tracker.Created{Task: t, Envelope: &tracker.Envelope{
		Task: t, TokenTTL: ttl, RenewToken: !n.NoRenewToken,
		Attempt: &tracker.Attempt{
			Scope: n.Scope, TaskID: t.ID, RunID: t.RunID, Number: attempt, Fence: "f3nc",
			Timeout: n.HeartbeatTimeout, Interval: n.HeartbeatInterval, IssuedAt: fakeTime,
		},
	}}
}
