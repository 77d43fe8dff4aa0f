package tracker_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/lubdub-io/lubdub/tracker"
)

// Placed tasks that find no worker are looked at ever less often, and the workers that are gone are read for all of
// them at once: what waits in vain costs Redis next to nothing. A worker that comes gets them soon all the same.
func TestPlacedTasksWithoutWorkersCostLittle(t *testing.T) {
	t.Parallel()
	const tasks, workers, asked = 30, 30, 3 // asked: tasks differ in what they ask for
	contract(t, func(h *harness) {
		for i := range workers {
			h.register(func(n *tracker.NewWorker) { n.MachineID, n.MaxConcurrent = fmt.Sprintf("m%d", i), tasks })
		}
		for i := range tasks {
			h.create(placed("random"), func(n *tracker.NewTask) {
				n.TaskID = fmt.Sprintf("t%d", i)
				if i%asked > 0 {
					n.WorkerLabels = map[string]string{"zone": fmt.Sprintf("z%d", i%asked)}
					n.Placement, n.NotBefore = "random", h.store.Clock.Now().Add(time.Second) // nobody has it yet
				}
			})
		}
		h.advance(5 * time.Minute) // nobody beats
		for range 3 {
			h.sweep()
		}
		calls := h.CountScripts()
		for range 600 {
			h.advance(time.Second)
			h.sweep()
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
		come := h.register(func(n *tracker.NewWorker) { n.MaxConcurrent = tasks }).WorkerID
		for range 9 {
			h.advance(5 * time.Second)
			h.beatWorker(come)
			h.sweep()
		}
		for i := 0; i < tasks; i += asked {
			if task := h.wantState(fmt.Sprintf("t%d", i), tracker.Queued, ""); task.WorkerID != come {
				h.Fatalf("t%d waits for %q 45 s after %s has come", i, task.WorkerID, come)
			}
		}
	})
}
