package queues_test

import (
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/lubdub-io/lubdub/tracker"
	"github.com/lubdub-io/lubdub/tracker/model"
	"github.com/lubdub-io/lubdub/tracker/queues"
	"github.com/lubdub-io/lubdub/tracker/trackertest"
	"github.com/lubdub-io/lubdub/tracker/workers"
)

// A waiting claim is refused like a new one as soon as its worker drains or ends, on any replica.
func TestAWaitingClaimIsRefusedWhenItsWorkerDrainsOrEnds(t *testing.T) {
	t.Parallel()
	trackertest.Claims(t, func(c *trackertest.Fleet) {
		other := trackertest.NewHarness(c.TB, c.Store)
		for name, test := range map[string]struct {
			change func(id string) error
			code   model.Code
		}{
			"drain": {func(id string) error {
				_, err := c.Workers.Drain(c.Ctx, trackertest.Scope, id, workers.Drain{})
				return err
			}, workers.WorkerDraining},
			"deregister": {func(id string) error {
				_, err := c.Workers.Retire(c.Ctx, trackertest.Scope, id, model.WorkerDeregistered, "")
				return err
			}, workers.WorkerOffline},
			"death": {func(string) error { c.Advance(30 * time.Second); c.MustSweep(); return nil }, workers.WorkerOffline},
		} {
			c.Hire(name)
			refused := make(chan error, 2)
			for _, tr := range []*tracker.Tracker{c.Tracker, other.Tracker} {
				go func() {
					_, err := tr.Queues.Claim(c.Ctx, queues.ClaimRequest{Scope: trackertest.Scope, WorkerID: c.IDs[name], Queue: "q", Max: 1,
						Wait: time.Minute})
					refused <- err
				}()
			}
			waiting(c, 1)
			waiting((trackertest.NewFleet(other)), 1)
			if err := test.change(c.IDs[name]); err != nil {
				c.Fatal(err)
			}
			for range 2 {
				c.WantCode(<-refused, test.code)
			}
			delete(c.IDs, name)
		}
	})
}

// A drain that comes between the claim's reservation and its first read reaches the claim too.
func TestAClaimThatIsAboutToWaitIsNotifiedOfADrain(t *testing.T) {
	t.Parallel()
	trackertest.Claims(t, func(c *trackertest.Fleet) {
		other := trackertest.NewHarness(c.TB, c.Store)
		c.Hire("w0")
		c.WantIDs(<-awaitFor(c, c.Ctx, c.Tracker, "w0", 1, time.Millisecond)) // from here on the listener listens
		c.Hire("w1")
		nudged, leave := c.Queues.Nudged(trackertest.Scope, c.IDs["w1"])
		defer leave()
		if _, err := other.Workers.Drain(c.Ctx, trackertest.Scope, c.IDs["w1"], workers.Drain{}); err != nil {
			c.Fatal(err)
		}
		<-nudged // so it does

		c.Hire("w2")
		nudged, leave = c.Queues.Nudged(trackertest.Scope, c.IDs["w2"])
		defer leave()
		c.MustQueue("t1", "other") // so that the queue is read for each claim
		drained := make(chan struct{})
		trackertest.After(c.Tracker, "ready", sync.OnceFunc(func() {
			defer close(drained)
			if _, err := other.Workers.Drain(c.Ctx, trackertest.Scope, c.IDs["w2"], workers.Drain{}); err != nil {
				c.Error(err)
			}
			<-nudged
		}))
		refused := make(chan error, 1)
		go func() {
			_, err := c.Queues.Claim(c.Ctx, queues.ClaimRequest{Scope: trackertest.Scope, WorkerID: c.IDs["w2"], Queue: "q", Max: 1,
				Wait: time.Minute})
			refused <- err
		}()
		select {
		case err := <-refused:
			c.WantCode(err, workers.WorkerDraining)
		case <-time.After(40 * time.Second):
			c.Fatal("it sits out its wait")
		}
		<-drained // the drain has more to do than to notify the claim
	})
}

// If the notification is lost, the end of the wait returns the refusal.
func TestAClaimThatHasWaitedGetsTheReasonForNoTasks(t *testing.T) {
	t.Parallel()
	trackertest.Claims(t, func(c *trackertest.Fleet) {
		c.Hire("w1")
		refused := make(chan error)
		go func() {
			_, err := c.Queues.Claim(c.Ctx, queues.ClaimRequest{Scope: trackertest.Scope, WorkerID: c.IDs["w1"], Queue: "q", Max: 1,
				Wait: 3 * time.Second})
			refused <- err
		}()
		waiting(c, 1)
		c.Store.Client.HSet(c.Ctx, trackertest.WorkerRecord(c.Tracker, trackertest.Scope, c.IDs["w1"]), "s", "D") // without a notification
		c.WantCode(<-refused, workers.WorkerDraining)
	})
}

