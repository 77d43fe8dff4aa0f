package tracker_test

import (
	"encoding/json"
	"flag"
	"fmt"
	"testing"
	"time"

	"github.com/lubdub-io/lubdub/internal/redistest"
	"github.com/lubdub-io/lubdub/internal/testenv"
	"github.com/lubdub-io/lubdub/tracker"
	"github.com/lubdub-io/lubdub/tracker/beats"
	"github.com/lubdub-io/lubdub/tracker/model"
	"github.com/lubdub-io/lubdub/tracker/trackertest"
	"github.com/lubdub-io/lubdub/tracker/workers"
)

var (
	stepTasks   = flag.Int("step-tasks", 300, "live tasks while the store's clock is stepped")
	stepWorkers = flag.Int("step-workers", 60, "live workers while the store's clock is stepped")
)

// The store's clock steps ten minutes forward, and ten minutes back. No live task or worker is declared dead, and the dead are found in
// time, as if it had not happened.
func TestAClockStepExpiresNoLiveTaskOrWorker(t *testing.T) {
	testenv.OnlyAll(t)
	t.Parallel()
	for _, step := range []time.Duration{10 * time.Minute, -10 * time.Minute} {
		t.Run(step.String(), func(t *testing.T) {
			redistest.Each(t, func(t *testing.T, s *redistest.Store) {
				h := trackertest.NewHarness(t, s, func(o *tracker.Options) { o.WorkerInterval = time.Second })
				stepClock(h, step)
			})
		})
	}
}

func stepClock(h *trackertest.Harness, step time.Duration) {
	const timeout = 3 * time.Second // of tasks, and of workers
	dead := map[string]bool{}
	var live []*model.Attempt
	var ids []string
	mortal := max(5, *stepTasks/50)
	for i := range *stepTasks + mortal {
		a := h.Running(func(n *model.NewTask) { n.HeartbeatTimeout = timeout })
		if i < mortal {
			dead[a.TaskID] = true
		} else {
			live = append(live, a)
		}
	}
	for i := range *stepWorkers + mortal {
		r := h.MustRegister(func(n *model.NewWorker) { n.MachineID = fmt.Sprintf("host-%d", i%100) })
		if i < mortal {
			dead[r.WorkerID] = true
		} else {
			ids = append(ids, r.WorkerID)
		}
	}
	beats := func() {
		batch := make([]*beats.Beat, len(live))
		for i, a := range live {
			batch[i] = &beats.Beat{Attempt: a}
		}
		h.Beats.BeatMany(batch)
		for _, b := range batch {
			if b.Err != nil {
				h.Fatal(b.Err)
			}
		}
		for _, id := range ids {
			h.MustBeatWorker(id)
		}
	}
	second := func() {
		for range 4 {
			h.Advance(250 * time.Millisecond)
			h.MustSweep()
		}
	}
	beats()
	second()
	h.Store.Clock.Advance(step)
	h.MustSweep() // before any beat is stored
	for range 6 {
		beats()
		second()
	}

	found := 0
	for shard := range h.Tracker.Store.Shards() {
		for _, e := range h.Store.Client.XRange(h.Ctx, fmt.Sprintf("lubdub:{%d}:events", shard), "-", "+").Val() {
			kind, subject := e.Values["type"].(string), fmt.Sprint(e.Values["subject"])
			if kind != "task.zombie" && kind != "worker.offline" {
				continue
			}
			var evidence struct{ SilentMs int64 }
			if err := json.Unmarshal([]byte(e.Values["data"].(string)), &evidence); err != nil {
				h.Fatal(err)
			}
			switch silent := time.Duration(evidence.SilentMs) * time.Millisecond; {
			case !dead[subject]:
				h.Errorf("%s of %s, who lives: %s", kind, subject, e.Values["data"])
			case silent > timeout+500*time.Millisecond:
				h.Errorf("%s was found after a silence of %v", subject, silent)
			}
			found++
		}
	}
	if found != len(dead) {
		h.Errorf("%d of %d dead were found", found, len(dead))
	}
	tasks, err := h.Tasks.List(h.Ctx, model.TaskFilter{Scope: trackertest.Scope, States: []model.State{model.Running}})
	if err != nil || tasks.Total != len(live) {
		h.Errorf("%d of %d tasks run: %v", tasks.Total, len(live), err)
	}
	online, err := h.Workers.List(h.Ctx, workers.WorkerFilter{Scope: trackertest.Scope, Statuses: []model.WorkerStatus{model.Online}})
	if err != nil || online.Total != len(ids) {
		h.Errorf("%d of %d workers are ONLINE: %v", online.Total, len(ids), err)
	}
	h.Logf("| the clock of %s is put by %v | %d + %d | %d of %d |", h.Store.Kind, step, len(live), len(ids), found, len(dead))
}
