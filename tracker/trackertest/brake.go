package trackertest

import (
	"github.com/lubdub-io/lubdub/tracker"
	"github.com/lubdub-io/lubdub/tracker/model"
)

func Braked(o *tracker.Options) { o.Brake = true }

// Newest returns the last entry of a task's history.
func (h *Harness) Newest(id string) model.HistoryEntry {
	h.Helper()
	task := h.MustGet(id)
	if len(task.History) == 0 {
		h.Fatalf("task %s has no history", id)
	}
	return task.History[len(task.History)-1]
}
