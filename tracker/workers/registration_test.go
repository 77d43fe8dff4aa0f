package workers_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/lubdub-io/lubdub/tracker"
	"github.com/lubdub-io/lubdub/tracker/model"
	"github.com/lubdub-io/lubdub/tracker/trackertest"
	"github.com/lubdub-io/lubdub/tracker/workers"
)

// keyed returns a registration of one process with an idempotency key.
func keyed(key string, change ...func(*model.NewWorker)) func(*model.NewWorker) {
	return func(n *model.NewWorker) {
		n.Hostname, n.PID, n.IdempotencyKey, n.IdempotencyHash = "host-1", 7, key, "body"
		for _, f := range change {
			f(n)
		}
	}
}

func sameAnswer(h *trackertest.Harness, what string, want, got *workers.Registered) {
	h.Helper()
	if fmt.Sprint(*got) != fmt.Sprint(*want) {
		h.Errorf("%s: the repeat got\n\t%+v, want\n\t%+v", what, *got, *want)
	}
}

// A duplicate of a registration gets the first result and changes nothing, through any replica and no matter how late: while the
// worker lives, after a newer registration has superseded it, and after it has ended.
func TestALateDuplicateRegistrationSupersedesNoWorker(t *testing.T) {
	t.Parallel()
	for name, process := range map[string]func(*model.NewWorker){
		"a process with an identity": func(*model.NewWorker) {},
		"without an identity":        func(n *model.NewWorker) { n.Hostname, n.PID = "", 0 },
		"its own machine":            func(n *model.NewWorker) { n.MachineID, n.Hostname, n.PID = "", "", 0 },
	} {
		t.Run(name, func(t *testing.T) {
			trackertest.Contract(t, func(h *trackertest.Harness) {
				other := h.Replica()
				predecessor := h.MustRegister(keyed("k0", process))
				first := h.MustRegister(keyed("k1", process))
				if process := trackertest.NewWorker(keyed("", process)); process.PID != 0 && first.Superseded != predecessor.WorkerID {
					h.Fatalf("the answer names %q, want %s", first.Superseded, predecessor.WorkerID)
				}
				h.AdvanceAlive(20*time.Second, first.WorkerID)
				before := h.Store.Dump(t)
				for _, replica := range []*trackertest.Harness{h, other} {
					sameAnswer(h, "a live worker's", first, replica.MustRegister(keyed("k1", process)))
				}
				if after := h.Store.Dump(t); fmt.Sprint(after) != fmt.Sprint(before) {
					h.Errorf("a duplicate changed the store:\n%v\n%v", before, after)
				}

				newer := h.MustRegister(keyed("k2", process))
				sameAnswer(h, "a superseded worker's", first, other.MustRegister(keyed("k1", process)))
				sameAnswer(h, "its predecessor's", predecessor, other.MustRegister(keyed("k0", process)))
				h.AdvanceAlive(20*time.Second, newer.WorkerID)
				h.WantWorker(newer.WorkerID, model.Online, "")

				if _, err := h.Workers.Retire(h.Ctx, trackertest.Scope, newer.WorkerID, model.WorkerDeregistered, ""); err != nil {
					h.Fatal(err)
				}
				sameAnswer(h, "a worker's that has gone", newer, h.MustRegister(keyed("k2", process)))
				h.WantWorker(newer.WorkerID, model.Offline, model.WorkerDeregistered)
				if e := h.Events(""); e["worker.registered"] != 3 {
					h.Errorf("%v", e)
				}
			})
		})
	}
}

// A replica freezes between the two steps of a registration. When it continues, its result is what the repeat has done meanwhile,
// and it supersedes no worker that came later; if the key is forgotten by then, it does nothing.
func TestARegistrationStuckInAFrozenReplica(t *testing.T) {
	t.Parallel()
	for name, meanwhile := range map[string]func(h *trackertest.Harness) (alive string, refused bool){
		"repeated": func(h *trackertest.Harness) (string, bool) { return h.MustRegister(keyed("k1")).WorkerID, false },
		"repeated, and superseded": func(h *trackertest.Harness) (string, bool) {
			h.MustRegister(keyed("k1"))
			return h.MustRegister(keyed("k2")).WorkerID, false
		},
		"superseded, and its record removed": func(h *trackertest.Harness) (string, bool) {
			h.MustRegister(keyed("k1"))
			h.MustRegister(keyed("k2"))
			h.Store.Clock.Advance(model.MinFinishedRetention + time.Second)
			h.MustTick()
			h.MustSweep()
			return h.MustRegister(keyed("k3")).WorkerID, true
		},
	} {
		t.Run(name, func(t *testing.T) {
			short := func(o *tracker.Options) { o.FinishedRetention = model.MinFinishedRetention }
			trackertest.Contract(t, func(h *trackertest.Harness) {
				stuck := h.Replica(short)
				var alive string
				var refused bool
				trackertest.After(stuck.Tracker, "registration", func() { alive, refused = meanwhile(h) })
				n := trackertest.NewWorker(keyed("k1"))
				if err := n.Validate(); err != nil {
					h.Fatal(err)
				}
				late, err := stuck.Workers.Register(h.Ctx, n)
				if refused {
					h.WantCode(err, model.Overloaded)
				} else if err != nil {
					h.Fatal(err)
				} else if name == "repeated" {
					sameAnswer(h, name, h.MustRegister(keyed("k1")), late)
				}
				h.WantWorker(alive, model.Online, "")
			}, short)
		})
	}
}

