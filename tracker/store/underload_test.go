package store_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/lubdub-io/lubdub/tracker"
	"github.com/lubdub-io/lubdub/tracker/model"
	"github.com/lubdub-io/lubdub/tracker/sweep"
	"github.com/lubdub-io/lubdub/tracker/trackertest"
)

func startLoad(t *testing.T, tr *tracker.Tracker, workers int) *Load {
	ctx, stop := context.WithCancel(context.Background())
	l := &Load{Tr: tr, Stop: stop, Lost: map[string]bool{}}
	for w := range workers {
		l.Running.Go(func() {
			for i := 0; ctx.Err() == nil; i++ {
				l.Life(ctx, fmt.Sprintf("load-%d-%d", w, i))
			}
		})
	}
	t.Cleanup(l.End)
	return l
}

// heartLife is how long a heart may be silent: longer than a failover takes, and than a busy host delays a beat.
const heartLife = 15 * time.Second

func startHearts(t *testing.T, tr *tracker.Tracker, n int) *Hearts {
	t.Helper()
	ctx, stop := context.WithCancel(context.Background())
	h := &Hearts{Tr: tr, Stop: stop, Tasks: make([]*model.Attempt, n), Fresh: make([]atomic.Int64, n),
		Results: make([][]BeatResult, n)}
	h.Running.Go(func() { _ = tr.Beats.KeepTime(ctx) })
	sweeper := sweep.NewSweeper(tr.Sweeper, sweep.SweeperOptions{})
	h.Running.Go(func() { _ = sweeper.Run(ctx) })
	t.Cleanup(h.End)
	for i := range n {
		id := fmt.Sprintf("heart-%d", i)
		task := model.NewTask{Scope: trackertest.Scope, TaskID: id, IdempotencyKey: id, IdempotencyHash: id, HeartbeatInterval: heartLife / 2,
			HeartbeatTimeout: heartLife}
		if err := task.Validate(time.Now()); err != nil {
			t.Fatal(err)
		}
		var c *model.Created
		trackertest.Eventually(t, "a creation is confirmed", func() bool {
			var err error
			c, err = tr.Tasks.Create(ctx, task)
			return err == nil
		})
		h.Tasks[i] = c.Envelope.Attempt
		h.Running.Go(func() { h.MustBeat(ctx, i) })
	}
	return h
}
