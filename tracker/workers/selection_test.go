package workers_test

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/lubdub-io/lubdub/tracker/model"
	"github.com/lubdub-io/lubdub/tracker/queues"
	"github.com/lubdub-io/lubdub/tracker/trackertest"
	"github.com/lubdub-io/lubdub/tracker/workers"
)

func choose(h *trackertest.Harness, s model.Selector) (*model.Selection, error) {
	h.Helper()
	s.Scope = trackertest.Scope
	if err := s.Validate(); err != nil {
		h.Fatal(err)
	}
	return h.Workers.Select(h.Ctx, s)
}

// Fails the test unless the selection left no worker, for that reason and with those counts.
func wantNoWorker(h *trackertest.Harness, err error, code model.Code, considered int, rejected map[model.Filter]int) {
	h.Helper()
	h.WantCode(err, code)
	var e *model.SelectionError
	if !errors.As(err, &e) {
		h.Fatalf("no counts in %v", err)
	}
	for _, f := range model.Filters {
		if e.Rejected[f] != rejected[f] {
			h.Fatalf("%s: %d, want %d; %v", f, e.Rejected[f], rejected[f], e.Rejected)
		}
	}
	if e.Considered != considered {
		h.Fatalf("considered %d, want %d", e.Considered, considered)
	}
}

// Each worker is counted at the first filter that it fails.
func TestSelectionFilters(t *testing.T) {
	t.Parallel()
	trackertest.Contract(t, func(h *trackertest.Harness) {
		named := map[string]string{}
		add := func(name string, change func(*model.NewWorker)) {
			named[h.MustRegister(func(n *model.NewWorker) {
				n.Runtimes, n.Labels, n.MaxConcurrent = []string{"python"}, map[string]string{"region": "eu"}, 1
				change(n)
			}).WorkerID] = name
		}
		id := func(name string) string {
			for id, n := range named {
				if n == name {
					return id
				}
			}
			return ""
		}
		add("no runtime", func(n *model.NewWorker) { n.Runtimes = []string{"node"} })
		add("other type", func(n *model.NewWorker) { n.Types = []string{"reports"} })
		add("other labels", func(n *model.NewWorker) { n.Labels["region"] = "us" })
		add("other queue", func(n *model.NewWorker) { n.Queue = "other" })
		add("draining", func(*model.NewWorker) {})
		add("gone", func(*model.NewWorker) {})
		add("stale", func(*model.NewWorker) {})
		want := model.Selector{Queue: "default", Type: "send_email", Runtime: "python", Labels: map[string]string{"region": "eu"}}
		if _, err := h.Workers.Drain(h.Ctx, trackertest.Scope, id("draining"), workers.Drain{}); err != nil {
			h.Fatal(err)
		}
		if _, err := h.Workers.Retire(h.Ctx, trackertest.Scope, id("gone"), model.WorkerDeregistered, ""); err != nil {
			h.Fatal(err)
		}
		for range 6 {
			h.Advance(5 * time.Second)
			for w, name := range named {
				if name != "stale" && name != "gone" {
					h.MustBeatWorker(w)
				}
			}
		}
		counts := map[model.Filter]int{model.ByRuntime: 1, model.ByType: 1, model.ByLabels: 1, model.ByStatus: 2,
			model.ByFreshness: 1}
		_, err := choose(h, want)
		wantNoWorker(h, err, model.NoFreshWorkers, 6, counts)
		if e := err.(*model.Error); e.Message != "No workers with fresh heartbeats available" {
			h.Fatal(e.Message)
		}
		h.MustSweep() // with or without a sweep
		_, err = choose(h, want)
		wantNoWorker(h, err, model.NoFreshWorkers, 6, counts)

		add("full", func(*model.NewWorker) {})
		h.MustCreate(trackertest.Queued, func(n *model.NewTask) { n.HeartbeatTimeout, n.WorkerID = 0, id("full") })
		if w := h.MustWorker(id("full")); w.Placed != 1 || fmt.Sprint(w.Unschedulable) != "[full]" {
			h.Fatalf("%+v", w)
		}
		counts[model.ByCapacity] = 1
		_, err = choose(h, want)
		wantNoWorker(h, err, model.NoCapacity, 7, counts)

		add("right", func(*model.NewWorker) {})
		found, err := choose(h, want)
		if err != nil || named[found.Worker.ID] != "right" || found.Considered != 8 || found.Rejected[model.ByStatus] != 2 {
			h.Fatalf("%+v %v", found, err)
		}
		_, err = choose(h, model.Selector{Queue: "nosuch"})
		wantNoWorker(h, err, model.NoMatchingWorkers, 0, nil)
		_, err = choose(h, model.Selector{Queue: "other", Type: "x"})
		wantNoWorker(h, err, model.NoMatchingWorkers, 1, map[model.Filter]int{model.ByType: 1})
	})
}

