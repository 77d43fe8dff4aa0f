package tracker_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/lubdub-io/lubdub/tracker/model"
	"github.com/lubdub-io/lubdub/tracker/queues"
	"github.com/lubdub-io/lubdub/tracker/trackertest"
)

func TestLifecycle(t *testing.T) {
	t.Parallel()
	trackertest.Contract(t, func(h *trackertest.Harness) {
		c := h.MustCreate(func(n *model.NewTask) {
			n.TaskID, n.Key, n.Labels = "t1", "raw.events", map[string]string{"team": "x"}
		})
		a := c.Envelope.Attempt
		h.WantState("t1", model.Dispatched, "")
		ack, err := h.Beats.Start(h.Ctx, a, model.Report{WorkerID: "w1"})
		if err != nil || !ack.At.Equal(h.Store.Clock.Now()) || ack.Cancel != nil {
			t := h.TB
			t.Fatalf("start: %+v %v", ack, err)
		}
		h.Advance(time.Second)
		if b := h.MustBeat(a, "1768471201000\tw1\t45\t\"partition 5 of 10\""); b.Err != nil || !b.At.Equal(h.Store.Clock.Now()) {
			h.Fatalf("beat: %+v", b)
		}
		h.Advance(500 * time.Millisecond)
		task := h.WantState("t1", model.Running, "")
		if task.Progress.Pct != "45" || task.Progress.Message != `"partition 5 of 10"` || task.WorkerID != "w1" ||
			task.Liveness != model.Fresh ||
			task.RunID != "run_t1" || task.Labels["team"] != "x" || task.Key != "raw.events" {
			h.Fatalf("%+v", task)
		}
		if want := h.Store.Clock.Now().Add(-500 * time.Millisecond); !task.LastHeartbeatAt.Equal(want) {
			h.Fatalf("last heartbeat %v, want %v", task.LastHeartbeatAt, want)
		}
		for range 2 { // repeating the completion returns the same result
			done, err := h.Beats.Complete(h.Ctx, a, model.Completion{Outcome: model.Succeeded, Output: json.RawMessage(`{"rows":1}`)})
			if err != nil || done.Outcome != model.Succeeded || done.WillRetry {
				h.Fatalf("complete: %+v %v", done, err)
			}
		}
		task = h.WantState("t1", model.Succeeded, "")
		if string(task.Output) != `{"rows":1}` || len(task.History) != 1 || task.History[0].Outcome != "SUCCEEDED" ||
			task.History[0].LastProgress.Pct != "45" {
			h.Fatalf("%+v", task)
		}
		b := h.MustBeat(a, "")
		h.WantCode(b.Err, model.AlreadyTerminal)
		_, err = h.Beats.Complete(h.Ctx, a, model.Completion{Outcome: model.Cancelled})
		h.WantCode(err, model.AlreadyTerminal)
	})
}

func TestZombie(t *testing.T) {
	t.Parallel()
	trackertest.Contract(t, func(h *trackertest.Harness) {
		a := h.Running(func(n *model.NewTask) { n.TaskID = "t1" })
		h.Advance(2 * time.Second)
		if r := h.MustSweep(); r.Zombies != 0 {
			h.Fatalf("swept at the timeout, not past it: %+v", r)
		}
		h.Advance(20 * time.Millisecond)
		if r := h.MustSweep(); r.Zombies != 1 {
			h.Fatalf("sweep: %+v", r)
		}
		task := h.WantState("t1", model.Failed, model.HeartbeatTimeout)
		e := task.History[0].Evidence
		if task.History[0].Outcome != "ZOMBIE" || e == nil || e.Silent != 2020*time.Millisecond || e.Timeout != 2*time.Second ||
			e.DetectionLag != 20*time.Millisecond || e.Sweeper != "swp_test" || e.OutageCredit != 0 ||
			!e.LastHeartbeatAt.Equal(h.Store.Clock.Now().Add(-2020*time.Millisecond)) {
			h.Fatalf("%+v evidence %+v", task.History[0], e)
		}
		h.WantCode(h.MustBeat(a, "").Err, model.Expired)
		_, err := h.Beats.Start(h.Ctx, a, model.Report{})
		h.WantCode(err, model.AlreadyTerminal)
		_, err = h.Beats.Complete(h.Ctx, a, model.Completion{Outcome: model.Succeeded})
		h.WantCode(err, model.AlreadyTerminal)

		c, err := h.Tasks.NextAttempt(h.Ctx, trackertest.Scope, "t1", 1)
		if err != nil || c.Envelope == nil || c.Envelope.Attempt.Number != 2 {
			h.Fatalf("next attempt: %+v %v", c, err)
		}
		again, err := h.Tasks.NextAttempt(h.Ctx, trackertest.Scope, "t1", 1)
		if err != nil || again.Envelope.Attempt.Fence != c.Envelope.Attempt.Fence {
			h.Fatalf("the same fromAttempt again: %+v %v", again, err)
		}
		b := h.MustBeat(a, "")
		h.WantCode(b.Err, model.AttemptMismatch)
		if e := b.Err.(*model.Error); e.Expected != 2 || e.Received != 1 {
			h.Fatalf("%+v", e)
		}
		if b := h.MustBeat(c.Envelope.Attempt, ""); b.Err != nil { // a beat before started starts the attempt
			h.Fatal(b.Err)
		}
		h.WantState("t1", model.Running, "")
	})
}

