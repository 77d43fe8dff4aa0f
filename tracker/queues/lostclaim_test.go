package queues_test

import (
	"testing"
	"time"

	"github.com/lubdub-io/lubdub/tracker/model"
	"github.com/lubdub-io/lubdub/tracker/queues"
	"github.com/lubdub-io/lubdub/tracker/trackertest"
	"github.com/lubdub-io/lubdub/tracker/workers"
)

// A claim counts as its worker's heartbeat: before the verdict a worker that claims is alive, whether or not a sweeper is running;
// after it the worker is not.
func TestAClaimCountsAsABeat(t *testing.T) {
	t.Parallel()
	trackertest.Claims(t, func(c *trackertest.Fleet) {
		c.Hire("w")
		held := c.MustHolding("w", 1)[0]
		for range 3 {
			c.Advance(30 * time.Second)
			if w := c.MustWorker(c.IDs["w"]); w.Liveness != model.Lost {
				c.Fatalf("%+v", w)
			}
			c.MustClaim("w", 1) // there is nothing for it
			if w := c.MustWorker(c.IDs["w"]); w.Liveness != model.Fresh || !w.LastHeartbeatAt.Equal(c.Store.Clock.Now()) ||
				w.Unschedulable != nil {
				c.Fatalf("after its claim: %+v", w)
			}
			if r := c.MustSweep(); r.StaleWorkers != 0 || r.Recovered != 0 {
				c.Fatalf("%+v", r)
			}
		}
		c.Advance(15 * time.Second)
		c.MustSweep() // it is late now and reported as such
		c.MustClaim("w", 1)
		c.Advance(29750 * time.Millisecond)
		c.MustSweep()
		c.WantWorker(c.IDs["w"], model.Online, "")
		c.WantState(held.TaskID, model.Running, "")
		c.Advance(250 * time.Millisecond)
		c.MustSweep()
		c.WantWorker(c.IDs["w"], model.Offline, model.WorkerStale)
		_, err := c.Queues.Claim(c.Ctx, queues.ClaimRequest{Scope: trackertest.Scope, WorkerID: c.IDs["w"], Queue: "q", Max: 1})
		c.WantCode(err, workers.WorkerOffline)
	})
}

// A waiting claim is no heartbeat of its worker: once the worker has been silent for its timeout, the claim gets nothing until the
// next heartbeat, even before a sweeper checks.
func TestAClaimThatWaitsGetsNothingForALostWorker(t *testing.T) {
	t.Parallel()
	trackertest.Claims(t, func(c *trackertest.Fleet) {
		c.Hire("silent")
		got := awaitFor(c, c.Ctx, c.Tracker, "silent", 1, time.Minute)
		waiting(c, 1)
		c.Advance(30 * time.Second)
		c.MustQueue("t1", "x")
		waiting(c, 0) // it was offered the task and cannot have it
		if task := c.MustGet("t1"); task.State != model.Queued {
			c.Fatalf("it is %s at %s", task.State, task.WorkerID)
		}
		c.Hire("live") // its claim waits, since the other one may not have returned the task yet
		c.WantIDs(c.MustClaim("live", 1, func(r *queues.ClaimRequest) { r.Wait = time.Minute }), "t1")
		c.MustQueue("t2", "x")
		c.MustBeatWorker(c.IDs["silent"])
		c.WantIDs(<-got, "t2")
	})
}
