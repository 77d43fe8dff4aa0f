package workers_test

import (
	"testing"
	"time"

	"github.com/lubdub-io/lubdub/tracker/model"
	"github.com/lubdub-io/lubdub/tracker/trackertest"
	"github.com/lubdub-io/lubdub/tracker/workers"
)

// process returns a process with a name on a machine; without a name, the machine's process with that pid.
func process(machine, name string, pid int) func(*model.NewWorker) {
	return func(n *model.NewWorker) {
		at(machine)(n)
		n.Name, n.Hostname, n.PID = name, "host-1", pid
	}
}

func register(c *trackertest.Fleet, with func(*model.NewWorker)) (*workers.Registered, *model.Error) {
	c.Helper()
	n := model.NewWorker{Scope: trackertest.Scope, MaxConcurrent: 10}
	with(&n)
	r, err := c.Workers.Register(c.Ctx, n)
	if err == nil {
		return r, nil
	}
	refused, _ := err.(*model.Error)
	if refused == nil {
		c.Fatal(err)
	}
	return nil, refused
}

func wantHeld(c *trackertest.Fleet, with func(*model.NewWorker), worker, machine, reason string) {
	c.Helper()
	r, refused := register(c, with)
	if refused == nil {
		c.Fatalf("registered as %s, though held offline", r.WorkerID)
	}
	if refused.Code != workers.WorkerHeld || refused.Worker != worker || refused.Machine != machine || string(refused.Reason) != reason {
		c.Fatalf("refused with %+v", refused)
	}
}

func wantAdmitted(c *trackertest.Fleet, with func(*model.NewWorker)) string {
	c.Helper()
	r, refused := register(c, with)
	if refused != nil {
		c.Fatalf("refused with %v", refused)
	}
	return r.WorkerID
}

func takeOffline(c *trackertest.Fleet, id, reason string) *model.Worker {
	c.Helper()
	w, err := c.Workers.Retire(c.Ctx, trackertest.Scope, id, model.WorkerForced, reason)
	if err != nil {
		c.Fatal(err)
	}
	return w
}

func resumeWorker(c *trackertest.Fleet, id string) *model.Worker {
	c.Helper()
	w, err := c.Workers.Resume(c.Ctx, trackertest.Scope, id, "mended")
	if err != nil {
		c.Fatal(err)
	}
	return w
}

// A registration with the identity of a worker that an operator took offline is refused until the worker is resumed, with any
// process ID and any shard; other registrations are accepted.
func TestAWorkerTakenOfflineStaysOut(t *testing.T) {
	t.Parallel()
	trackertest.Claims(t, func(c *trackertest.Fleet) {
		for _, p := range []struct {
			again, other func(*model.NewWorker)
			first        func(*model.NewWorker)
		}{
			{first: process("m1", "a", 1), again: process("m1", "a", 2), other: process("m1", "b", 1)},
			{first: process("m1", "", 1), again: process("m1", "", 1), other: process("m1", "", 2)},
			{first: process("m1", "a2", 1), again: process("m1", "a2", 1), other: process("m2", "a2", 1)},
			{
				first: func(n *model.NewWorker) { at("")(n); n.Name = "alone" },
				again: func(n *model.NewWorker) { at("")(n); n.Name = "alone" },
				other: func(n *model.NewWorker) { at("")(n); n.Name = "another" },
			},
		} {
			id := wantAdmitted(c, p.first)
			if w := takeOffline(c, id, "bad build"); w.Hold == nil || w.Hold.Reason != "bad build" || !w.Hold.Since.Equal(c.Store.Clock.Now()) {
				c.Fatalf("%+v", w.Hold)
			}
			takeOffline(c, id, "again") // changes nothing
			for range 3 {
				wantHeld(c, p.again, id, "", "bad build")
			}
			wantAdmitted(c, p.other)
			if e := c.Events(id); e["worker.held_offline"] != 1 {
				c.Fatalf("%v", e)
			}
			if w := resumeWorker(c, id); w.Status != model.Offline || w.Hold != nil {
				c.Fatalf("%+v", w)
			}
			wantAdmitted(c, p.again)
			_, err := c.Workers.Resume(c.Ctx, trackertest.Scope, id, "")
			c.WantCode(err, workers.WorkerOffline)
		}
		if r := c.Reconcile(); len(r) != 0 {
			c.Fatalf("there was something to repair: %v", r)
		}
	})
}