// An outage of the store costs a worker at most one step of shard time.
func TestAnOutageExpiresNoTask(t *testing.T) {
	t.Parallel()
	trackertest.Contract(t, func(h *trackertest.Harness) {
		a := h.Running(func(n *model.NewTask) { n.TaskID = "t1" })
		h.Advance(time.Second)
		h.Store.Clock.Advance(time.Hour)
		h.MustTick()
		if r := h.MustSweep(); r.Zombies != 0 {
			h.Fatalf("an outage killed: %+v", r)
		}
		if task := h.WantState("t1", model.Running, ""); task.Liveness != model.Fresh {
			h.Fatalf("liveness %s", task.Liveness)
		}
		h.Store.Clock.Advance(-2 * time.Hour) // a node with another clock
		h.MustTick()
		if b := h.MustBeat(a, ""); b.Err != nil {
			h.Fatal(b.Err)
		}
		h.Advance(1900 * time.Millisecond)
		h.Store.Clock.Advance(time.Minute)
		h.Advance(time.Second)
		if r := h.MustSweep(); r.Zombies != 1 {
			h.Fatalf("the truly dead: %+v", r)
		}
		e := h.MustGet("t1").History[0].Evidence
		if e.OutageCredit != time.Minute || e.Silent <= 2*time.Second {
			h.Fatalf("evidence %+v", e)
		}
	})
}

func TestCancel(t *testing.T) {
	t.Parallel()
	trackertest.Contract(t, func(h *trackertest.Harness) {
		a := h.Running(func(n *model.NewTask) { n.TaskID, n.CancelGrace = "t1", 3*time.Second })
		for _, reason := range []string{"user_requested", "again"} {
			task, err := h.Tasks.Cancel(h.Ctx, trackertest.Scope, "t1", model.CancelRequest{Reason: reason})
			if err != nil || task.State != model.Running || !task.CancelRequested || task.CancelReason != "user_requested" {
				h.Fatalf("cancel: %+v %v", task, err)
			}
		}
		h.Advance(1500 * time.Millisecond) // no worker was notified yet: no grace period runs
		b := h.MustBeat(a, "")
		if b.Err != nil || b.Cancel == nil || b.Cancel.Reason != "user_requested" || b.Cancel.Delivered {
			h.Fatalf("%+v %+v", b, b.Cancel)
		}
		h.Beats.CancelDelivered(a)
		trackertest.Eventually(h, "the delivery is recorded", func() bool { // in the background
			if b = h.MustBeat(a, ""); b.Err != nil {
				h.Fatal(b.Err)
			}
			return b.Cancel != nil && b.Cancel.Delivered
		})
		for range 3 {
			h.Advance(time.Second)
			h.Beats.CancelDelivered(a) // delivered again: the grace period does not restart
			h.MustGet("t1")
			if b := h.MustBeat(a, ""); b.Err != nil || b.Cancel == nil {
				h.Fatalf("%+v", b)
			}
		}
		if r := h.MustSweep(); r.TimedOut != 1 {
			h.Fatalf("grace over: %+v", r)
		}
		h.WantState("t1", model.Failed, model.CancelTimeout)

		h.MustCreate(func(n *model.NewTask) { n.TaskID = "t2" })
		for range 2 { // the first response may have been lost
			if task, err := h.Tasks.Cancel(h.Ctx, trackertest.Scope, "t2", model.CancelRequest{}); err != nil || task.State != model.Cancelled {
				h.Fatalf("%+v %v", task, err)
			}
		}
		_, err := h.Tasks.Cancel(h.Ctx, trackertest.Scope, "t1", model.CancelRequest{})
		h.WantCode(err, model.AlreadyTerminal)
		_, err = h.Tasks.Cancel(h.Ctx, trackertest.Scope, "nosuch", model.CancelRequest{})
		h.WantCode(err, model.NotFound)
	})
}

