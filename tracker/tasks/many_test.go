package tasks_test

import (
	"fmt"
	"maps"
	"testing"
	"time"

	"github.com/lubdub-io/lubdub/tracker"
	"github.com/lubdub-io/lubdub/tracker/trackertest"
)

// acted compares what an act on many tasks counted.
func acted(h *trackertest.Harness, a *tracker.ActedOnTasks, err error, matched, done int, refused map[tracker.Code]int) {
	h.Helper()
	if err != nil || a.Matched != matched || a.Done != done || !maps.Equal(a.Refused, refused) {
		h.Fatalf("%+v %v, want %d matched, %d done, refused %v", a, err, matched, done, refused)
	}
}

// More tasks than one call looks at are cancelled part by part; a part that is asked for again is left as it is.
func TestCancelManyTasks(t *testing.T) {
	t.Parallel()
	trackertest.Contract(t, func(h *trackertest.Harness) {
		const all = 1100
		var news []tracker.NewTask
		for i := range all {
			n := tracker.NewTask{Scope: trackertest.Scope, TaskID: fmt.Sprintf("t%04d", i), Queue: []string{"a", "b"}[i%2], Type: "x"}
			if err := n.Validate(h.Store.Clock.Now()); err != nil {
				h.Fatal(err)
			}
			news = append(news, n)
		}
		for _, r := range append(h.CreateBatch(h.Ctx, news[:600]), h.CreateBatch(h.Ctx, news[600:])...) {
			if r.Err != nil {
				h.Fatal(r.Err)
			}
		}
		f := tracker.TaskFilter{Scope: trackertest.Scope, Queue: "a"}
		counted, err := h.CancelTasks(h.Ctx, f, now, true)
		acted(h, counted, err, 500, 0, map[tracker.Code]int{})
		first, err := h.CancelTasks(h.Ctx, f, now, false)
		acted(h, first, err, 500, 500, map[tracker.Code]int{})
		again, err := h.CancelTasks(h.Ctx, f, now, false)
		acted(h, again, err, 500, 500, map[tracker.Code]int{})
		if first.Next == "" || again.Next != first.Next || counted.Next != first.Next {
			h.Fatalf("%q %q %q", counted.Next, first.Next, again.Next)
		}
		f.After = first.Next
		last, err := h.CancelTasks(h.Ctx, f, now, false)
		acted(h, last, err, 50, 50, map[tracker.Code]int{})
		if last.Next != "" {
			h.Fatal(last.Next)
		}
		if e := h.Events(""); e["task.cancelled"] != all/2 {
			h.Fatalf("%v", e)
		}
		h.WantState("t0001", tracker.Queued, "")
		h.WantState("t1098", tracker.Cancelled, tracker.Terminated)
	}, patient)
}

// patient lets calls end by their number of tasks, never by their time, on a busy machine too.
func patient(o *tracker.Options) { o.RedisTimeout = time.Minute }

// Each of the tasks that match has its own outcome; workers are told of those that they hold.
func TestCancelTasksOfAWorker(t *testing.T) {
	t.Parallel()
	trackertest.Claims(t, func(c *trackertest.Crew) {
		c.Hire("w")
		c.Hire("other")
		held := c.MustHolding("w", 2)
		c.MustQueue("theirs", "x")
		c.MustClaim("other", 1)
		if _, err := c.Complete(c.Ctx, held[0], tracker.Completion{Outcome: tracker.Succeeded}); err != nil {
			c.Fatal(err)
		}
		f := tracker.TaskFilter{Scope: trackertest.Scope, MachineID: "host-w"}
		counted, err := c.CancelTasks(c.Ctx, f, tracker.CancelRequest{}, true)
		acted(c.Harness, counted, err, 2, 0, map[tracker.Code]int{})
		if counted.WouldDo != 1 {
			c.Fatalf("a dry run counts %d to cancel, of which one has ended and one runs", counted.WouldDo)
		}
		a, err := c.CancelTasks(c.Ctx, f, tracker.CancelRequest{Reason: "why"}, false)
		acted(c.Harness, a, err, 2, 1, map[tracker.Code]int{tracker.AlreadyTerminal: 1})
		c.WantNotices(c.MustBeatWorker(c.IDs["w"]).Cancels, tracker.TaskNotice{TaskID: held[1].TaskID, Attempt: 1, Reason: "why"})
		if task := c.MustGet("theirs"); task.CancelRequested {
			c.Fatalf("%+v", task)
		}
	})
}

