package workers_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/lubdub-io/lubdub/tracker/model"
	"github.com/lubdub-io/lubdub/tracker/queues"
	"github.com/lubdub-io/lubdub/tracker/trackertest"
	"github.com/lubdub-io/lubdub/tracker/workers"
)

// at puts a worker on a machine.
func at(machine string) func(*model.NewWorker) {
	return func(n *model.NewWorker) { n.MachineID, n.Queue, n.Types = machine, "q", []string{"x"} }
}

func drainMachine(c *trackertest.Fleet, id string, d workers.Drain) *workers.Drained {
	c.Helper()
	drained, err := c.Workers.DrainMachine(c.Ctx, trackertest.Scope, id, d)
	if err != nil {
		c.Fatalf("drain of %s: %v", id, err)
	}
	return drained
}

func resumeMachine(c *trackertest.Fleet, id string) *workers.Resumed {
	c.Helper()
	resumed, err := c.Workers.ResumeMachine(c.Ctx, trackertest.Scope, id, "back")
	if err != nil {
		c.Fatalf("resume of %s: %v", id, err)
	}
	return resumed
}

// gets returns what a claim of a worker gets, or the code of its refusal.
func gets(c *trackertest.Fleet, id string) string {
	c.Helper()
	got, err := c.Queues.Claim(c.Ctx, queues.ClaimRequest{Scope: trackertest.Scope, WorkerID: id, Queue: "q", Max: 1})
	if err != nil {
		return string(model.CodeOf(err))
	}
	return fmt.Sprint(len(got))
}

// A worker that registers on a drained machine, while its workers drain or long after they are gone, is DRAINING, learns that from
// its heartbeats, claims nothing and does not end by being idle, until the machine is resumed.
func TestADrainedMachineTakesNoNewWork(t *testing.T) {
	t.Parallel()
	trackertest.Claims(t, func(c *trackertest.Fleet) {
		old := c.MustRegister(at("m1")).WorkerID
		elsewhere := c.MustRegister(at("m2")).WorkerID
		c.MustQueue("t1", "x")
		c.MustQueue("t2", "x")
		if d := drainMachine(c, "m1", workers.Drain{Reason: "kernel", Deadline: time.Hour}); d.Draining != 1 || d.Workers[0] != old {
			c.Fatalf("%+v", d)
		}
		m := c.MustMachine("m1")
		if m.Status != model.Draining || m.Drain == nil || m.Drain.Reason != "kernel" || !m.Drain.Since.Equal(c.Store.Clock.Now()) ||
			!m.Drain.Deadline.Equal(c.Store.Clock.Now().Add(time.Hour)) {
			c.Fatalf("%+v %+v", m, m.Drain)
		}
		early := c.MustRegister(at("m1")).WorkerID
		c.Advance(time.Second)
		c.MustSweep()
		c.WantWorker(old, model.Offline, model.WorkerDrained)
		late := c.MustRegister(at("m1")).WorkerID
		drainMachine(c, "m1", workers.Drain{Deadline: 10 * time.Second}) // those that wait hold nothing that could be late
		for range 5 {
			for _, id := range []string{early, late} {
				c.WantWorker(id, model.Draining, "kernel")
				if result := c.MustBeatWorker(id); !result.ShouldDrain || !result.DrainDeadline.IsZero() {
					c.Fatalf("%+v", result)
				}
				if got := gets(c, id); got != "worker_draining" {
					c.Fatalf("a claim gets %s", got)
				}
			}
			c.Advance(9 * time.Second)
			c.MustSweep()
		}
		c.MustBeatWorker(early)
		c.MustBeatWorker(late)
		if e := c.Events(late); e["worker.registered"] != 1 || e["worker.draining"] != 1 {
			c.Fatalf("%v", e)
		}
		if r := c.Reconcile(); len(r) != 0 {
			c.Fatalf("there was something to repair: %v", r)
		}

		r := resumeMachine(c, "m1")
		if r.Matched != 2 || len(r.Workers) != 2 {
			c.Fatalf("%+v", r)
		}
		for _, id := range []string{early, late} {
			if w := c.WantWorker(id, model.Online, ""); len(w.Unschedulable) != 0 {
				c.Fatalf("%+v", w)
			}
			if got := gets(c, id); got != "1" {
				c.Fatalf("a claim gets %s", got)
			}
		}
		if m := c.MustMachine("m1"); m.Status != model.Online || m.Drain != nil {
			c.Fatalf("%+v", m)
		}
		if r := resumeMachine(c, "m1"); r.Matched != 0 {
			c.Fatalf("resumed again: %+v", r)
		}
		c.WantWorker(c.MustRegister(at("m1")).WorkerID, model.Online, "")
		c.WantWorker(elsewhere, model.Offline, model.WorkerStale)
		if e := c.Events("m1"); e["machine.drained"] != 1 || e["machine.resumed"] != 1 {
			c.Fatalf("%v", e)
		}
	})
}

