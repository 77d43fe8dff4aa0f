package sweep_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/lubdub-io/lubdub/internal/testenv"
	"github.com/lubdub-io/lubdub/tracker/model"
	"github.com/lubdub-io/lubdub/tracker/queues"
	"github.com/lubdub-io/lubdub/tracker/sweep"
	"github.com/lubdub-io/lubdub/tracker/trackertest"
)

func timeouts(h *trackertest.Harness) (timeouts, sets []string) {
	h.Helper()
	for shard := range h.Tracker.Store.Shards() {
		list, err := h.Store.Client.SMembers(h.Ctx, fmt.Sprintf("lubdub:{%d}:timeouts", shard)).Result()
		if err != nil {
			h.Fatal(err)
		}
		timeouts = append(timeouts, slices.DeleteFunc(list, func(t string) bool { return t == "!" })...)
	}
	sets, err := h.Store.Client.Keys(h.Ctx, "lubdub:*:beats:*").Result()
	if err != nil {
		h.Fatal(err)
	}
	return timeouts, sets
}

// A scan of the shards costs only as much as the timeouts in use: others are dropped after a minute and return with the first
// attempt that uses them.
func TestUnusedTimeoutsAreDropped(t *testing.T) {
	testenv.OnlyAll(t)
	t.Parallel()
	trackertest.Contract(t, func(h *trackertest.Harness) {
		all := trackertest.AllTimeouts()
		with := func(d time.Duration) func(*model.NewTask) {
			return func(n *model.NewTask) { n.HeartbeatInterval, n.HeartbeatTimeout = d/2, d }
		}
		for i, d := range all {
			for shard := range 2 {
				id := fmt.Sprint("t", i)
				for h.Tracker.Store.ShardOf(trackertest.Scope, id) != shard {
					id += "x"
				}
				h.MustCreate(with(d), func(n *model.NewTask) { n.TaskID = id })
				if _, err := h.Tasks.Cancel(h.Ctx, trackertest.Scope, id, model.CancelRequest{}); err != nil {
					h.Fatal(err)
				}
			}
		}
		live := h.Running(with(10*time.Second), func(n *model.NewTask) { n.TaskID = "live" })
		waits := h.MustCreate(with(12*time.Second), func(n *model.NewTask) { n.TaskID, n.Queue = "waits", "default" }).Task
		remembers := sweep.NewSweeper(h.Tracker.Sweeper, sweep.SweeperOptions{ID: "swp_remembers"})
		for _, s := range []*sweep.Sweeper{h.Sweeper, remembers} {
			if _, err := s.RunOnce(h.Ctx); err != nil {
				h.Fatal(err)
			}
		}
		calls := trackertest.RecordCalls(h.Tracker)
		h.MustSweep()
		if timeouts, sets := timeouts(h); len(timeouts) != 2*len(all) || len(sets) != 2*len(all) {
			h.Fatalf("%d timeouts and %d sets at first, want %d", len(timeouts), len(sets), 2*len(all))
		}
		for _, c := range calls() {
			if c.Keys > 220 {
				h.Errorf("%s looks at %d keys at once", c.Script, c.Keys)
			}
		}
		for range 7 {
			h.MustBeat(live, "")
			h.Advance(9 * time.Second)
		}
		h.MustBeat(live, "")
		h.MustSweep()
		if timeouts, sets := timeouts(h); !slices.Equal(timeouts, []string{"10000"}) || len(sets) != 1 {
			h.Fatalf("a minute later %d timeouts and %d sets are left, the first of them %v", len(timeouts), len(sets),
				timeouts[:min(3, len(timeouts))])
		}
		// A dropped set returns with its attempt; a sweeper finds it silent whether it remembers the timeout or not.
		for i, s := range []*sweep.Sweeper{h.Sweeper, remembers, sweep.NewSweeper(h.Tracker.Sweeper, sweep.SweeperOptions{ID: "swp_new"})} {
			a := h.MustAssign(waits.ID, h.MustRegister().WorkerID)
			if _, err := h.Beats.Start(h.Ctx, a, model.Report{}); err != nil {
				h.Fatal(err)
			}
			for range 2 {
				h.Advance(8 * time.Second)
				h.MustBeat(live, "")
				if err := h.MustBeat(a, "").Err; err != nil {
					h.Fatalf("time %d: %v", i, err)
				}
			}
			h.Advance(8 * time.Second)
			h.MustBeat(live, "")
			h.Advance(4*time.Second + time.Millisecond)
			if r, err := s.RunOnce(h.Ctx); err != nil || r.Zombies != 1 {
				h.Fatalf("time %d: %+v %v", i, r, err)
			}
			h.Advance(5 * time.Second)
			h.MustBeat(live, "")
			h.MustSweep()
		}
		h.WantState("live", model.Running, "")
	})
}

// An attempt that starts right before its timeout is dropped stays, and so does the timeout.
func TestATimeoutThatIsUsedAgainStays(t *testing.T) {
	t.Parallel()
	trackertest.Contract(t, func(h *trackertest.Harness) {
		wait := h.MustCreate(func(n *model.NewTask) { n.TaskID, n.Queue = "t1", "default" }).Task
		h.MustSweep()
		h.Advance(time.Minute)
		worker := h.MustRegister().WorkerID
		var made []*model.Envelope
		trackertest.After(h.Tracker, "peek_beats", func() {
			if made != nil {
				return
			}
			var err error
			made, err = h.Queues.Claim(h.Ctx, queues.ClaimRequest{Scope: trackertest.Scope, WorkerID: worker, Queue: wait.Queue, Max: 1})
			if err != nil || len(made) != 1 {
				h.Errorf("%v %v", trackertest.IDs(made), err)
				return
			}
			if _, err := h.Beats.Start(h.Ctx, made[0].Attempt, model.Report{}); err != nil {
				h.Error(err)
			}
		})
		h.MustSweep()
		if timeouts, sets := timeouts(h); len(made) != 1 || !slices.Equal(timeouts, []string{"2000"}) || len(sets) != 1 {
			h.Fatalf("%v %v", timeouts, sets)
		}
		if err := h.MustBeat(made[0].Attempt, "").Err; err != nil {
			h.Fatal(err)
		}
	})
}
