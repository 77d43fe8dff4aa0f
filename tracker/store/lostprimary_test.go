package store_test

import (
	"testing"
	"time"

	"github.com/lubdub-io/lubdub/internal/testenv"
	"github.com/lubdub-io/lubdub/tracker"
	"github.com/lubdub-io/lubdub/tracker/beats"
	"github.com/lubdub-io/lubdub/tracker/model"
	"github.com/lubdub-io/lubdub/tracker/queues"
	"github.com/lubdub-io/lubdub/tracker/store"
	"github.com/lubdub-io/lubdub/tracker/sweep"
	"github.com/lubdub-io/lubdub/tracker/trackertest"
)

// Attempt 1 is declared lost and attempt 2 claimed on a primary whose replicas receive neither. After the failover attempt 1 is live, and
// its success is acknowledged as safe on the other replica: attempt 2 does not reverse it.
func TestSentinelALostAttemptDoesNotReverseAnAcknowledgedSuccess(t *testing.T) {
	testenv.OnlyAll(t)
	t.Parallel()
	w := startWatched(t, 2, 1)
	tr := trackertest.Open(t, tracker.Options{RedisURL: w.url(), Durability: store.Replicated, DurableReplicas: 1,
		RedisTimeout: time.Second})
	ctx, sweeper := t.Context(), sweep.NewSweeper(tr.Sweeper, sweep.SweeperOptions{ID: "swp_test"})
	n := model.NewTask{Scope: trackertest.Scope, TaskID: "t1", Queue: "q", Type: "x", HeartbeatInterval: 400 * time.Millisecond,
		IdempotencyKey: "k", IdempotencyHash: "h",
		HeartbeatTimeout: time.Second, Retry: &model.RetryPolicy{MaxAttempts: 3, MaxLosses: 3, Multiplier: 1}}
	if err := n.Validate(time.Now()); err != nil {
		t.Fatal(err)
	}
	trackertest.Eventually(t, "a replica confirms the creation", func() bool { _, err := tr.Tasks.Create(ctx, n); return err == nil })
	claim := func() *model.Attempt {
		t.Helper()
		r, err := tr.Workers.Register(ctx, trackertest.NewWorker(func(n *model.NewWorker) { n.Queue, n.Types = "q", []string{"x"} }))
		if err != nil {
			t.Fatal(err)
		}
		got, err := tr.Queues.Claim(ctx, queues.ClaimRequest{Scope: trackertest.Scope, WorkerID: r.WorkerID, Queue: "q", Max: 1})
		if err != nil || len(got) != 1 {
			t.Fatalf("claimed %v: %v", trackertest.IDs(got), err)
		}
		return got[0].Attempt
	}
	one := claim()
	if _, err := tr.Beats.Start(ctx, one, model.Report{}); err != nil {
		t.Fatal(err)
	}
	old := w.primary(t)
	c := old.Client()
	if err := c.Set(ctx, "last", "received", 0).Err(); err != nil {
		t.Fatal(err)
	}
	for _, s := range w.servers {
		r := s.Client()
		trackertest.Eventually(t, "each server has the start", func() bool { return r.Get(ctx, "last").Val() == "received" })
		_ = r.Close()
	}
	for _, args := range [][]any{{"config", "set", "requirepass", "none-of-them-knows-it"}, {"client", "kill", "type", "replica"}} {
		if err := c.Do(ctx, args...).Err(); err != nil { // authenticated connections stay: those of the tracker
			t.Fatal(err)
		}
	}
	trackertest.Eventually(t, "attempt 1 is declared lost", func() bool {
		_, err := sweeper.RunOnce(ctx)
		task, err2 := tr.Tasks.Get(ctx, trackertest.Scope, "t1")
		return err == nil && err2 == nil && task.State == model.Queued
	})
	two := claim()
	_ = c.Close()
	old.Kill()
	w.promoted(t, old)

	done := model.Completion{Outcome: model.Succeeded, Output: []byte(`{"rows":7}`)}
	trackertest.Eventually(t, "the success of attempt 1 is acknowledged", func() bool {
		_, err := tr.Beats.Complete(ctx, one, done)
		return err == nil
	})
	again := func(how string, err error) {
		t.Helper()
		task, err2 := tr.Tasks.Get(ctx, trackertest.Scope, "t1")
		if err2 != nil {
			t.Fatal(err2)
		}
		if model.CodeOf(err) != model.AlreadyTerminal || task.State != model.Succeeded || task.Attempt != 1 ||
			string(task.Output) != `{"rows":7}` || len(task.History) != 1 {
			t.Errorf("%s of attempt 2: %v; the task is %s in attempt %d: %s", how, err, task.State, task.Attempt, task.Output)
		}
	}
	if two.Number != 2 {
		t.Fatalf("attempt %d was claimed", two.Number)
	}
	_, err := tr.Beats.Start(ctx, two, model.Report{})
	again("start", err)
	b := &beats.Beat{Attempt: two}
	tr.Beats.Beat(b)
	again("beat", b.Err)
	_, err = tr.Beats.Complete(ctx, two, model.Completion{Outcome: model.Succeeded, Output: []byte(`{"rows":8}`)})
	again("completion", err)
}