// A worker's own drain lasts longer than its machine's; a worker that is resumed alone works on a drained machine, and one that
// waits there may be drained, and ends.
func TestTheDrainOfAMachineAndOfItsWorkers(t *testing.T) {
	t.Parallel()
	trackertest.Claims(t, func(c *trackertest.Fleet) {
		own, with, alone := c.MustRegister(at("m1")).WorkerID, c.MustRegister(at("m1")).WorkerID, c.MustRegister(at("m1")).WorkerID
		c.MustQueue("t1", "x")
		if got := gets(c, own); got != "1" { // so that it does not end
			c.Fatal(got)
		}
		if _, err := c.Workers.Drain(c.Ctx, trackertest.Scope, own, workers.Drain{Reason: "mine"}); err != nil {
			c.Fatal(err)
		}
		if d := drainMachine(c, "m1", workers.Drain{}); d.Matched != 3 || d.Draining != 3 {
			c.Fatalf("%+v", d)
		}
		if _, err := c.Workers.Resume(c.Ctx, trackertest.Scope, alone, ""); err != nil {
			c.Fatal(err)
		}
		c.WantWorker(alone, model.Online, "")
		leaving, stays := c.MustRegister(at("m1")).WorkerID, c.MustRegister(at("m1")).WorkerID
		c.WantWorker(stays, model.Draining, "MACHINE_DRAINED")
		if _, err := c.Workers.Drain(c.Ctx, trackertest.Scope, leaving, workers.Drain{BySelf: true}); err != nil {
			c.Fatal(err)
		}
		drainMachine(c, "m1", workers.Drain{Reason: "again"}) // also drains the workers that were resumed
		c.WantWorker(alone, model.Draining, "again")
		if r := c.Reconcile(); len(r) != 0 {
			c.Fatalf("there was something to repair: %v", r)
		}
		if r := resumeMachine(c, "m1"); r.Matched != 5 || len(r.Workers) != 3 {
			c.Fatalf("%+v", r)
		}
		c.WantWorker(own, model.Draining, "mine")
		for _, id := range []string{with, alone, stays} {
			c.WantWorker(id, model.Online, "")
		}
		c.Advance(time.Second)
		c.MustSweep()
		c.WantWorker(leaving, model.Offline, model.WorkerDrained)
	})
}