func TestSelectionStrategies(t *testing.T) {
	t.Parallel()
	trackertest.Contract(t, func(h *trackertest.Harness) {
		var ids []string
		for i := range 3 {
			ids = append(ids, h.MustRegister(func(n *model.NewWorker) { n.MachineID = fmt.Sprintf("m%d", i) }).WorkerID)
		}
		for i, n := range []int{2, 0, 1} {
			for range n {
				h.MustCreate(trackertest.Queued, func(n *model.NewTask) { n.HeartbeatTimeout, n.WorkerID = 0, ids[i] })
			}
		}
		for range 3 {
			if s, err := choose(h, model.Selector{}); err != nil || s.Worker.ID != ids[1] {
				h.Fatalf("leastLoaded: %+v %v", s, err)
			}
		}
		var turns []string
		for range 6 {
			s, err := choose(h, model.Selector{Strategy: "roundRobin"})
			if err != nil {
				h.Fatal(err)
			}
			turns = append(turns, s.Worker.ID)
		}
		if fmt.Sprint(turns) != fmt.Sprint(append(slices.Clone(ids), ids...)) {
			h.Fatalf("roundRobin: %v, want %v twice", turns, ids)
		}
		seen := map[string]bool{}
		for range 100 {
			s, err := choose(h, model.Selector{Strategy: "random"})
			if err != nil {
				h.Fatal(err)
			}
			seen[s.Worker.ID] = true
		}
		if len(seen) != 3 {
			h.Fatalf("random: %v", seen)
		}
	})
}

// When as many tasks are placed at once as there are places, all find one and no worker gets too many.
func TestPlacementDoesNotHerd(t *testing.T) {
	t.Parallel()
	trackertest.Contract(t, func(h *trackertest.Harness) {
		const workerCount, each = 5, 4
		for i := range workerCount {
			h.MustRegister(func(n *model.NewWorker) { n.MachineID, n.MaxConcurrent = fmt.Sprintf("m%d", i), each })
		}
		var creating sync.WaitGroup
		for range workerCount * each {
			creating.Go(func() {
				n := model.NewTask{Scope: trackertest.Scope, HeartbeatInterval: time.Second}
				trackertest.Placed("leastLoaded")(&n)
				if err := n.Validate(h.Store.Clock.Now()); err != nil {
					h.Error(err)
				}
				if _, err := h.Tasks.Create(h.Ctx, n); err != nil {
					h.Error(err)
				}
			})
		}
		creating.Wait()
		page, err := h.Workers.List(h.Ctx, workers.WorkerFilter{Scope: trackertest.Scope, PageSize: 100})
		if err != nil {
			h.Fatal(err)
		}
		for _, w := range page.Workers {
			if w.Placed != each {
				h.Errorf("%s was given %d of %d", w.ID, w.Placed, each)
			}
		}
		n := model.NewTask{Scope: trackertest.Scope, HeartbeatInterval: time.Second}
		trackertest.Placed("leastLoaded")(&n)
		_, err = h.Tasks.Create(h.Ctx, n)
		h.WantCode(err, model.NoCapacity)
	})
}

// The tasks of a batch are spread too, and a creation without a worker fails separately.
func TestPlacementOfABatch(t *testing.T) {
	t.Parallel()
	trackertest.Contract(t, func(h *trackertest.Harness) {
		for i := range 3 {
			h.MustRegister(func(n *model.NewWorker) { n.MachineID, n.MaxConcurrent = fmt.Sprintf("m%d", i), 2 })
		}
		for _, strategy := range model.Placements {
			var batch []model.NewTask
			for range 2 {
				n := model.NewTask{Scope: trackertest.Scope, HeartbeatInterval: time.Second}
				trackertest.Placed(strategy)(&n)
				if err := n.Validate(h.Store.Clock.Now()); err != nil {
					h.Fatal(err)
				}
				batch = append(batch, n)
			}
			for _, r := range h.Tasks.CreateBatch(h.Ctx, batch) {
				if r.Err != nil {
					h.Fatal(strategy, r.Err)
				}
			}
		}
		n := model.NewTask{Scope: trackertest.Scope, HeartbeatInterval: time.Second}
		trackertest.Placed("random")(&n)
		other := model.NewTask{Scope: trackertest.Scope, Queue: "default", HeartbeatInterval: time.Second}
		results := h.Tasks.CreateBatch(h.Ctx, []model.NewTask{n, other})
		h.WantCode(results[0].Err, model.NoCapacity)
		if results[1].Err != nil {
			h.Fatal(results[1].Err)
		}
	})
}

