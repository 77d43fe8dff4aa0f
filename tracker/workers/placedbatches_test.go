package workers_test

import (
	"sync"
	"testing"
	"time"

	"github.com/lubdub-io/lubdub/internal/redistest"
	"github.com/lubdub-io/lubdub/tracker"
	"github.com/lubdub-io/lubdub/tracker/model"
	"github.com/lubdub-io/lubdub/tracker/tasks"
	"github.com/lubdub-io/lubdub/tracker/trackertest"
)

// Two batches that want the same places do not wait for each other: all places are filled, none twice, and the rest is refused.
func TestTwoPlacedBatchesAtOnce(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, s *redistest.Store) {
		const places = 40
		h := trackertest.NewHarness(t, s)
		id := h.MustRegister(func(n *model.NewWorker) { n.MaxConcurrent = places }).WorkerID
		trackers := []*tracker.Tracker{h.Tracker, trackertest.NewHarness(t, s).Tracker}
		var both, all sync.WaitGroup
		both.Add(len(trackers))
		answers := make([][]tasks.CreateResult, len(trackers))
		for i, tr := range trackers {
			trackertest.After(tr, "worker_selected", sync.OnceFunc(func() { both.Done(); both.Wait() })) // each has a place reserved
			var batch []model.NewTask
			for range places {
				n := model.NewTask{Scope: trackertest.Scope, HeartbeatInterval: time.Second}
				trackertest.Placed("leastLoaded")(&n)
				batch = append(batch, n)
			}
			all.Go(func() { answers[i] = tr.Tasks.CreateBatch(h.Ctx, batch) })
		}
		all.Wait()
		made := 0
		for _, results := range answers {
			for _, r := range results {
				if r.Err == nil {
					made++
				} else {
					h.WantCode(r.Err, model.NoCapacity)
				}
			}
		}
		if w := h.MustWorker(id); made != places || w.Placed != places {
			t.Fatalf("%d were placed and %d wait on a worker of %d places", made, w.Placed, places)
		}
	}, redistest.WallClock)
}
