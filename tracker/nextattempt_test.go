package tracker_test

import (
	"encoding/json"
	"sync"
	"testing"
	"time"

	"github.com/lubdub-io/lubdub/internal/redistest"
	"github.com/lubdub-io/lubdub/tracker"
)

// Several ask for attempts after each other's. Whoever asks gets the envelope of the attempt after the one that it
// named, or a refusal: never that of one which somebody else has asked for since.
func TestNextAttemptGetsItsOwnEnvelope(t *testing.T) {
	t.Parallel()
	h := newHarness(t, redistest.Real(t))
	h.create(func(n *tracker.NewTask) { n.TaskID = "t1" })
	const last = 300
	var asking sync.WaitGroup
	for range 4 {
		asking.Go(func() {
			for from := 1; from < last; {
				c, err := h.NextAttempt(h.ctx, scope, "t1", from)
				if code := tracker.CodeOf(err); code != "" && code != tracker.AttemptMismatch {
					t.Error(err)
					return
				}
				if err == nil && c.Envelope.Attempt.Number != from+1 {
					t.Errorf("asked for the attempt after %d and got the envelope of attempt %d", from, c.Envelope.Attempt.Number)
				}
				from++
			}
		})
	}
	asking.Wait()
}

// What an attempt reported at its end is the task's while that attempt is the last one, and no longer.
func TestNextAttemptStartsWithoutTheResultOfTheOneBefore(t *testing.T) {
	t.Parallel()
	failed := tracker.Completion{
		Outcome: tracker.Failed, Category: "USER_CODE", Output: json.RawMessage(`{"o":1}`), Metrics: json.RawMessage(`{"m":1}`),
		Error: json.RawMessage(`{"category":"USER_CODE"}`), CancelledDuringPhase: "load", PartialProgress: json.RawMessage(`{"p":1}`),
	}
	check := func(h *harness, what string) {
		h.Helper()
		task := h.get("t1")
		if task.Output != nil || task.Metrics != nil || task.Error != nil || task.CancelledDuringPhase != "" || task.PartialProgress != nil {
			h.Errorf("%s has %s %s %s %q %s", what, task.Output, task.Metrics, task.Error, task.CancelledDuringPhase, task.PartialProgress)
		}
	}
	fail := func(h *harness, a *tracker.Attempt) {
		h.Helper()
		if _, err := h.Complete(h.ctx, a, failed); err != nil {
			h.Fatal(err)
		}
		if task := h.wantState("t1", tracker.Failed, tracker.WorkerReported); string(task.Metrics) != `{"m":1}` || task.CancelledDuringPhase != "load" {
			h.Fatalf("the failed one has %+v", task)
		}
	}
	t.Run("pushed", func(t *testing.T) {
		contract(t, func(h *harness) {
			fail(h, h.running(func(n *tracker.NewTask) { n.TaskID = "t1" }))
			next, err := h.NextAttempt(h.ctx, scope, "t1", 1)
			if err != nil {
				h.Fatal(err)
			}
			check(h, "the next one")
			if _, err := h.Complete(h.ctx, next.Envelope.Attempt, tracker.Completion{Outcome: tracker.Succeeded}); err != nil {
				h.Fatal(err)
			}
			check(h, "the one that succeeded")
		})
	})
	t.Run("claimed", func(t *testing.T) {
		claims(t, func(c *crew) {
			c.hire("w1")
			c.queue("t1", "x")
			fail(c.harness, c.claim("w1", 1)[0].Attempt)
			if _, err := c.NextAttempt(c.ctx, scope, "t1", 1); err != nil {
				c.Fatal(err)
			}
			check(c.harness, "the queued one")
			c.claim("w1", 1)
			check(c.harness, "the next one")
		})
	})
	t.Run("adopted", func(t *testing.T) {
		contract(t, func(h *harness) {
			fail(h, h.running(func(n *tracker.NewTask) { n.TaskID = "t1" }))
			a := h.Attempt(tracker.Attempt{
				Scope: scope, TaskID: "t1", RunID: h.get("t1").RunID, Number: 2, Fence: "lost", Timeout: 2 * time.Second, Interval: time.Second, IssuedAt: h.store.Clock.Now(),
			})
			if b := h.beat(a, ""); b.Err != nil {
				h.Fatal(b.Err)
			}
			check(h, "the one that the store had lost")
		})
	})
}
