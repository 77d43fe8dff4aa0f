package workers_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/lubdub-io/lubdub/tracker"
	"github.com/lubdub-io/lubdub/tracker/trackertest"
)

// at puts a worker on a machine.
func at(machine string) func(*tracker.NewWorker) {
	return func(n *tracker.NewWorker) { n.MachineID, n.Queue, n.Types = machine, "q", []string{"x"} }
}

func drainMachine(c *trackertest.Crew, id string, d tracker.Drain) *tracker.Drained {
	c.Helper()
	drained, err := c.DrainMachine(c.Ctx, trackertest.Scope, id, d)
	if err != nil {
		c.Fatalf("drain of %s: %v", id, err)
	}
	return drained
}

func resumeMachine(c *trackertest.Crew, id string) *tracker.Resumed {
	c.Helper()
	resumed, err := c.ResumeMachine(c.Ctx, trackertest.Scope, id, "back")
	if err != nil {
		c.Fatalf("resume of %s: %v", id, err)
	}
	return resumed
}

// gets tells what a claim of a worker gets, or the code of its refusal.
func gets(c *trackertest.Crew, id string) string {
	c.Helper()
	got, err := c.Claim(c.Ctx, tracker.ClaimRequest{Scope: trackertest.Scope, WorkerID: id, Queue: "q", Max: 1})
	if err != nil {
		return string(tracker.CodeOf(err))
	}
	return fmt.Sprint(len(got))
}

