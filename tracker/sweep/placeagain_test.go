package sweep_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/lubdub-io/lubdub/internal/testenv"
	"github.com/lubdub-io/lubdub/tracker/model"
	"github.com/lubdub-io/lubdub/tracker/trackertest"
)

// Placed tasks without a worker are retried at growing intervals, and the ended workers are read once for all of them, so such
// tasks cost Redis next to nothing. A new worker still gets them soon.
func TestPlacedTasksWithoutWorkersCostLittle(t *testing.T) {
	testenv.OnlyAll(t)
	t.Parallel()
	const tasks, workers, requirements = 30, 30, 3 // the number of different requirements
	trackertest.Contract(t, func(h *trackertest.Harness) {
		for i := range workers {
			h.MustRegister(func(n *model.NewWorker) { n.MachineID, n.MaxConcurrent = fmt.Sprintf("m%d", i), tasks })
		}
		for i := range tasks {
			h.MustCreate(trackertest.Placed("random"), func(n *model.NewTask) {
				n.TaskID = fmt.Sprintf("t%d", i)
				if i%requirements > 0 {
					n.WorkerLabels = map[string]string{"zone": fmt.Sprintf("z%d", i%requirements)}
					n.Placement, n.RunAt = "random", h.Store.Clock.Now().Add(time.Second) // no worker has it yet
				}
			})
		}
		h.Advance(5 * time.Minute) // no worker sends heartbeats
		for range 3 {
			h.MustSweep()
		}
		calls := trackertest.CountScripts(h.Tracker)
		for range 600 {
			h.Advance(time.Second)
			h.MustSweep()
		}
		spent := calls()
		for script, most := range map[string]int{
			"get":               tasks * 25,
			"due":               2 * 60,
			"list":              600,
			"worker_candidates": 200,
		} {
			if n := spent[script]; n > most {
				h.Errorf("%s ran %d times in ten minutes, want at most %d", script, n, most)
			}
		}
		come := h.MustRegister(func(n *model.NewWorker) { n.MaxConcurrent = tasks }).WorkerID
		for range 9 {
			h.Advance(5 * time.Second)
			h.MustBeatWorker(come)
			h.MustSweep()
		}
		for i := 0; i < tasks; i += requirements {
			if task := h.WantState(fmt.Sprintf("t%d", i), model.Queued, ""); task.WorkerID != come {
				h.Fatalf("t%d waits for %q 45 s after %s has come", i, task.WorkerID, come)
			}
		}
	})
}
