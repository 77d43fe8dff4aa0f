package holdings

import (
	"context"

	"github.com/lubdub-io/lubdub/tracker/schema"
	"github.com/lubdub-io/lubdub/tracker/store"
)

// unpinShard frees the placed tasks that wait in a shard for a worker which will not claim them.
func (s *Service) unpinShard(ctx context.Context, op string, shard int, worker *schema.WorkerRef, queue string) error {
	if queue == "" {
		return nil // its record is gone, and with it the name of what it was given
	}
	k := s.store.Keys[shard]
	after := ""
	for {
		listed, err := s.store.Do(ctx, op, store.NewCall(shard, s.store.Scripts.Get("pinned"), []string{k.Ready},
			worker.Scope.String()+"/"+queue+"/"+worker.ID, after, schema.TakeLimit))
		if err != nil || len(listed) == 0 {
			return err
		}
		keys := append(make([]string, 0, len(k.Fixed)+5*len(listed)), k.Fixed...)
		var args []any
		for _, text := range listed.Strings() {
			after = text
			if e, ok := schema.ParseReady(text, shard); ok {
				keys = k.OfTask(keys, e.Ref.Scope, e.Ref.ID, e.Ref.Run, e.Ref.TimeoutMs)
				args = append(args, e.Ref.Scope.String(), e.Ref.ID, worker.ID)
			}
		}
		if _, err := s.store.Do(ctx, op, store.NewCall(shard, s.store.Scripts.Get("unpin"), keys, args...)); err != nil {
			return err
		}
	}
}

// UnpinAll frees the placed tasks that wait for a worker in any shard.
func (s *Service) UnpinAll(ctx context.Context, op string, worker *schema.WorkerRef, queue string) error {
	for shard := range s.store.Keys {
		if err := s.unpinShard(ctx, op, shard, worker, queue); err != nil {
			return err
		}
	}
	return nil
}
