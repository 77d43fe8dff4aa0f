package workers_test

import (
	"errors"
	"testing"
	"time"

	"github.com/lubdub-io/lubdub/internal/redistest"
	"github.com/lubdub-io/lubdub/tracker/model"
	"github.com/lubdub-io/lubdub/tracker/queues"
	"github.com/lubdub-io/lubdub/tracker/trackertest"
	"github.com/lubdub-io/lubdub/tracker/workers"
)

// The response to a creation names the worker for which the task waits, and a repeat returns the same, even if that worker has
// ended.
func TestACreationReturnsItsWorker(t *testing.T) {
	t.Parallel()
	trackertest.Contract(t, func(h *trackertest.Harness) {
		first := h.MustRegister().WorkerID
		once := func(n *model.NewTask) { n.TaskID, n.IdempotencyKey, n.IdempotencyHash = "t1", "key", "hash" }
		if c := h.MustCreate(trackertest.Placed("leastLoaded"), once); c.Task.WorkerID != first {
			h.Fatalf("it waits for %q, want %q", c.Task.WorkerID, first)
		}
		pinned := func(n *model.NewTask) {
			n.TaskID, n.Queue, n.HeartbeatTimeout, n.WorkerID = "t2", "default", 0, first
		}
		if c := h.MustCreate(pinned); c.Task.WorkerID != first {
			h.Fatalf("it is pinned to %q, want %q", c.Task.WorkerID, first)
		}
		h.MustRegister()
		if _, err := h.Workers.Retire(h.Ctx, trackertest.Scope, first, model.WorkerForced, ""); err != nil {
			h.Fatal(err)
		}
		h.MustSweep()
		if c := h.MustCreate(trackertest.Placed("leastLoaded"), once); c.Task.WorkerID != first || c.Task.ID != "t1" {
			h.Fatalf("the repeat returns %q, want %q", c.Task.WorkerID, first)
		}
		later := func(n *model.NewTask) { n.RunAt = h.Store.Clock.Now().Add(time.Hour) }
		if c := h.MustCreate(trackertest.Placed("leastLoaded"), later); c.Task.WorkerID != "" {
			h.Fatalf("what is placed later waits for %q", c.Task.WorkerID)
		}
	})
}

// A task that exists is returned whether or not another one would find a worker.
func TestAPlacedTaskThatExists(t *testing.T) {
	t.Parallel()
	trackertest.Contract(t, func(h *trackertest.Harness) {
		id := h.MustRegister().WorkerID
		once := func(n *model.NewTask) { n.TaskID, n.IdempotencyKey, n.IdempotencyHash = "t1", "key", "hash" }
		h.MustCreate(trackertest.Placed("random"), once)
		if _, err := h.Workers.Retire(h.Ctx, trackertest.Scope, id, model.WorkerForced, ""); err != nil {
			h.Fatal(err)
		}
		again := model.NewTask{Scope: trackertest.Scope, TaskID: "t1", HeartbeatInterval: time.Second}
		trackertest.Placed("random")(&again)
		other := again
		other.TaskID = "t2"
		results := h.Tasks.CreateBatch(h.Ctx, []model.NewTask{again, other})
		h.WantCode(results[0].Err, model.Exists)
		h.WantCode(results[1].Err, model.NoMatchingWorkers)
		// What a first request with this key created before it was cut off belongs to its repeat.
		h.Store.Client.HDel(h.Ctx, trackertest.IdempotencyKey(h.Tracker, trackertest.Scope, "key"), "c", "w")
		if c := h.MustCreate(trackertest.Placed("random"), once); c.Task.ID != "t1" {
			h.Fatalf("%+v", c.Task)
		}
	})
}

