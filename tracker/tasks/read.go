package tasks

import (
	"context"

	"github.com/lubdub-io/lubdub/tracker/model"
	"github.com/lubdub-io/lubdub/tracker/schema"
	"github.com/lubdub-io/lubdub/tracker/store"
)

// Get reads one task.
func (s *Service) Get(ctx context.Context, scope model.Scope, id string) (*model.Task, error) {
	ctx = s.store.Within(ctx, 0)
	v, err := s.get(ctx, "get", s.store.Ref(scope, id), Whole)
	if err != nil {
		return nil, err
	}
	return v.Task, s.liveByWorkers(ctx, "get", []*model.Task{v.Task})
}

func (s *Service) get(ctx context.Context, op string, r *schema.TaskRef, p part) (*View, error) {
	if err := s.lookUp(ctx, op, r); err != nil {
		return nil, err
	}
	reply, err := s.store.Do(ctx, op, s.GetCall(r, p))
	if err != nil {
		return nil, err
	}
	v := ReadTask(r, reply)
	if v == nil {
		return nil, noTask(op)
	}
	return v, nil
}

// NameCalls returns the calls that resolve refs; call resolve after they have run.
func (s *Service) NameCalls(refs []*schema.TaskRef) (calls []*store.Call, resolve func()) {
	groups := schema.ByShard(refs, namesAtOnce, func(r *schema.TaskRef) int { return r.Shard })
	for _, group := range groups {
		calls = append(calls, s.namesCall(group))
	}
	return calls, func() {
		for i, c := range calls {
			if c.Err == nil {
				readNames(c.Reply, groups[i], 0)
			}
		}
	}
}

// lookUp resolves one ref; it fails with NotFound if the task does not exist.
func (s *Service) lookUp(ctx context.Context, op string, r *schema.TaskRef) error {
	calls, resolve := s.NameCalls([]*schema.TaskRef{r})
	s.store.DoAll(ctx, op, calls)
	if calls[0].Err != nil {
		return calls[0].Err
	}
	resolve()
	if !r.Exists {
		return noTask(op)
	}
	return nil
}

func noTask(op string) error {
	return &model.Error{Code: model.NotFound, Op: op,
		Message: "no task with this id in this tenant and workspace; finished tasks are removed at the end of their retention"}
}

// liveByWorkers sets the liveness of running tasks without their own timeout to that of the workers that hold them: LOST if the worker is
// gone or OFFLINE. It sets their last heartbeat to the worker's if that is later.
func (s *Service) liveByWorkers(ctx context.Context, op string, tasks []*model.Task) error {
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
		if _, seen := by[name]; seen {
			continue
		}
		by[name] = nil
		if r, ok := s.store.WorkerRef(task.Scope, task.WorkerID); ok {
			refs = append(refs, r)
		}
	}
	if len(by) == 0 {
		return nil
	}
	workers, err := s.workers.Read(ctx, op, refs)
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