// What has failed is tried again, queue tasks and pushed ones, once; others are refused by what they are.
func TestRetryManyTasks(t *testing.T) {
	t.Parallel()
	trackertest.Claims(t, func(c *trackertest.Crew) {
		c.Hire("w")
		labels := func(n *tracker.NewTask) { n.Labels = map[string]string{"team": "a"} }
		end := func(a *tracker.Attempt, outcome tracker.State) {
			c.Helper()
			if _, err := c.Complete(c.Ctx, a, tracker.Completion{Outcome: outcome}); err != nil {
				c.Fatal(err)
			}
		}
		c.MustQueue("queue", "x", labels)
		end(c.MustClaim("w", 1)[0].Attempt, tracker.Failed)
		c.MustQueue("done", "x", labels)
		end(c.MustClaim("w", 1)[0].Attempt, tracker.Succeeded)
		c.Advance(time.Second)
		later := c.Store.Clock.Now()
		end(c.Running(labels, func(n *tracker.NewTask) { n.TaskID = "pushed" }), tracker.Failed)
		c.MustQueue("waits", "x", labels)
		c.Running(labels, func(n *tracker.NewTask) { n.TaskID = "runs" })
		end(c.Running(func(n *tracker.NewTask) { n.TaskID = "another" }), tracker.Failed)

		f := tracker.TaskFilter{Scope: trackertest.Scope, Labels: map[string]string{"team": "a"}}
		since := f
		since.FinishedAfter, since.States = later, []tracker.State{tracker.Failed}
		a, err := c.RetryTasks(c.Ctx, since, true)
		acted(c.Harness, a, err, 1, 0, map[tracker.Code]int{})
		if a, err = c.RetryTasks(c.Ctx, f, true); err != nil || a.Matched != 5 || a.WouldDo != 2 {
			c.Fatalf("a dry run counts %+v %v to retry, of which two have failed", a, err)
		}
		refused := map[tracker.Code]int{tracker.AlreadyTerminal: 1, tracker.NotFailed: 2}
		a, err = c.RetryTasks(c.Ctx, f, false)
		acted(c.Harness, a, err, 5, 2, refused)
		c.WantState("queue", tracker.Queued, "")
		if task := c.WantState("pushed", tracker.Dispatched, ""); task.Attempt != 2 {
			c.Fatalf("%+v", task)
		}
		c.WantState("another", tracker.Failed, tracker.WorkerReported)
		refused[tracker.NotFailed] = 4
		a, err = c.RetryTasks(c.Ctx, f, false)
		acted(c.Harness, a, err, 5, 0, refused)
		made, err := c.NextAttempt(c.Ctx, trackertest.Scope, "pushed", 1)
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

// A retry whose reply was lost is made once.
func TestALostReplyOfARetryIsMadeGood(t *testing.T) {
	t.Parallel()
	trackertest.Contract(t, func(h *trackertest.Harness) {
		for i := range 3 {
			a := h.Running(func(n *tracker.NewTask) { n.TaskID = fmt.Sprint("t", i) })
			if _, err := h.Complete(h.Ctx, a, tracker.Completion{Outcome: tracker.Failed}); err != nil {
				h.Fatal(err)
			}
		}
		f := tracker.TaskFilter{Scope: trackertest.Scope, States: []tracker.State{tracker.Failed}}
		trackertest.FailCalls(h.Tracker, "next_attempt", true, func(n int) bool { return n == 1 })
		_, err := h.RetryTasks(h.Ctx, f, false)
		h.WantCode(err, tracker.Unavailable)
		if _, err = h.RetryTasks(h.Ctx, f, false); err != nil {
			h.Fatal(err)
		}
		for i := range 3 {
			if task := h.WantState(fmt.Sprint("t", i), tracker.Dispatched, ""); task.Attempt != 2 || len(task.History) != 1 {
				h.Fatalf("%+v", task)
			}
		}
	})
}
