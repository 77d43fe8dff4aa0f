package tracker_test

import (
	"testing"
	"time"

	"github.com/lubdub-io/lubdub/tracker"
)

// A claim counts as its worker's beat: until the verdict has fallen nobody who asks for work is dead, whether or not a
// sweeper is there to look; after it nobody is alive.
func TestAClaimCountsAsABeat(t *testing.T) {
	t.Parallel()
	claims(t, func(c *crew) {
		c.hire("w")
		held := c.holding("w", 1)[0]
		for range 3 {
			c.advance(30 * time.Second)
			if w := c.worker(c.ids["w"]); w.Liveness != tracker.Lost {
				c.Fatalf("%+v", w)
			}
			c.claim("w", 1) // there is nothing for it
			if w := c.worker(c.ids["w"]); w.Liveness != tracker.Fresh || !w.LastHeartbeatAt.Equal(c.store.Clock.Now()) || w.Unschedulable != nil {
				c.Fatalf("after its claim: %+v", w)
			}
			if r := c.sweep(); r.StaleWorkers != 0 || r.Recovered != 0 {
				c.Fatalf("%+v", r)
			}
		}
		c.advance(15 * time.Second)
		c.sweep() // it is late now, and told of as such
		c.claim("w", 1)
		c.advance(29750 * time.Millisecond)
		c.sweep()
		c.wantWorker(c.ids["w"], tracker.Online, "")
		c.wantState(held.TaskID, tracker.Running, "")
		c.advance(250 * time.Millisecond)
		c.sweep()
		c.wantWorker(c.ids["w"], tracker.Offline, tracker.WorkerStale)
		_, err := c.Claim(c.ctx, tracker.ClaimRequest{Scope: scope, WorkerID: c.ids["w"], Queue: "q", Max: 1})
		c.wantCode(err, tracker.WorkerOffline)
	})
}

// A claim that waits says nothing about its worker: once that has been silent for its timeout the claim gets nothing,
// though no sweeper has looked, until the worker is heard again.
func TestAClaimThatWaitsGetsNothingForALostWorker(t *testing.T) {
	t.Parallel()
	claims(t, func(c *crew) {
		c.hire("silent")
		got := c.awaitFor(c.ctx, c.Tracker, "silent", 1, time.Minute)
		c.waiting(1)
		c.advance(30 * time.Second)
		c.queue("t1", "x")
		c.waiting(0) // it has been told of the task, and cannot have it
		if task := c.get("t1"); task.State != tracker.Queued {
			c.Fatalf("it is %s at %s", task.State, task.WorkerID)
		}
		c.hire("live")
		c.wantIDs(c.claim("live", 1), "t1")
		c.queue("t2", "x")
		c.beatWorker(c.ids["silent"])
		c.wantIDs(<-got, "t2")
	})
}
