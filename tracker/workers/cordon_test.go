package workers_test

import (
	"sync"
	"testing"
	"time"

	"github.com/lubdub-io/lubdub/tracker"
	"github.com/lubdub-io/lubdub/tracker/model"
	"github.com/lubdub-io/lubdub/tracker/trackertest"
	"github.com/lubdub-io/lubdub/tracker/workers"
)

func cordoned(c *trackertest.Fleet, worker string) *model.Worker {
	c.Helper()
	w, err := c.Workers.Cordon(c.Ctx, trackertest.Scope, c.IDs[worker], "it writes nonsense")
	if err != nil {
		c.Fatal(err)
	}
	return w
}

// A cordoned worker continues with what it holds and gets nothing more until it is uncordoned.
func TestCordon(t *testing.T) {
	t.Parallel()
	trackertest.Claims(t, func(c *trackertest.Fleet) {
		c.Hire("w")
		id := c.IDs["w"]
		c.MustQueue("before", "x")
		held := c.MustClaim("w", 1)
		c.MustQueue("after", "x")
		for range 2 { // a repeat changes nothing
			w := cordoned(c, "w")
			if w.Status != model.Online || w.Cordon == nil || w.Cordon.Reason != "it writes nonsense" || w.Cordon.Since.IsZero() ||
				len(w.Unschedulable) != 1 || w.Unschedulable[0] != model.ByCordon {
				c.Fatalf("%+v", w)
			}
		}
		if _, err := c.Workers.Cordon(c.Ctx, trackertest.Scope, id, "another reason"); err != nil {
			c.Fatal(err)
		}
		c.WantIDs(c.MustClaim("w", 5))
		if result := c.MustBeatWorker(id); result.ShouldDrain {
			c.Fatalf("%+v", result)
		}
		c.Pass(2 * time.Second)
		if w := c.WantWorker(id, model.Online, ""); w.Held != 1 || w.Cordon == nil || w.Cordon.Reason != "it writes nonsense" {
			c.Fatalf("after beats: %+v", w)
		}
		if b := c.MustBeat(held[0].Attempt, ""); b.Err != nil {
			c.Fatal(b.Err)
		}
		if _, err := c.Beats.Complete(c.Ctx, held[0].Attempt, model.Completion{Outcome: model.Succeeded}); err != nil {
			c.Fatal(err)
		}
		c.Pass(5 * time.Second)
		c.WantWorker(id, model.Online, "") // no matter how idle it is
		for range 2 {
			if w, err := c.Workers.Uncordon(c.Ctx, trackertest.Scope, id, "mended"); err != nil || w.Cordon != nil || len(w.Unschedulable) != 0 {
				c.Fatalf("%+v %v", w, err)
			}
		}
		c.WantIDs(c.MustClaim("w", 5), "after")
		if e := c.Events(id); e["worker.cordoned"] != 1 || e["worker.uncordoned"] != 1 {
			c.Fatalf("%v", e)
		}
	})
}

// A cordon, a drain and the end of a worker are independent of each other.
func TestCordonAndDrain(t *testing.T) {
	t.Parallel()
	trackertest.Claims(t, func(c *trackertest.Fleet) {
		c.Hire("w")
		id := c.IDs["w"]
		cordoned(c, "w")
		if _, err := c.Workers.Drain(c.Ctx, trackertest.Scope, id, workers.Drain{}); err != nil {
			c.Fatal(err)
		}
		c.WantWorker(id, model.Draining, "")
		if w, err := c.Workers.Resume(c.Ctx, trackertest.Scope, id, ""); err != nil || w.Status != model.Online || w.Cordon == nil {
			c.Fatalf("resumed: %+v %v", w, err)
		}
		if _, err := c.Workers.Drain(c.Ctx, trackertest.Scope, id, workers.Drain{}); err != nil {
			c.Fatal(err)
		}
		if w, err := c.Workers.Uncordon(c.Ctx, trackertest.Scope, id, ""); err != nil || w.Status != model.Draining || w.Cordon != nil {
			c.Fatalf("uncordoned: %+v %v", w, err)
		}
		cordoned(c, "w")
		c.Pass(2 * time.Second)
		c.MustSweep()
		c.WantWorker(id, model.Offline, model.WorkerDrained)
		_, err := c.Workers.Cordon(c.Ctx, trackertest.Scope, id, "")
		c.WantCode(err, workers.WorkerOffline)
		_, err = c.Workers.Uncordon(c.Ctx, trackertest.Scope, id, "")
		c.WantCode(err, workers.WorkerOffline)
		_, err = c.Workers.Cordon(c.Ctx, trackertest.Scope, "wkr_nosuch000", "")
		c.WantCode(err, workers.WorkerNotFound)
	})
}

// A worker that registers in the place of a cordoned one is the same process and stays cordoned.
func TestACordonIsInherited(t *testing.T) {
	t.Parallel()
	trackertest.Contract(t, func(h *trackertest.Harness) {
		same := func(n *model.NewWorker) { n.Hostname, n.PID = "host-1", 7 }
		first := h.MustRegister(same).WorkerID
		if _, err := h.Workers.Cordon(h.Ctx, trackertest.Scope, first, `"quoted"`); err != nil {
			h.Fatal(err)
		}
		next := h.MustRegister(same)
		if next.Superseded != first {
			h.Fatalf("%+v", next)
		}
		if w := h.WantWorker(next.WorkerID, model.Online, ""); w.Cordon == nil || w.Cordon.Reason != `"quoted"` {
			h.Fatalf("%+v", w.Cordon)
		}
		if e := h.Events(next.WorkerID); e["worker.cordoned"] != 1 {
			h.Fatalf("%v", e)
		}
		other := h.MustRegister(func(n *model.NewWorker) { n.Hostname, n.PID = "host-1", 8 }).WorkerID
		if w := h.WantWorker(other, model.Online, ""); w.Cordon != nil {
			h.Fatalf("%+v", w.Cordon)
		}
	})
}

