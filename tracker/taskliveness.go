package tracker

// liveByWorkers lets tasks without a timeout of their own be as alive as the workers that hold them: their last beat is
// their worker's, unless they beat later themselves.
func (t *Tracker) liveByWorkers(op string, tasks []*Task) error {
	by := map[string]*Worker{}
	var refs []*workerRef
	lives := func(task *Task) bool { return task != nil && task.State == Running && task.HeartbeatTimeout == 0 }
	for _, task := range tasks {
		if !lives(task) {
			continue
		}
		name := taskName(task.Scope, task.WorkerID)
		if _, asked := by[name]; asked {
			continue
		}
		by[name] = nil
		if r, ok := t.workerRef(task.Scope, task.WorkerID); ok {
			refs = append(refs, r)
		}
	}
	if len(by) == 0 {
		return nil
	}
	workers, err := t.readWorkers(op, refs)
	if err != nil {
		return err
	}
	for _, w := range workers {
		by[taskName(w.Scope, w.ID)] = w
	}
	for _, task := range tasks {
		if !lives(task) {
			continue
		}
		w := by[taskName(task.Scope, task.WorkerID)]
		if w == nil || w.Status == Offline {
			task.Liveness = Lost
			continue
		}
		task.Liveness = w.Liveness
		if w.LastHeartbeatAt.After(task.LastHeartbeatAt) {
			task.LastHeartbeatAt = w.LastHeartbeatAt
		}
	}
	return nil
}