// A host is drained for longer than the records of its workers are kept, and returns. A machine that is never resumed is forgotten
// after thirty days without a worker; one without workers is forgotten at once when it is resumed.
func TestADrainedMachineOutlivesItsWorkers(t *testing.T) {
	t.Parallel()
	day := 24 * time.Hour
	trackertest.Claims(t, func(c *trackertest.Fleet) {
		registerAndDrain := func(machine string) {
			c.MustRegister(at(machine))
			drainMachine(c, machine, workers.Drain{Reason: "new disks"})
		}
		registerAndDrain("m1")
		registerAndDrain("m2")
		alone := c.MustRegister(at("")).WorkerID // its own machine, on which no other worker will ever register
		drainMachine(c, alone, workers.Drain{})
		pass := func(d time.Duration) {
			for ; d > 0; d -= 20 * time.Hour {
				c.Store.Clock.Advance(min(d, 20*time.Hour))
				c.MustTick()
				c.MustSweep()
				if r := c.Reconcile(); len(r) != 0 {
					c.Fatalf("there was something to repair: %v", r)
				}
			}
		}
		c.Advance(time.Second)
		c.MustSweep()
		pass(3 * day)
		for _, id := range []string{"m1", "m2"} {
			if m := c.MustMachine(id); m.Status != model.Offline || m.Workers[model.Offline] != 0 || m.Drain == nil ||
				m.Drain.Reason != "new disks" {
				c.Fatalf("%+v", m)
			}
		}
		_, err := c.Workers.Machine(c.Ctx, trackertest.Scope, alone)
		c.WantCode(err, workers.MachineNotFound)
		back := c.MustRegister(at("m1")).WorkerID
		c.WantWorker(back, model.Draining, "new disks")
		resumeMachine(c, "m2")
		_, err = c.Workers.Machine(c.Ctx, trackertest.Scope, "m2")
		c.WantCode(err, workers.MachineNotFound)

		if _, err := c.Workers.Retire(c.Ctx, trackertest.Scope, back, model.WorkerDeregistered, ""); err != nil {
			c.Fatal(err)
		}
		c.MustSweep()
		pass(30 * day) // and one for the worker's record
		if m := c.MustMachine("m1"); m.Drain == nil {
			c.Fatalf("%+v", m)
		}
		pass(2 * day)
		_, err = c.Workers.Machine(c.Ctx, trackertest.Scope, "m1")
		c.WantCode(err, workers.MachineNotFound)
		if page, err := c.Workers.Machines(c.Ctx, workers.MachineFilter{Scope: trackertest.Scope, PageSize: 10}); err != nil || page.Total != 0 {
			c.Fatalf("%+v %v", page, err)
		}
		c.WantWorker(c.MustRegister(at("m1")).WorkerID, model.Online, "")
		_, err = c.Workers.ResumeMachine(c.Ctx, trackertest.Scope, "nowhere", "")
		c.WantCode(err, workers.MachineNotFound)
	})
}

// The reconciler repairs what a lost store leaves of a machine's drain.
func TestReconcilerRepairsMachineDrains(t *testing.T) {
	t.Parallel()
	trackertest.Claims(t, func(c *trackertest.Fleet) {
		first := c.MustRegister(at("m1")).WorkerID
		drainMachine(c, "m1", workers.Drain{})
		waits := c.MustRegister(at("m1")).WorkerID
		machine := trackertest.WorkerKey(waits, "machine:acme/prod/m1")
		c.Store.Client.HDel(c.Ctx, machine, "ds")
		if r := c.Reconcile(); fmt.Sprint(r) != "map[stuck_drain:1]" {
			c.Fatalf("repaired %v", r)
		}
		c.WantWorker(waits, model.Online, "")
		c.WantWorker(first, model.Draining, "")

		drainMachine(c, "m1", workers.Drain{})
		for _, id := range []string{first, waits} {
			if _, err := c.Workers.Retire(c.Ctx, trackertest.Scope, id, model.WorkerDeregistered, ""); err != nil {
				c.Fatal(err)
			}
		}
		c.MustSweep()
		c.Store.Clock.Advance(model.DefaultFinishedRetention)
		c.MustTick()
		c.MustSweep()
		c.Remove(trackertest.WorkerKey(waits, "workerdue"), "m:acme/prod/m1")
		c.WantRepairs("missing_retention")
		c.Remove(trackertest.WorkerKey(waits, "workers"), "acme/prod/M/m1")
		c.Plant(trackertest.WorkerKey(waits, "workerdue"), "m:acme/prod/nowhere")
		c.WantRepairs("missing_machine", "stray_due")
	})
}

// An adopted worker waits on a drained machine, too, and finishes what it holds.
func TestAnAdoptedWorkerOnADrainedMachine(t *testing.T) {
	t.Parallel()
	trackertest.Claims(t, func(c *trackertest.Fleet) {
		keeper, lost := c.MustRegister(at("m1")), c.MustRegister(at("m1"))
		drainMachine(c, "m1", workers.Drain{Reason: "kernel"})
		c.Store.Client.Del(c.Ctx, trackertest.WorkerRecord(c.Tracker, trackertest.Scope, lost.WorkerID))
		if err := c.Workers.Adopt(c.Ctx, trackertest.Scope, lost.WorkerID, lost.Record); err != nil {
			c.Fatal(err)
		}
		c.WantWorker(lost.WorkerID, model.Draining, "kernel")
		resumeMachine(c, "m1")
		c.WantWorker(lost.WorkerID, model.Online, "")
		c.WantWorker(keeper.WorkerID, model.Online, "")
	})
}
