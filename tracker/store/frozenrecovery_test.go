package store_test

import (
	"fmt"
	"testing"

	"github.com/lubdub-io/lubdub/tracker/model"
	"github.com/lubdub-io/lubdub/tracker/sweep"
	"github.com/lubdub-io/lubdub/tracker/trackertest"
)

// Tasks of dead workers on nodes that respond are requeued while another node does not: no number of recoveries that are stuck there
// delays them.
func TestRecoveriesDoNotWaitForAFrozenNode(t *testing.T) {
	t.Parallel()
	trackertest.Claims(t, func(c *trackertest.Fleet) {
		const workers = 20 // more than recoveries run at once
		for i := range workers {
			w := fmt.Sprintf("w%02d", i)
			c.Hire(w, func(n *model.NewWorker) { n.MachineID = "one" }) // so that one shard has all their records
			for shard := range 2 {
				c.MustQueue(fmt.Sprintf("%s-%d", w, shard), "x", trackertest.OneShard(c, shard), func(n *model.NewTask) { n.WorkerID = c.IDs[w] })
			}
		}
		home, _ := c.Tracker.Store.WorkerShard(c.IDs["w00"])
		var there []*model.Attempt
		for i := range workers {
			w := fmt.Sprintf("w%02d", i)
			for held := 0; held < 2; {
				for _, e := range c.MustClaim(w, 2) {
					held++
					if c.Tracker.Store.ShardOf(trackertest.Scope, e.Task.ID) == home {
						there = append(there, e.Attempt)
					}
				}
			}
			if err := trackertest.EndWithoutRecovery(c.Tracker, trackertest.Scope, c.IDs[w]); err != nil {
				c.Fatal(err)
			}
		}
		awake, swept := make(chan struct{}), make(chan sweep.SweepResult, 1)
		c.Tracker.Store.Freeze(1-home, "fence", awake)
		go func() {
			r, err := c.Sweeper.RunOnce(c.Ctx)
			if err != nil {
				c.Error(err)
			}
			swept <- r
		}()
		defer func() {
			close(awake)
			if r := <-swept; r.Recovered != 2*workers {
				c.Errorf("%+v", r)
			}
		}()
		for _, a := range there {
			eventuallyIn(c, a.TaskID)
		}
	})
}

// eventuallyIn waits until a task is back in its queue.
func eventuallyIn(c *trackertest.Fleet, id string) {
	c.Helper()
	for range 2000 {
		if c.MustGet(id).State == model.Queued {
			return
		}
		c.MustTick() // each is a round trip
	}
	c.Fatalf("%s is not requeued", id)
}
