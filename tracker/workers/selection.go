package workers

import (
	"cmp"
	"context"
	"math/rand/v2"
	"slices"

	"github.com/lubdub-io/lubdub/tracker/model"
	"github.com/lubdub-io/lubdub/tracker/schema"
	"github.com/lubdub-io/lubdub/tracker/store"
)

// Select chooses the worker that a task would best be given to now. Freshness is judged at this moment, not by the
// last sweep. When nobody is left the error's cause is a *SelectionError.
func (t *Service) Select(ctx context.Context, s model.Selector) (*model.Selection, error) {
	ctx = t.store.Within(ctx, 0)
	left, selection, err := t.Candidates(ctx, "select", &s)
	if err != nil {
		return nil, err
	}
	rank(left, s.Strategy)
	if s.Strategy == model.RoundRobin {
		t.selected(ctx, left[0])
	}
	selection.Worker, err = t.Worker(ctx, s.Scope, left[0].ID)
	return selection, err
}

// Candidates gives the workers that pass every filter, with what the filters and strategies ask for, what they hold
// included.
func (t *Service) Candidates(ctx context.Context, op string, s *model.Selector) ([]*model.Worker, *model.Selection, error) {
	refs, err := t.WorkerIDs(ctx, op, s.Scope, model.WorkerStatuses)
	if err != nil {
		return nil, nil, err
	}
	selection := &model.Selection{Rejected: map[model.Filter]int{}}
	left, err := t.ReadCandidates(ctx, t.store.DoAll, op, refs, s.Queue, func(w *model.Worker) bool {
		selection.Considered++
		if w.Passes(model.ByStatus, s) && w.Passes(model.ByFreshness, s) {
			selection.Up++
		}
		for _, f := range model.Filters {
			if f != model.ByCapacity && !w.Passes(f, s) {
				selection.Rejected[f]++
				return false
			}
		}
		return true
	})
	if err != nil {
		return nil, nil, err
	}
	if err := t.CountLoad(ctx, t.store.DoAll, op, left); err != nil {
		return nil, nil, err
	}
	fit := len(left)
	left = slices.DeleteFunc(left, func(w *model.Worker) bool { return !w.Passes(model.ByCapacity, s) })
	selection.Rejected[model.ByCapacity] = fit - len(left)
	if len(left) == 0 {
		return nil, nil, nobodyLeft(op, selection.Code(), selection)
	}
	return left, selection, nil
}

func nobodyLeft(op string, code model.Code, s *model.Selection) error {
	e := &model.Error{Code: code, Op: op, Cause: &model.SelectionError{Selection: *s}}
	switch {
	case code == model.NoFreshWorkers:
		e.Message = "No workers with fresh heartbeats available"
	case code == model.NoCapacity:
		e.Message = "every worker that could do it is at its maxConcurrent; try again when one has finished something, or add workers"
	case s.Considered == 0:
		e.Message = "no worker is registered for this queue; start one, or check the queue's name"
	default:
		e.Message = "no worker that is ONLINE has what is asked for; rejected tells how many fell at each filter"
	}
	return e
}

// rank puts the best first.
func rank(workers []*model.Worker, strategy string) {
	rand.Shuffle(len(workers), func(i, j int) { workers[i], workers[j] = workers[j], workers[i] }) // equals share
	switch strategy {
	case model.RoundRobin:
		slices.SortStableFunc(workers, func(a, b *model.Worker) int {
			return cmp.Or(a.LastSelected.Compare(b.LastSelected), cmp.Compare(a.ID, b.ID))
		})
	case "leastLoaded":
		slices.SortStableFunc(workers, func(a, b *model.Worker) int { // by share, so that large and small ones fill alike
			return cmp.Compare(a.Load()*b.MaxConcurrent, b.Load()*a.MaxConcurrent)
		})
	}
}

// selected remembers when a worker was last selected.
func (t *Service) selected(ctx context.Context, w *model.Worker) {
	shard, _ := t.store.WorkerShard(w.ID)
	k := t.store.Keys[shard]
	c := store.NewCall(shard, t.store.Scripts.Get("worker_selected"), []string{k.Worker(schema.TaskName(w.Scope, w.ID)), k.Reserved(schema.TaskName(w.Scope, w.ID))}, "", 0)
	t.store.DoAll(ctx, "select", []*store.Call{c})
}
