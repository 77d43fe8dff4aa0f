package tracker_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/lubdub-io/lubdub/tracker"
)

// at puts a worker on a machine.
func at(machine string) func(*tracker.NewWorker) {
	return func(n *tracker.NewWorker) { n.MachineID, n.Queue, n.Types = machine, "q", []string{"x"} }
}

func (c *crew) drainMachine(id string, d tracker.Drain) *tracker.Drained {
	c.Helper()
	drained, err := c.DrainMachine(c.ctx, scope, id, d)
	if err != nil {
		c.Fatalf("drain of %s: %v", id, err)
	}
	return drained
}

func (c *crew) resumeMachine(id string) *tracker.Resumed {
	c.Helper()
	resumed, err := c.ResumeMachine(c.ctx, scope, id, "back")
	if err != nil {
		c.Fatalf("resume of %s: %v", id, err)
	}
	return resumed
}

// gets tells what a claim of a worker gets, or the code of its refusal.
func (c *crew) gets(id string) string {
	c.Helper()
	got, err := c.Claim(c.ctx, tracker.ClaimRequest{Scope: scope, WorkerID: id, Queue: "q", Max: 1})
	if err != nil {
		return string(tracker.CodeOf(err))
	}
	return fmt.Sprint(len(got))
}

// Who registers on a drained machine, while its workers drain or long after they have gone, is DRAINING, is told so by its
// beats, claims nothing and does not end by being idle, until the machine is resumed.
func TestADrainedMachineTakesNoNewWork(t *testing.T) {
	t.Parallel()
	claims(t, func(c *crew) {
		old := c.register(at("m1")).WorkerID
		elsewhere := c.register(at("m2")).WorkerID
		c.queue("t1", "x")
		c.queue("t2", "x")
		if d := c.drainMachine("m1", tracker.Drain{Reason: "kernel", Deadline: time.Hour}); d.Draining != 1 || d.Workers[0] != old {
			c.Fatalf("%+v", d)
		}
		m := c.machine("m1")
		if m.Status != tracker.Draining || m.Drain == nil || m.Drain.Reason != "kernel" || !m.Drain.Since.Equal(c.store.Clock.Now()) || !m.Drain.Deadline.Equal(c.store.Clock.Now().Add(time.Hour)) {
			c.Fatalf("%+v %+v", m, m.Drain)
		}
		early := c.register(at("m1")).WorkerID
		c.advance(time.Second)
		c.sweep()
		c.wantWorker(old, tracker.Offline, tracker.WorkerDrained)
		late := c.register(at("m1")).WorkerID
		c.drainMachine("m1", tracker.Drain{Deadline: 10 * time.Second}) // those that wait hold nothing that could be late
		for range 5 {
			for _, id := range []string{early, late} {
				c.wantWorker(id, tracker.Draining, "kernel")
				if heard := c.beatWorker(id); !heard.ShouldDrain || !heard.DrainDeadline.IsZero() {
					c.Fatalf("%+v", heard)
				}
				if got := c.gets(id); got != "worker_draining" {
					c.Fatalf("a claim gets %s", got)
				}
			}
			c.advance(9 * time.Second)
			c.sweep()
		}
		c.beatWorker(early)
		c.beatWorker(late)
		if e := c.events(late); e["worker.registered"] != 1 || e["worker.draining"] != 1 {
			c.Fatalf("%v", e)
		}
		if r := c.reconcile(); len(r) != 0 {
			c.Fatalf("there was something to repair: %v", r)
		}

		r := c.resumeMachine("m1")
		if r.Matched != 2 || len(r.Workers) != 2 {
			c.Fatalf("%+v", r)
		}
		for _, id := range []string{early, late} {
			if w := c.wantWorker(id, tracker.Online, ""); len(w.Unschedulable) != 0 {
				c.Fatalf("%+v", w)
			}
			if got := c.gets(id); got != "1" {
				c.Fatalf("a claim gets %s", got)
			}
		}
		if m := c.machine("m1"); m.Status != tracker.Online || m.Drain != nil {
			c.Fatalf("%+v", m)
		}
		if r := c.resumeMachine("m1"); r.Matched != 0 {
			c.Fatalf("resumed again: %+v", r)
		}
		c.wantWorker(c.register(at("m1")).WorkerID, tracker.Online, "")
		c.wantWorker(elsewhere, tracker.Offline, tracker.WorkerStale)
		if e := c.events("m1"); e["machine.drained"] != 1 || e["machine.resumed"] != 1 {
			c.Fatalf("%v", e)
		}
	})
}

