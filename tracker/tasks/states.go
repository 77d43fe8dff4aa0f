package tasks

import (
	"context"

	"github.com/lubdub-io/lubdub/tracker/model"
	"github.com/lubdub-io/lubdub/tracker/schema"
	"github.com/lubdub-io/lubdub/tracker/store"
)

// TaskState is the state of a task; State is empty if it does not exist.
type TaskState struct {
	State  model.State
	Reason model.Reason // why it failed
}

// States reads the states of many tasks, in the order of the refs, which need not be resolved.
func (s *Service) States(ctx context.Context, op string, refs []*schema.TaskRef) ([]TaskState, error) {
	at := make(map[*schema.TaskRef]int, len(refs))
	for i, r := range refs {
		at[r] = i
	}
	groups := schema.ByShard(refs, namesAtOnce, func(r *schema.TaskRef) int { return r.Shard })
	calls := store.CallEach(groups, s.statesCall)
	s.store.DoBulk(ctx, op, calls)
	if err := store.FirstError(calls); err != nil {
		return nil, err
	}
	states := make([]TaskState, len(refs))
	for g, group := range groups {
		for i, is := range readStates(calls[g].Reply) {
			states[at[group[i]]] = is
		}
	}
	return states, nil
}
