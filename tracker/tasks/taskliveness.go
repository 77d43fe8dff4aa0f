package tasks

import (
	"context"

	"github.com/lubdub-io/lubdub/tracker/model"
	"github.com/lubdub-io/lubdub/tracker/schema"
)

// liveByWorkers lets tasks without a timeout of their own be as alive as the workers that hold them: their last beat is
// their worker's, unless they beat later themselves.
func (t *Service) liveByWorkers(ctx context.Context, op string, tasks []*model.Task) error {
	by := map[string]*model.Worker{}
	var refs []*schema.WorkerRef
	lives := func(task *model.Task) bool {
		return task != nil && task.State == model.Running && task.HeartbeatTimeout == 0
	}
	for _, task := range tasks {
		if !lives(task) {
			continue
		}
		name := schema.TaskName(task.Scope, task.WorkerID)
		if _, asked := by[name]; asked {
			continue
		}
		by[name] = nil
		if r, ok := t.store.WorkerRef(task.Scope, task.WorkerID); ok {
			refs = append(refs, r)
		}
	}
	if len(by) == 0 {
		return nil
	}
	workers, err := t.workers.ReadWorkers(ctx, op, refs)
	if err != nil {
		return err
	}
	for _, w := range workers {
		by[schema.TaskName(w.Scope, w.ID)] = w
	}
	for _, task := range tasks {
		if !lives(task) {
			continue
		}
		w := by[schema.TaskName(task.Scope, task.WorkerID)]
		if w == nil || w.Status == model.Offline {
			task.Liveness = model.Lost
			continue
		}
		task.Liveness = w.Liveness
		if w.LastHeartbeatAt.After(task.LastHeartbeatAt) {
			task.LastHeartbeatAt = w.LastHeartbeatAt
		}
	}
	return nil
}
