package tasks_test

import (
	"encoding/json"
	"sync"
	"testing"
	"time"

	"github.com/lubdub-io/lubdub/internal/redistest"
	"github.com/lubdub-io/lubdub/tracker/model"
	"github.com/lubdub-io/lubdub/tracker/trackertest"
)

// Several clients request attempts after each other's. Each gets the envelope of the attempt after the one that it named, or a
// refusal: never the envelope that another client has requested since.
func TestNextAttemptGetsItsOwnEnvelope(t *testing.T) {
	t.Parallel()
	h := trackertest.NewHarness(t, redistest.Real(t))
	h.MustCreate(func(n *model.NewTask) { n.TaskID = "t1" })
	const last = 300
	var clients sync.WaitGroup
	for range 4 {
		clients.Go(func() {
			for from := 1; from < last; {
				c, err := h.Tasks.NextAttempt(h.Ctx, trackertest.Scope, "t1", from)
				if code := model.CodeOf(err); code != "" && code != model.AttemptMismatch {
					t.Error(err)
					return
				}
				if err == nil && c.Envelope.Attempt.Number != from+1 {
					t.Errorf("requested the attempt after %d and got the envelope of attempt %d", from, c.Envelope.Attempt.Number)
				}
				from++
			}
		})
	}
	clients.Wait()
}

// The result of an attempt is the task's only while that attempt is the last one.
func TestNextAttemptStartsWithoutTheResultOfTheOneBefore(t *testing.T) {
	t.Parallel()
	failed := model.Completion{
		Outcome: model.Failed, Category: "USER_CODE", Output: json.RawMessage(`{"o":1}`), Metrics: json.RawMessage(`{"m":1}`),
		Error: json.RawMessage(`{"category":"USER_CODE"}`), CancelledDuringPhase: "load", PartialProgress: json.RawMessage(`{"p":1}`),
	}
	check := func(h *trackertest.Harness, what string) {
		h.Helper()
		task := h.MustGet("t1")
		if task.Output != nil || task.Metrics != nil || task.Error != nil || task.CancelledDuringPhase != "" || task.PartialProgress != nil {
			h.Errorf("%s has %s %s %s %q %s", what, task.Output, task.Metrics, task.Error, task.CancelledDuringPhase, task.PartialProgress)
		}
	}
	fail := func(h *trackertest.Harness, a *model.Attempt) {
		h.Helper()
		if _, err := h.Beats.Complete(h.Ctx, a, failed); err != nil {
			h.Fatal(err)
		}
		if task := h.WantState("t1", model.Failed, model.WorkerReported); string(task.Metrics) != `{"m":1}` ||
			task.CancelledDuringPhase != "load" {
			h.Fatalf("the failed one has %+v", task)
		}
	}
	t.Run("pushed", func(t *testing.T) {
		trackertest.Contract(t, func(h *trackertest.Harness) {
			fail(h, h.Running(func(n *model.NewTask) { n.TaskID = "t1" }))
			next, err := h.Tasks.NextAttempt(h.Ctx, trackertest.Scope, "t1", 1)
			if err != nil {
				h.Fatal(err)
			}
			check(h, "the next one")
			if _, err := h.Beats.Complete(h.Ctx, next.Envelope.Attempt, model.Completion{Outcome: model.Succeeded}); err != nil {
				h.Fatal(err)
			}
			check(h, "the one that succeeded")
		})
	})
	t.Run("claimed", func(t *testing.T) {
		trackertest.Claims(t, func(c *trackertest.Fleet) {
			c.Hire("w1")
			c.MustQueue("t1", "x")
			fail(c.Harness, c.MustClaim("w1", 1)[0].Attempt)
			if _, err := c.Tasks.NextAttempt(c.Ctx, trackertest.Scope, "t1", 1); err != nil {
				c.Fatal(err)
			}
			check(c.Harness, "the queued one")
			c.MustClaim("w1", 1)
			check(c.Harness, "the next one")
		})
	})
	t.Run("adopted", func(t *testing.T) {
		trackertest.Contract(t, func(h *trackertest.Harness) {
			fail(h, h.Running(func(n *model.NewTask) { n.TaskID = "t1" }))
			a := h.Beats.Attempt(model.Attempt{
				Scope: trackertest.Scope, TaskID: "t1", RunID: h.MustGet("t1").RunID, Number: 2, Fence: "lost", Timeout: 2 * time.Second,
				Interval: time.Second, IssuedAt: h.Store.Clock.Now(),
			})
			if b := h.MustBeat(a, ""); b.Err != nil {
				h.Fatal(b.Err)
			}
			check(h, "the one that the store had lost")
		})
	})
}
