package queues_test

import (
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/lubdub-io/lubdub/tracker"
	"github.com/lubdub-io/lubdub/tracker/model"
	"github.com/lubdub-io/lubdub/tracker/queues"
	"github.com/lubdub-io/lubdub/tracker/trackertest"
	"github.com/lubdub-io/lubdub/tracker/workers"
)

func named(id string) func(*queues.ClaimRequest) {
	return func(r *queues.ClaimRequest) { r.ClaimID = id }
}

// A claim ID is not used twice: a repeat claims nothing new once its tasks are done.
func TestAClaimIDIsNotUsedTwice(t *testing.T) {
	t.Parallel()
	trackertest.Claims(t, func(c *trackertest.Fleet) {
		c.Hire("w1")
		c.MustQueue("t1", "x")
		first := c.MustClaim("w1", 1, named("c1"))
		c.WantIDs(first, "t1")
		c.MustQueue("t2", "x")
		c.WantIDs(c.MustClaim("w1", 1, named("c1")), "t1")
		if _, err := c.Beats.Complete(c.Ctx, first[0].Attempt, model.Completion{Outcome: model.Succeeded}); err != nil {
			c.Fatal(err)
		}
		for range 2 {
			c.WantIDs(c.MustClaim("w1", 1, named("c1")))
		}
		c.WantState("t2", model.Queued, "")
		c.WantIDs(c.MustClaim("w1", 1, named("c2")), "t2")
	})
}

// A claim that got nothing was not made: the same ID may get something later.
func TestAnEmptyClaimMayBeRepeated(t *testing.T) {
	t.Parallel()
	trackertest.Claims(t, func(c *trackertest.Fleet) {
		c.Hire("w1")
		c.WantIDs(c.MustClaim("w1", 1, named("c1")))
		c.MustQueue("t1", "x")
		c.WantIDs(c.MustClaim("w1", 1, named("c1")), "t1")
	})
}

// A repeat gets the tasks of its claim whatever the status of its worker is by then; only a new claim is refused.
func TestARepeatedClaimIsAnsweredBeforeTheStatusCheck(t *testing.T) {
	t.Parallel()
	trackertest.Claims(t, func(c *trackertest.Fleet) {
		c.Hire("w1")
		c.MustQueue("t1", "x")
		c.MustClaim("w1", 1, named("c1"))
		claim := func(id string) ([]*model.Envelope, error) {
			return c.Queues.Claim(c.Ctx, queues.ClaimRequest{Scope: trackertest.Scope, WorkerID: c.IDs["w1"], Queue: "q", Max: 1, ClaimID: id})
		}
		if _, err := c.Workers.Drain(c.Ctx, trackertest.Scope, c.IDs["w1"], workers.Drain{}); err != nil {
			c.Fatal(err)
		}
		c.WantIDs(c.MustClaim("w1", 1, named("c1")), "t1")
		for range 2 {
			_, err := claim("c2")
			c.WantCode(err, workers.WorkerDraining)
		}
		if _, err := c.Workers.Retire(c.Ctx, trackertest.Scope, c.IDs["w1"], model.WorkerForced, ""); err != nil {
			c.Fatal(err)
		}
		c.WantIDs(c.MustClaim("w1", 1, named("c1"))) // it holds nothing any more
		_, err := claim("c2")
		c.WantCode(err, workers.WorkerOffline)
	})
}

// Racing requests with one claim ID get one result, on any replicas.
func TestAClaimIDRace(t *testing.T) {
	t.Parallel()
	trackertest.Claims(t, func(c *trackertest.Fleet) {
		trackers := []*tracker.Tracker{c.Tracker, trackertest.NewHarness(c.TB, c.Store).Tracker}
		c.Hire("w1", func(n *model.NewWorker) { n.MaxConcurrent = 10000 })
		for round := range 25 {
			for i := range 6 {
				c.MustQueue(fmt.Sprintf("t%d-%d", round, i), "x")
			}
			var all sync.WaitGroup
			answers := make([][]string, 4)
			for i := range answers {
				all.Go(func() {
					got, err := trackers[i%2].Queues.Claim(c.Ctx, queues.ClaimRequest{
						Scope: trackertest.Scope, WorkerID: c.IDs["w1"], Queue: "q", Max: 1 +
							i, ClaimID: fmt.Sprintf("c%d", round), Wait: time.Duration(i/2) * time.Second,
					})
					if err != nil {
						c.Error(err)
					}
					answers[i] = trackertest.IDs(got)
					slices.Sort(answers[i])
				})
			}
			all.Wait()
			for _, a := range answers {
				if len(a) == 0 || !slices.Equal(a, answers[0]) {
					c.Fatalf("round %d: one claim, several answers: %v", round, answers)
				}
			}
		}
	})
}

