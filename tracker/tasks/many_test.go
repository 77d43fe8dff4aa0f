package tasks_test

import (
	"fmt"
	"maps"
	"testing"
	"time"

	"github.com/lubdub-io/lubdub/tracker"
	"github.com/lubdub-io/lubdub/tracker/holdings"
	"github.com/lubdub-io/lubdub/tracker/model"
	"github.com/lubdub-io/lubdub/tracker/tasks"
	"github.com/lubdub-io/lubdub/tracker/trackertest"
)

// acted compares the result of an act on many tasks.
func acted(h *trackertest.Harness, a *tasks.Acted, err error, matched, done int, refused map[model.Code]int) {
	h.Helper()
	if err != nil || a.Matched != matched || a.Done != done || !maps.Equal(a.Refused, refused) {
		h.Fatalf("%+v %v, want %d matched, %d done, refused %v", a, err, matched, done, refused)
	}
}

// More tasks than one call examines are cancelled part by part; a repeated part is left unchanged.
func TestCancelManyTasks(t *testing.T) {
	t.Parallel()
	trackertest.Contract(t, func(h *trackertest.Harness) {
		const all = 1100
		var news []model.NewTask
		for i := range all {
			n := model.NewTask{Scope: trackertest.Scope, TaskID: fmt.Sprintf("t%04d", i), Queue: []string{"a", "b"}[i%2], Type: "x"}
			if err := n.Validate(h.Store.Clock.Now()); err != nil {
				h.Fatal(err)
			}
			news = append(news, n)
		}
		for _, r := range append(h.Tasks.CreateBatch(h.Ctx, news[:600]), h.Tasks.CreateBatch(h.Ctx, news[600:])...) {
			if r.Err != nil {
				h.Fatal(r.Err)
			}
		}
		f := model.TaskFilter{Scope: trackertest.Scope, Queue: "a"}
		counted, err := h.Tasks.CancelMany(h.Ctx, f, now, true)
		acted(h, counted, err, 500, 0, map[model.Code]int{})
		first, err := h.Tasks.CancelMany(h.Ctx, f, now, false)
		acted(h, first, err, 500, 500, map[model.Code]int{})
		again, err := h.Tasks.CancelMany(h.Ctx, f, now, false)
		acted(h, again, err, 500, 500, map[model.Code]int{})
		if first.Next == "" || again.Next != first.Next || counted.Next != first.Next {
			h.Fatalf("%q %q %q", counted.Next, first.Next, again.Next)
		}
		f.After = first.Next
		last, err := h.Tasks.CancelMany(h.Ctx, f, now, false)
		acted(h, last, err, 50, 50, map[model.Code]int{})
		if last.Next != "" {
			h.Fatal(last.Next)
		}
		if e := h.Events(""); e["task.cancelled"] != all/2 {
			h.Fatalf("%v", e)
		}
		h.WantState("t0001", model.Queued, "")
		h.WantState("t1098", model.Cancelled, model.Terminated)
	}, patient)
}

// patient makes calls end by their number of tasks, never by their time, even on a busy host.
func patient(o *tracker.Options) { o.RedisTimeout = time.Minute }

// Each matching task has its own result; workers are notified of those that they hold.
func TestCancelTasksOfAWorker(t *testing.T) {
	t.Parallel()
	trackertest.Claims(t, func(c *trackertest.Fleet) {
		c.Hire("w")
		c.Hire("other")
		held := c.MustHolding("w", 2)
		c.MustQueue("theirs", "x")
		c.MustClaim("other", 1)
		if _, err := c.Beats.Complete(c.Ctx, held[0], model.Completion{Outcome: model.Succeeded}); err != nil {
			c.Fatal(err)
		}
		f := model.TaskFilter{Scope: trackertest.Scope, MachineID: "host-w"}
		counted, err := c.Tasks.CancelMany(c.Ctx, f, model.CancelRequest{}, true)
		acted(c.Harness, counted, err, 2, 0, map[model.Code]int{})
		if counted.WouldDo != 1 {
			c.Fatalf("a dry run counts %d to cancel, of which one has ended and one runs", counted.WouldDo)
		}
		a, err := c.Tasks.CancelMany(c.Ctx, f, model.CancelRequest{Reason: "why"}, false)
		acted(c.Harness, a, err, 2, 1, map[model.Code]int{model.AlreadyTerminal: 1})
		c.WantNotices(c.MustBeatWorker(c.IDs["w"]).Cancels, holdings.TaskNotice{TaskID: held[1].TaskID, Attempt: 1, Reason: "why"})
		if task := c.MustGet("theirs"); task.CancelRequested {
			c.Fatalf("%+v", task)
		}
	})
}

