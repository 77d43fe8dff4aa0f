package tracker_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/lubdub-io/lubdub/tracker"
)

// A claim that waits is refused as a new one would be as soon as its worker drains or ends, on whichever replica.
func TestAWaitingClaimHearsThatItsWorkerDrainsOrEnds(t *testing.T) {
	t.Parallel()
	claims(t, func(c *crew) {
		other := newHarness(c.TB, c.store)
		for name, test := range map[string]struct {
			change func(id string) error
			code   tracker.Code
		}{
			"drain": {func(id string) error { _, err := c.DrainWorker(c.ctx, scope, id, tracker.Drain{}); return err }, tracker.WorkerDraining},
			"deregister": {func(id string) error {
				_, err := c.RetireWorker(c.ctx, scope, id, tracker.WorkerDeregistered, "")
				return err
			}, tracker.WorkerOffline},
			"death": {func(string) error { c.advance(30 * time.Second); c.sweep(); return nil }, tracker.WorkerOffline},
		} {
			c.hire(name)
			refused := make(chan error, 2)
			for _, tr := range []*tracker.Tracker{c.Tracker, other.Tracker} {
				go func() {
					_, err := tr.Claim(c.ctx, tracker.ClaimRequest{Scope: scope, WorkerID: c.ids[name], Queue: "q", Max: 1, Wait: time.Minute})
					refused <- err
				}()
			}
			c.waiting(1)
			(&crew{other, nil}).waiting(1)
			if err := test.change(c.ids[name]); err != nil {
				c.Fatal(err)
			}
			for range 2 {
				c.wantCode(<-refused, test.code)
			}
			delete(c.ids, name)
		}
	})
}

// A drain that comes between the claim's reservation and its first look is no less heard.
func TestAClaimThatIsAboutToWaitHearsOfADrain(t *testing.T) {
	t.Parallel()
	claims(t, func(c *crew) {
		other := newHarness(c.TB, c.store)
		c.hire("w0")
		c.wantIDs(<-c.awaitFor(c.ctx, c.Tracker, "w0", 1, time.Millisecond)) // from here on the listener listens
		c.hire("w1")
		heard, leave := c.Nudged(scope, c.ids["w1"])
		defer leave()
		if _, err := other.DrainWorker(c.ctx, scope, c.ids["w1"], tracker.Drain{}); err != nil {
			c.Fatal(err)
		}
		<-heard // so it does

		c.hire("w2")
		heard, leave = c.Nudged(scope, c.ids["w2"])
		defer leave()
		c.queue("t1", "other") // so that the queue is looked through for each claim
		c.After("ready", sync.OnceFunc(func() {
			if _, err := other.DrainWorker(c.ctx, scope, c.ids["w2"], tracker.Drain{}); err != nil {
				c.Error(err)
			}
			<-heard
		}))
		refused := make(chan error, 1)
		go func() {
			_, err := c.Claim(c.ctx, tracker.ClaimRequest{Scope: scope, WorkerID: c.ids["w2"], Queue: "q", Max: 1, Wait: time.Minute})
			refused <- err
		}()
		select {
		case err := <-refused:
			c.wantCode(err, tracker.WorkerDraining)
		case <-time.After(20 * time.Second):
			c.Fatal("it sits out its wait")
		}
	})
}

// Should the word of it be lost, the end of the wait tells.
func TestAClaimThatHasWaitedIsToldWhyItGotNothing(t *testing.T) {
	t.Parallel()
	claims(t, func(c *crew) {
		c.hire("w1")
		refused := make(chan error)
		go func() {
			_, err := c.Claim(c.ctx, tracker.ClaimRequest{Scope: scope, WorkerID: c.ids["w1"], Queue: "q", Max: 1, Wait: 300 * time.Millisecond})
			refused <- err
		}()
		c.waiting(1)
		c.store.Client.HSet(c.ctx, c.WorkerKey(scope, c.ids["w1"]), "s", "D") // without a word
		c.wantCode(<-refused, tracker.WorkerDraining)
	})
}

