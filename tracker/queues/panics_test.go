package queues_test

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/lubdub-io/lubdub/internal/redistest"
	"github.com/lubdub-io/lubdub/tracker"
	"github.com/lubdub-io/lubdub/tracker/beats"
	"github.com/lubdub-io/lubdub/tracker/model"
	"github.com/lubdub-io/lubdub/tracker/queues"
	"github.com/lubdub-io/lubdub/tracker/store"
	"github.com/lubdub-io/lubdub/tracker/sweep"
	"github.com/lubdub-io/lubdub/tracker/trackertest"
	"github.com/lubdub-io/lubdub/tracker/workers"
)

// A panic in background work is logged with its stack, and no caller hangs because of it: waiting and later callers in every lane
// get a 503.
func TestAPanicIsLoggedAndLeavesNoCallerWaiting(t *testing.T) {
	t.Parallel()
	for script, where := range map[string]string{
		"beat": "the lane of beats", "worker_beat": "a lane of calls", "names": "a lane of calls", "complete": "a lane of calls",
		"list": "a lane of calls", "tick": "the lane of beats", "peek": "sweeping tasks", "worker_peek": "sweeping workers",
		"ready": "a lane of calls", "": "looking at a queue",
	} {
		t.Run(script, func(t *testing.T) {
			server := redistest.StartServer(t, "--appendonly", "yes", "--appendfsync", "always")
			tr := trackertest.Open(t, tracker.Options{RedisURL: server.URL(), Shards: 4, Durability: store.Fsync, RedisTimeout: 10 * time.Second})
			a := trackertest.NewTask(t, tr, "t1")
			w, err := tr.Workers.Register(t.Context(), model.NewWorker{Scope: trackertest.Scope, Queue: "q", Types: []string{"x"},
				MaxConcurrent: 1000})
			if err != nil {
				t.Fatal(err)
			}
			if script == "" {
				tr.Queues.BreakReads()
			} else {
				trackertest.After(tr, script, func() { panic("a bug of the test") })
			}
			calls := []func() error{
				func() error { b := &beats.Beat{Attempt: a}; tr.Beats.Beat(b); return b.Err },
				func() error {
					_, err := tr.Workers.Beat(t.Context(), trackertest.Scope, w.WorkerID, workers.WorkerBeat{})
					return err
				},
				func() error { _, err := tr.Tasks.Get(t.Context(), trackertest.Scope, "t1"); return err },
				func() error {
					_, err := tr.Beats.Complete(t.Context(), a, model.Completion{Outcome: model.Succeeded})
					return err
				},
				func() error {
					_, err := tr.Tasks.List(t.Context(), model.TaskFilter{Scope: trackertest.Scope})
					return err
				},
				tr.Beats.Tick,
				func() error {
					_, err := tr.Queues.Claim(t.Context(), queues.ClaimRequest{Scope: trackertest.Scope, WorkerID: w.WorkerID, Queue: "q", Max: 1,
						Wait: time.Minute})
					return err
				},
			}
			ctx, stop := context.WithCancel(t.Context())
			var all, background sync.WaitGroup
			background.Go(func() { _ = sweep.NewSweeper(tr.Sweeper, sweep.SweeperOptions{}).Run(ctx) })
			for range 50 {
				for _, call := range calls {
					all.Go(func() { _ = call() })
				}
			}
			<-tr.Store.Broken()
			if err := tr.Store.BrokenBy(); err == nil || !strings.Contains(err.Error(), "panic in "+where+": ") {
				t.Errorf("%v; want it to name %s", err, where)
			}
			all.Wait() // no caller hangs
			for i, call := range calls {
				if code := model.CodeOf(call()); code != model.Unavailable {
					t.Errorf("call %d afterwards: %q", i, code)
				}
			}
			stop()
			background.Wait()
		})
	}
}
