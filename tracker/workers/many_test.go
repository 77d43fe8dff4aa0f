package workers_test

import (
	"sync"
	"testing"
	"time"

	"github.com/lubdub-io/lubdub/tracker/model"
	"github.com/lubdub-io/lubdub/tracker/trackertest"
	"github.com/lubdub-io/lubdub/tracker/workers"
)

// All acts on workers count in the same way, change nothing with dryRun, and change nothing more when they are repeated.
func TestActsOnManyWorkers(t *testing.T) {
	t.Parallel()
	trackertest.Contract(t, func(h *trackertest.Harness) {
		on := func(machine, version string) string {
			return h.MustRegister(func(n *model.NewWorker) { n.MachineID, n.Version = machine, version }).WorkerID
		}
		a, b, c := on("m1", "1"), on("m2", "1"), on("m3", "2")
		old := workers.WorkerFilter{Scope: trackertest.Scope, Version: "1"}
		act := func(what workers.Act, dryRun bool, matched, done int) {
			h.Helper()
			r, err := h.Workers.ActOnMany(h.Ctx, what, old, "because", dryRun)
			if err != nil || r.Matched != matched || r.Done != done || len(r.Workers) != matched {
				h.Fatalf("%s: %+v %v", what, r, err)
			}
		}
		cordoned := func(id string, want bool) {
			h.Helper()
			if w := h.MustWorker(id); (w.Cordon != nil) != want {
				h.Fatalf("%s: %+v", id, w)
			}
		}
		act(workers.Cordon, true, 2, 0)
		cordoned(a, false)
		if _, err := h.Workers.Cordon(h.Ctx, trackertest.Scope, b, ""); err != nil {
			h.Fatal(err)
		}
		act(workers.Cordon, true, 2, 1)
		act(workers.Cordon, false, 2, 2)
		act(workers.Cordon, false, 2, 2)
		cordoned(a, true)
		cordoned(c, false)
		act(workers.Uncordon, false, 2, 2)
		cordoned(b, false)
		if _, err := h.Workers.DrainMany(h.Ctx, old, workers.Drain{}, false); err != nil {
			h.Fatal(err)
		}
		act(workers.Resume, true, 2, 0)
		act(workers.Resume, false, 2, 2)
		h.WantWorker(a, model.Online, "")
		act(workers.Retire, true, 2, 0)
		act(workers.Retire, false, 2, 2)
		if w := h.WantWorker(b, model.Offline, model.WorkerForced); w.StatusReason != "because" {
			h.Fatalf("%+v", w)
		}
		h.WantWorker(c, model.Online, "")
		act(workers.Retire, false, 0, 0) // the response may have been lost
		_, err := h.Workers.ActOnMany(h.Ctx, workers.Cordon, old, "", false)
		h.WantCode(err, workers.NoWorkersMatch)
		if e := h.Events(a); e["worker.cordoned"] != 1 || e["worker.uncordoned"] != 1 || e["worker.resumed"] != 1 || e["worker.offline"] != 1 {
			h.Fatalf("%v", e)
		}
	})
}

// Silent workers are given up together, with what they hold; one that sends a heartbeat before its turn is not.
func TestSilentWorkersAreRetired(t *testing.T) {
	t.Parallel()
	trackertest.Contract(t, func(h *trackertest.Harness) {
		on := func(machine string) string {
			return h.MustRegister(func(n *model.NewWorker) { n.MachineID = machine }).WorkerID
		}
		silentID, back, here := on("m1"), on("m2"), on("m3")
		h.MustCreate(trackertest.Queued, func(n *model.NewTask) { n.TaskID, n.WorkerID = "held", silentID })
		h.MustAssign("held", silentID)
		h.AdvanceAlive(8*time.Second, here)
		silent := workers.WorkerFilter{Scope: trackertest.Scope, SilentFor: 5 * time.Second}
		if r, err := h.Workers.ActOnMany(h.Ctx, workers.Retire, silent, "", true); err != nil || r.Matched != 2 {
			h.Fatalf("%+v %v", r, err)
		}
		other, once := h.Replica(), sync.Once{}
		trackertest.After(h.Tracker, "worker_read", func() { once.Do(func() { other.MustBeatWorker(back) }) })
		if r, err := h.Workers.ActOnMany(h.Ctx, workers.Retire, silent, "", false); err != nil || r.Matched != 2 || r.Done != 1 {
			h.Fatalf("%+v %v", r, err)
		}
		h.WantWorker(silentID, model.Offline, model.WorkerForced)
		h.WantWorker(back, model.Online, "")
		h.WantWorker(here, model.Online, "")
		if task := h.MustGet("held"); task.State != model.Queued || task.Losses != 1 {
			h.Fatalf("%+v", task)
		}
	})
}