// The waiting claim of a full worker continues when an attempt ends, however it ends and on any replica.
func TestAFullWorkersClaimIsNotifiedOfAFreePlace(t *testing.T) {
	t.Parallel()
	trackertest.Claims(t, func(c *trackertest.Fleet) {
		other := trackertest.NewHarness(c.TB, c.Store)
		c.Queues.OnlyWhenNotified()
		c.Hire("w1", func(n *model.NewWorker) { n.MaxConcurrent = 1 })
		for name, end := range map[string]func(a *model.Attempt) error{
			"completed": func(a *model.Attempt) error {
				_, err := other.Beats.Complete(c.Ctx, a, model.Completion{Outcome: model.Succeeded})
				return err
			},
			"cancelled": func(a *model.Attempt) error {
				_, err := c.Tasks.Cancel(c.Ctx, trackertest.Scope, a.TaskID, model.CancelRequest{})
				return err
			},
			"start timeout": func(*model.Attempt) error { c.Pass(2 * time.Second); c.MustSweep(); return nil },
		} {
			c.MustQueue("t-"+name[:5], "x", func(n *model.NewTask) {
				n.StartTimeout, n.Retry = 2*time.Second, &model.RetryPolicy{MaxAttempts: 1, InitialBackoff: time.Hour, Multiplier: 1,
					MaxBackoff: time.Hour}
			})
			held := c.MustClaim("w1", 1)
			c.WantIDs(held, "t-"+name[:5])
			got := awaitFor(c, c.Ctx, c.Tracker, "w1", 1, queues.MaxClaimWait)
			trackertest.Until(c, func() bool { return c.Queues.FullClaims(c.IDs["w1"]) > 0 })
			c.MustQueue("u-"+name[:5], "x")
			if err := end(held[0].Attempt); err != nil {
				c.Fatal(err)
			}
			next := <-got
			c.WantIDs(next, "u-"+name[:5])
			if _, err := c.Beats.Complete(c.Ctx, next[0].Attempt, model.Completion{Outcome: model.Succeeded}); err != nil {
				c.Fatal(err)
			}
		}
		trackertest.Eventually(c, "requested notices are deleted with the worker", func() bool {
			if _, err := c.Workers.Retire(c.Ctx, trackertest.Scope, c.IDs["w1"], model.WorkerDeregistered, ""); err != nil {
				c.Fatal(err)
			}
			return c.Queues.FullClaims(c.IDs["w1"]) == 0
		})
	})
}

// A claim that requests notifications after its worker has ended leaves nothing behind.
func TestNotificationsForAnEndedWorkerLeaveNothingBehind(t *testing.T) {
	t.Parallel()
	trackertest.Claims(t, func(c *trackertest.Fleet) {
		c.Hire("w1")
		if _, err := c.Workers.Retire(c.Ctx, trackertest.Scope, c.IDs["w1"], model.WorkerDeregistered, ""); err != nil {
			c.Fatal(err)
		}
		c.MustSweep()
		c.Queues.NotifyWhenFree(c.IDs["w1"])
		if n := c.Queues.FullClaims(c.IDs["w1"]); n != 0 {
			c.Fatalf("%d shards would notify it", n)
		}
	})
}

// Tasks are not lost for a claim when a read fails: the read is retried after a pause.
func TestALookThatFailedIsTriedAgain(t *testing.T) {
	t.Parallel()
	trackertest.Claims(t, func(c *trackertest.Fleet) {
		c.Queues.OnlyWhenNotified()
		c.Hire("w1")
		got := await(c, c.Ctx, c.Tracker, "w1", 1)
		waiting(c, 1)
		var reads atomic.Int64
		trackertest.FailCalls(c.Tracker, "ready", false, func(int) bool { return reads.Add(1) <= 3 })
		c.MustQueue("t1", "x")
		c.WantIDs(<-got, "t1")
		if n := int(reads.Load()); n > 3+2*c.Tracker.Store.Shards() {
			c.Errorf("%d looks for one task", n)
		}
	})
}
