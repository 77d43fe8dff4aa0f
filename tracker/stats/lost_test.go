package stats_test

import (
	"testing"
	"time"

	"github.com/lubdub-io/lubdub/tracker/model"
	"github.com/lubdub-io/lubdub/tracker/stats"
	"github.com/lubdub-io/lubdub/tracker/trackertest"
)

// recentlyLost uses a new replica each time, since a replica caches its result for a second.
func recentlyLost(c *trackertest.Fleet) *stats.LostWorkers {
	c.Helper()
	found, err := c.Replica().Stats.RecentlyLost(c.Ctx, trackertest.Scope)
	if err != nil {
		c.Fatal(err)
	}
	return found
}

// A worker that dies is listed as recently lost for an hour, with the result of the tasks that it held. Workers that end in order,
// workers of another workspace and live workers are not listed.
func TestRecentlyLost(t *testing.T) {
	t.Parallel()
	trackertest.Claims(t, func(c *trackertest.Fleet) {
		c.Hire("dies")
		c.Hire("lives")
		c.Hire("leaves")
		losses := func(most int) func(*model.NewTask) {
			return func(n *model.NewTask) {
				n.Retry = &model.RetryPolicy{MaxAttempts: 5, MaxLosses: most, InitialBackoff: time.Second, Multiplier: 1, MaxBackoff: time.Minute}
			}
		}
		c.MustQueue("requeued", "x", losses(3))
		c.MustQueue("exhausted", "x", losses(0))
		c.MustQueue("default", "x")
		for _, e := range c.MustClaim("dies", 10) {
			if _, err := c.Beats.Start(c.Ctx, e.Attempt, model.Report{}); err != nil {
				c.Fatal(err)
			}
		}
		if _, err := c.Workers.Retire(c.Ctx, trackertest.Scope, c.IDs["leaves"], model.WorkerDeregistered, ""); err != nil {
			c.Fatal(err)
		}
		last := c.Store.Clock.Now()
		c.AdvanceAlive(5*time.Minute, c.IDs["lives"])
		for range 3 {
			c.MustSweep()
		}
		found := recentlyLost(c).Newest
		if len(found) != 1 || found[0].ID != c.IDs["dies"] {
			c.Fatalf("%d workers are recently lost: %+v", len(found), found)
		}
		w := found[0]
		if w.Recovery != (model.Recovery{Attempts: 3, Failed: 1, Exhausted: 1}) {
			c.Errorf("what became of its tasks: %+v", w.Recovery)
		}
		if w.Queue != "q" || w.MachineID != "host-dies" || w.EndReason != model.WorkerStale || w.LastHeartbeatAt.After(last) ||
			!w.DeregisteredAt.After(last) {
			c.Errorf("it is %+v", w)
		}
	})
}

// A worker that is repeatedly lost and replaced is flapping in each of its entries, and so is its machine; another worker is not.
// Workers that are not listed are counted.
func TestRecentlyLostWorkersFlap(t *testing.T) {
	t.Parallel()
	trackertest.Claims(t, func(c *trackertest.Fleet) {
		die := func(names ...string) {
			for _, name := range names {
				c.Hire(name, func(n *model.NewWorker) { n.Name = name })
			}
			c.Advance(2 * time.Minute)
			for range 3 {
				c.MustSweep()
			}
		}
		die("once", "often")
		die("often")
		if lost := recentlyLost(c); len(lost.Newest) != 3 || lost.Newest[0].Flapping || lost.Newest[0].StaleCount != 2 {
			c.Fatalf("after two times: %+v", lost.Newest)
		}
		die("often")
		lost := recentlyLost(c)
		for _, w := range lost.Newest {
			if often := w.Name == "often"; w.Flapping != often || w.MachineFlapping != often || often && w.StaleCount != 3 {
				c.Errorf("%s: stale %d times, flapping %v, its machine %v", w.Name, w.StaleCount, w.Flapping, w.MachineFlapping)
			}
		}
		if len(lost.Newest) != 4 || lost.Total != 4 {
			c.Errorf("%d of %d", len(lost.Newest), lost.Total)
		}
		const crowd = stats.MaxLostWorkers + 1
		for range crowd {
			c.MustRegister(func(n *model.NewWorker) { n.MachineID = "crowd" }) // whose shard lists no more than MaxLostWorkers
		}
		die()
		if lost := recentlyLost(c); len(lost.Newest) != stats.MaxLostWorkers || lost.Total != crowd+4 {
			c.Errorf("of many %d are listed and %d counted", len(lost.Newest), lost.Total)
		}
	})
}
