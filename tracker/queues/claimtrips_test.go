package queues_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/lubdub-io/lubdub/internal/redistest"
	"github.com/lubdub-io/lubdub/tracker"
	"github.com/lubdub-io/lubdub/tracker/model"
	"github.com/lubdub-io/lubdub/tracker/queues"
	"github.com/lubdub-io/lubdub/tracker/trackertest"
)

// A worker whose last claim was here gets tasks in four round trips: its mark with a count of what it holds and what is ready, its
// places, the tasks, and the end of the mark and of the reservation.
func TestRoundTripsOfAClaim(t *testing.T) {
	t.Parallel()
	s := redistest.Real(t, redistest.WallClock)
	registry := prometheus.NewRegistry()
	tr := trackertest.Open(t, tracker.Options{RedisURL: s.URL, Scripts: s.Scripts, Shards: 4, Registerer: registry})
	c := trackertest.NewFleet(&trackertest.Harness{TB: t, Tracker: tr, Store: s, Ctx: t.Context()})
	c.MustTick()
	trips := func() uint64 {
		families, err := registry.Gather()
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range families {
			if f.GetName() == "lubdub_redis_round_trip_seconds" {
				return f.GetMetric()[0].GetHistogram().GetSampleCount()
			}
		}
		t.Fatal("round trips are not counted")
		return 0
	}
	c.Hire("w1", func(n *model.NewWorker) { n.MaxConcurrent = 2 })
	least := uint64(1000)
	for i := range 20 { // what is ready may be read in a separate round trip, and the tracker has some too
		c.MustQueue(fmt.Sprintf("a%d", i), "x")
		c.MustQueue(fmt.Sprintf("b%d", i), "x")
		before := trips()
		got := c.MustClaim("w1", 2, func(r *queues.ClaimRequest) { r.ClaimID = fmt.Sprint(i) })
		least = min(least, trips()-before)
		for _, e := range got {
			if _, err := c.Beats.Complete(c.Ctx, e.Attempt, model.Completion{Outcome: model.Succeeded}); err != nil {
				t.Fatal(err)
			}
		}
	}
	if least > 4 {
		t.Errorf("a claim took %d round trips at least, want 4", least)
	}
}

// A count that began before another claim of the worker ended may miss that claim's tasks, so it is not used.
func TestACountMissesNoTasks(t *testing.T) {
	t.Parallel()
	trackertest.Claims(t, func(c *trackertest.Fleet) {
		c.Hire("w1", func(n *model.NewWorker) { n.MaxConcurrent = 4 })
		for i := range 3 {
			c.MustQueue(fmt.Sprintf("t%d", i), "x")
		}
		c.MustClaim("w1", 1)
		other := trackertest.NewHarness(c.TB, c.Store).Tracker
		places, err := c.Queues.PlacesAfter(queues.ClaimRequest{Scope: trackertest.Scope, WorkerID: c.IDs["w1"], Queue: "q", Max: 3}, func() {
			got, err := other.Queues.Claim(c.Ctx, queues.ClaimRequest{Scope: trackertest.Scope, WorkerID: c.IDs["w1"], Queue: "q", Max: 2})
			if err != nil || len(got) != 2 {
				c.Fatalf("%v %v", got, err)
			}
		})
		if err != nil || places != 1 {
			c.Errorf("%d places, %v: want 1 of 4 for a worker with 3 tasks", places, err)
		}
	})
}

// A claim that waits for a place, or is refused, leaves the tasks to others, although it begins to wait for an offer before it knows.
func TestClaimsWithoutPlacesLeaveTheTasks(t *testing.T) {
	t.Parallel()
	trackertest.Claims(t, func(c *trackertest.Fleet) {
		c.Queues.OnlyWhenNotified()
		for _, name := range []string{"full", "gone", "able"} {
			c.Hire(name, func(n *model.NewWorker) { n.MaxConcurrent = 1 })
		}
		for i, name := range []string{"full", "gone"} { // from now on their state is known here
			c.MustQueue(fmt.Sprintf("first-%d", i), "x")
			c.MustClaim(name, 1)
		}
		if _, err := c.Workers.Retire(c.Ctx, trackertest.Scope, c.IDs["gone"], model.WorkerDeregistered, ""); err != nil {
			c.Fatal(err)
		}
		request := func(worker string, wait time.Duration) queues.ClaimRequest {
			return queues.ClaimRequest{Scope: trackertest.Scope, WorkerID: c.IDs[worker], Queue: "q", Max: 1, Wait: wait}
		}
		ctx, cancel := context.WithCancel(c.Ctx)
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			_, _ = c.Queues.Claim(ctx, request("full", time.Minute))
		}()
		trackertest.Eventually(t, "the claim of the full worker waits for a place", func() bool { return c.Queues.FullClaims(c.IDs["full"]) > 0 })
		if _, err := c.Queues.Claim(c.Ctx, request("gone", 0)); err == nil {
			c.Error("a worker that is OFFLINE may claim")
		}
		c.WantIDs(c.MustClaim("able", 1), "first-1") // which waits again
		cancel()
		<-ended
	})
}