// A drain that a worker has of its own outlasts the machine's; a worker that is resumed alone works on a drained machine,
// and one that waits there may be drained, and goes.
func TestTheDrainOfAMachineAndOfItsWorkers(t *testing.T) {
	t.Parallel()
	claims(t, func(c *crew) {
		own, with, alone := c.register(at("m1")).WorkerID, c.register(at("m1")).WorkerID, c.register(at("m1")).WorkerID
		c.queue("t1", "x")
		if got := c.gets(own); got != "1" { // so that it does not end
			c.Fatal(got)
		}
		if _, err := c.DrainWorker(c.ctx, scope, own, tracker.Drain{Reason: "mine"}); err != nil {
			c.Fatal(err)
		}
		if d := c.drainMachine("m1", tracker.Drain{}); d.Matched != 3 || d.Draining != 3 {
			c.Fatalf("%+v", d)
		}
		if _, err := c.ResumeWorker(c.ctx, scope, alone, ""); err != nil {
			c.Fatal(err)
		}
		c.wantWorker(alone, tracker.Online, "")
		goes, stays := c.register(at("m1")).WorkerID, c.register(at("m1")).WorkerID
		c.wantWorker(stays, tracker.Draining, "MACHINE_DRAINED")
		if _, err := c.DrainWorker(c.ctx, scope, goes, tracker.Drain{BySelf: true}); err != nil {
			c.Fatal(err)
		}
		c.drainMachine("m1", tracker.Drain{Reason: "again"}) // tells whoever came back to work too
		c.wantWorker(alone, tracker.Draining, "again")
		if r := c.reconcile(); len(r) != 0 {
			c.Fatalf("there was something to repair: %v", r)
		}
		if r := c.resumeMachine("m1"); r.Matched != 5 || len(r.Workers) != 3 {
			c.Fatalf("%+v", r)
		}
		c.wantWorker(own, tracker.Draining, "mine")
		for _, id := range []string{with, alone, stays} {
			c.wantWorker(id, tracker.Online, "")
		}
		c.advance(time.Second)
		c.sweep()
		c.wantWorker(goes, tracker.Offline, tracker.WorkerDrained)
	})
}

