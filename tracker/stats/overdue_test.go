package stats_test

import (
	"testing"
	"time"

	"github.com/lubdub-io/lubdub/tracker/model"
	"github.com/lubdub-io/lubdub/tracker/trackertest"
)

// Nothing is overdue while every task is healthy, whether it stays alive by its own heartbeats, by its worker's, or by waiting. A
// silent task is overdue by the time since its timeout.
func TestHealthyTasksAreNotOverdue(t *testing.T) {
	t.Parallel()
	trackertest.Contract(t, func(h *trackertest.Harness) {
		c := trackertest.NewFleet(h)
		c.Hire("w")
		c.MustHolding("w", 2) // alive by their worker's heartbeats
		c.MustQueue("waiting", "x", func(n *model.NewTask) { n.WorkerID = "" })
		own := h.Running(func(n *model.NewTask) { n.HeartbeatTimeout = time.Minute })
		overdue := func() (most time.Duration) {
			h.Helper()
			s, err := h.Replica().Stats.System(h.Ctx) // another replica, since a replica caches its result for a second
			if err != nil {
				h.Fatal(err)
			}
			for _, shard := range s.Shards {
				most = max(most, shard.Overdue)
			}
			return most
		}
		for range 10 {
			h.AdvanceAlive(30*time.Second, c.IDs["w"])
			h.MustBeat(own, "")
			if late := overdue(); late != 0 {
				h.Fatalf("every task is healthy, and one is overdue by %v", late)
			}
		}
		h.AdvanceAlive(80*time.Second, c.IDs["w"])
		if late := overdue(); late < 19*time.Second || late > 21*time.Second {
			h.Errorf("a task has been silent for 80 s of a timeout of 60 s, and is overdue by %v", late)
		}
	})
}

// An outage that is over is reported with its length and with how long ago it ended.
func TestAnOutageThatIsOverHasAnAge(t *testing.T) {
	t.Parallel()
	trackertest.Contract(t, func(h *trackertest.Harness) {
		h.MustTick()
		h.Store.Clock.Advance(time.Minute) // no heartbeat can be stored
		h.Advance(12 * time.Minute)
		s, err := h.Replica().Stats.System(h.Ctx)
		if err != nil {
			h.Fatal(err)
		}
		for _, shard := range s.Shards {
			if shard.OutageCredit < 59*time.Second || shard.OutageEnded < 11*time.Minute || shard.OutageEnded > 13*time.Minute {
				h.Errorf("shard %d: an outage of %v ended %v ago", shard.Number, shard.OutageCredit, shard.OutageEnded)
			}
		}
	})
}