// The request does not wait for its own reservations, which are for its own tasks.
func TestABatchThatOverfillsFailsAtOnce(t *testing.T) {
	redistest.EachMeasured(t, func(t *testing.T, s *redistest.Store) redistest.TooLong {
		h := trackertest.NewHarness(t, s)
		h.MustRegister(func(n *model.NewWorker) { n.MaxConcurrent = 2 })
		var batch []model.NewTask
		for i := range 4 {
			n := model.NewTask{Scope: trackertest.Scope, HeartbeatInterval: time.Second}
			trackertest.Placed("leastLoaded")(&n)
			if i%2 == 1 {
				n.Type = "" // requires something else, of the same worker
			}
			batch = append(batch, n)
		}
		began := time.Now()
		full := 0
		for _, r := range h.Tasks.CreateBatch(h.Ctx, batch) {
			if model.CodeOf(r.Err) == model.NoCapacity {
				var e *model.SelectionError
				if full++; !errors.As(r.Err, &e) || e.Rejected[model.ByCapacity] != 1 {
					h.Errorf("%v", r.Err)
				}
			} else if r.Err != nil {
				h.Error(r.Err)
			}
		}
		waited := time.Since(began)
		if full != 2 {
			h.Fatalf("%d of 4 found no place", full)
		}
		if waited > 4*time.Second {
			return redistest.TooLong{"the batch": waited.String()}
		}
		return nil
	})
}

// The activity that a worker reports counts as load, except for what it has claimed, which is already counted.
func TestSelectionUsesReportedActivity(t *testing.T) {
	t.Parallel()
	trackertest.Contract(t, func(h *trackertest.Harness) {
		busy, idle := h.MustRegister().WorkerID, h.MustRegister().WorkerID
		reportActive := func(id string, n int) { h.MustBeatWorker(id, func(b *workers.WorkerBeat) { b.Active = &n }) }
		least := func(want string) {
			h.Helper()
			for range 4 {
				if s, err := choose(h, model.Selector{Queue: "default"}); err != nil || s.Worker.ID != want {
					h.Fatalf("%+v %v, want %s", s, err, want)
				}
			}
		}
		reportActive(busy, 5)
		reportActive(idle, 1)
		least(idle)
		reportActive(busy, 0)
		least(busy)
		reportActive(busy, 10)
		reportActive(idle, 10)
		_, err := choose(h, model.Selector{Queue: "default"})
		wantNoWorker(h, err, model.NoCapacity, 2, map[model.Filter]int{model.ByCapacity: 2})
		reportActive(idle, 0)
		h.MustCreate(func(n *model.NewTask) { n.TaskID, n.Queue, n.HeartbeatTimeout, n.WorkerID = "t1", "default", 0, idle })
		got, err := h.Queues.Claim(h.Ctx, queues.ClaimRequest{Scope: trackertest.Scope, WorkerID: idle, Queue: "default", Max: 1})
		if err != nil || len(got) != 1 {
			h.Fatal(got, err)
		}
		reportActive(idle, 1) // the very task
		if _, err := h.Beats.Complete(h.Ctx, got[0].Attempt, model.Completion{Outcome: model.Succeeded}); err != nil {
			h.Fatal(err)
		}
		reportActive(busy, 1)
		least(idle)
	})
}

// Liveness is computed from the last heartbeat, whatever the status.
func TestLivenessOfAnEndedWorker(t *testing.T) {
	t.Parallel()
	trackertest.Contract(t, func(h *trackertest.Harness) {
		id := h.MustRegister().WorkerID
		if _, err := h.Workers.Retire(h.Ctx, trackertest.Scope, id, model.WorkerDeregistered, ""); err != nil {
			h.Fatal(err)
		}
		for _, want := range []model.Liveness{model.Fresh, model.Late, model.Lost} {
			if w := h.MustWorker(id); w.Liveness != want || len(w.Unschedulable) == 0 || w.Unschedulable[0] != model.ByStatus {
				h.Fatalf("%s %v, want %s", w.Liveness, w.Unschedulable, want)
			}
			h.Advance(16 * time.Second)
		}
	})
}