// Failed tasks are retried once, queue tasks and pushed ones; others are refused according to their state.
func TestRetryManyTasks(t *testing.T) {
	t.Parallel()
	trackertest.Claims(t, func(c *trackertest.Fleet) {
		c.Hire("w")
		labels := func(n *model.NewTask) { n.Labels = map[string]string{"team": "a"} }
		end := func(a *model.Attempt, outcome model.State) {
			c.Helper()
			if _, err := c.Beats.Complete(c.Ctx, a, model.Completion{Outcome: outcome}); err != nil {
				c.Fatal(err)
			}
		}
		c.MustQueue("queue", "x", labels)
		end(c.MustClaim("w", 1)[0].Attempt, model.Failed)
		c.MustQueue("done", "x", labels)
		end(c.MustClaim("w", 1)[0].Attempt, model.Succeeded)
		c.Advance(time.Second)
		later := c.Store.Clock.Now()
		end(c.Running(labels, func(n *model.NewTask) { n.TaskID = "pushed" }), model.Failed)
		c.MustQueue("waits", "x", labels)
		c.Running(labels, func(n *model.NewTask) { n.TaskID = "runs" })
		end(c.Running(func(n *model.NewTask) { n.TaskID = "another" }), model.Failed)

		f := model.TaskFilter{Scope: trackertest.Scope, Labels: map[string]string{"team": "a"}}
		since := f
		since.FinishedAfter, since.States = later, []model.State{model.Failed}
		a, err := c.Tasks.RetryMany(c.Ctx, since, true)
		acted(c.Harness, a, err, 1, 0, map[model.Code]int{})
		if a, err = c.Tasks.RetryMany(c.Ctx, f, true); err != nil || a.Matched != 5 || a.WouldDo != 2 {
			c.Fatalf("a dry run counts %+v %v to retry, of which two have failed", a, err)
		}
		refused := map[model.Code]int{model.AlreadyTerminal: 1, tasks.NotFailed: 2}
		a, err = c.Tasks.RetryMany(c.Ctx, f, false)
		acted(c.Harness, a, err, 5, 2, refused)
		c.WantState("queue", model.Queued, "")
		if task := c.WantState("pushed", model.Dispatched, ""); task.Attempt != 2 {
			c.Fatalf("%+v", task)
		}
		c.WantState("another", model.Failed, model.WorkerReported)
		refused[tasks.NotFailed] = 4
		a, err = c.Tasks.RetryMany(c.Ctx, f, false)
		acted(c.Harness, a, err, 5, 0, refused)
		made, err := c.Tasks.NextAttempt(c.Ctx, trackertest.Scope, "pushed", 1)
		if err != nil || made.Envelope == nil || made.Envelope.Attempt.Number != 2 {
			c.Fatalf("%+v %v", made, err)
		}
		got := c.MustClaim("w", 9)
		c.WantIDs(got, "queue", "waits")
		if got[0].Attempt.Number != 2 {
			c.Fatalf("%+v", got[0].Attempt)
		}
	})
}

// A retry whose response was lost is made once.
func TestALostReplyOfARetryIsMadeGood(t *testing.T) {
	t.Parallel()
	trackertest.Contract(t, func(h *trackertest.Harness) {
		for i := range 3 {
			a := h.Running(func(n *model.NewTask) { n.TaskID = fmt.Sprint("t", i) })
			if _, err := h.Beats.Complete(h.Ctx, a, model.Completion{Outcome: model.Failed}); err != nil {
				h.Fatal(err)
			}
		}
		f := model.TaskFilter{Scope: trackertest.Scope, States: []model.State{model.Failed}}
		trackertest.FailCalls(h.Tracker, "next_attempt", true, func(n int) bool { return n == 1 })
		_, err := h.Tasks.RetryMany(h.Ctx, f, false)
		h.WantCode(err, model.Unavailable)
		if _, err = h.Tasks.RetryMany(h.Ctx, f, false); err != nil {
			h.Fatal(err)
		}
		for i := range 3 {
			if task := h.WantState(fmt.Sprint("t", i), model.Dispatched, ""); task.Attempt != 2 || len(task.History) != 1 {
				h.Fatalf("%+v", task)
			}
		}
	})
}