// Selection and placement skip cordoned workers and count them; a task that was placed on one goes elsewhere.
func TestSelectionPassesOverCordonedWorkers(t *testing.T) {
	t.Parallel()
	trackertest.Contract(t, func(h *trackertest.Harness) {
		a := h.MustRegister(func(n *model.NewWorker) { n.MachineID = "m1" }).WorkerID
		h.MustCreate(trackertest.Queued, trackertest.Placed("leastLoaded"), func(n *model.NewTask) { n.TaskID = "placed" })
		h.MustCreate(trackertest.Queued, func(n *model.NewTask) { n.TaskID, n.WorkerID = "pinned", a })
		if _, err := h.Workers.Cordon(h.Ctx, trackertest.Scope, a, ""); err != nil {
			h.Fatal(err)
		}
		wanted := model.Selector{Scope: trackertest.Scope, Queue: "default"}
		if err := wanted.Validate(); err != nil {
			h.Fatal(err)
		}
		_, err := h.Workers.Select(h.Ctx, wanted)
		wantNoWorker(h, err, model.NoMatchingWorkers, 1, map[model.Filter]int{model.ByCordon: 1})
		if q, err := h.Queues.Get(h.Ctx, trackertest.Scope, "default"); err != nil || q.Kinds[0].Unrunnable != 2 || q.Workers[model.Online] != 1 {
			h.Fatalf("%+v %v", q, err)
		}
		b := h.MustRegister(func(n *model.NewWorker) { n.MachineID = "m2" }).WorkerID
		found, err := h.Workers.Select(h.Ctx, wanted)
		if err != nil || found.Worker.ID != b || found.Rejected[model.ByCordon] != 1 {
			h.Fatalf("%+v %v", found, err)
		}
		h.Advance(time.Second)
		h.MustSweep()
		if task := h.MustGet("placed"); task.WorkerID != b {
			h.Fatalf("placed again on %s", task.WorkerID)
		}
		if task := h.MustGet("pinned"); task.WorkerID != a {
			h.Fatalf("pinned to %s", task.WorkerID)
		}
		no := false
		page, err := h.Workers.List(h.Ctx, workers.WorkerFilter{Scope: trackertest.Scope, Schedulable: &no, PageSize: 10})
		if err != nil || page.Total != 1 || page.Workers[0].ID != a {
			h.Fatalf("%+v %v", page, err)
		}
	})
}

// No place is reserved at a worker that was cordoned after it was chosen.
func TestACordonBetweenChoiceAndPlacement(t *testing.T) {
	t.Parallel()
	trackertest.Contract(t, func(h *trackertest.Harness) {
		id := h.MustRegister().WorkerID
		other, once := h.Replica(), sync.Once{}
		trackertest.After(h.Tracker, "worker_candidates", func() {
			once.Do(func() {
				if _, err := other.Workers.Cordon(h.Ctx, trackertest.Scope, id, ""); err != nil {
					h.Error(err)
				}
			})
		})
		n := model.NewTask{Scope: trackertest.Scope, TaskID: "t", Queue: "default", Type: "send_email", Placement: "leastLoaded"}
		if err := n.Validate(h.Store.Clock.Now()); err != nil {
			h.Fatal(err)
		}
		_, err := h.Tasks.Create(h.Ctx, n)
		h.WantCode(err, model.NoCapacity)
	})
}

// A task that was being placed on a worker when it was cordoned, or began to drain, does not stay pinned to it: neither with a
// place that a creation had reserved, nor with one that a sweeper chose again.
func TestACordonWhilePlacing(t *testing.T) {
	t.Parallel()
	for name, stop := range map[string]func(tr *tracker.Tracker, h *trackertest.Harness, id string) error{
		"cordon": func(tr *tracker.Tracker, h *trackertest.Harness, id string) error {
			_, err := tr.Workers.Cordon(h.Ctx, trackertest.Scope, id, "")
			return err
		},
		"drain": func(tr *tracker.Tracker, h *trackertest.Harness, id string) error {
			_, err := tr.Workers.Drain(h.Ctx, trackertest.Scope, id, workers.Drain{})
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			trackertest.Contract(t, func(h *trackertest.Harness) {
				placed := []func(*model.NewTask){trackertest.Queued, trackertest.Placed("leastLoaded")}
				worker := func(machine string) string {
					return h.MustRegister(func(n *model.NewWorker) { n.MachineID = machine }).WorkerID
				}
				other, next := h.Replica(), ""
				trackertest.After(h.Tracker, "worker_selected", func() {
					if id := next; id != "" {
						next = ""
						if err := stop(other.Tracker, h, id); err != nil {
							h.Error(err)
						}
					}
				})
				a := worker("m1")
				next = a
				h.MustCreate(append(placed, func(n *model.NewTask) { n.TaskID = "t" })...)
				if task := h.MustGet("t"); next != "" || task.WorkerID != "" {
					h.Fatalf("created: pinned to %q, which is %v", task.WorkerID, h.MustWorker(a))
				}
				next = worker("m2")
				h.Advance(time.Second)
				h.MustSweep()
				if task := h.MustGet("t"); next != "" || task.WorkerID != "" {
					h.Fatalf("placed again: pinned to %q", task.WorkerID)
				}
				c := worker("m3")
				h.Advance(20 * time.Second)
				h.MustSweep()
				if task := h.MustGet("t"); task.WorkerID != c {
					h.Fatalf("placed on %q, and not on %q", task.WorkerID, c)
				}
			})
		})
	}
}
