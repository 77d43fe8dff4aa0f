package queues_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/lubdub-io/lubdub/internal/redistest"
	"github.com/lubdub-io/lubdub/tracker"
	"github.com/lubdub-io/lubdub/tracker/model"
	"github.com/lubdub-io/lubdub/tracker/queues"
	"github.com/lubdub-io/lubdub/tracker/trackertest"
)

const turnTimeout = time.Second // redis-timeout

// turns tries claims under an ID with which another request is taking tasks.
func turns(t *testing.T, test func(c *trackertest.Fleet, another func(what string),
	claim func(wait time.Duration) ([]*model.Envelope, error))) {
	t.Helper()
	redistest.Each(t, func(t *testing.T, s *redistest.Store) { turnsOn(t, s, test) })
}

func turnsOn(t *testing.T, s *redistest.Store, test func(c *trackertest.Fleet, another func(what string),
	claim func(wait time.Duration) ([]*model.Envelope, error))) {
	t.Helper()
	c := trackertest.NewFleet(trackertest.NewHarness(t, s, func(o *tracker.Options) { o.RedisTimeout = turnTimeout }))
	c.Hire("w1")
	c.MustQueue("t1", "x")
	another := func(what string) {
		c.Helper()
		if err := c.Queues.ClaimStep(trackertest.Scope, c.IDs["w1"], "c1", "another", what, turnTimeout*3/2); err != nil {
			c.Fatal(err)
		}
	}
	test(c, another, func(wait time.Duration) ([]*model.Envelope, error) {
		return c.Queues.Claim(c.Ctx, queues.ClaimRequest{Scope: trackertest.Scope, WorkerID: c.IDs["w1"], Queue: "q", Max: 1, ClaimID: "c1",
			Wait: wait})
	})
}

// While another request with its ID takes tasks, a claim waits no longer than its wait and the Redis timeout allow, rarely reads
// Redis and is then refused so that the client repeats it.
func TestARepeatedClaimWaitsNoLongerThanRequested(t *testing.T) {
	redistest.EachMeasured(t, repeatedClaim)
}

func repeatedClaim(t *testing.T, s *redistest.Store) redistest.TooLong {
	exceeded := redistest.TooLong{}
	turnsOn(t, s, func(c *trackertest.Fleet, another func(string), claim func(time.Duration) ([]*model.Envelope, error)) {
		another("make")
		scriptCalls := trackertest.CountScripts(c.Tracker)
		own, most := redistest.OwnDelay(), time.Duration(0)
		for _, wait := range []time.Duration{0, turnTimeout / 2} {
			start := time.Now()
			_, err := claim(wait)
			c.WantCode(err, model.Overloaded)
			most = max(most, time.Since(start)-wait)
		}
		if delay := own(); most > turnTimeout*3/2+delay {
			exceeded["the claim"] = fmt.Sprintf("answered %v after its wait; this process was late by %v itself", most, delay)
		}
		if n := scriptCalls()["claimed"]; n > 10 {
			c.Errorf("it read the record %d times", n)
		}
		another("wait")
		got, err := claim(0)
		c.WantCode(err, "")
		c.WantIDs(got, "t1")
	})
	return exceeded
}

// The result of the other request wakes it: it gets the same tasks, or none, so that it may take tasks itself.
func TestARepeatedClaimIsWokenByTheOther(t *testing.T) {
	t.Parallel()
	for _, end := range []string{"wait", "done"} {
		turns(t, func(c *trackertest.Fleet, another func(string), claim func(time.Duration) ([]*model.Envelope, error)) {
			another("make")
			nudged, leave := c.Queues.Nudged(trackertest.Scope, c.IDs["w1"])
			scriptCalls := trackertest.CountScripts(c.Tracker)
			type answer struct {
				tasks []*model.Envelope
				err   error
			}
			got := make(chan answer, 1)
			go func() {
				tasks, err := claim(time.Minute)
				got <- answer{tasks, err}
			}()
			trackertest.Eventually(c.TB.(*testing.T), "it waits", func() bool { return scriptCalls()["claimed"] >= 2 })
			another(end)
			<-nudged
			leave()
			a := <-got
			c.WantCode(a.err, "")
			if end == "done" {
				c.WantIDs(a.tasks) // the other one, which this test made up, got none
			} else {
				c.WantIDs(a.tasks, "t1")
			}
			if n := scriptCalls()["claimed"]; n > 6 {
				c.Errorf("%s: the record was read %d times", end, n)
			}
		})
	}
}