// A host is drained for longer than the records of its workers are kept, and comes back. The machine that nobody ever
// resumes is forgotten after thirty days without a worker, one that has none when it is resumed at once.
func TestADrainedMachineOutlivesItsWorkers(t *testing.T) {
	t.Parallel()
	day := 24 * time.Hour
	claims(t, func(c *crew) {
		gone := func(machine string) {
			c.register(at(machine))
			c.drainMachine(machine, tracker.Drain{Reason: "new disks"})
		}
		gone("m1")
		gone("m2")
		alone := c.register(at("")).WorkerID // its own machine: nobody else will ever register there
		c.drainMachine(alone, tracker.Drain{})
		pass := func(d time.Duration) {
			for ; d > 0; d -= 20 * time.Hour {
				c.store.Clock.Advance(min(d, 20*time.Hour))
				c.tick()
				c.sweep()
				if r := c.reconcile(); len(r) != 0 {
					c.Fatalf("there was something to repair: %v", r)
				}
			}
		}
		c.advance(time.Second)
		c.sweep()
		pass(3 * day)
		for _, id := range []string{"m1", "m2"} {
			if m := c.machine(id); m.Status != tracker.Offline || m.Workers[tracker.Offline] != 0 || m.Drain == nil || m.Drain.Reason != "new disks" {
				c.Fatalf("%+v", m)
			}
		}
		_, err := c.Machine(c.ctx, scope, alone)
		c.wantCode(err, tracker.MachineNotFound)
		back := c.register(at("m1")).WorkerID
		c.wantWorker(back, tracker.Draining, "new disks")
		c.resumeMachine("m2")
		_, err = c.Machine(c.ctx, scope, "m2")
		c.wantCode(err, tracker.MachineNotFound)

		if _, err := c.RetireWorker(c.ctx, scope, back, tracker.WorkerDeregistered, ""); err != nil {
			c.Fatal(err)
		}
		c.sweep()
		pass(30 * day) // and one for the worker's record
		if m := c.machine("m1"); m.Drain == nil {
			c.Fatalf("%+v", m)
		}
		pass(2 * day)
		_, err = c.Machine(c.ctx, scope, "m1")
		c.wantCode(err, tracker.MachineNotFound)
		if page, err := c.Machines(c.ctx, tracker.MachineFilter{Scope: scope, PageSize: 10}); err != nil || page.Total != 0 {
			c.Fatalf("%+v %v", page, err)
		}
		c.wantWorker(c.register(at("m1")).WorkerID, tracker.Online, "")
		_, err = c.ResumeMachine(c.ctx, scope, "nowhere", "")
		c.wantCode(err, tracker.MachineNotFound)
	})
}

// What a lost store leaves of a machine's drain is repaired.
func TestReconcilerRepairsMachineDrains(t *testing.T) {
	t.Parallel()
	claims(t, func(c *crew) {
		first := c.register(at("m1")).WorkerID
		c.drainMachine("m1", tracker.Drain{})
		waits := c.register(at("m1")).WorkerID
		machine := workerKey(waits, "machine:acme/prod/m1")
		c.store.Client.HDel(c.ctx, machine, "ds")
		if r := c.reconcile(); fmt.Sprint(r) != "map[stuck_drain:1]" {
			c.Fatalf("repaired %v", r)
		}
		c.wantWorker(waits, tracker.Online, "")
		c.wantWorker(first, tracker.Draining, "")

		c.drainMachine("m1", tracker.Drain{})
		for _, id := range []string{first, waits} {
			if _, err := c.RetireWorker(c.ctx, scope, id, tracker.WorkerForced, ""); err != nil {
				c.Fatal(err)
			}
		}
		c.sweep()
		c.store.Clock.Advance(tracker.DefaultOfflineRetention)
		c.tick()
		c.sweep()
		c.remove(workerKey(waits, "workerdue"), "m:acme/prod/m1")
		c.wantRepairs("missing_retention")
		c.remove(workerKey(waits, "workers"), "acme/prod/M/m1")
		c.plant(workerKey(waits, "workerdue"), "m:acme/prod/nowhere")
		c.wantRepairs("missing_machine", "stray_due")
	})
}

// An adopted worker waits on a drained machine, too, and finishes what it holds.
func TestAnAdoptedWorkerOnADrainedMachine(t *testing.T) {
	t.Parallel()
	claims(t, func(c *crew) {
		keeper, lost := c.register(at("m1")), c.register(at("m1"))
		c.drainMachine("m1", tracker.Drain{Reason: "kernel"})
		c.store.Client.Del(c.ctx, c.WorkerKey(scope, lost.WorkerID))
		if err := c.AdoptWorker(c.ctx, scope, lost.WorkerID, lost.Record); err != nil {
			c.Fatal(err)
		}
		c.wantWorker(lost.WorkerID, tracker.Draining, "kernel")
		c.resumeMachine("m1")
		c.wantWorker(lost.WorkerID, tracker.Online, "")
		c.wantWorker(keeper.WorkerID, tracker.Online, "")
	})
}
