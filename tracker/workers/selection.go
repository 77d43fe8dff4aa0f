package workers

import (
	"cmp"
	"context"
	"math/rand/v2"
	"slices"

	"github.com/lubdub-io/lubdub/tracker/holdings"
	"github.com/lubdub-io/lubdub/tracker/model"
	"github.com/lubdub-io/lubdub/tracker/store"
)

// placement selects workers for tasks.
type placement struct {
	store    *store.Store
	holdings *holdings.Service
	scripts  *scripts
	reader   *reader
	loads    *loads
	views    *views
}

// Select returns the best worker for a task at this moment. It evaluates freshness now, not as of the last sweep. If no worker is
// left, the error's cause is a *SelectionError.
func (s *placement) Select(ctx context.Context, wanted model.Selector) (*model.Selection, error) {
	const op = "select"
	ctx = s.store.Within(ctx, 0)
	left, selection, err := s.candidates(ctx, op, &wanted)
	if err != nil {
		return nil, err
	}
	rank(left, wanted.Strategy)
	best := left[0]
	if wanted.Strategy == model.RoundRobin { // orders by when each was last selected
		s.store.DoAll(ctx, op, []*store.Call{s.scripts.selectedCall(Reservation{Worker: s.reader.refOf(best)}, 0)})
	}
	selection.Worker, err = s.views.Get(ctx, wanted.Scope, best.ID)
	return selection, err
}

// candidates returns the workers that pass every filter, with the fields that filters and strategies need, and their loads.
func (s *placement) candidates(ctx context.Context, op string, wanted *model.Selector) ([]*model.Worker, *model.Selection, error) {
	refs, err := s.reader.IDs(ctx, op, wanted.Scope, model.WorkerStatuses)
	if err != nil {
		return nil, nil, err
	}
	selection := &model.Selection{Rejected: map[model.Filter]int{}}
	left, err := s.reader.ReadCandidates(ctx, s.store.DoAll, op, refs, wanted.Queue, func(w *model.Worker) bool {
		selection.Considered++
		if w.Passes(model.ByStatus, wanted) && w.Passes(model.ByCordon, wanted) && w.Passes(model.ByFreshness, wanted) {
			selection.Up++
		}
		for _, f := range model.Filters {
			if f != model.ByCapacity && !w.Passes(f, wanted) {
				selection.Rejected[f]++
				return false
			}
		}
		return true
	})
	if err != nil {
		return nil, nil, err
	}
	if err := s.loads.CountLoad(ctx, s.store.DoAll, op, left); err != nil {
		return nil, nil, err
	}
	fit := len(left)
	left = slices.DeleteFunc(left, func(w *model.Worker) bool { return !w.Passes(model.ByCapacity, wanted) })
	selection.Rejected[model.ByCapacity] = fit - len(left)
	if len(left) == 0 {
		return nil, nil, noWorkerLeft(op, selection.Code(), selection)
	}
	return left, selection, nil
}

// noWorkerLeft returns the error of a selection without a result.
func noWorkerLeft(op string, code model.Code, s *model.Selection) error {
	e := &model.Error{Code: code, Op: op, Cause: &model.SelectionError{Selection: *s}}
	switch {
	case code == model.NoFreshWorkers:
		e.Message = "No workers with fresh heartbeats available"
	case code == model.NoCapacity:
		e.Message = "every worker that could do it is at its maxConcurrent; try again when one has finished something, or add workers"
	case s.Considered == 0:
		e.Message = "no worker is registered for this queue; start one, or check the queue's name"
	case s.Rejected[model.ByCordon] > 0:
		e.Message = "no ONLINE worker that is not cordoned matches the request; uncordon one of those that rejected counts, " +
			"or start another"
	default:
		e.Message = "no ONLINE worker matches the request; rejected has the number of workers that each filter excluded"
	}
	return e
}

// rank sorts the best worker first.
func rank(workers []*model.Worker, strategy string) {
	rand.Shuffle(len(workers), func(i, j int) { workers[i], workers[j] = workers[j], workers[i] }) // equal ones share the load
	switch strategy {
	case model.RoundRobin:
		slices.SortStableFunc(workers, func(a, b *model.Worker) int {
			return cmp.Or(a.LastSelected.Compare(b.LastSelected), cmp.Compare(a.ID, b.ID))
		})
	case "leastLoaded":
		slices.SortStableFunc(workers, func(a, b *model.Worker) int { // by share, so that large and small ones fill equally
			return cmp.Compare(a.Load()*b.MaxConcurrent, b.Load()*a.MaxConcurrent)
		})
	}
}
