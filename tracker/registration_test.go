package tracker_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/lubdub-io/lubdub/tracker"
)

// keyed gives a registration of one process with its key.
func keyed(key string, change ...func(*tracker.NewWorker)) func(*tracker.NewWorker) {
	return func(n *tracker.NewWorker) {
		n.Hostname, n.PID, n.IdempotencyKey, n.IdempotencyHash = "host-1", 7, key, "body"
		for _, f := range change {
			f(n)
		}
	}
}

// replica opens another front end of the same deployment.
func (h *harness) replica(change ...func(*tracker.Options)) *harness {
	h.Helper()
	return newHarness(h.TB, h.store, change...)
}

func (h *harness) sameAnswer(what string, want, got *tracker.Registered) {
	h.Helper()
	if fmt.Sprint(*got) != fmt.Sprint(*want) {
		h.Errorf("%s: the repeat got\n\t%+v, want\n\t%+v", what, *got, *want)
	}
}

// A duplicate of a registration gets the first answer and changes nothing, through whichever replica and however late:
// while the worker lives, after a newer registration has superseded it, and after it has ended.
func TestALateDuplicateOfARegistrationSupersedesNobody(t *testing.T) {
	t.Parallel()
	for name, process := range map[string]func(*tracker.NewWorker){
		"a process with an identity": func(*tracker.NewWorker) {},
		"without an identity":        func(n *tracker.NewWorker) { n.Hostname, n.PID = "", 0 },
		"its own machine":            func(n *tracker.NewWorker) { n.MachineID, n.Hostname, n.PID = "", "", 0 },
	} {
		t.Run(name, func(t *testing.T) {
			contract(t, func(h *harness) {
				other := h.replica()
				predecessor := h.register(keyed("k0", process))
				first := h.register(keyed("k1", process))
				if process := newWorker(keyed("", process)); process.PID != 0 && first.Superseded != predecessor.WorkerID {
					h.Fatalf("the answer names %q, want %s", first.Superseded, predecessor.WorkerID)
				}
				h.advanceAlive(20*time.Second, first.WorkerID)
				before := h.store.Dump(t)
				for _, replica := range []*harness{h, other} {
					h.sameAnswer("a live worker's", first, replica.register(keyed("k1", process)))
				}
				if after := h.store.Dump(t); fmt.Sprint(after) != fmt.Sprint(before) {
					h.Errorf("a duplicate changed the store:\n%v\n%v", before, after)
				}

				newer := h.register(keyed("k2", process))
				h.sameAnswer("a superseded worker's", first, other.register(keyed("k1", process)))
				h.sameAnswer("its predecessor's", predecessor, other.register(keyed("k0", process)))
				h.advanceAlive(20*time.Second, newer.WorkerID)
				h.wantWorker(newer.WorkerID, tracker.Online, "")

				if _, err := h.RetireWorker(h.ctx, scope, newer.WorkerID, tracker.WorkerDeregistered, ""); err != nil {
					h.Fatal(err)
				}
				h.sameAnswer("a worker's that has gone", newer, h.register(keyed("k2", process)))
				h.wantWorker(newer.WorkerID, tracker.Offline, tracker.WorkerDeregistered)
				if e := h.events(""); e["worker.registered"] != 3 {
					h.Errorf("%v", e)
				}
			})
		})
	}
}

// A replica freezes between the two steps of a registration. What it does when it goes on is what the repeat has done
// meanwhile, and it supersedes nobody who came after that; when the key is forgotten by then, it does nothing.
func TestARegistrationStuckInAFrozenReplica(t *testing.T) {
	t.Parallel()
	for name, meanwhile := range map[string]func(h *harness) (alive string, refused bool){
		"repeated": func(h *harness) (string, bool) { return h.register(keyed("k1")).WorkerID, false },
		"repeated, and superseded": func(h *harness) (string, bool) {
			h.register(keyed("k1"))
			return h.register(keyed("k2")).WorkerID, false
		},
		"superseded, and its record removed": func(h *harness) (string, bool) {
			h.register(keyed("k1"))
			h.register(keyed("k2"))
			h.store.Clock.Advance(tracker.MinOfflineRetention + time.Second)
			h.tick()
			h.sweep()
			return h.register(keyed("k3")).WorkerID, true
		},
	} {
		t.Run(name, func(t *testing.T) {
			short := func(o *tracker.Options) { o.OfflineRetention = tracker.MinOfflineRetention }
			contract(t, func(h *harness) {
				stuck := h.replica(short)
				var alive string
				var refused bool
				stuck.After("registration", func() { alive, refused = meanwhile(h) })
				n := newWorker(keyed("k1"))
				if err := n.Validate(); err != nil {
					h.Fatal(err)
				}
				late, err := stuck.Register(h.ctx, n)
				if refused {
					h.wantCode(err, tracker.Overloaded)
				} else if err != nil {
					h.Fatal(err)
				} else if name == "repeated" {
					h.sameAnswer(name, h.register(keyed("k1")), late)
				}
				h.wantWorker(alive, tracker.Online, "")
			}, short)
		})
	}
}

