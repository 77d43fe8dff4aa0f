package holdings_test

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/lubdub-io/lubdub/tracker/model"
	"github.com/lubdub-io/lubdub/tracker/queues"
	"github.com/lubdub-io/lubdub/tracker/sweep"
	"github.com/lubdub-io/lubdub/tracker/trackertest"
	"github.com/lubdub-io/lubdub/tracker/workers"
)

// A dead worker's tasks are requeued in every shard, exactly once, with the evidence of its silence.
func TestADeadWorkersTasksAreRecovered(t *testing.T) {
	t.Parallel()
	trackertest.Claims(t, func(c *trackertest.Fleet) {
		c.Hire("w1")
		c.Hire("w2")
		const n = 75
		held := c.MustHolding("w1", n)
		c.Advance(29 * time.Second)
		c.MustBeatWorker(c.IDs["w2"])
		c.MustSweep()
		for _, a := range held {
			c.WantState(a.TaskID, model.Running, "")
		}
		c.Advance(1100 * time.Millisecond)
		if r := c.MustSweep(); r.StaleWorkers != 1 || r.Recovered != n {
			c.Fatalf("%+v", r)
		}
		for _, a := range held {
			task := c.WantState(a.TaskID, model.Queued, "")
			h := task.History[0]
			if task.Losses != 1 || len(task.History) != 1 || h.Outcome != "LOST" || h.Reason != model.WorkerLost || h.WorkerID != c.IDs["w1"] ||
				h.Evidence == nil || h.Evidence.Timeout != 30*time.Second || h.Evidence.Silent < 30*time.Second || h.Evidence.LastHeartbeatAt.IsZero() {
				c.Fatalf("%+v %+v", task, h.Evidence)
			}
			c.WantCode(c.MustBeat(a, "").Err, model.Expired)
		}
		if w := c.MustWorker(c.IDs["w1"]); w.Held != 0 {
			c.Fatalf("a dead worker holds %d", w.Held)
		}
		if r := c.MustSweep(); r.Recovered != 0 {
			c.Fatalf("twice: %+v", r)
		}
	})
}

// maxLosses stops a poison pill: a task that kills its workers is requeued that many times and then fails.
func TestMaxLossesStopsAPoisonPill(t *testing.T) {
	t.Parallel()
	trackertest.Claims(t, func(c *trackertest.Fleet) {
		c.MustQueue("pill", "x", func(n *model.NewTask) {
			p := model.DefaultRetryPolicy
			p.MaxLosses = 2
			n.Retry = &p
		})
		for i := range 3 {
			name := fmt.Sprintf("w%d", i)
			c.Hire(name)
			c.WantIDs(c.MustClaim(name, 1), "pill")
			c.Advance(30 * time.Second)
			c.MustSweep()
			c.Advance(5 * time.Second) // backoff
			c.MustSweep()
		}
		if task := c.WantState("pill", model.Failed, model.WorkerLost); task.Losses != 3 || len(task.History) != 3 {
			c.Fatalf("%+v", task)
		}
	})
}

// Deregistration is not a loss: the worker's tasks are available to others at once.
func TestDeregistrationIsNoLoss(t *testing.T) {
	t.Parallel()
	trackertest.Claims(t, func(c *trackertest.Fleet) {
		c.Hire("w1")
		c.Hire("w2")
		c.MustQueue("t1", "x")
		c.MustClaim("w1", 1)
		if _, err := c.Workers.Retire(c.Ctx, trackertest.Scope, c.IDs["w1"], model.WorkerDeregistered, ""); err != nil {
			c.Fatal(err)
		}
		c.MustSweep()
		if task := c.WantState("t1", model.Queued, ""); task.Losses != 0 || task.Failures != 0 || !task.NextAttemptAt.IsZero() {
			c.Fatalf("%+v", task)
		}
		tasks := c.MustClaim("w2", 1)
		c.WantIDs(tasks, "t1")
		if tasks[0].Attempt.Number != 2 {
			c.Fatalf("%+v", tasks[0].Attempt)
		}
	})
}

// Between the verdict on a worker and its recovery, a completion by the task's token still wins.
func TestACompletionBeforeRecoveryWins(t *testing.T) {
	t.Parallel()
	trackertest.Claims(t, func(c *trackertest.Fleet) {
		c.Hire("w1")
		held := c.MustHolding("w1", 3)
		if err := trackertest.EndWithoutRecovery(c.Tracker, trackertest.Scope, c.IDs["w1"]); err != nil {
			c.Fatal(err)
		}
		if _, err := c.Beats.Complete(c.Ctx, held[0], model.Completion{Outcome: model.Succeeded}); err != nil {
			c.Fatal(err)
		}
		if r := c.MustSweep(); r.Recovered != 2 {
			c.Fatalf("%+v", r)
		}
		c.WantState(held[0].TaskID, model.Succeeded, "")
		c.WantState(held[1].TaskID, model.Queued, "")
	})
}

// Concurrent sweepers take each attempt once.
func TestSweepersShareARecovery(t *testing.T) {
	t.Parallel()
	trackertest.Claims(t, func(c *trackertest.Fleet) {
		c.Hire("w1")
		held := c.MustHolding("w1", 60)
		c.Advance(30 * time.Second)
		var all sync.WaitGroup
		for i := range 3 {
			s := sweep.NewSweeper(c.Tracker.Sweeper, sweep.SweeperOptions{ID: fmt.Sprintf("swp_%d", i)})
			all.Go(func() {
				if _, err := s.RunOnce(c.Ctx); err != nil {
					c.Error(err)
				}
			})
		}
		all.Wait()
		c.MustSweep()
		for _, a := range held {
			if task := c.WantState(a.TaskID, model.Queued, ""); task.Losses != 1 || len(task.History) != 1 {
				c.Fatalf("%+v", task)
			}
		}
	})
}

// A claim in progress when its worker ends meets the fence.
func TestAFencedWorkerClaimsNothing(t *testing.T) {
	t.Parallel()
	trackertest.Claims(t, func(c *trackertest.Fleet) {
		c.Hire("w1")
		c.MustQueue("t1", "x")
		if err := c.Holdings.FenceEverywhere(trackertest.Scope, c.IDs["w1"]); err != nil {
			c.Fatal(err)
		}
		_, err := c.Queues.Claim(c.Ctx, queues.ClaimRequest{Scope: trackertest.Scope, WorkerID: c.IDs["w1"], Queue: "q", Max: 1})
		c.WantCode(err, workers.WorkerOffline)
		c.WantState("t1", model.Queued, "")
		c.Hire("w2")
		c.WantIDs(c.MustClaim("w2", 1), "t1")
	})
}
