package tracker_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/lubdub-io/lubdub/tracker"
)

// After a failover that lost an attempt, its number is given out again: the two are told apart by their fences.
func TestFence(t *testing.T) {
	t.Parallel()
	contract(t, func(h *harness) {
		a := h.running(func(n *tracker.NewTask) { n.TaskID = "t1" })
		twin := *a
		twin.Fence = "zzzz"
		b := h.Attempt(twin)
		h.wantCode(h.beat(b, "").Err, tracker.AttemptMismatch)
		_, err := h.Start(h.ctx, b, tracker.Report{})
		h.wantCode(err, tracker.AttemptMismatch)
		_, err = h.Complete(h.ctx, b, tracker.Completion{Outcome: tracker.Succeeded})
		h.wantCode(err, tracker.AttemptMismatch)
		h.wantState("t1", tracker.Running, "")
		if err := h.beat(a, "").Err; err != nil {
			h.Fatal(err)
		}
	})
}

// While a cancel is pending the worker's outcome stands, and nothing is retried.
func TestNothingIsRetriedUnderCancel(t *testing.T) {
	t.Parallel()
	contract(t, func(h *harness) {
		for _, id := range []string{"fails", "dies"} {
			h.create(queued, func(n *tracker.NewTask) { n.TaskID, n.HeartbeatTimeout = id, 2*time.Second })
			c, err := h.Dispatch(h.ctx, scope, id, 0, "w1")
			if err != nil {
				h.Fatal(err)
			}
			if err := h.beat(c.Envelope.Attempt, "").Err; err != nil {
				h.Fatal(err)
			}
			if _, err := h.Cancel(h.ctx, scope, id, ""); err != nil {
				h.Fatal(err)
			}
			if id == "dies" {
				h.advance(2100 * time.Millisecond)
				h.sweep()
				h.wantState(id, tracker.Failed, tracker.HeartbeatTimeout)
				continue
			}
			done, err := h.Complete(h.ctx, c.Envelope.Attempt, tracker.Completion{
				Outcome: tracker.Failed, Retryable: true, Error: json.RawMessage(`{"category":"USER_CODE"}`)})
			if err != nil || done.WillRetry {
				h.Fatalf("%+v %v", done, err)
			}
			h.wantState(id, tracker.Failed, tracker.WorkerReported)
		}
	})
}

// Progress is handed over: what a partial report leaves out stands, and the next attempt gets the last one.
func TestProgressIsHandedOver(t *testing.T) {
	t.Parallel()
	contract(t, func(h *harness) {
		a := h.running(func(n *tracker.NewTask) { n.TaskID = "t1" })
		for _, r := range []string{"", "1768471200500\tw1\t10\t\"ten\"", "\t\t20\t", "1768471201000\t\t\t"} {
			if err := h.beat(a, r).Err; err != nil {
				h.Fatal(err)
			}
		}
		task := h.get("t1")
		if task.Progress != (tracker.Progress{Pct: "20", Message: `"ten"`}) || task.ReportedAt.UnixMilli() != 1768471201000 {
			h.Fatalf("%+v %v", task.Progress, task.ReportedAt)
		}
		c, err := h.NextAttempt(h.ctx, scope, "t1", 1)
		if err != nil || c.Envelope.LastProgress == nil || c.Envelope.LastProgress.Pct != "20" {
			h.Fatalf("%+v %v", c, err)
		}
	})
}