// A dead worker can be held, too; a superseded one cannot, since that would hold its successor.
func TestAWorkerThatIsOfflineIsHeld(t *testing.T) {
	t.Parallel()
	trackertest.Claims(t, func(c *trackertest.Fleet) {
		old := wantAdmitted(c, process("m1", "a", 1))
		now := wantAdmitted(c, process("m1", "a", 1))
		if w := takeOffline(c, old, ""); w.EndReason != model.WorkerSuperseded || w.Hold != nil {
			c.Fatalf("%+v", w)
		}
		c.WantWorker(now, model.Online, "")
		if _, err := c.Workers.Retire(c.Ctx, trackertest.Scope, now, model.WorkerDeregistered, ""); err != nil {
			c.Fatal(err)
		}
		if w := takeOffline(c, now, "keep out"); w.EndReason != model.WorkerDeregistered || w.Hold == nil {
			c.Fatalf("%+v", w)
		}
		wantHeld(c, process("m1", "a", 1), now, "", "keep out")
		done, err := c.Workers.ActOnMany(c.Ctx, workers.Resume, workers.WorkerFilter{Scope: trackertest.Scope, MachineID: "m1"}, "", false)
		if err != nil || done.Matched != 1 || done.Done != 1 {
			c.Fatalf("%+v %v", done, err)
		}
		wantAdmitted(c, process("m1", "a", 1))
	})
}

// A hold belongs to the identity: if two workers of one name are held, resuming either lifts the hold of both.
func TestAHoldIsLiftedWhereverItIsShown(t *testing.T) {
	t.Parallel()
	trackertest.Claims(t, func(c *trackertest.Fleet) {
		for _, last := range []bool{false, true} {
			ids := []string{wantAdmitted(c, process("m1", "a", 1)), wantAdmitted(c, process("m1", "a", 2))}
			takeOffline(c, ids[0], "one")
			c.Store.Clock.Advance(time.Second)
			takeOffline(c, ids[1], "two")
			wantHeld(c, process("m1", "a", 3), ids[1], "", "two")
			for _, id := range ids {
				if w := c.MustWorker(id); w.Hold == nil || w.Hold.Reason != "two" || !w.Hold.Since.Equal(c.Store.Clock.Now()) {
					c.Fatalf("%+v", w.Hold)
				}
			}
			resumed, other := ids[0], ids[1]
			if last {
				resumed, other = other, resumed
			}
			resumeWorker(c, resumed)
			all, err := c.Workers.List(c.Ctx, workers.WorkerFilter{Scope: trackertest.Scope, MachineID: "m1", PageSize: 100})
			if err != nil {
				c.Fatal(err)
			}
			for _, w := range append(all.Workers, c.MustWorker(ids[0]), c.MustWorker(ids[1])) {
				if w.Hold != nil {
					c.Fatalf("%s is resumed, and %s shows %+v", resumed, w.ID, w.Hold)
				}
			}
			if w := resumeWorker(c, other); w.Hold != nil { // there is nothing left to do
				c.Fatalf("%+v", w.Hold)
			}
			if e := c.Events(other); e["worker.resumed"] != 0 {
				c.Fatalf("%v", e)
			}
			again := wantAdmitted(c, process("m1", "a", 1))
			takeOffline(c, again, "three")
			takeOffline(c, other, "four") // it is not held any more, so it is held again
			wantHeld(c, process("m1", "a", 3), other, "", "four")
			done, err := c.Workers.ActOnMany(c.Ctx, workers.Resume, workers.WorkerFilter{Scope: trackertest.Scope, MachineID: "m1"}, "", false)
			if err != nil || done.Matched != 2 || done.Done != 2 {
				c.Fatalf("%+v %v", done, err)
			}
		}
	})
}

