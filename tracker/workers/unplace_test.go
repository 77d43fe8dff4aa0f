package workers_test

import (
	"testing"

	"github.com/lubdub-io/lubdub/tracker/model"
	"github.com/lubdub-io/lubdub/tracker/trackertest"
)

// A placed task whose worker ends is free for others at once, and its place leaves nothing behind.
func TestAPlacedTaskIsReleasedWhenItsWorkerEnds(t *testing.T) {
	t.Parallel()
	trackertest.Claims(t, func(c *trackertest.Fleet) {
		c.Hire("w1")
		c.MustQueue("p1", "x", func(n *model.NewTask) { n.Placement = "random" })
		c.WantIDs(c.MustClaim("w1", 1), "p1")
		c.Hire("w2")
		if _, err := c.Workers.Retire(c.Ctx, trackertest.Scope, c.IDs["w1"], model.WorkerDeregistered, ""); err != nil {
			c.Fatal(err)
		}
		c.WantIDs(c.MustClaim("w2", 1), "p1")
		queues, err := c.Queues.List(c.Ctx, trackertest.Scope)
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