// A full worker's claim that waits goes on when an attempt ends, however it ends and on whichever replica.
func TestAFullWorkersClaimIsToldOfAFreePlace(t *testing.T) {
	t.Parallel()
	claims(t, func(c *crew) {
		other := newHarness(c.TB, c.store)
		c.OnlyWhenTold()
		c.hire("w1", func(n *tracker.NewWorker) { n.MaxConcurrent = 1 })
		for name, end := range map[string]func(a *tracker.Attempt) error{
			"completed": func(a *tracker.Attempt) error {
				_, err := other.Complete(c.ctx, a, tracker.Completion{Outcome: tracker.Succeeded})
				return err
			},
			"cancelled":     func(a *tracker.Attempt) error { _, err := c.Cancel(c.ctx, scope, a.TaskID, ""); return err },
			"start timeout": func(*tracker.Attempt) error { c.pass(2 * time.Second); c.sweep(); return nil },
		} {
			c.queue("t-"+name[:5], "x", func(n *tracker.NewTask) {
				n.StartTimeout, n.Retry = 2*time.Second, &tracker.RetryPolicy{MaxAttempts: 1, InitialBackoff: time.Hour, Multiplier: 1, MaxBackoff: time.Hour}
			})
			held := c.claim("w1", 1)
			c.wantIDs(held, "t-"+name[:5])
			got := c.awaitFor(c.ctx, c.Tracker, "w1", 1, 20*time.Second)
			for c.FullClaims(c.ids["w1"]) == 0 {
				time.Sleep(time.Millisecond) // between two looks; nothing is concluded from it
			}
			c.queue("u-"+name[:5], "x")
			if err := end(held[0].Attempt); err != nil {
				c.Fatal(err)
			}
			next := <-got
			c.wantIDs(next, "u-"+name[:5])
			if _, err := c.Complete(c.ctx, next[0].Attempt, tracker.Completion{Outcome: tracker.Succeeded}); err != nil {
				c.Fatal(err)
			}
		}
		for c.FullClaims(c.ids["w1"]) > 0 { // what was asked for and not needed is forgotten with the worker
			if _, err := c.RetireWorker(c.ctx, scope, c.ids["w1"], tracker.WorkerDeregistered, ""); err != nil {
				c.Fatal(err)
			}
		}
	})
}

// A claim that asks to be told after its worker has ended leaves nothing behind.
func TestNobodyIsToldForAnEndedWorker(t *testing.T) {
	t.Parallel()
	claims(t, func(c *crew) {
		c.hire("w1")
		if _, err := c.RetireWorker(c.ctx, scope, c.ids["w1"], tracker.WorkerDeregistered, ""); err != nil {
			c.Fatal(err)
		}
		c.sweep()
		c.TellWhenFree(c.ids["w1"])
		if n := c.FullClaims(c.ids["w1"]); n != 0 {
			c.Fatalf("%d shards are to tell it", n)
		}
	})
}

// A look that fails costs no task that was to be looked for its time: it is looked for again, without haste.
func TestALookThatFailedIsTriedAgain(t *testing.T) {
	t.Parallel()
	claims(t, func(c *crew) {
		c.hire("w1")
		got := c.await(c.ctx, c.Tracker, "w1", 1)
		c.waiting(1)
		failed := 0
		c.FailCalls("ready", false, func(int) bool { failed++; return failed <= 3 })
		c.queue("t1", "x")
		c.wantIDs(<-got, "t1")
		if failed > 3+2*c.Shards() {
			c.Errorf("%d looks for one task", failed)
		}
	})
}

// A recovery stops with its sweeper, and what it left another one does.
func TestARecoveryStopsWithItsSweeper(t *testing.T) {
	t.Parallel()
	claims(t, func(c *crew) {
		c.hire("w1")
		c.holding("w1", 5)
		if err := c.EndWithoutRecovery(scope, c.ids["w1"]); err != nil {
			c.Fatal(err)
		}
		ended, cancel := context.WithCancel(c.ctx)
		cancel()
		if taken, err := c.sweeper.RecoverUntil(ended, scope, c.ids["w1"]); taken != 0 || err == nil {
			c.Fatalf("after its end it took %d: %v", taken, err)
		}
		if r := c.sweep(); r.Recovered != 5 {
			c.Fatalf("%+v", r)
		}
	})
}