// A machine that was taken offline accepts no worker until it is resumed, even if the records of its workers are gone; the hold of
// one of its workers lasts longer than its own.
func TestAMachineTakenOffline(t *testing.T) {
	t.Parallel()
	trackertest.Claims(t, func(c *trackertest.Fleet) {
		a, b, elsewhere := wantAdmitted(c, process("m1", "a", 1)), wantAdmitted(c, process("m1", "b", 2)), wantAdmitted(c, process("m2", "a", 1))
		takeOffline(c, a, "bad build")
		done, err := c.Workers.OfflineMachine(c.Ctx, trackertest.Scope, "m1", "on fire")
		if err != nil || done.Done != 1 || len(done.Workers) != 1 || done.Workers[0] != b {
			c.Fatalf("%+v %v", done, err)
		}
		c.WantWorker(b, model.Offline, model.WorkerForced)
		c.WantWorker(elsewhere, model.Online, "")
		if e := c.Events("m1"); e["machine.held_offline"] != 1 {
			c.Fatalf("%v", e)
		}
		if m := c.MustMachine("m1"); m.Hold == nil || m.Hold.Reason != "on fire" || !m.Hold.Since.Equal(c.Store.Clock.Now()) {
			c.Fatalf("%+v", m.Hold)
		}
		wantHeld(c, process("m1", "a", 1), a, "", "bad build")
		wantHeld(c, process("m1", "new", 3), "", "m1", "on fire")
		for range 5 { // days, in which b's record is removed
			c.Store.Clock.Advance(24 * time.Hour)
			c.MustTick()
			c.MustSweep()
			if r := c.Reconcile(); len(r) != 0 {
				c.Fatalf("there was something to repair: %v", r)
			}
		}
		_, err = c.Workers.Get(c.Ctx, trackertest.Scope, b)
		c.WantCode(err, workers.WorkerNotFound)
		wantHeld(c, process("m1", "b", 2), "", "m1", "on fire")
		wantHeld(c, process("m1", "a", 1), a, "", "bad build")
		if r := resumeMachine(c, "m1"); r.Matched != 0 {
			c.Fatalf("%+v", r)
		}
		wantHeld(c, process("m1", "a", 1), a, "", "bad build")
		wantAdmitted(c, process("m1", "b", 2))
		if m := c.MustMachine("m1"); m.Hold != nil {
			c.Fatalf("%+v", m.Hold)
		}
		if e := c.Events("m1"); e["machine.resumed"] != 1 {
			c.Fatalf("%v", e)
		}
		_, err = c.Workers.OfflineMachine(c.Ctx, trackertest.Scope, "nowhere", "")
		c.WantCode(err, workers.MachineNotFound)
	})
}

// Holds that are not lifted end after thirty days, with all their data.
func TestHoldsEnd(t *testing.T) {
	t.Parallel()
	trackertest.Claims(t, func(c *trackertest.Fleet) {
		a := wantAdmitted(c, process("m1", "a", 1))
		takeOffline(c, a, "")
		wantAdmitted(c, process("m2", "a", 1))
		if _, err := c.Workers.OfflineMachine(c.Ctx, trackertest.Scope, "m2", ""); err != nil {
			c.Fatal(err)
		}
		days := func(n int) {
			for range n {
				c.Store.Clock.Advance(24 * time.Hour)
				c.MustTick()
				c.MustSweep()
				if r := c.Reconcile(); len(r) != 0 {
					c.Fatalf("there was something to repair: %v", r)
				}
			}
		}
		days(29)
		if w := c.MustWorker(a); w.Hold == nil { // which lifts its hold
			c.Fatalf("%+v", w)
		}
		wantHeld(c, process("m1", "a", 1), a, "", "")
		wantHeld(c, process("m2", "a", 1), "", "m2", "")
		days(3)
		_, err := c.Workers.Get(c.Ctx, trackertest.Scope, a)
		c.WantCode(err, workers.WorkerNotFound)
		wantAdmitted(c, process("m1", "a", 1))
		wantAdmitted(c, process("m2", "a", 1))
	})
}

// A worker whose record the store has lost does not return by its token while its identity or its machine is held.
func TestAdoptionUndoesNoHold(t *testing.T) {
	t.Parallel()
	trackertest.Claims(t, func(c *trackertest.Fleet) {
		own, with := c.MustRegister(process("m1", "a", 1)), c.MustRegister(process("m2", "a", 1))
		takeOffline(c, own.WorkerID, "bad build")
		if _, err := c.Workers.OfflineMachine(c.Ctx, trackertest.Scope, "m2", ""); err != nil {
			c.Fatal(err)
		}
		for _, lost := range []*workers.Registered{own, with} {
			c.Store.Client.Del(c.Ctx, trackertest.WorkerRecord(c.Tracker, trackertest.Scope, lost.WorkerID))
			if err := c.Workers.Adopt(c.Ctx, trackertest.Scope, lost.WorkerID, lost.Record); err != nil {
				c.Fatal(err)
			}
			_, err := c.Workers.Beat(c.Ctx, trackertest.Scope, lost.WorkerID, workers.WorkerBeat{})
			c.WantCode(err, workers.WorkerOffline)
			c.WantWorker(lost.WorkerID, model.Offline, model.WorkerForced)
		}
		wantHeld(c, process("m1", "a", 1), own.WorkerID, "", "bad build")
		wantHeld(c, process("m2", "a", 1), "", "m2", "")
	})
}