// The mark of a request that died blocks others no longer than a request may take, even if the clock is set back.
func TestAMarkDoesNotOutliveItsRequest(t *testing.T) {
	t.Parallel()
	for name, step := range map[string]time.Duration{"time goes by": turnTimeout*3/2 + time.Millisecond, "the clock is put back": -time.Hour} {
		t.Run(name, func(t *testing.T) {
			turns(t, func(c *trackertest.Fleet, another func(string), claim func(time.Duration) ([]*model.Envelope, error)) {
				another("make")
				c.Store.Clock.Advance(step)
				got, err := claim(0)
				c.WantCode(err, "")
				c.WantIDs(got, "t1")
			})
		})
	}
}

// Requests with one ID that wait on several replicas at once all get the tasks that one of them takes, without waiting until the
// end of their waits.
func TestRepeatsThatWaitGetTheSameTasks(t *testing.T) {
	t.Parallel()
	trackertest.Claims(t, func(c *trackertest.Fleet) {
		trackers := []*tracker.Tracker{c.Tracker, trackertest.NewHarness(c.TB, c.Store).Tracker}
		c.Hire("w1", func(n *model.NewWorker) { n.MaxConcurrent = 1000 })
		for round := range 24 {
			id, task, answers := fmt.Sprintf("c%d", round), fmt.Sprintf("t%d", round), []<-chan []*model.Envelope{}
			for i := range 2 + round%4 {
				answers = append(answers, awaitFor(c, c.Ctx, trackers[(i+round)%2], "w1", 1, time.Minute, named(id)))
				if round%3 == 0 { // else they meet halfway
					waitingOn(c, trackers, i+1)
				}
			}
			if round%3 != 1 { // else the task may come first
				waitingOn(c, trackers, len(answers))
			}
			c.MustQueue(task, "x")
			for i, answer := range answers {
				select {
				case got := <-answer:
					c.WantIDs(got, task)
				case <-time.After(40 * time.Second):
					c.Fatalf("round %d: request %d of %d sits out its wait", round, i, len(answers))
				}
			}
		}
	})
}

func waitingOn(c *trackertest.Fleet, trackers []*tracker.Tracker, n int) {
	c.Helper()
	trackertest.Until(c, func() bool {
		sum := 0
		for _, tr := range trackers {
			sum += tr.Queues.WaitingClaims()
		}
		return sum == n
	})
}

// A claim whose wait ends checks the state of its ID: it never returns nothing while another request may have taken tasks.
func TestAClaimThatWaitedChecksTheStateOfItsID(t *testing.T) {
	t.Parallel()
	for what, want := range map[string]model.Code{"": "", "make": model.Overloaded} {
		turns(t, func(c *trackertest.Fleet, another func(string), _ func(time.Duration) ([]*model.Envelope, error)) {
			c.MustClaim("w1", 1) // there is nothing any more
			ctx, cancel := context.WithCancel(c.Ctx)
			defer cancel()
			ended := make(chan error, 1)
			go func() {
				tasks, err := c.Queues.Claim(ctx, queues.ClaimRequest{Scope: trackertest.Scope, WorkerID: c.IDs["w1"], Queue: "q", Max: 1,
					ClaimID: "c1",
					Wait:    time.Minute})
				if len(tasks) > 0 {
					c.Errorf("it got %v", trackertest.IDs(tasks))
				}
				ended <- err
			}()
			waiting(c, 1)
			trackertest.Eventually(c.TB.(*testing.T), "it lets others take", func() bool {
				return c.Store.Client.HGet(c.Ctx, c.Queues.ClaimKey(trackertest.Scope, c.IDs["w1"], "c1"), "s").Val() == "wait"
			})
			if what != "" {
				another(what) // no notification of that is sent
			}
			cancel()
			c.WantCode(<-ended, want)
		})
	}
}