func TestRetries(t *testing.T) {
	t.Parallel()
	trackertest.Contract(t, func(h *trackertest.Harness) {
		h.MustCreate(trackertest.Queued, func(n *model.NewTask) {
			n.TaskID = "t1"
			n.HeartbeatTimeout = 2 * time.Second
			n.Retry = &model.RetryPolicy{MaxAttempts: 2, MaxLosses: 1, InitialBackoff: time.Second, Multiplier: 3, MaxBackoff: time.Minute}
		})
		worker := h.MustRegister().WorkerID
		dispatch := func(from int) *model.Attempt {
			a := h.MustAssign("t1", worker)
			if a.Number != from+1 {
				h.Fatalf("from %d: %+v", from, a)
			}
			if _, err := h.Beats.Start(h.Ctx, a, model.Report{}); err != nil {
				h.Fatal(err)
			}
			return a
		}
		a := dispatch(0)
		h.MustBeat(a, "\tw1\t30\t\"x\"")
		h.Advance(2100 * time.Millisecond) // a loss
		if r := h.MustSweep(); r.Zombies != 1 || r.Requeued != 1 {
			h.Fatalf("%+v", r)
		}
		task := h.WantState("t1", model.Queued, "")
		if want := h.Store.Clock.Now().Add(time.Second); !task.NextAttemptAt.Equal(want) || task.Attempt != 1 {
			h.Fatalf("next at %v, want %v; %+v", task.NextAttemptAt, want, task)
		}
		h.WantCode(h.MustBeat(a, "").Err, model.Expired)
		early, err := h.Queues.Claim(h.Ctx, queues.ClaimRequest{Scope: trackertest.Scope, WorkerID: worker, Queue: "default", Max: 1})
		if err != nil || len(early) != 0 {
			h.Fatalf("before its time: %v %v", trackertest.IDs(early), err)
		}
		h.Advance(time.Second)
		if r := h.MustSweep(); r.Ready != 1 {
			h.Fatalf("%+v", r)
		}
		a2 := dispatch(1)
		c, err := h.Tasks.NextAttempt(h.Ctx, trackertest.Scope, "t1", 1)
		if err != nil || c.Task.Attempt != 2 {
			h.Fatalf("%+v %v", c, err)
		}
		for range 2 {
			done, err := h.Beats.Complete(h.Ctx, a2, model.Completion{Outcome: model.Failed, Retryable: true,
				Error: json.RawMessage(`{"category":"USER_CODE"}`)})
			if err != nil || !done.WillRetry || done.NextAttempt != 3 {
				h.Fatalf("%+v %v", done, err)
			}
		}
		task = h.MustGet("t1")
		if want := h.Store.Clock.Now().Add(3 * time.Second); task.State != model.Queued || !task.NextAttemptAt.Equal(want) {
			h.Fatalf("%+v", task)
		}
		h.Advance(3 * time.Second)
		h.MustSweep()
		a3 := dispatch(2)
		done, err := h.Beats.Complete(h.Ctx, a2, model.Completion{Outcome: model.Failed, Retryable: true})
		if err != nil || !done.WillRetry { // late, but equal to its history
			h.Fatalf("%+v %v", done, err)
		}
		done, err = h.Beats.Complete(h.Ctx, a3, model.Completion{Outcome: model.Failed, Retryable: true})
		if err != nil || done.WillRetry {
			h.Fatalf("maxAttempts: %+v %v", done, err)
		}
		task = h.WantState("t1", model.Failed, model.WorkerReported)
		if len(task.History) != 3 || task.History[0].LastProgress.Pct != "30" {
			h.Fatalf("%+v", task.History)
		}
	})
}
