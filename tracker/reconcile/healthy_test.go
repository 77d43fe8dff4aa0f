package reconcile_test

import (
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/lubdub-io/lubdub/internal/testenv"
	"github.com/lubdub-io/lubdub/tracker"
	"github.com/lubdub-io/lubdub/tracker/beats"
	"github.com/lubdub-io/lubdub/tracker/model"
	"github.com/lubdub-io/lubdub/tracker/queues"
	"github.com/lubdub-io/lubdub/tracker/reconcile"
	"github.com/lubdub-io/lubdub/tracker/sweep"
	"github.com/lubdub-io/lubdub/tracker/trackertest"
	"github.com/lubdub-io/lubdub/tracker/workers"
)

// Every shard is walked by some sweeper.
func TestReconcilerLeavesNoShardOut(t *testing.T) {
	t.Parallel()
	trackertest.Contract(t, func(h *trackertest.Harness) {
		for range 400 { // some in each shard
			h.MustCreate()
		}
		h.MustSweep() // now the sweeper is known
		first := func(shard int, live []string) int {
			if sweep.First(shard, live) == "swp_test" {
				return 0
			}
			return 1
		}
		seen, err := reconcile.NewReconciler(h.Reconciler, "swp_test", first).WalkSome(2)
		if err != nil {
			h.Fatal(err)
		}
		for shard, n := range seen {
			if n == 0 {
				h.Errorf("no replica checks shard %d", shard)
			}
		}
	}, func(o *tracker.Options) { o.Shards = 16 })
}

// There is nothing to repair in a healthy store, whatever happens in it meanwhile.
func TestReconcilerLeavesAHealthyStoreAlone(t *testing.T) {
	t.Parallel()
	rounds := testenv.Of(t, 10, 40)
	trackertest.Claims(t, func(c *trackertest.Fleet) {
		for i := range 4 {
			c.Hire(fmt.Sprintf("w%d", i))
		}
		var busy, clock sync.WaitGroup
		for i := range 4 {
			busy.Go(func() {
				for n := range rounds {
					life(c, fmt.Sprintf("t%d-%02d", i, n), n)
				}
			})
		}
		busy.Go(func() {
			for n := range rounds {
				runWorkers(c, n)
			}
		})
		var over atomic.Bool
		clock.Go(func() {
			for !over.Load() {
				c.Store.Clock.Advance(100 * time.Millisecond)
				if err := c.Beats.Tick(); err != nil {
					c.Error(err)
				}
				if _, err := c.Sweeper.RunOnce(c.Ctx); err != nil {
					c.Error(err)
				}
			}
		})
		ended := make(chan struct{})
		go func() { busy.Wait(); close(ended) }()
		for walks, done := 0, false; !done; walks++ {
			select {
			case <-ended:
				done = true // and again, over everything that is left
			default:
			}
			r, err := sweep.NewSweeper(c.Tracker.Sweeper, sweep.SweeperOptions{}).Reconcile(c.Ctx)
			if err != nil || len(r) != 0 {
				c.Errorf("walk %d repaired %v: %v", walks, r, err)
				done = true
			}
		}
		<-ended
		over.Store(true)
		clock.Wait()
		if n := c.Events("")["system.repaired"]; n != 0 {
			c.Errorf("%d events", n)
		}
	})
}

// life gives a task one of the possible histories.
func life(c *trackertest.Fleet, id string, n int) {
	deadline := c.Store.Clock.Now().Add(time.Duration(n%7+1) * time.Second)
	task := model.NewTask{Scope: trackertest.Scope, TaskID: id, RunID: "r" + strconv.Itoa(n%3), HeartbeatInterval: 500 * time.Millisecond,
		HeartbeatTimeout: time.Second}
	if n%2 == 0 {
		task.Queue, task.Type = "q", "x"
		if n%4 == 0 {
			task.HeartbeatInterval, task.HeartbeatTimeout = 0, 0
		}
	}
	switch n % 5 {
	case 1:
		task.Deadline = deadline
	case 2:
		task.RunTimeout = 2 * time.Second
	case 3:
		if task.Queue != "" {
			task.RunAt = deadline
		}
	}
	if err := task.Validate(c.Store.Clock.Now()); err != nil {
		c.Error(err)
		return
	}
	created, err := c.Tasks.Create(c.Ctx, task)
	if err != nil {
		c.Error(err)
		return
	}
	var a *model.Attempt
	if created.Envelope != nil {
		a = created.Envelope.Attempt
	} else {
		// may have ended
		envelopes, _ := c.Queues.Claim(c.Ctx, queues.ClaimRequest{Scope: trackertest.Scope, WorkerID: c.IDs["w"+strconv.Itoa(n%4)],
			Queue: "q", Max: 1})
		if len(envelopes) == 0 {
			return
		}
		a = envelopes[0].Attempt
	}
	if n%6 == 0 {
		return // never sent a heartbeat
	}
	_, _ = c.Beats.Start(c.Ctx, a, model.Report{WorkerID: "p"})
	c.Beats.Beat(&beats.Beat{Attempt: a, Report: "\t\t50\t\"half\""})
	switch n % 8 {
	case 1, 2, 3:
		_, _ = c.Beats.Complete(c.Ctx, a, model.Completion{Outcome: model.Succeeded})
	case 4:
		_, _ = c.Beats.Complete(c.Ctx, a, model.Completion{Outcome: model.Failed, Retryable: true})
	case 5:
		_, _ = c.Tasks.Cancel(c.Ctx, trackertest.Scope, a.TaskID, model.CancelRequest{Reason: "why"})
		c.Beats.CancelDelivered(a)
	case 6:
		_, _ = c.Tasks.NextAttempt(c.Ctx, trackertest.Scope, a.TaskID, a.Number)
	}
}

// runWorkers lets workers send heartbeats, register, drain and end.
func runWorkers(c *trackertest.Fleet, n int) {
	for _, id := range c.IDs {
		_, _ = c.Workers.Beat(c.Ctx, trackertest.Scope, id, workers.WorkerBeat{})
	}
	w := trackertest.NewWorker(func(w *model.NewWorker) { w.Queue, w.MachineID, w.Hostname, w.PID = "q", "host-x", "host-x", n%3+1 })
	if err := w.Validate(); err != nil {
		c.Error(err)
		return
	}
	r, err := c.Workers.Register(c.Ctx, w)
	if err != nil {
		c.Error(err)
		return
	}
	switch n % 3 {
	case 0:
		_, _ = c.Workers.Drain(c.Ctx, trackertest.Scope, r.WorkerID, workers.Drain{BySelf: true})
	case 1:
		_, _ = c.Workers.Retire(c.Ctx, trackertest.Scope, r.WorkerID, model.WorkerForced, "")
		_, _ = c.Workers.Resume(c.Ctx, trackertest.Scope, r.WorkerID, "")
	}
}