// A waiting request does not delay a later one with its ID, and returns the same result.
func TestALaterRequestTakesOverAClaimThatWaits(t *testing.T) {
	t.Parallel()
	trackertest.Claims(t, func(c *trackertest.Fleet) {
		c.Queues.OnlyWhenNotified()
		c.Hire("w1")
		waits := make(chan []string)
		go func() {
			got, err := c.Queues.Claim(c.Ctx, queues.ClaimRequest{Scope: trackertest.Scope, WorkerID: c.IDs["w1"], Queue: "q", Max: 1, ClaimID: "c1",
				Wait: time.Minute})
			if err != nil {
				c.Error(err)
			}
			waits <- trackertest.IDs(got)
		}()
		waiting(c, 1)
		c.WantIDs(c.MustClaim("w1", 1, named("c1"))) // makes the claim from here on
		later := await(c, c.Ctx, c.Tracker, "w1", 1, named("c1"))
		waiting(c, 2)
		c.MustQueue("t1", "x")
		if got := trackertest.IDs(<-later); !slices.Equal(got, []string{"t1"}) {
			c.Errorf("the later one got %v", got)
		}
		c.MustQueue("t2", "x") // which wakes the first one, unless it is awake already
		if got := <-waits; !slices.Equal(got, []string{"t1"}) {
			c.Errorf("the first one got %v", got)
		}
		c.WantState("t2", model.Queued, "")
	})
}

// If the response to a claim from one shard is lost, it is unknown what the claim took there: the worker still gets no more than
// it may hold.
func TestALostClaimReplyCountsAsUsed(t *testing.T) {
	t.Parallel()
	trackertest.Claims(t, func(c *trackertest.Fleet) {
		lossy := trackertest.NewHarness(c.TB, c.Store)
		trackertest.FailCalls(lossy.Tracker, "claim", true, func(n int) bool { return n == 0 })
		c.Hire("w0")
		c.MustQueue("t", "x")
		c.WantIDs(c.MustClaim("w0", 1), "t") // from here on Redis knows the script
		c.Hire("w1", func(n *model.NewWorker) { n.MaxConcurrent = 8 })
		for i := range 16 {
			c.MustQueue(fmt.Sprintf("t%d", i), "x", trackertest.OneShard(c, i%2))
		}
		got, err := lossy.Queues.Claim(c.Ctx, queues.ClaimRequest{Scope: trackertest.Scope, WorkerID: c.IDs["w1"], Queue: "q", Max: 8})
		if err != nil && model.CodeOf(err) != model.Unavailable {
			c.Fatal(err)
		}
		held := c.MustWorker(c.IDs["w1"]).Held
		if held == len(got) {
			c.Fatalf("no answer got lost: %v of %d", trackertest.IDs(got), held)
		}
		if len(got) == 0 {
			c.Fatal("no answer arrived")
		}
		for range 8 {
			c.MustClaim("w1", 1) // there would be room if only the known tasks counted
		}
		if w := c.MustWorker(c.IDs["w1"]); w.Held > 8 {
			c.Fatalf("a worker of 8 places holds %d", w.Held)
		}
	})
}

// A request whose turn was over when it took tasks returns the result of the later one that makes the claim by then.
func TestARequestThatWasTooSlowFollowsTheLaterOne(t *testing.T) {
	t.Parallel()
	trackertest.Claims(t, func(c *trackertest.Fleet) {
		c.Hire("w1")
		later := trackertest.NewHarness(c.TB, c.Store)
		c.MustQueue("t1", "x")
		c.MustQueue("t2", "x")
		looked, took, done := make(chan struct{}), make(chan struct{}), make(chan struct{})
		trackertest.After(later.Tracker, "ready", sync.OnceFunc(func() { close(looked); <-took }))
		trackertest.After(c.Tracker, "ready", sync.OnceFunc(func() {
			later.Advance(16 * time.Second) // a turn lasts 1.5 times the harness's redis-timeout of 10 s
			go func() {
				defer close(done)
				if _, err := later.Queues.Claim(c.Ctx, queues.ClaimRequest{Scope: trackertest.Scope, WorkerID: c.IDs["w1"], Queue: "q", Max: 2,
					ClaimID: "c1"}); err != nil {
					c.Error(err)
				}
			}()
			select {
			case <-looked:
			case <-done: // it failed
			}
		}))
		trackertest.After(c.Tracker, "claim", sync.OnceFunc(func() { close(took) }))
		got := trackertest.IDs(c.MustClaim("w1", 1, named("c1")))
		<-done
		repeat := trackertest.IDs(c.MustClaim("w1", 1, named("c1")))
		slices.Sort(got)
		slices.Sort(repeat)
		if !slices.Equal(got, repeat) || len(repeat) != 2 {
			c.Fatalf("it got %v, a repeat %v", got, repeat)
		}
	})
}
