package stats_test

import (
	"testing"
	"time"

	"github.com/lubdub-io/lubdub/tracker"
	"github.com/lubdub-io/lubdub/tracker/model"
	"github.com/lubdub-io/lubdub/tracker/trackertest"
)

// A worker that dies is among the recently lost for an hour, with what became of the tasks that it held. One that ends in order, one
// of another workspace, and one that lives are not.
func TestRecentlyLost(t *testing.T) {
	t.Parallel()
	trackertest.Claims(t, func(c *trackertest.Crew) {
		lost := func() []*tracker.Worker {
			c.Helper()
			found, err := c.Replica().RecentlyLost(c.Ctx, trackertest.Scope) // another replica, as one remembers its answer for a second
			if err != nil {
				c.Fatal(err)
			}
			return found
		}
		c.Hire("dies")
		c.Hire("lives")
		c.Hire("leaves")
		losses := func(most int) func(*tracker.NewTask) {
			return func(n *tracker.NewTask) {
				n.Retry = &tracker.RetryPolicy{MaxAttempts: 5, MaxLosses: most, InitialBackoff: time.Second, Multiplier: 1, MaxBackoff: time.Minute}
			}
		}
		c.MustQueue("requeued", "x", losses(3))
		c.MustQueue("exhausted", "x", losses(0))
		c.MustQueue("default", "x")
		for _, e := range c.MustClaim("dies", 10) {
			if _, err := c.Start(c.Ctx, e.Attempt, tracker.Report{}); err != nil {
				c.Fatal(err)
			}
		}
		if _, err := c.RetireWorker(c.Ctx, trackertest.Scope, c.IDs["leaves"], tracker.WorkerDeregistered, ""); err != nil {
			c.Fatal(err)
		}
		last := c.Store.Clock.Now()
		c.AdvanceAlive(5*time.Minute, c.IDs["lives"])
		for range 3 {
			c.MustSweep()
		}
		found := lost()
		if len(found) != 1 || found[0].ID != c.IDs["dies"] {
			c.Fatalf("%d workers are recently lost: %+v", len(found), found)
		}
		w := found[0]
		if w.Recovery != (model.Recovery{Attempts: 3, Failed: 1, Exhausted: 1}) {
			c.Errorf("what became of its tasks: %+v", w.Recovery)
		}
		if w.Queue != "q" || w.MachineID != "host-dies" || w.EndReason != tracker.WorkerStale || w.LastHeartbeatAt.After(last) ||
			!w.DeregisteredAt.After(last) {
			c.Errorf("it is %+v", w)
		}
	})
}