// Only the selected worker gets a placed task; when the worker ends, drains or loses the task, the task is placed again.
func TestPlacedTasksArePlacedAgain(t *testing.T) {
	t.Parallel()
	trackertest.Contract(t, func(h *trackertest.Harness) {
		var ids []string
		join := func() string {
			id := h.MustRegister(func(n *model.NewWorker) { n.MachineID = fmt.Sprintf("m%d", len(ids)) }).WorkerID
			ids = append(ids, id)
			return id
		}
		claim := func(worker string) *model.Envelope {
			h.Helper()
			got, err := h.Queues.Claim(h.Ctx, queues.ClaimRequest{Scope: trackertest.Scope, WorkerID: worker, Queue: "default", Max: 1})
			if err != nil {
				h.Fatal(err)
			}
			if len(got) == 0 {
				return nil
			}
			return got[0]
		}
		first := join()
		h.MustCreate(trackertest.Placed("leastLoaded"), func(n *model.NewTask) { n.TaskID = "t1" })
		if task := h.WantState("t1", model.Queued, ""); task.WorkerID != first {
			h.Fatalf("%+v", task)
		}
		second := join()
		if got := claim(second); got != nil {
			h.Fatalf("another worker got %v", got)
		}
		// Before the claim its worker drains.
		if _, err := h.Workers.Drain(h.Ctx, trackertest.Scope, first, workers.Drain{}); err != nil {
			h.Fatal(err)
		}
		h.MustSweep()
		if task := h.WantState("t1", model.Queued, ""); task.WorkerID != second {
			h.Fatalf("waits for %s", task.WorkerID)
		}
		// Before the claim its worker dies; there is no other worker yet.
		if _, err := h.Workers.Retire(h.Ctx, trackertest.Scope, second, model.WorkerForced, ""); err != nil {
			h.Fatal(err)
		}
		h.MustSweep()
		if task := h.WantState("t1", model.Queued, ""); task.WorkerID != "" {
			h.Fatalf("waits for %s", task.WorkerID)
		}
		third := join()
		h.Advance(time.Second)
		h.MustSweep()
		if task := h.WantState("t1", model.Queued, ""); task.WorkerID != third {
			h.Fatalf("waits for %s, want %s", task.WorkerID, third)
		}
		// While it runs its worker dies.
		if got := claim(third); got == nil {
			h.Fatal("the chosen worker does not get it")
		}
		fourth := join()
		if _, err := h.Workers.Retire(h.Ctx, trackertest.Scope, third, model.WorkerForced, ""); err != nil {
			h.Fatal(err)
		}
		h.Advance(time.Second)
		h.MustSweep()
		h.MustSweep()
		if task := h.WantState("t1", model.Queued, ""); task.WorkerID != fourth || task.Losses != 1 {
			h.Fatalf("waits for %s, want %s: %+v", task.WorkerID, fourth, task)
		}
		if got := claim(fourth); got == nil || got.Attempt.Number != 2 {
			h.Fatalf("%+v", got)
		}
	})
}

// A placed task that is not due yet is placed when it is.
func TestPlacementWaitsForTheStartTime(t *testing.T) {
	t.Parallel()
	trackertest.Contract(t, func(h *trackertest.Harness) {
		h.MustCreate(trackertest.Placed("leastLoaded"), func(n *model.NewTask) {
			n.TaskID, n.RunAt = "t1",
				h.Store.Clock.Now().Add(5*time.Second)
		})
		id := h.MustRegister().WorkerID
		h.Advance(4 * time.Second)
		h.MustSweep()
		if task := h.WantState("t1", model.Scheduled, ""); task.WorkerID != "" {
			h.Fatalf("waits for %s", task.WorkerID)
		}
		h.Advance(time.Second)
		h.MustSweep()
		h.MustSweep()
		if task := h.WantState("t1", model.Queued, ""); task.WorkerID != id {
			h.Fatalf("waits for %q", task.WorkerID)
		}
	})
}
