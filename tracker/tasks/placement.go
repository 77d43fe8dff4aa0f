package tasks

import (
	"context"

	"github.com/lubdub-io/lubdub/tracker/model"
	"github.com/lubdub-io/lubdub/tracker/schema"
)

// placeBatch chooses workers for the placed tasks of a batch; those without a worker fail. Call the result when the tasks are in
// their queues. It creates tasks early if others may wait for their places or the reservations would soon expire.
func (s *Service) placeBatch(ctx context.Context, batch []*creation) (release func()) {
	var placed, failed []*creation
	placer := s.workers.NewPlacer("create", func() {
		s.createAll(ctx, placed)
		placed = nil
	})
	for _, c := range batch {
		if c.Placement == "" || c.err != nil || c.done || !c.RunAt.IsZero() || c.Delay > 0 {
			continue
		}
		c.WorkerID, c.err = placer.Place(ctx, &model.Selector{
			Scope: c.Scope, Queue: c.Queue, Type: c.Type, Runtime: c.Runtime, Labels: c.WorkerLabels, Strategy: c.Placement,
		})
		if c.err != nil {
			failed = append(failed, c)
		} else {
			placed = append(placed, c)
		}
	}
	s.forgiveExisting(ctx, failed)
	return func() { placer.Release(ctx) }
}

// forgiveExisting continues creations that found no worker but whose task already exists: they return that task, or, for a repeat,
// the first result.
func (s *Service) forgiveExisting(ctx context.Context, failed []*creation) {
	refs := make([]*schema.TaskRef, len(failed))
	for i, c := range failed {
		refs[i] = s.store.Ref(c.Scope, c.TaskID)
	}
	calls, resolve := s.NameCalls(refs)
	s.store.DoAll(ctx, "create", calls)
	resolve()
	for i, c := range failed {
		if refs[i].Exists {
			c.err = nil
		}
	}
}
