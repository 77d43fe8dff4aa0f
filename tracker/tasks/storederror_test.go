package tasks_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/lubdub-io/lubdub/tracker/holdings"
	"github.com/lubdub-io/lubdub/tracker/model"
	"github.com/lubdub-io/lubdub/tracker/trackertest"
)

// However often a task fails, and however large each error is, the stored errors stay small: each one in the history has its own
// fields and at most 2 KiB, and the latest is complete where the task shows why it last failed.
func TestHistoryKeepsErrorsShort(t *testing.T) {
	t.Parallel()
	trackertest.Contract(t, func(h *trackertest.Harness) {
		const tries = model.MaxHistory + 5
		id := h.MustCreate(func(n *model.NewTask) {
			n.Queue, n.HeartbeatTimeout = "default", 0
			n.Retry = &model.RetryPolicy{MaxAttempts: tries, MaxLosses: 3, Multiplier: 1}
		}).Task.ID
		attempts := make([]*model.Attempt, 0, tries)
		worker := h.MustRegister().WorkerID
		for n := range tries {
			text := strings.Repeat("a", n%3) + strings.Repeat([]string{"x", "\\", "ü", "\x01", "😀", "\u2028"}[n%6], 20_000)
			err, _ := json.Marshal(map[string]any{"category": "TIMEOUT", "message": text, "stackTrace": text, "retryable": true, "more": text})
			a := h.MustAssign(id, worker)
			attempts = append(attempts, a)
			done, failed := h.Beats.Complete(h.Ctx, a,
				model.Completion{Outcome: model.Failed, Category: "TIMEOUT", Error: err, Retryable: true})
			if failed != nil || done.WillRetry != (n < tries-1) {
				h.Fatalf("failure %d: %+v %v", n+1, done, failed)
			}
			if task := h.MustGet(id); string(task.Error) != string(err) {
				h.Fatalf("after failure %d the task has %d bytes, want the newest error whole, %d bytes", n+1, len(task.Error), len(err))
			}
		}
		task := h.MustGet(id)
		if len(task.History) != model.MaxHistory {
			h.Fatalf("%d entries", len(task.History))
		}
		for _, e := range task.History {
			var stored struct {
				Category, Message, StackTrace string
				Retryable                     *bool
			}
			if err := json.Unmarshal(e.Error, &stored); err != nil || len(e.Error) > model.MaxHistoryError || !utf8.Valid(e.Error) {
				h.Fatalf("attempt %d keeps %d bytes of error: %v", e.Attempt, len(e.Error), err)
			}
			if stored.Category != "TIMEOUT" || stored.Retryable == nil || len(stored.Message) < 100 || len(stored.StackTrace) < 100 ||
				strings.ContainsRune(stored.Message, utf8.RuneError) {
				h.Fatalf("attempt %d keeps %s", e.Attempt, e.Error)
			}
		}
		other := h.Replica()                                  // which did not serve the claims, and reads the store
		for n, a := range attempts[tries-model.MaxHistory:] { // each kept one can be repeated, and its worker owns it
			if _, err := h.Beats.Complete(h.Ctx, a, model.Completion{Outcome: model.Failed, Retryable: true}); err != nil {
				h.Fatalf("repeat %d: %v", n, err)
			}
			own, err := other.Holdings.Owned(h.Ctx, trackertest.Scope, worker, []holdings.OwnedAttempt{{TaskID: id, Number: a.Number}})
			if err != nil || own[0] == nil || own[0].Fence != a.Fence {
				h.Fatalf("attempt %d: %+v %v", a.Number, own[0], err)
			}
		}
	})
}

// The error of a failed attempt is the task's until the next attempt, and is not the error of what ends the task while it waits.
func TestTheErrorOfAFailedAttemptIsNotTheVerdicts(t *testing.T) {
	t.Parallel()
	trackertest.Contract(t, func(h *trackertest.Harness) {
		worker := h.MustRegister().WorkerID
		fails := func(id string) {
			h.MustCreate(func(n *model.NewTask) {
				n.TaskID, n.Queue, n.HeartbeatTimeout, n.Deadline = id, "default", 0, h.Store.Clock.Now().Add(10*time.Second)
				n.Retry = &model.RetryPolicy{MaxAttempts: 3, InitialBackoff: time.Minute, Multiplier: 1, MaxBackoff: time.Minute}
			})
			if _, err := h.Beats.Complete(h.Ctx, h.MustAssign(id, worker),
				model.Completion{Outcome: model.Failed, Error: json.RawMessage(`{"category":"TIMEOUT","message":"mine"}`),
					Retryable: true}); err != nil {
				h.Fatal(err)
			}
			if task := h.WantState(id, model.Queued, ""); !strings.Contains(string(task.Error), "mine") {
				h.Fatalf("while it waits %s has the error %s", id, task.Error)
			}
		}
		fails("cancelled")
		fails("late")
		if _, err := h.Tasks.Cancel(h.Ctx, trackertest.Scope, "cancelled", model.CancelRequest{}); err != nil {
			h.Fatal(err)
		}
		h.Advance(11 * time.Second)
		h.MustSweep()
		if task := h.WantState("cancelled", model.Cancelled, ""); task.Error != nil {
			h.Errorf("cancelled, it has the error %s", task.Error)
		}
		if task := h.WantState("late", model.Failed, model.DeadlineExceeded); strings.Contains(string(task.Error), "mine") ||
			task.Error == nil {
			h.Errorf("after its deadline it has the error %s", task.Error)
		}
	})
}