// Who registers on a drained machine, while its workers drain or long after they have gone, is DRAINING, is told so by its
// beats, claims nothing and does not end by being idle, until the machine is resumed.
func TestADrainedMachineTakesNoNewWork(t *testing.T) {
	t.Parallel()
	trackertest.Claims(t, func(c *trackertest.Crew) {
		old := c.MustRegister(at("m1")).WorkerID
		elsewhere := c.MustRegister(at("m2")).WorkerID
		c.MustQueue("t1", "x")
		c.MustQueue("t2", "x")
		if d := drainMachine(c, "m1", tracker.Drain{Reason: "kernel", Deadline: time.Hour}); d.Draining != 1 || d.Workers[0] != old {
			c.Fatalf("%+v", d)
		}
		m := c.MustMachine("m1")
		if m.Status != tracker.Draining || m.Drain == nil || m.Drain.Reason != "kernel" || !m.Drain.Since.Equal(c.Store.Clock.Now()) ||
			!m.Drain.Deadline.Equal(c.Store.Clock.Now().Add(time.Hour)) {
			c.Fatalf("%+v %+v", m, m.Drain)
		}
		early := c.MustRegister(at("m1")).WorkerID
		c.Advance(time.Second)
		c.MustSweep()
		c.WantWorker(old, tracker.Offline, tracker.WorkerDrained)
		late := c.MustRegister(at("m1")).WorkerID
		drainMachine(c, "m1", tracker.Drain{Deadline: 10 * time.Second}) // those that wait hold nothing that could be late
		for range 5 {
			for _, id := range []string{early, late} {
				c.WantWorker(id, tracker.Draining, "kernel")
				if heard := c.MustBeatWorker(id); !heard.ShouldDrain || !heard.DrainDeadline.IsZero() {
					c.Fatalf("%+v", heard)
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
			if w := c.WantWorker(id, tracker.Online, ""); len(w.Unschedulable) != 0 {
				c.Fatalf("%+v", w)
			}
			if got := gets(c, id); got != "1" {
				c.Fatalf("a claim gets %s", got)
			}
		}
		if m := c.MustMachine("m1"); m.Status != tracker.Online || m.Drain != nil {
			c.Fatalf("%+v", m)
		}
		if r := resumeMachine(c, "m1"); r.Matched != 0 {
			c.Fatalf("resumed again: %+v", r)
		}
		c.WantWorker(c.MustRegister(at("m1")).WorkerID, tracker.Online, "")
		c.WantWorker(elsewhere, tracker.Offline, tracker.WorkerStale)
		if e := c.Events("m1"); e["machine.drained"] != 1 || e["machine.resumed"] != 1 {
			c.Fatalf("%v", e)
		}
	})
}

// A drain that a worker has of its own outlasts the machine's; a worker that is resumed alone works on a drained machine,
// and one that waits there may be drained, and goes.
func TestTheDrainOfAMachineAndOfItsWorkers(t *testing.T) {
	t.Parallel()
	trackertest.Claims(t, func(c *trackertest.Crew) {
		own, with, alone := c.MustRegister(at("m1")).WorkerID, c.MustRegister(at("m1")).WorkerID, c.MustRegister(at("m1")).WorkerID
		c.MustQueue("t1", "x")
		if got := gets(c, own); got != "1" { // so that it does not end
			c.Fatal(got)
		}
		if _, err := c.DrainWorker(c.Ctx, trackertest.Scope, own, tracker.Drain{Reason: "mine"}); err != nil {
			c.Fatal(err)
		}
		if d := drainMachine(c, "m1", tracker.Drain{}); d.Matched != 3 || d.Draining != 3 {
			c.Fatalf("%+v", d)
		}
		if _, err := c.ResumeWorker(c.Ctx, trackertest.Scope, alone, ""); err != nil {
			c.Fatal(err)
		}
		c.WantWorker(alone, tracker.Online, "")
		goes, stays := c.MustRegister(at("m1")).WorkerID, c.MustRegister(at("m1")).WorkerID
		c.WantWorker(stays, tracker.Draining, "MACHINE_DRAINED")
		if _, err := c.DrainWorker(c.Ctx, trackertest.Scope, goes, tracker.Drain{BySelf: true}); err != nil {
			c.Fatal(err)
		}
		drainMachine(c, "m1", tracker.Drain{Reason: "again"}) // tells whoever came back to work too
		c.WantWorker(alone, tracker.Draining, "again")
		if r := c.Reconcile(); len(r) != 0 {
			c.Fatalf("there was something to repair: %v", r)
		}
		if r := resumeMachine(c, "m1"); r.Matched != 5 || len(r.Workers) != 3 {
			c.Fatalf("%+v", r)
		}
		c.WantWorker(own, tracker.Draining, "mine")
		for _, id := range []string{with, alone, stays} {
			c.WantWorker(id, tracker.Online, "")
		}
		c.Advance(time.Second)
		c.MustSweep()
		c.WantWorker(goes, tracker.Offline, tracker.WorkerDrained)
	})
}

// A host is drained for longer than the records of its workers are kept, and comes back. The machine that nobody ever
// resumes is forgotten after thirty days without a worker, one that has none when it is resumed at once.
func TestADrainedMachineOutlivesItsWorkers(t *testing.T) {
	t.Parallel()
	day := 24 * time.Hour
	trackertest.Claims(t, func(c *trackertest.Crew) {
		gone := func(machine string) {
			c.MustRegister(at(machine))
			drainMachine(c, machine, tracker.Drain{Reason: "new disks"})
		}
		gone("m1")
		gone("m2")
		alone := c.MustRegister(at("")).WorkerID // its own machine: nobody else will ever register there
		drainMachine(c, alone, tracker.Drain{})
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
			if m := c.MustMachine(id); m.Status != tracker.Offline || m.Workers[tracker.Offline] != 0 || m.Drain == nil ||
				m.Drain.Reason != "new disks" {
				c.Fatalf("%+v", m)
			}
		}
		_, err := c.Machine(c.Ctx, trackertest.Scope, alone)
		c.WantCode(err, tracker.MachineNotFound)
		back := c.MustRegister(at("m1")).WorkerID
		c.WantWorker(back, tracker.Draining, "new disks")
		resumeMachine(c, "m2")
		_, err = c.Machine(c.Ctx, trackertest.Scope, "m2")
		c.WantCode(err, tracker.MachineNotFound)

		if _, err := c.RetireWorker(c.Ctx, trackertest.Scope, back, tracker.WorkerDeregistered, ""); err != nil {
			c.Fatal(err)
		}
		c.MustSweep()
		pass(30 * day) // and one for the worker's record
		if m := c.MustMachine("m1"); m.Drain == nil {
			c.Fatalf("%+v", m)
		}
		pass(2 * day)
		_, err = c.Machine(c.Ctx, trackertest.Scope, "m1")
		c.WantCode(err, tracker.MachineNotFound)
		if page, err := c.Machines(c.Ctx, tracker.MachineFilter{Scope: trackertest.Scope, PageSize: 10}); err != nil || page.Total != 0 {
			c.Fatalf("%+v %v", page, err)
		}
		c.WantWorker(c.MustRegister(at("m1")).WorkerID, tracker.Online, "")
		_, err = c.ResumeMachine(c.Ctx, trackertest.Scope, "nowhere", "")
		c.WantCode(err, tracker.MachineNotFound)
	})
}

// What a lost store leaves of a machine's drain is repaired.
func TestReconcilerRepairsMachineDrains(t *testing.T) {
	t.Parallel()
	trackertest.Claims(t, func(c *trackertest.Crew) {
		first := c.MustRegister(at("m1")).WorkerID
		drainMachine(c, "m1", tracker.Drain{})
		waits := c.MustRegister(at("m1")).WorkerID
		machine := trackertest.WorkerKey(waits, "machine:acme/prod/m1")
		c.Store.Client.HDel(c.Ctx, machine, "ds")
		if r := c.Reconcile(); fmt.Sprint(r) != "map[stuck_drain:1]" {
			c.Fatalf("repaired %v", r)
		}
		c.WantWorker(waits, tracker.Online, "")
		c.WantWorker(first, tracker.Draining, "")

		drainMachine(c, "m1", tracker.Drain{})
		for _, id := range []string{first, waits} {
			if _, err := c.RetireWorker(c.Ctx, trackertest.Scope, id, tracker.WorkerDeregistered, ""); err != nil {
				c.Fatal(err)
			}
		}
		c.MustSweep()
		c.Store.Clock.Advance(tracker.DefaultFinishedRetention)
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
	trackertest.Claims(t, func(c *trackertest.Crew) {
		keeper, lost := c.MustRegister(at("m1")), c.MustRegister(at("m1"))
		drainMachine(c, "m1", tracker.Drain{Reason: "kernel"})
		c.Store.Client.Del(c.Ctx, trackertest.WorkerRecord(c.Tracker, trackertest.Scope, lost.WorkerID))
		if err := c.AdoptWorker(c.Ctx, trackertest.Scope, lost.WorkerID, lost.Record); err != nil {
			c.Fatal(err)
		}
		c.WantWorker(lost.WorkerID, tracker.Draining, "kernel")
		resumeMachine(c, "m1")
		c.WantWorker(lost.WorkerID, tracker.Online, "")
		c.WantWorker(keeper.WorkerID, tracker.Online, "")
	})
}
