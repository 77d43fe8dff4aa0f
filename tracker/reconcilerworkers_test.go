package tracker_test

import (
	"testing"
	"time"

	"github.com/lubdub-io/lubdub/tracker"
)

func TestReconcilerRepairsWorkers(t *testing.T) {
	t.Parallel()
	const ghost = "wkr_01HGW5N7XHJM4GX29KZRXQP6N9000"
	end := func(c *crew) string {
		if _, err := c.RetireWorker(c.ctx, scope, c.ids["w1"], tracker.WorkerForced, ""); err != nil {
			c.Fatal(err)
		}
		c.sweep()
		return c.ids["w1"]
	}
	for name, test := range map[string]func(c *crew){
		"a worker that nobody looks at": func(c *crew) {
			id := c.ids["w1"]
			c.remove(workerKey(id, "workerbeats"), "acme/prod/"+id)
			c.wantRepairs("missing_look")
			c.advance(31 * time.Second)
			if r := c.sweep(); r.StaleWorkers != 1 {
				c.Fatalf("%+v", r)
			}
		},
		"the same, found by the sweep itself": func(c *crew) {
			id := c.ids["w1"]
			c.remove(workerKey(id, "workerbeats"), "acme/prod/"+id)
			c.advance(31 * time.Second)
			if r := c.sweep(); r.StaleWorkers != 1 || c.events(id)["system.repaired"] != 1 {
				c.Fatalf("%+v %v", r, c.events(id))
			}
		},
		"a worker that no list has": func(c *crew) {
			id := c.ids["w1"]
			c.remove(workerKey(id, "workers"), "acme/prod/N/"+id)
			c.remove(workerKey(id, "machineworkers:acme/prod/host-w1"), "N/"+id)
			c.wantRepairs("missing_worker", "machine_counts")
			if m := c.machine("host-w1"); m.Workers[tracker.Online] != 1 || m.Status != tracker.Online {
				c.Fatalf("%+v", m)
			}
		},
		"a worker in two lists": func(c *crew) {
			id := c.ids["w1"]
			c.plant(workerKey(id, "workers"), "acme/prod/D/"+id)
			c.plant(workerKey(id, "machineworkers:acme/prod/host-w1"), "F/"+id)
			c.wantRepairs("stray_worker", "machine_counts")
		},
		"a machine whose status is wrong": func(c *crew) {
			c.store.Client.HSet(c.ctx, workerKey(c.ids["w1"], "machine:acme/prod/host-w1"), "s", "F")
			c.wantRepairs("machine_status")
			if m := c.machine("host-w1"); m.Status != tracker.Online {
				c.Fatalf("%+v", m)
			}
		},
		"a machine that counts a worker nobody knows": func(c *crew) {
			id := end(c)
			c.plant(workerKey(id, "machineworkers:acme/prod/host-w1"), "N/"+ghost[:len(ghost)-3]+id[len(id)-3:])
			c.store.Client.HSet(c.ctx, workerKey(id, "machine:acme/prod/host-w1"), "s", "N")
			c.wantRepairs("machine_counts", "machine_status")
			if m := c.machine("host-w1"); m.Status != tracker.Offline || m.Workers[tracker.Online] != 0 {
				c.Fatalf("%+v", m)
			}
		},
		"a machine that is in no list": func(c *crew) {
			c.remove(workerKey(c.ids["w1"], "workers"), "acme/prod/M/host-w1")
			c.wantRepairs("missing_machine")
		},
		"entries without a record": func(c *crew) {
			c.plant(workerKey(ghost, "workers"), "acme/prod/N/"+ghost)
			c.plant(workerKey(ghost, "workerbeats"), "acme/prod/"+ghost)
			c.plant(workerKey(ghost, "workerdue"), "x:acme/prod/"+ghost)
			c.plant(workerKey(ghost, "recoveries"), "acme/prod/"+ghost)
			c.plant(workerKey(ghost, "workers"), "acme/prod/M/nowhere")
			c.wantRepairs("stray_worker", "stray_workerbeats", "stray_workerdue", "stray_recoveries", "stray_machine")
		},
		"a drain that would never end": func(c *crew) {
			id := c.ids["w1"]
			if _, err := c.DrainWorker(c.ctx, scope, id, tracker.Drain{BySelf: true}); err != nil {
				c.Fatal(err)
			}
			c.remove(workerKey(id, "workerdue"), "g:acme/prod/"+id)
			c.wantRepairs("missing_drain")
			c.advance(2 * time.Second) // a drain stands for a second
			c.sweep()
			c.wantWorker(id, tracker.Offline, tracker.WorkerDrained)
		},
		"an OFFLINE worker that would stay for ever, and be looked at": func(c *crew) {
			id := end(c)
			c.remove(workerKey(id, "workerdue"), "x:acme/prod/"+id)
			c.plant(workerKey(id, "workerbeats"), "acme/prod/"+id)
			c.plant(workerKey(id, "workerdue"), "g:acme/prod/"+id)
			c.wantRepairs("missing_retention", "stray_look", "stray_due")
			c.store.Clock.Advance(tracker.DefaultOfflineRetention)
			c.tick()
			if r := c.sweep(); r.RemovedWorkers != 1 {
				c.Fatalf("%+v", r)
			}
		},
		"a recovery that nobody could end": func(c *crew) {
			id := c.ids["w1"]
			c.holding("w1", 3)
			if err := c.EndWithoutRecovery(scope, id); err != nil {
				c.Fatal(err)
			}
			c.store.Client.Del(c.ctx, workerKey(id, "recovery:acme/prod/"+id))
			if r, err := c.sweeper.RunOnce(c.ctx); err != nil || r.Recovered != 0 {
				c.Fatalf("%+v %v", r, err)
			}
			c.wantRepairs("stuck_recovery")
			if r := c.sweep(); r.Recovered != 3 || c.events(id)["worker.recovered"] != 1 {
				c.Fatalf("%+v", r)
			}
		},
		"a recovery that nobody finds": func(c *crew) {
			id := c.ids["w1"]
			c.holding("w1", 3)
			if err := c.EndWithoutRecovery(scope, id); err != nil {
				c.Fatal(err)
			}
			c.remove(workerKey(id, "recoveries"), "acme/prod/"+id)
			if got := c.reconcile(); got["missing_recovery"] != 1 {
				c.Fatal(got)
			}
			c.sweep()
			c.wantState("w1-000", tracker.Queued, "")
			c.wantRepairs()
		},
	} {
		t.Run(name, func(t *testing.T) {
			claims(t, func(c *crew) {
				c.hire("w1")
				test(c)
			})
		})
	}
}
