package queues_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/lubdub-io/lubdub/tracker/model"
	"github.com/lubdub-io/lubdub/tracker/queues"
	"github.com/lubdub-io/lubdub/tracker/trackertest"
)

// fill creates n tasks of the queue q.
func fill(c *trackertest.Fleet, n int) {
	c.Helper()
	for from := 0; from < n; from += 1000 {
		batch := make([]model.NewTask, min(1000, n-from))
		for i := range batch {
			batch[i] = model.NewTask{Scope: trackertest.Scope, Queue: "q", Type: "x", StartTimeout: time.Hour}
			if err := batch[i].Validate(time.Now()); err != nil {
				c.Fatal(err)
			}
		}
		for _, r := range c.Tasks.CreateBatch(c.Ctx, batch) {
			if r.Err != nil {
				c.Fatal(r.Err)
			}
		}
	}
}

// BenchmarkClaim claims one task after the other from a full queue and completes each.
func BenchmarkClaim(b *testing.B) {
	for _, workers := range []int{1, 10, 100} {
		b.Run(fmt.Sprintf("workers=%d", workers), func(b *testing.B) {
			c := trackertest.BenchFleet(b)
			fill(c, b.N)
			for i := range workers {
				c.Hire(fmt.Sprintf("w%d", i))
			}
			b.ResetTimer()
			var all sync.WaitGroup
			for _, id := range c.IDs {
				all.Go(func() {
					for {
						tasks, err := c.Queues.Claim(c.Ctx, queues.ClaimRequest{Scope: trackertest.Scope, WorkerID: id, Queue: "q", Max: 1})
						if err != nil {
							b.Error(err)
							return
						}
						if len(tasks) == 0 {
							return
						}
						if _, err := c.Beats.Complete(c.Ctx, tasks[0].Attempt, model.Completion{Outcome: model.Succeeded}); err != nil {
							b.Error(err)
							return
						}
					}
				})
			}
			all.Wait()
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "claims/s")
		})
	}
}

// BenchmarkWorkerBeat shows that the cost of a worker's heartbeat does not depend on what it holds.
func BenchmarkWorkerBeat(b *testing.B) {
	for _, holds := range []int{0, 10000} {
		b.Run(fmt.Sprintf("holds=%d", holds), func(b *testing.B) {
			c := trackertest.BenchFleet(b)
			fill(c, holds)
			c.Hire("w1", func(n *model.NewWorker) { n.MaxConcurrent = 20000 })
			for n := 0; n < holds; {
				n += len(c.MustClaim("w1", queues.MaxClaim))
			}
			b.ResetTimer()
			for range b.N {
				c.MustBeatWorker(c.IDs["w1"])
			}
		})
	}
}

// BenchmarkIdleClaims shows the cost of 1,000 claims that wait in vain, in reads of Redis per second.
func BenchmarkIdleClaims(b *testing.B) {
	c := trackertest.BenchFleet(b)
	ctx, cancel := context.WithCancel(b.Context())
	defer cancel()
	var all sync.WaitGroup
	for i := range 1000 {
		name := fmt.Sprintf("w%d", i%100)
		if i < 100 {
			c.Hire(name)
		}
		id := c.IDs[name]
		all.Go(func() {
			_, _ = c.Queues.Claim(ctx, queues.ClaimRequest{Scope: trackertest.Scope, WorkerID: id, Queue: "q", Max: 1, Wait: queues.MaxClaimWait})
		})
	}
	waiting(c, 1000)
	before := c.Queues.Reads()
	b.ResetTimer()
	for range b.N {
		time.Sleep(time.Second)
	}
	b.ReportMetric(float64(c.Queues.Reads()-before)/b.Elapsed().Seconds(), "looks/s")
	cancel()
	all.Wait()
}

// BenchmarkRecover recovers 10,000 attempts of a worker that was retired.
func BenchmarkRecover(b *testing.B) {
	const holds = 10000
	for range b.N {
		b.StopTimer()
		c := trackertest.BenchFleet(b)
		fill(c, holds)
		c.Hire("w1", func(n *model.NewWorker) { n.MaxConcurrent = holds })
		for n := 0; n < holds; {
			n += len(c.MustClaim("w1", queues.MaxClaim))
		}
		b.StartTimer()
		if _, err := c.Workers.Retire(c.Ctx, trackertest.Scope, c.IDs["w1"], model.WorkerForced, ""); err != nil {
			b.Fatal(err)
		}
	}
}
