package tracker_test

import (
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/lubdub-io/lubdub/tracker"
)

// Every shard is some sweeper's to walk over.
func TestReconcilerLeavesNoShardOut(t *testing.T) {
	t.Parallel()
	contract(t, func(h *harness) {
		for range 400 { // some in each shard
			h.create()
		}
		h.sweep() // now the sweeper is known
		seen, err := h.sweeper.ReconcileAShare(2)
		if err != nil {
			h.Fatal(err)
		}
		for shard, n := range seen {
			if n == 0 {
				h.Errorf("nobody looks at shard %d", shard)
			}
		}
	}, spread)
}

// A healthy store has nothing to repair, whatever goes on in it meanwhile.
func TestReconcilerLeavesAHealthyStoreAlone(t *testing.T) {
	t.Parallel()
	claims(t, func(c *crew) {
		for i := range 4 {
			c.hire(fmt.Sprintf("w%d", i))
		}
		const rounds = 40
		var busy, clock sync.WaitGroup
		for i := range 4 {
			busy.Go(func() {
				for n := range rounds {
					c.life(fmt.Sprintf("t%d-%02d", i, n), n)
				}
			})
		}
		busy.Go(func() {
			for n := range rounds {
				c.crewLife(n)
			}
		})
		var over atomic.Bool
		clock.Go(func() {
			for !over.Load() {
				c.store.Clock.Advance(100 * time.Millisecond)
				if err := c.Tick(); err != nil {
					c.Error(err)
				}
				if _, err := c.sweeper.RunOnce(c.ctx); err != nil {
					c.Error(err)
				}
			}
		})
		ended := make(chan struct{})
		go func() { busy.Wait(); close(ended) }()
		for walks, done := 0, false; !done; walks++ {
			select {
			case <-ended:
				done = true // and once more, over all that is left
			default:
			}
			r, err := tracker.NewSweeper(c.Tracker, tracker.SweeperOptions{}).Reconcile(c.ctx)
			if err != nil || len(r) != 0 {
				c.Errorf("walk %d repaired %v: %v", walks, r, err)
				done = true
			}
		}
		<-ended
		over.Store(true)
		clock.Wait()
		if n := c.events("")["system.repaired"]; n != 0 {
			c.Errorf("%d events", n)
		}
	})
}

// life gives a task one of the lives that there are.
func (c *crew) life(id string, n int) {
	deadline := c.store.Clock.Now().Add(time.Duration(n%7+1) * time.Second)
	task := tracker.NewTask{Scope: scope, TaskID: id, RunID: "r" + strconv.Itoa(n%3), HeartbeatInterval: 500 * time.Millisecond, HeartbeatTimeout: time.Second}
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
			task.NotBefore = deadline
		}
	}
	if err := task.Validate(c.store.Clock.Now()); err != nil {
		c.Error(err)
		return
	}
	created, err := c.Create(c.ctx, task)
	if err != nil {
		c.Error(err)
		return
	}
	var a *tracker.Attempt
	if created.Envelope != nil {
		a = created.Envelope.Attempt
	} else {
		envelopes, _ := c.Claim(c.ctx, tracker.ClaimRequest{Scope: scope, WorkerID: c.ids["w"+strconv.Itoa(n%4)], Queue: "q", Max: 1}) // may have ended
		if len(envelopes) == 0 {
			return
		}
		a = envelopes[0].Attempt
	}
	if n%6 == 0 {
		return // never heard
	}
	_, _ = c.Start(c.ctx, a, tracker.Report{WorkerID: "p"})
	c.Beat(&tracker.Beat{Attempt: a, Report: "\t\t50\t\"half\""})
	switch n % 8 {
	case 1, 2, 3:
		_, _ = c.Complete(c.ctx, a, tracker.Completion{Outcome: tracker.Succeeded})
	case 4:
		_, _ = c.Complete(c.ctx, a, tracker.Completion{Outcome: tracker.Failed, Retryable: true})
	case 5:
		_, _ = c.Cancel(c.ctx, scope, a.TaskID, "why")
		c.CancelDelivered(a)
	case 6:
		_, _ = c.NextAttempt(c.ctx, scope, a.TaskID, a.Number)
	}
}

// crewLife lets workers beat, come, drain and go.
func (c *crew) crewLife(n int) {
	for _, id := range c.ids {
		_, _ = c.BeatWorker(c.ctx, scope, id, tracker.WorkerBeat{})
	}
	w := newWorker(func(w *tracker.NewWorker) { w.Queue, w.MachineID, w.Hostname, w.PID = "q", "host-x", "host-x", n%3+1 })
	if err := w.Validate(); err != nil {
		c.Error(err)
		return
	}
	r, err := c.Register(c.ctx, w)
	if err != nil {
		c.Error(err)
		return
	}
	switch n % 3 {
	case 0:
		_, _ = c.DrainWorker(c.ctx, scope, r.WorkerID, tracker.Drain{BySelf: true})
	case 1:
		_, _ = c.RetireWorker(c.ctx, scope, r.WorkerID, tracker.WorkerForced, "")
	}
}
