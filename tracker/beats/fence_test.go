package beats_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/lubdub-io/lubdub/tracker/model"
	"github.com/lubdub-io/lubdub/tracker/trackertest"
)

// After a failover that lost an attempt, its number is assigned again: the fences distinguish the two.
func TestFence(t *testing.T) {
	t.Parallel()
	trackertest.Contract(t, func(h *trackertest.Harness) {
		a := h.Running(func(n *model.NewTask) { n.TaskID = "t1" })
		twin := *a
		twin.Fence = "zzzz"
		b := h.Beats.Attempt(twin)
		h.WantCode(h.MustBeat(b, "").Err, model.AttemptMismatch)
		_, err := h.Beats.Start(h.Ctx, b, model.Report{})
		h.WantCode(err, model.AttemptMismatch)
		_, err = h.Beats.Complete(h.Ctx, b, model.Completion{Outcome: model.Succeeded})
		h.WantCode(err, model.AttemptMismatch)
		h.WantState("t1", model.Running, "")
		if err := h.MustBeat(a, "").Err; err != nil {
			h.Fatal(err)
		}
	})
}

// While a cancel is pending the worker's outcome is final, and the task is not retried.
func TestNothingIsRetriedUnderCancel(t *testing.T) {
	t.Parallel()
	trackertest.Contract(t, func(h *trackertest.Harness) {
		worker := h.MustRegister().WorkerID
		for _, id := range []string{"fails", "dies"} {
			h.MustCreate(trackertest.Queued, func(n *model.NewTask) { n.TaskID, n.HeartbeatTimeout = id, 2*time.Second })
			a := h.MustAssign(id, worker)
			if err := h.MustBeat(a, "").Err; err != nil {
				h.Fatal(err)
			}
			if _, err := h.Tasks.Cancel(h.Ctx, trackertest.Scope, id, model.CancelRequest{}); err != nil {
				h.Fatal(err)
			}
			if id == "dies" {
				h.Advance(2100 * time.Millisecond)
				h.MustSweep()
				h.WantState(id, model.Failed, model.HeartbeatTimeout)
				continue
			}
			done, err := h.Beats.Complete(h.Ctx, a, model.Completion{
				Outcome: model.Failed, Retryable: true, Error: json.RawMessage(`{"category":"USER_CODE"}`)})
			if err != nil || done.WillRetry {
				h.Fatalf("%+v %v", done, err)
			}
			h.WantState(id, model.Failed, model.WorkerReported)
		}
	})
}

// Progress is kept: fields that a partial report omits stay, and the next attempt gets the last report.
func TestProgressIsPassedToTheNextAttempt(t *testing.T) {
	t.Parallel()
	trackertest.Contract(t, func(h *trackertest.Harness) {
		a := h.Running(func(n *model.NewTask) { n.TaskID = "t1" })
		for _, r := range []string{"", "1768471200500\tw1\t10\t\"ten\"", "\t\t20\t", "1768471201000\t\t\t"} {
			if err := h.MustBeat(a, r).Err; err != nil {
				h.Fatal(err)
			}
		}
		task := h.MustGet("t1")
		if task.Progress != (model.Progress{Pct: "20", Message: `"ten"`}) || task.ReportedAt.UnixMilli() != 1768471201000 {
			h.Fatalf("%+v %v", task.Progress, task.ReportedAt)
		}
		c, err := h.Tasks.NextAttempt(h.Ctx, trackertest.Scope, "t1", 1)
		if err != nil || c.Envelope.LastProgress == nil || c.Envelope.LastProgress.Pct != "20" {
			h.Fatalf("%+v %v", c, err)
		}
	})
}
