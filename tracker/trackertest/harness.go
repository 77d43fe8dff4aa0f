package trackertest

import (
	"context"
	"io"
	"log/slog"
	"testing"
	"time"

	"github.com/lubdub-io/lubdub/internal/redistest"
	"github.com/lubdub-io/lubdub/tracker"
	"github.com/lubdub-io/lubdub/tracker/beats"
	"github.com/lubdub-io/lubdub/tracker/model"
	"github.com/lubdub-io/lubdub/tracker/sweep"
)

var Scope = model.Scope{Tenant: "acme", Workspace: "prod"}

// Harness is a tracker and a sweeper on one store, with a clock that the test controls.
type Harness struct {
	testing.TB
	*tracker.Tracker
	Store   *redistest.Store
	Sweeper *sweep.Sweeper
	Ctx     context.Context
}

func NewHarness(t testing.TB, s *redistest.Store, change ...func(*tracker.Options)) *Harness {
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
	h := &Harness{TB: t, Tracker: tr, Store: s, Ctx: ctx, Sweeper: sweep.NewSweeper(tr.Sweeper, sweep.SweeperOptions{ID: "swp_test"})}
	h.MustTick()
	return h
}

func (h *Harness) MustTick() {
	h.Helper()
	if err := h.Beats.Tick(); err != nil {
		h.Fatalf("tick: %v", err)
	}
}

// Advance advances the clock while front ends are alive: shard time follows.
func (h *Harness) Advance(d time.Duration) {
	h.Helper()
	for d > 0 {
		step := min(d, 250*time.Millisecond)
		h.Store.Clock.Advance(step)
		h.MustTick()
		d -= step
	}
}

// AdvanceBeating advances the clock while these attempts beat every two seconds.
func (h *Harness) AdvanceBeating(d time.Duration, alive ...*model.Attempt) {
	h.Helper()
	for d > 0 {
		step := min(d, 2*time.Second)
		h.Advance(step)
		d -= step
		batch := make([]*beats.Beat, len(alive))
		for i, a := range alive {
			batch[i] = &beats.Beat{Attempt: a}
		}
		h.Beats.BeatMany(batch)
		for _, b := range batch {
			if b.Err != nil {
				h.Fatalf("a beat of a live attempt: %v", b.Err)
			}
		}
	}
}

// MustSweep runs one complete sweep.
func (h *Harness) MustSweep() sweep.SweepResult {
	h.Helper()
	r, err := h.Sweeper.RunOnce(h.Ctx)
	if err != nil {
		h.Fatalf("sweep: %v", err)
	}
	return r
}

// MustCreate creates a valid task, after applying `change`.
func (h *Harness) MustCreate(change ...func(*model.NewTask)) *model.Created {
	h.Helper()
	n := model.NewTask{Scope: Scope, HeartbeatInterval: time.Second, HeartbeatTimeout: 2 * time.Second}
	for _, f := range change {
		f(&n)
	}
	if err := n.Validate(h.Store.Clock.Now()); err != nil {
		h.Fatalf("validate: %v", err)
	}
	c, err := h.Tasks.Create(h.Ctx, n)
	if err != nil {
		h.Fatalf("create: %v", err)
	}
	return c
}

// Running creates a pushed task and starts its attempt.
func (h *Harness) Running(change ...func(*model.NewTask)) *model.Attempt {
	h.Helper()
	a := h.MustCreate(change...).Envelope.Attempt
	if _, err := h.Beats.Start(h.Ctx, a, model.Report{WorkerID: "w1"}); err != nil {
		h.Fatalf("start: %v", err)
	}
	return a
}

func (h *Harness) MustBeat(a *model.Attempt, report string) *beats.Beat {
	b := &beats.Beat{Attempt: a, Report: report}
	h.Beats.Beat(b)
	return b
}

func (h *Harness) MustGet(id string) *model.Task {
	h.Helper()
	task, err := h.Tasks.Get(h.Ctx, Scope, id)
	if err != nil {
		h.Fatalf("get %s: %v", id, err)
	}
	return task
}

func (h *Harness) WantState(id string, state model.State, reason model.Reason) *model.Task {
	h.Helper()
	task := h.MustGet(id)
	if task.State != state || task.Reason != reason {
		h.Fatalf("task %s is %s %q, want %s %q", id, task.State, task.Reason, state, reason)
	}
	return task
}

func (h *Harness) WantCode(err error, code model.Code) {
	h.Helper()
	if got := model.CodeOf(err); got != code {
		h.Fatalf("code %q, want %q (%v)", got, code, err)
	}
}

func Contract(t *testing.T, test func(h *Harness), change ...func(*tracker.Options)) {
	t.Helper()
	redistest.Each(t, func(t *testing.T, s *redistest.Store) { test(NewHarness(t, s, change...)) })
}

func Queued(n *model.NewTask) { n.Queue, n.Type = "default", "send_email" }