// A store that lost entries in the middle of a history still finds the others, and none in place of the lost ones.
func TestHistoriesWithHolesAreSearched(t *testing.T) {
	t.Parallel()
	trackertest.Contract(t, func(h *trackertest.Harness) {
		id := h.MustCreate(func(n *model.NewTask) {
			n.Queue, n.HeartbeatTimeout = "default", 0
			n.Retry = &model.RetryPolicy{MaxAttempts: 100, Multiplier: 1}
		}).Task.ID
		const tries = 40
		worker := h.MustRegister().WorkerID
		lost := map[int]bool{3: true, 4: true, 17: true, 39: true}
		for n := range tries {
			a := h.MustAssign(id, worker)
			if _, err := h.Beats.Complete(h.Ctx, a, model.Completion{Outcome: model.Failed, Retryable: true}); err != nil {
				h.Fatal(err)
			}
			if history := strings.Replace(trackertest.TaskRecord(h.Tracker, trackertest.Scope, id), ":task:", ":history:", 1); lost[n+1] {
				if err := h.Store.Client.RPop(h.Ctx, history).Err(); err != nil {
					h.Fatal(err)
				}
			}
		}
		other := h.Replica() // which did not serve the claims, and reads the store
		for n := 1; n <= tries+1; n++ {
			own, err := other.Holdings.Owned(h.Ctx, trackertest.Scope, worker, []holdings.OwnedAttempt{{TaskID: id, Number: n}})
			if err != nil {
				h.Fatal(err)
			}
			if want := !lost[n] && n <= tries || n == tries; (own[0] != nil) != want {
				h.Errorf("attempt %d is owned: %v, want %v", n, own[0] != nil, want)
			}
		}
	})
}

// A client that lists the same attempts repeatedly has each looked up once, a few in a script.
func TestOwnedAttemptsAreLookedUpOnceAndFewAtATime(t *testing.T) {
	t.Parallel()
	trackertest.Contract(t, func(h *trackertest.Harness) {
		var names []holdings.OwnedAttempt
		for n := range 1000 {
			names = append(names, holdings.OwnedAttempt{TaskID: fmt.Sprint("t", n%120), Number: 1})
		}
		id := h.MustCreate(func(n *model.NewTask) { n.TaskID, n.Queue, n.HeartbeatTimeout = "t7", "default", 0 }).Task.ID
		worker := h.MustRegister().WorkerID
		h.MustAssign(id, worker)
		other := h.Replica() // which did not serve the claim, and reads the store
		calls := trackertest.RecordCalls(other.Tracker, "owned")
		own, err := other.Holdings.Owned(h.Ctx, trackertest.Scope, worker, names)
		if err != nil {
			h.Fatal(err)
		}
		for n, a := range own {
			if (a != nil) != (names[n].TaskID == id) {
				h.Fatalf("item %d of %s: %+v", n, names[n].TaskID, a)
			}
		}
		total := 0
		for _, c := range calls() {
			if c.Keys > 100 {
				h.Errorf("one script looks up %d attempts", c.Keys/2)
			}
			total += c.Keys / 2
		}
		if total != 120 {
			h.Errorf("%d attempts were looked up, want 120", total)
		}
	})
}

// A zero backoff stays zero however often it is doubled.
func TestNoBackoffStaysNone(t *testing.T) {
	t.Parallel()
	trackertest.Contract(t, func(h *trackertest.Harness) {
		const tries = 200
		id := h.MustCreate(func(n *model.NewTask) {
			n.Queue, n.HeartbeatTimeout = "default", 0
			n.Retry = &model.RetryPolicy{MaxAttempts: model.MaxRetryAttempts, Multiplier: model.MaxMultiplier, MaxBackoff: model.MaxTimeout}
		}).Task.ID
		worker := h.MustRegister().WorkerID
		for n := range tries {
			if _, err := h.Beats.Complete(h.Ctx, h.MustAssign(id, worker), model.Completion{Outcome: model.Failed, Retryable: true}); err != nil {
				h.Fatal(err)
			}
			if task := h.MustGet(id); !task.NextAttemptAt.IsZero() {
				h.Fatalf("after failure %d the next attempt is at %v", n+1, task.NextAttemptAt)
			}
		}
	})
}
