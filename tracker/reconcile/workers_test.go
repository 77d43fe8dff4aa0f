package reconcile_test

import (
	"testing"
	"time"

	"github.com/lubdub-io/lubdub/tracker/model"
	"github.com/lubdub-io/lubdub/tracker/trackertest"
	"github.com/lubdub-io/lubdub/tracker/workers"
)

func TestReconcilerRepairsWorkers(t *testing.T) {
	t.Parallel()
	const ghost = "wkr_01HGW5N7XHJM4GX29KZRXQP6N9000"
	end := func(c *trackertest.Fleet) string {
		if _, err := c.Workers.Retire(c.Ctx, trackertest.Scope, c.IDs["w1"], model.WorkerDeregistered, ""); err != nil {
			c.Fatal(err)
		}
		c.MustSweep()
		return c.IDs["w1"]
	}
	for name, test := range map[string]func(c *trackertest.Fleet){
		"a worker that is not swept": func(c *trackertest.Fleet) {
			id := c.IDs["w1"]
			c.Remove(trackertest.WorkerKey(id, "workerbeats"), "acme/prod/"+id)
			c.WantRepairs("missing_look")
			c.Advance(31 * time.Second)
			if r := c.MustSweep(); r.StaleWorkers != 1 {
				c.Fatalf("%+v", r)
			}
		},
		"the same, found by the sweep itself": func(c *trackertest.Fleet) {
			id := c.IDs["w1"]
			c.Remove(trackertest.WorkerKey(id, "workerbeats"), "acme/prod/"+id)
			c.Advance(31 * time.Second)
			if r := c.MustSweep(); r.StaleWorkers != 1 || c.Events(id)["system.repaired"] != 1 {
				c.Fatalf("%+v %v", r, c.Events(id))
			}
		},
		"a worker that no list has": func(c *trackertest.Fleet) {
			id := c.IDs["w1"]
			c.Remove(trackertest.WorkerKey(id, "workers"), "acme/prod/N/"+id)
			c.Remove(trackertest.WorkerKey(id, "machineworkers:acme/prod/host-w1"), "N/"+id)
			c.WantRepairs("missing_worker", "machine_counts")
			if m := c.MustMachine("host-w1"); m.Workers[model.Online] != 1 || m.Status != model.Online {
				c.Fatalf("%+v", m)
			}
		},
		"a worker in two lists": func(c *trackertest.Fleet) {
			id := c.IDs["w1"]
			c.Plant(trackertest.WorkerKey(id, "workers"), "acme/prod/D/"+id)
			c.Plant(trackertest.WorkerKey(id, "machineworkers:acme/prod/host-w1"), "F/"+id)
			c.WantRepairs("stray_worker", "machine_counts")
		},
		"a machine whose status is wrong": func(c *trackertest.Fleet) {
			c.Store.Client.HSet(c.Ctx, trackertest.WorkerKey(c.IDs["w1"], "machine:acme/prod/host-w1"), "s", "F")
			c.WantRepairs("machine_status")
			if m := c.MustMachine("host-w1"); m.Status != model.Online {
				c.Fatalf("%+v", m)
			}
		},
		"a machine that counts an unknown worker": func(c *trackertest.Fleet) {
			id := end(c)
			c.Plant(trackertest.WorkerKey(id, "machineworkers:acme/prod/host-w1"), "N/"+ghost[:len(ghost)-3]+id[len(id)-3:])
			c.Store.Client.HSet(c.Ctx, trackertest.WorkerKey(id, "machine:acme/prod/host-w1"), "s", "N")
			c.WantRepairs("machine_counts", "machine_status", "missing_list", "stray_list")
			if m := c.MustMachine("host-w1"); m.Status != model.Offline || m.Workers[model.Online] != 0 {
				c.Fatalf("%+v", m)
			}
		},
		"a late worker that is in no list, and one that is not late in one": func(c *trackertest.Fleet) {
			c.Hire("w2")
			c.Advance(16 * time.Second)
			c.MustSweep()
			c.MustBeatWorker(c.IDs["w2"])
			c.Remove(trackertest.WorkerKey(c.IDs["w1"], "workers"), "|acme/prod/"+c.IDs["w1"])
			c.Plant(trackertest.WorkerKey(c.IDs["w2"], "workers"), "|acme/prod/"+c.IDs["w2"])
			c.WantRepairs("missing_list", "stray_list")
		},
		"a worker that its queue does not list, and one that it lists wrongly": func(c *trackertest.Fleet) {
			c.Hire("w2")
			key := trackertest.WorkerKey(c.IDs["w1"], "workers")
			entry := find(c.Harness, key, "}acme/prod/q/N/")
			c.Remove(key, entry)
			c.Plant(trackertest.WorkerKey(c.IDs["w2"], "workers"), "}acme/prod/q/D//"+c.IDs["w2"])
			c.Plant(trackertest.WorkerKey(ghost, "workers"), "}acme/prod/q/F//"+ghost)
			c.WantRepairs("missing_list", "stray_list", "stray_list")
			if q, err := c.Queues.Get(c.Ctx, trackertest.Scope, "q"); err != nil || q.Workers[model.Online] != 2 || len(q.Workers) != 1 {
				c.Fatalf("%+v, %v", q, err)
			}
		},
		"a lost worker that is not listed as lost, and entries of workers that were not lost then": func(c *trackertest.Fleet) {
			c.Hire("w2")
			key, id := trackertest.WorkerKey(c.IDs["w1"], "workers"), c.IDs["w1"]
			if _, err := c.Workers.Retire(c.Ctx, trackertest.Scope, id, model.WorkerForced, ""); err != nil {
				c.Fatal(err)
			}
			if _, err := c.Workers.Resume(c.Ctx, trackertest.Scope, id, ""); err != nil { // the record is kept as long as others
				c.Fatal(err)
			}
			c.MustSweep()
			entry := find(c.Harness, key, "~acme/prod/")
			c.Remove(key, entry)
			c.Plant(key, "~acme/prod/0000000000001/"+id)
			c.Plant(trackertest.WorkerKey(c.IDs["w2"], "workers"), "~acme/prod/0000000000001/"+c.IDs["w2"])
			c.Plant(trackertest.WorkerKey(ghost, "workers"), "~acme/prod/0000000000001/"+ghost)
			c.WantRepairs("missing_list", "stray_list", "stray_list", "stray_list")
			if got := find(c.Harness, key, "~acme/prod/"); got != entry {
				c.Fatalf("the entry is %q, was %q", got, entry)
			}
			c.Store.Clock.Advance(model.DefaultFinishedRetention) // removes the entry with the worker
			c.MustTick()
			c.MustSweep()
			c.WantRepairs()
		},
		"a machine in the lists of other statuses": func(c *trackertest.Fleet) {
			key := trackertest.WorkerKey(c.IDs["w1"], "workers")
			c.Remove(key, "{acme/prod/m/N/host-w1")
			c.Plant(key, "{acme/prod/m/F/host-w1")
			c.Plant(trackertest.WorkerKey(ghost, "workers"), "{acme/prod/m/F/nowhere")
			c.WantRepairs("missing_list", "stray_list", "stray_list")
		},
		"a machine that is in no list": func(c *trackertest.Fleet) {
			c.Remove(trackertest.WorkerKey(c.IDs["w1"], "workers"), "acme/prod/M/host-w1")
			c.WantRepairs("missing_machine")
		},
		"entries without a record": func(c *trackertest.Fleet) {
			c.Plant(trackertest.WorkerKey(ghost, "workers"), "acme/prod/N/"+ghost)
			c.Plant(trackertest.WorkerKey(ghost, "workerbeats"), "acme/prod/"+ghost)
			c.Plant(trackertest.WorkerKey(ghost, "workerdue"), "x:acme/prod/"+ghost)
			c.Plant(trackertest.WorkerKey(ghost, "recoveries"), "acme/prod/"+ghost)
			c.Plant(trackertest.WorkerKey(ghost, "workers"), "acme/prod/M/nowhere")
			c.WantRepairs("stray_worker", "stray_workerbeats", "stray_workerdue", "stray_recoveries", "stray_machine")
		},
		"a drain that would never end": func(c *trackertest.Fleet) {
			id := c.IDs["w1"]
			if _, err := c.Workers.Drain(c.Ctx, trackertest.Scope, id, workers.Drain{BySelf: true}); err != nil {
				c.Fatal(err)
			}
			c.Remove(trackertest.WorkerKey(id, "workerdue"), "g:acme/prod/"+id)
			c.WantRepairs("missing_drain")
			c.Advance(2 * time.Second) // a drain is shown for a second
			c.MustSweep()
			c.WantWorker(id, model.Offline, model.WorkerDrained)
		},
		"an OFFLINE worker that would stay for ever, and be looked at": func(c *trackertest.Fleet) {
			id := end(c)
			c.Remove(trackertest.WorkerKey(id, "workerdue"), "x:acme/prod/"+id)
			c.Plant(trackertest.WorkerKey(id, "workerbeats"), "acme/prod/"+id)
			c.Plant(trackertest.WorkerKey(id, "workerdue"), "g:acme/prod/"+id)
			c.WantRepairs("missing_retention", "stray_look", "stray_due")
			c.Store.Clock.Advance(model.DefaultFinishedRetention)
			c.MustTick()
			if r := c.MustSweep(); r.RemovedWorkers != 1 {
				c.Fatalf("%+v", r)
			}
		},
		"a recovery that could not end": func(c *trackertest.Fleet) {
			id := c.IDs["w1"]
			c.MustHolding("w1", 3)
			if err := trackertest.EndWithoutRecovery(c.Tracker, trackertest.Scope, id); err != nil {
				c.Fatal(err)
			}
			c.Store.Client.Del(c.Ctx, trackertest.WorkerKey(id, "recovery:acme/prod/"+id))
			if r, err := c.Sweeper.RunOnce(c.Ctx); err != nil || r.Recovered != 0 {
				c.Fatalf("%+v %v", r, err)
			}
			c.WantRepairs("stuck_recovery")
			if r := c.MustSweep(); r.Recovered != 3 || c.Events(id)["worker.tasks_recovered"] != 1 {
				c.Fatalf("%+v", r)
			}
		},
		"a recovery that is not found": func(c *trackertest.Fleet) {
			id := c.IDs["w1"]
			c.MustHolding("w1", 3)
			if err := trackertest.EndWithoutRecovery(c.Tracker, trackertest.Scope, id); err != nil {
				c.Fatal(err)
			}
			c.Remove(trackertest.WorkerKey(id, "recoveries"), "acme/prod/"+id)
			if got := c.Reconcile(); got["missing_recovery"] != 1 {
				c.Fatal(got)
			}
			c.MustSweep()
			c.WantState("w1-000", model.Queued, "")
			c.WantRepairs()
		},
	} {
		t.Run(name, func(t *testing.T) {
			trackertest.Claims(t, func(c *trackertest.Fleet) {
				c.Hire("w1")
				test(c)
			})
		})
	}
}
