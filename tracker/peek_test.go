package tracker_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/lubdub-io/lubdub/tracker"
)

// allTimeouts are those that a heartbeat timeout may be rounded to, two for each shard of two.
func allTimeouts() (all []time.Duration) {
	for d := tracker.MinTimeout; d <= tracker.MaxTimeout; d = tracker.RoundTimeout(d + time.Millisecond) {
		all = append(all, d)
		if d == tracker.MaxTimeout {
			break
		}
	}
	return all
}

func (h *harness) timeouts() (timeouts, sets []string) {
	h.Helper()
	for shard := range h.Shards() {
		list, err := h.store.Client.SMembers(h.ctx, fmt.Sprintf("lubdub:{%d}:timeouts", shard)).Result()
		if err != nil {
			h.Fatal(err)
		}
		timeouts = append(timeouts, slices.DeleteFunc(list, func(t string) bool { return t == "!" })...)
	}
	sets, err := h.store.Client.Keys(h.ctx, "lubdub:*:beats:*").Result()
	if err != nil {
		h.Fatal(err)
	}
	return timeouts, sets
}

// Whatever timeouts somebody once thought of, a look at the shards costs what those in use cost: the others are dropped
// after a minute, and come back with the first attempt that lives by them.
func TestTimeoutsThatNobodyUsesLeave(t *testing.T) {
	t.Parallel()
	contract(t, func(h *harness) {
		all := allTimeouts()
		with := func(d time.Duration) func(*tracker.NewTask) {
			return func(n *tracker.NewTask) { n.HeartbeatInterval, n.HeartbeatTimeout = d/2, d }
		}
		for i, d := range all {
			for shard := range 2 {
				id := fmt.Sprint("t", i)
				for h.ShardOf(scope, id) != shard {
					id += "x"
				}
				h.create(with(d), func(n *tracker.NewTask) { n.TaskID = id })
				if _, err := h.Cancel(h.ctx, scope, id, ""); err != nil {
					h.Fatal(err)
				}
			}
		}
		live := h.running(with(10*time.Second), func(n *tracker.NewTask) { n.TaskID = "live" })
		waits := h.create(with(12*time.Second), func(n *tracker.NewTask) { n.TaskID, n.Queue = "waits", "default" }).Task
		remembers := tracker.NewSweeper(h.Tracker, tracker.SweeperOptions{ID: "swp_remembers"})
		for _, s := range []*tracker.Sweeper{h.sweeper, remembers} {
			if _, err := s.RunOnce(h.ctx); err != nil {
				h.Fatal(err)
			}
		}
		calls := h.RecordCalls()
		h.sweep()
		if timeouts, sets := h.timeouts(); len(timeouts) != 2*len(all) || len(sets) != 2*len(all) {
			h.Fatalf("%d timeouts and %d sets at first, want %d", len(timeouts), len(sets), 2*len(all))
		}
		for _, c := range calls() {
			if c.Keys > 220 {
				h.Errorf("%s looks at %d keys at once", c.Script, c.Keys)
			}
		}
		for range 7 {
			h.beat(live, "")
			h.advance(9 * time.Second)
		}
		h.beat(live, "")
		h.sweep()
		if timeouts, sets := h.timeouts(); !slices.Equal(timeouts, []string{"10000"}) || len(sets) != 1 {
			h.Fatalf("a minute later %d timeouts and %d sets are left, the first of them %v", len(timeouts), len(sets), timeouts[:min(3, len(timeouts))])
		}
		// A set that was dropped comes back with its attempt; who remembers it, and who does not, finds it silent.
		for i, s := range []*tracker.Sweeper{h.sweeper, remembers, tracker.NewSweeper(h.Tracker, tracker.SweeperOptions{ID: "swp_new"})} {
			made, err := h.Dispatch(h.ctx, scope, waits.ID, i, "w1")
			if err != nil {
				h.Fatal(err)
			}
			if _, err := h.Start(h.ctx, made.Envelope.Attempt, tracker.Report{}); err != nil {
				h.Fatal(err)
			}
			for range 2 {
				h.advance(8 * time.Second)
				h.beat(live, "")
				if err := h.beat(made.Envelope.Attempt, "").Err; err != nil {
					h.Fatalf("time %d: %v", i, err)
				}
			}
			h.advance(8 * time.Second)
			h.beat(live, "")
			h.advance(4*time.Second + time.Millisecond)
			if r, err := s.RunOnce(h.ctx); err != nil || r.Zombies != 1 {
				h.Fatalf("time %d: %+v %v", i, r, err)
			}
			h.advance(5 * time.Second)
			h.beat(live, "")
			h.sweep()
		}
		h.wantState("live", tracker.Running, "")
	})
}

// An attempt that comes to life right before its timeout is dropped stays, and so does its timeout.
func TestATimeoutThatIsUsedAgainStays(t *testing.T) {
	t.Parallel()
	contract(t, func(h *harness) {
		wait := h.create(func(n *tracker.NewTask) { n.TaskID, n.Queue = "t1", "default" }).Task
		h.sweep()
		h.advance(time.Minute)
		var made *tracker.Created
		used := false
		h.After("peek_beats", func() {
			if used {
				return
			}
			used = true
			var err error
			if made, err = h.Dispatch(h.ctx, scope, wait.ID, 0, "w1"); err != nil {
				h.Error(err)
				return
			}
			if _, err := h.Start(h.ctx, made.Envelope.Attempt, tracker.Report{}); err != nil {
				h.Error(err)
			}
		})
		h.sweep()
		if timeouts, sets := h.timeouts(); !used || !slices.Equal(timeouts, []string{"2000"}) || len(sets) != 1 {
			h.Fatalf("%v %v", timeouts, sets)
		}
		if err := h.beat(made.Envelope.Attempt, "").Err; err != nil {
			h.Fatal(err)
		}
	})
}
