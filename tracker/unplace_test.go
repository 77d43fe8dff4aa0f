package tracker_test

import (
	"testing"

	"github.com/lubdub-io/lubdub/tracker"
)

// A placed task whose worker goes is free for others at once, and leaves nothing behind in the place that it had.
func TestAPlacedTaskIsFreeAtOnceWhenItsWorkerGoes(t *testing.T) {
	t.Parallel()
	claims(t, func(c *crew) {
		c.hire("w1")
		c.queue("p1", "x", func(n *tracker.NewTask) { n.Placement = "random" })
		c.wantIDs(c.claim("w1", 1), "p1")
		c.hire("w2")
		if _, err := c.RetireWorker(c.ctx, scope, c.ids["w1"], tracker.WorkerDeregistered, ""); err != nil {
			c.Fatal(err)
		}
		c.wantIDs(c.claim("w2", 1), "p1")
		queues, err := c.Queues(c.ctx, scope)
		if err != nil {
			c.Fatal(err)
		}
		for _, q := range queues {
			if q.Depth() != 0 {
				c.Errorf("%d tasks seem to wait in an empty queue", q.Depth())
			}
		}
	})
}
