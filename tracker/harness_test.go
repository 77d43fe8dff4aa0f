package tracker_test

import (
	"context"
	"io"
	"log/slog"
	"testing"
	"time"

	"github.com/lubdub-io/lubdub/internal/redistest"
	"github.com/lubdub-io/lubdub/tracker"
)

var scope = tracker.Scope{Tenant: "acme", Workspace: "prod"}

// harness is a tracker and a sweeper on one store, with the clock in hand.
type harness struct {
	testing.TB
	*tracker.Tracker
	store   *redistest.Store
	sweeper *tracker.Sweeper
	ctx     context.Context
}

func newHarness(t testing.TB, s *redistest.Store, change ...func(*tracker.Options)) *harness {
	t.Helper()
	ctx := context.Background()
	o := tracker.Options{
		RedisURL: s.URL, Scripts: s.Scripts, RedisTimeout: 10 * time.Second, Shards: 2, Logger: slog.New(slog.NewTextHandler(io.Discard, nil)),
	}
	for _, f := range change {
		f(&o)
	}
	tr, err := tracker.Open(ctx, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = tr.Close(ctx) })
	h := &harness{TB: t, Tracker: tr, store: s, ctx: ctx, sweeper: tracker.NewSweeper(tr, tracker.SweeperOptions{ID: "swp_test"})}
	h.tick()
	return h
}

func (h *harness) tick() {
	h.Helper()
	if err := h.Tick(); err != nil {
		h.Fatalf("tick: %v", err)
	}
}

// advance moves the clock while front ends are alive: shard time follows.
func (h *harness) advance(d time.Duration) {
	h.Helper()
	for d > 0 {
		step := min(d, 250*time.Millisecond)
		h.store.Clock.Advance(step)
		h.tick()
		d -= step
	}
}

// sweep does one sweep of everything.
func (h *harness) sweep() tracker.SweepResult {
	h.Helper()
	r, err := h.sweeper.RunOnce(h.ctx)
	if err != nil {
		h.Fatalf("sweep: %v", err)
	}
	return r
}

// create creates a valid task; change edits it first.
func (h *harness) create(change ...func(*tracker.NewTask)) *tracker.Created {
	h.Helper()
	n := tracker.NewTask{Scope: scope, HeartbeatInterval: time.Second, HeartbeatTimeout: 2 * time.Second}
	for _, f := range change {
		f(&n)
	}
	if err := n.Validate(h.store.Clock.Now()); err != nil {
		h.Fatalf("validate: %v", err)
	}
	c, err := h.Create(h.ctx, n)
	if err != nil {
		h.Fatalf("create: %v", err)
	}
	return c
}

// running creates a pushed task and starts its attempt.
func (h *harness) running(change ...func(*tracker.NewTask)) *tracker.Attempt {
	h.Helper()
	a := h.create(change...).Envelope.Attempt
	if _, err := h.Start(h.ctx, a, tracker.Report{WorkerID: "w1"}); err != nil {
		h.Fatalf("start: %v", err)
	}
	return a
}

func (h *harness) beat(a *tracker.Attempt, report string) *tracker.Beat {
	b := &tracker.Beat{Attempt: a, Report: report}
	h.Beat(b)
	return b
}

func (h *harness) get(id string) *tracker.Task {
	h.Helper()
	task, err := h.Get(h.ctx, scope, id)
	if err != nil {
		h.Fatalf("get %s: %v", id, err)
	}
	return task
}

func (h *harness) wantState(id string, state tracker.State, reason tracker.Reason) *tracker.Task {
	h.Helper()
	task := h.get(id)
	if task.State != state || task.Reason != reason {
		h.Fatalf("task %s is %s %q, want %s %q", id, task.State, task.Reason, state, reason)
	}
	return task
}

func (h *harness) wantCode(err error, code tracker.Code) {
	h.Helper()
	if got := tracker.CodeOf(err); got != code {
		h.Fatalf("code %q, want %q (%v)", got, code, err)
	}
}

func contract(t *testing.T, test func(h *harness), change ...func(*tracker.Options)) {
	t.Helper()
	redistest.Each(t, func(t *testing.T, s *redistest.Store) { test(newHarness(t, s, change...)) })
}
