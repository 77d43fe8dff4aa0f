package tasks_test

import (
	"testing"
	"time"

	"github.com/lubdub-io/lubdub/tracker/model"
	"github.com/lubdub-io/lubdub/tracker/trackertest"
)

var now = model.CancelRequest{Reason: "stop it", Now: true}

// A terminated task is CANCELLED at once, whether or not a cancel was requested before; later reports of the worker are refused like those
// of any attempt that Lubdub has ended.
func TestTerminate(t *testing.T) {
	t.Parallel()
	for name, before := range map[string]func(h *trackertest.Harness){
		"running":   func(*trackertest.Harness) {},
		"cancelled": func(h *trackertest.Harness) { cancelled(h, "t", model.CancelRequest{Reason: "please"}) },
		"repeated":  func(h *trackertest.Harness) { cancelled(h, "t", now) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			trackertest.Contract(t, func(h *trackertest.Harness) {
				a := h.Running(func(n *model.NewTask) { n.TaskID = "t" })
				h.Advance(500 * time.Millisecond)
				before(h)
				cancelled(h, "t", now)
				task := h.WantState("t", model.Cancelled, model.Terminated)
				if e := task.History[0]; e.Outcome != "CANCELLED" || e.Reason != model.Terminated || e.Evidence != nil ||
					!e.LastHeartbeatAt.Equal(e.StartedAt) || e.EndedAt.Sub(e.StartedAt) != 500*time.Millisecond {
					h.Fatalf("%+v", e)
				}
				b := h.MustBeat(a, "")
				h.WantCode(b.Err, model.Expired)
				refused(h, b.Err)
				for _, outcome := range []model.State{model.Succeeded, model.Cancelled} {
					_, err := h.Beats.Complete(h.Ctx, a, model.Completion{Outcome: outcome})
					h.WantCode(err, model.AlreadyTerminal)
					refused(h, err)
				}
				_, err := h.Beats.Start(h.Ctx, a, model.Report{})
				h.WantCode(err, model.AlreadyTerminal)
				if e := h.Events("t"); e["task.cancel_requested"] != 1 || e["task.cancelled"] != 1 {
					h.Fatalf("%v", e)
				}
				h.Advance(time.Minute) // nothing is left that could come due
				h.MustSweep()
				h.WantState("t", model.Cancelled, model.Terminated)
				if page, err := h.Tasks.List(h.Ctx, model.TaskFilter{Scope: trackertest.Scope, Reason: model.Terminated, PageSize: 9}); err != nil ||
					len(page.Tasks) != 1 {
					h.Fatalf("%+v %v", page, err)
				}
			})
		})
	}
}

func cancelled(h *trackertest.Harness, id string, how model.CancelRequest) {
	h.Helper()
	if _, err := h.Tasks.Cancel(h.Ctx, trackertest.Scope, id, how); err != nil {
		h.Fatal(err)
	}
}

// refused checks that a refusal states how the task ended.
func refused(h *trackertest.Harness, err error) {
	h.Helper()
	if e := err.(*model.Error); e.State != model.Cancelled || e.Reason != model.Terminated {
		h.Fatalf("%+v", e)
	}
}

// A task that no worker has started ends too; the worker of a claimed task is notified by its heartbeat and has its place free
// again.
func TestTerminateWhatIsQueuedOrClaimed(t *testing.T) {
	t.Parallel()
	trackertest.Claims(t, func(c *trackertest.Fleet) {
		c.Hire("w", func(n *model.NewWorker) { n.MaxConcurrent = 2 })
		held := c.MustHolding("w", 1)
		c.MustQueue("claimed", "x")
		c.MustClaim("w", 1)
		c.MustQueue("queued", "x")
		for _, id := range []string{held[0].TaskID, "claimed", "queued"} {
			cancelled(c.Harness, id, now)
			c.WantState(id, model.Cancelled, model.Terminated)
		}
		c.MustSweep()
		lost := c.MustBeatWorker(c.IDs["w"]).Lost
		if len(lost) != 2 || lost[0].Error != model.Expired || lost[1].Error != model.Expired {
			c.Fatalf("%+v", lost)
		}
		if w := c.MustWorker(c.IDs["w"]); w.Held != 0 {
			c.Fatalf("%+v", w)
		}
		c.MustQueue("next", "x")
		c.WantIDs(c.MustClaim("w", 2), "next")
		if _, err := c.Tasks.Cancel(c.Ctx, trackertest.Scope, "nosuch", now); model.CodeOf(err) != model.NotFound {
			c.Fatal(err)
		}
	})
}

// The grace of a cancel is its own: the last value that was given counts, from the delivery to the worker, and is part of the
// evidence.
func TestTheGraceOfACancel(t *testing.T) {
	t.Parallel()
	trackertest.Contract(t, func(h *trackertest.Harness) {
		long := func(n *model.NewTask) {
			n.HeartbeatInterval, n.HeartbeatTimeout, n.CancelGrace = 20*time.Second, time.Minute, 30*time.Second
		}
		given := h.Running(long, func(n *model.NewTask) { n.TaskID = "given" })
		changed := h.Running(long, func(n *model.NewTask) { n.TaskID = "changed" })
		own := h.Running(long, func(n *model.NewTask) { n.TaskID = "own" })
		cancelled(h, "given", model.CancelRequest{Grace: time.Second})
		cancelled(h, "changed", model.CancelRequest{})
		cancelled(h, "own", model.CancelRequest{})
		for _, a := range []*model.Attempt{given, changed, own} {
			h.Beats.CancelDelivered(a)
			trackertest.Eventually(h, "the delivery is recorded", func() bool { return h.MustBeat(a, "").Cancel.Delivered })
		}
		cancelled(h, "changed", model.CancelRequest{Grace: 2 * time.Second})
		cancelled(h, "given", model.CancelRequest{}) // does not give one
		want := func(id string, state model.State, timeout time.Duration) {
			h.Helper()
			task := h.MustGet(id)
			if task.State != state || timeout != 0 && (task.Reason != model.CancelTimeout || task.History[0].Evidence.Timeout != timeout) {
				h.Fatalf("%s is %s: %+v", id, task.State, task.History)
			}
		}
		h.Advance(time.Second)
		h.MustSweep()
		want("given", model.Failed, time.Second)
		want("changed", model.Running, 0)
		h.Advance(time.Second)
		h.MustSweep()
		want("changed", model.Failed, 2*time.Second)
		want("own", model.Running, 0)
	})
}
