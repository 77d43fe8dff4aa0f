package sweep_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/lubdub-io/lubdub/tracker/trackertest"
)

// Recoveries in progress that a sweeper cannot finish do not hide those behind them.
func TestARecoveryBehindManyThatAreStuck(t *testing.T) {
	t.Parallel()
	trackertest.Claims(t, func(c *trackertest.Fleet) {
		c.Hire("w1")
		c.MustHolding("w1", 3)
		home, _ := c.Tracker.Store.WorkerShard(c.IDs["w1"])
		for i := range 600 {
			id := fmt.Sprintf("stuck%03d", i)
			c.Sweeper.AtWork(id)
			c.Store.Client.ZAdd(c.Ctx, fmt.Sprintf("lubdub:{%d}:recoveries", home),
				redis.Z{Score: float64(i), Member: trackertest.Scope.String() + "/" + id})
		}
		if err := trackertest.EndWithoutRecovery(c.Tracker, trackertest.Scope, c.IDs["w1"]); err != nil {
			c.Fatal(err)
		}
		if r := c.MustSweep(); r.Recovered != 3 {
			c.Fatalf("%+v", r)
		}
	})
}

// A recovery stops with its sweeper, and another sweeper does the rest.
func TestARecoveryStopsWithItsSweeper(t *testing.T) {
	t.Parallel()
	trackertest.Claims(t, func(c *trackertest.Fleet) {
		c.Hire("w1")
		c.MustHolding("w1", 5)
		if err := trackertest.EndWithoutRecovery(c.Tracker, trackertest.Scope, c.IDs["w1"]); err != nil {
			c.Fatal(err)
		}
		ended, cancel := context.WithCancel(c.Ctx)
		cancel()
		if taken, err := c.Sweeper.RecoverUntil(ended, trackertest.Scope, c.IDs["w1"]); taken != 0 || err == nil {
			c.Fatalf("after its end it took %d: %v", taken, err)
		}
		if r := c.MustSweep(); r.Recovered != 5 {
			c.Fatalf("%+v", r)
		}
	})
}