// The same key with another body is recognized, in whichever shard that body would put the worker.
func TestARegistrationKeyWithAnotherBody(t *testing.T) {
	t.Parallel()
	trackertest.Contract(t, func(h *trackertest.Harness) {
		h.MustRegister(keyed("k1"))
		before := h.Store.Dump(t)
		for i := range 8 {
			n := trackertest.NewWorker(keyed("k1", func(n *model.NewWorker) {
				n.MachineID, n.IdempotencyHash = fmt.Sprintf("host-%d", i),
					"other"
			}))
			if err := n.Validate(); err != nil {
				h.Fatal(err)
			}
			_, err := h.Workers.Register(h.Ctx, n)
			h.WantCode(err, model.IdempotencyMismatch)
		}
		if after := h.Store.Dump(t); fmt.Sprint(after) != fmt.Sprint(before) {
			t.Error("what was refused changed the store")
		}
		n := trackertest.NewWorker(keyed("k1", func(n *model.NewWorker) { n.Scope.Workspace, n.IdempotencyHash = "dev", "other" }))
		if _, err := h.Workers.Register(h.Ctx, n); err != nil {
			t.Errorf("the key of another workspace: %v", err)
		}
	})
}

// A repeat gets the interval of the first result, even from a replica with another setting.
func TestARepeatedRegistrationKeepsItsInterval(t *testing.T) {
	t.Parallel()
	trackertest.Contract(t, func(h *trackertest.Harness) {
		first := h.MustRegister(keyed("k1"))
		other := h.Replica(func(o *tracker.Options) { o.WorkerInterval, o.WorkerTimeoutMultiplier = 2*time.Second, 5 })
		sameAnswer(h, "by another replica", first, other.MustRegister(keyed("k1")))
	})
}

// Processes that share an identity supersede each other with every registration. The third time within minutes is reported with
// advice, and again only if it continues for long; separate names or machines end it.
func TestProcessesThatKeepSupersedingEachOther(t *testing.T) {
	t.Parallel()
	trackertest.Contract(t, func(h *trackertest.Harness) {
		pid1 := func(n *model.NewWorker) { n.Hostname, n.PID, n.MachineID = "node-a", 1, "" }
		var last string
		conflicts := func() int { return h.Events("")["worker.identity_conflict"] }
		for i, want := range []int{0, 0, 0, 1, 1, 1} { // the first one supersedes no worker
			r := h.MustRegister(pid1)
			if r.Superseded != last {
				h.Fatalf("%d: the answer names %q, want %q", i, r.Superseded, last)
			}
			last = r.WorkerID
			if got := conflicts(); got != want {
				h.Fatalf("after registration %d there are %d conflicts, want %d", i, got, want)
			}
			h.Advance(10 * time.Second)
		}
		for range 62 { // ten minutes more of it
			h.MustRegister(pid1)
			h.Store.Clock.Advance(10 * time.Second)
			h.MustTick()
		}
		if got := conflicts(); got != 2 {
			h.Fatalf("%d conflicts were reported", got)
		}

		seldom := func(n *model.NewWorker) { n.Hostname, n.PID, n.MachineID = "node-b", 1, "" }
		for range 6 { // a process that is restarted now and then
			h.MustRegister(seldom)
			h.Store.Clock.Advance(6 * time.Minute)
			h.MustTick()
		}
		var alive []string
		for i := range 6 {
			name := fmt.Sprintf("worker-%d", i%2)
			alive = append(alive, h.MustRegister(pid1, func(n *model.NewWorker) { n.Name = name }).WorkerID,
				h.MustRegister(pid1, func(n *model.NewWorker) { n.MachineID = name }).WorkerID)
		}
		if got := conflicts(); got != 2 {
			h.Errorf("%d conflicts were reported", got)
		}
		for _, id := range alive[8:] {
			h.WantWorker(id, model.Online, "")
		}
	})
}