// The key with another body is told apart, wherever the other body would put the worker.
func TestARegistrationKeyWithAnotherBody(t *testing.T) {
	t.Parallel()
	contract(t, func(h *harness) {
		h.register(keyed("k1"))
		before := h.store.Dump(t)
		for i := range 8 {
			n := newWorker(keyed("k1", func(n *tracker.NewWorker) { n.MachineID, n.IdempotencyHash = fmt.Sprintf("host-%d", i), "other" }))
			if err := n.Validate(); err != nil {
				h.Fatal(err)
			}
			_, err := h.Register(h.ctx, n)
			h.wantCode(err, tracker.IdempotencyMismatch)
		}
		if after := h.store.Dump(t); fmt.Sprint(after) != fmt.Sprint(before) {
			t.Error("what was refused changed the store")
		}
		n := newWorker(keyed("k1", func(n *tracker.NewWorker) { n.Scope.Workspace, n.IdempotencyHash = "dev", "other" }))
		if _, err := h.Register(h.ctx, n); err != nil {
			t.Errorf("the key of another workspace: %v", err)
		}
	})
}

// The interval that a stretched pace has chosen for the first answer is the repeat's, though the pace has changed.
func TestARepeatedRegistrationKeepsItsInterval(t *testing.T) {
	t.Parallel()
	contract(t, func(h *harness) {
		first := h.register(keyed("k1"))
		for range 40 {
			h.register()
		}
		h.sameAnswer("after many have come", first, h.register(keyed("k1")))
	}, func(o *tracker.Options) { o.MaxBeatsPerSecond = 1; o.WorkerInterval = time.Second })
}

// Processes that share an identity supersede each other with every registration. The third within minutes is told with
// what to do about it, and again only when it goes on for long; a name or a machine of their own ends it.
func TestProcessesThatKeepSupersedingEachOther(t *testing.T) {
	t.Parallel()
	contract(t, func(h *harness) {
		pid1 := func(n *tracker.NewWorker) { n.Hostname, n.PID, n.MachineID = "node-a", 1, "" }
		var last string
		conflicts := func() int { return h.events("")["worker.identity_conflict"] }
		for i, want := range []int{0, 0, 0, 1, 1, 1} { // nobody is superseded by the first
			r := h.register(pid1)
			if r.Superseded != last {
				h.Fatalf("%d: the answer names %q, want %q", i, r.Superseded, last)
			}
			last = r.WorkerID
			if got := conflicts(); got != want {
				h.Fatalf("after registration %d there are %d conflicts, want %d", i, got, want)
			}
			h.advance(10 * time.Second)
		}
		for range 62 { // ten minutes more of it
			h.register(pid1)
			h.store.Clock.Advance(10 * time.Second)
			h.tick()
		}
		if got := conflicts(); got != 2 {
			h.Fatalf("%d conflicts were told", got)
		}

		seldom := func(n *tracker.NewWorker) { n.Hostname, n.PID, n.MachineID = "node-b", 1, "" }
		for range 6 { // a process that is started again now and then
			h.register(seldom)
			h.store.Clock.Advance(6 * time.Minute)
			h.tick()
		}
		var alive []string
		for i := range 6 {
			name := fmt.Sprintf("worker-%d", i%2)
			alive = append(alive, h.register(pid1, func(n *tracker.NewWorker) { n.Name = name }).WorkerID,
				h.register(pid1, func(n *tracker.NewWorker) { n.MachineID = name }).WorkerID)
		}
		if got := conflicts(); got != 2 {
			h.Errorf("%d conflicts were told", got)
		}
		for _, id := range alive[8:] {
			h.wantWorker(id, tracker.Online, "")
		}
	})
}
