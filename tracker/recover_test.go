package tracker_test

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/lubdub-io/lubdub/tracker"
)

// holding has a worker claim and start n tasks.
func (c *crew) holding(worker string, n int, change ...func(*tracker.NewTask)) []*tracker.Attempt {
	c.Helper()
	for i := range n {
		c.queue(fmt.Sprintf("%s-%03d", worker, i), "x", append(change, func(t *tracker.NewTask) { t.WorkerID = c.ids[worker] })...)
	}
	var held []*tracker.Attempt
	for len(held) < n {
		for _, e := range c.claim(worker, 100) {
			if _, err := c.Start(c.ctx, e.Attempt, tracker.Report{}); err != nil {
				c.Fatal(err)
			}
			held = append(held, e.Attempt)
		}
	}
	return held
}

// A dead worker's tasks are requeued in every shard, exactly once, with the evidence of its silence.
func TestADeadWorkersTasksAreRecovered(t *testing.T) {
	t.Parallel()
	claims(t, func(c *crew) {
		c.hire("w1")
		c.hire("w2")
		const n = 75
		held := c.holding("w1", n)
		c.advance(29 * time.Second)
		c.beatWorker(c.ids["w2"])
		c.sweep()
		for _, a := range held {
			c.wantState(a.TaskID, tracker.Running, "")
		}
		c.advance(1100 * time.Millisecond)
		if r := c.sweep(); r.StaleWorkers != 1 || r.Recovered != n {
			c.Fatalf("%+v", r)
		}
		for _, a := range held {
			task := c.wantState(a.TaskID, tracker.Queued, "")
			h := task.History[0]
			if task.Losses != 1 || len(task.History) != 1 || h.Outcome != "LOST" || h.Reason != tracker.WorkerLost || h.WorkerID != c.ids["w1"] ||
				h.Evidence == nil || h.Evidence.Timeout != 30*time.Second || h.Evidence.Silent < 30*time.Second || h.Evidence.LastHeartbeatAt.IsZero() {
				c.Fatalf("%+v %+v", task, h.Evidence)
			}
			c.wantCode(c.beat(a, "").Err, tracker.Expired)
		}
		if w := c.worker(c.ids["w1"]); w.Held != 0 {
			c.Fatalf("a dead worker holds %d", w.Held)
		}
		if r := c.sweep(); r.Recovered != 0 {
			c.Fatalf("twice: %+v", r)
		}
	})
}

// maxLosses stops a poison pill: a task whose workers die of it is requeued that often and fails then.
func TestMaxLossesStopsAPoisonPill(t *testing.T) {
	t.Parallel()
	claims(t, func(c *crew) {
		c.queue("pill", "x", func(n *tracker.NewTask) {
			p := tracker.DefaultRetryPolicy
			p.MaxLosses = 2
			n.Retry = &p
		})
		for i := range 3 {
			name := fmt.Sprintf("w%d", i)
			c.hire(name)
			c.wantIDs(c.claim(name, 1), "pill")
			c.advance(30 * time.Second)
			c.sweep()
			c.advance(5 * time.Second) // backoff
			c.sweep()
		}
		if task := c.wantState("pill", tracker.Failed, tracker.WorkerLost); task.Losses != 3 || len(task.History) != 3 {
			c.Fatalf("%+v", task)
		}
	})
}

// Deregistration is no loss: what the worker held is free for others at once.
func TestDeregistrationIsNoLoss(t *testing.T) {
	t.Parallel()
	claims(t, func(c *crew) {
		c.hire("w1")
		c.hire("w2")
		c.queue("t1", "x")
		c.claim("w1", 1)
		if _, err := c.RetireWorker(c.ctx, scope, c.ids["w1"], tracker.WorkerDeregistered, ""); err != nil {
			c.Fatal(err)
		}
		c.sweep()
		if task := c.wantState("t1", tracker.Queued, ""); task.Losses != 0 || task.Failures != 0 || !task.NextAttemptAt.IsZero() {
			c.Fatalf("%+v", task)
		}
		tasks := c.claim("w2", 1)
		c.wantIDs(tasks, "t1")
		if tasks[0].Attempt.Number != 2 {
			c.Fatalf("%+v", tasks[0].Attempt)
		}
	})
}

// Between the verdict on a worker and its recovery, a completion by the task's token still wins.
func TestACompletionBeforeRecoveryWins(t *testing.T) {
	t.Parallel()
	claims(t, func(c *crew) {
		c.hire("w1")
		held := c.holding("w1", 3)
		if err := c.EndWithoutRecovery(scope, c.ids["w1"]); err != nil {
			c.Fatal(err)
		}
		if _, err := c.Complete(c.ctx, held[0], tracker.Completion{Outcome: tracker.Succeeded}); err != nil {
			c.Fatal(err)
		}
		if r := c.sweep(); r.Recovered != 2 {
			c.Fatalf("%+v", r)
		}
		c.wantState(held[0].TaskID, tracker.Succeeded, "")
		c.wantState(held[1].TaskID, tracker.Queued, "")
	})
}

// Several sweepers at once take each attempt once.
func TestSweepersShareARecovery(t *testing.T) {
	t.Parallel()
	claims(t, func(c *crew) {
		c.hire("w1")
		held := c.holding("w1", 60)
		c.advance(30 * time.Second)
		var all sync.WaitGroup
		for i := range 3 {
			s := tracker.NewSweeper(c.Tracker, tracker.SweeperOptions{ID: fmt.Sprintf("swp_%d", i)})
			all.Go(func() {
				if _, err := s.RunOnce(c.ctx); err != nil {
					c.Error(err)
				}
			})
		}
		all.Wait()
		c.sweep()
		for _, a := range held {
			if task := c.wantState(a.TaskID, tracker.Queued, ""); task.Losses != 1 || len(task.History) != 1 {
				c.Fatalf("%+v", task)
			}
		}
	})
}

// A claim that is still under way when its worker ends finds the fence.
func TestAFencedWorkerClaimsNothing(t *testing.T) {
	t.Parallel()
	claims(t, func(c *crew) {
		c.hire("w1")
		c.queue("t1", "x")
		if err := c.FenceEverywhere(scope, c.ids["w1"]); err != nil {
			c.Fatal(err)
		}
		_, err := c.Claim(c.ctx, tracker.ClaimRequest{Scope: scope, WorkerID: c.ids["w1"], Queue: "q", Max: 1})
		c.wantCode(err, tracker.WorkerOffline)
		c.wantState("t1", tracker.Queued, "")
		c.hire("w2")
		c.wantIDs(c.claim("w2", 1), "t1")
	})
}
