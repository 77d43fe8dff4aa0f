package tracker_test

import (
	"fmt"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/lubdub-io/lubdub/tracker"
)

// What dead workers held on nodes that answer is requeued while another one does not: however many they are, none waits
// for what is stuck there.
func TestRecoveriesDoNotWaitForAFrozenNode(t *testing.T) {
	t.Parallel()
	claims(t, func(c *crew) {
		const workers = 20 // more than recoveries go on at once
		for i := range workers {
			w := fmt.Sprintf("w%02d", i)
			c.hire(w, func(n *tracker.NewWorker) { n.MachineID = "one" }) // so that one shard has all their records
			for shard := range 2 {
				c.queue(fmt.Sprintf("%s-%d", w, shard), "x", oneShard(c, shard), func(n *tracker.NewTask) { n.WorkerID = c.ids[w] })
			}
		}
		home := c.HomeOf(c.ids["w00"])
		var there []*tracker.Attempt
		for i := range workers {
			w := fmt.Sprintf("w%02d", i)
			for held := 0; held < 2; {
				for _, e := range c.claim(w, 2) {
					held++
					if c.ShardOf(scope, e.Task.ID) == home {
						there = append(there, e.Attempt)
					}
				}
			}
			if err := c.EndWithoutRecovery(scope, c.ids[w]); err != nil {
				c.Fatal(err)
			}
		}
		awake, swept := make(chan struct{}), make(chan tracker.SweepResult, 1)
		c.Freeze(1-home, "fence", awake)
		go func() {
			r, err := c.sweeper.RunOnce(c.ctx)
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
func eventuallyIn(c *crew, id string) {
	c.Helper()
	for range 2000 {
		if c.get(id).State == tracker.Queued {
			return
		}
		c.tick() // each is a round trip
	}
	c.Fatalf("%s is not requeued", id)
}

// Recoveries that a sweeper is at and cannot finish do not hide those behind them.
func TestARecoveryBehindManyThatAreStuck(t *testing.T) {
	t.Parallel()
	claims(t, func(c *crew) {
		c.hire("w1")
		c.holding("w1", 3)
		home := c.HomeOf(c.ids["w1"])
		for i := range 600 {
			id := fmt.Sprintf("stuck%03d", i)
			c.sweeper.AtWork(id)
			c.store.Client.ZAdd(c.ctx, fmt.Sprintf("lubdub:{%d}:recoveries", home), redis.Z{Score: float64(i), Member: scope.String() + "/" + id})
		}
		if err := c.EndWithoutRecovery(scope, c.ids["w1"]); err != nil {
			c.Fatal(err)
		}
		if r := c.sweep(); r.Recovered != 3 {
			c.Fatalf("%+v", r)
		}
	})
}
