package workers

import (
	"cmp"
	"context"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/lubdub-io/lubdub/tracker/model"
	"github.com/lubdub-io/lubdub/tracker/schema"
	"github.com/lubdub-io/lubdub/tracker/store"
)

// Select chooses the worker that a task would best be given to now. Freshness is judged at this moment, not by the last sweep.
// When nobody is left the error's cause is a *SelectionError.
func (s *Service) Select(ctx context.Context, wanted model.Selector) (*model.Selection, error) {
	const op = "select"
	ctx = s.store.Within(ctx, 0)
	left, selection, err := s.candidates(ctx, op, &wanted)
	if err != nil {
		return nil, err
	}
	rank(left, wanted.Strategy)
	best := left[0]
	if wanted.Strategy == model.RoundRobin { // it goes by when each was selected last
		s.store.DoAll(ctx, op, []*store.Call{s.selectedCall(Reservation{Worker: s.refOf(best)}, 0)})
	}
	selection.Worker, err = s.Get(ctx, wanted.Scope, best.ID)
	return selection, err
}

// candidates returns the workers that pass every filter, with the fields that the filters and strategies need, and with what
// they hold.
func (s *Service) candidates(ctx context.Context, op string, wanted *model.Selector) ([]*model.Worker, *model.Selection, error) {
	refs, err := s.IDs(ctx, op, wanted.Scope, model.WorkerStatuses)
	if err != nil {
		return nil, nil, err
	}
	selection := &model.Selection{Rejected: map[model.Filter]int{}}
	left, err := s.ReadCandidates(ctx, s.store.DoAll, op, refs, wanted.Queue, func(w *model.Worker) bool {
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
	if err := s.CountLoad(ctx, s.store.DoAll, op, left); err != nil {
		return nil, nil, err
	}
	fit := len(left)
	left = slices.DeleteFunc(left, func(w *model.Worker) bool { return !w.Passes(model.ByCapacity, wanted) })
	selection.Rejected[model.ByCapacity] = fit - len(left)
	if len(left) == 0 {
		return nil, nil, nobodyLeft(op, selection.Code(), selection)
	}
	return left, selection, nil
}

// candidateFields are those of a worker's record that filters and strategies need.
var candidateFields = []string{
	schema.WorkerQueue, schema.WorkerStatus, schema.WorkerReason, schema.WorkerTypes, schema.WorkerRuntimes, schema.WorkerLabels,
	schema.WorkerMaxConcurrent, schema.WorkerInterval, schema.WorkerTimeout, schema.WorkerProbes, schema.WorkerSelected,
	schema.WorkerElsewhere, schema.WorkerCordoned,
}

// ReadCandidates reads the workers of a queue, or of all for "", with what a selection asks for and no more, since a scope
// may have very many. It returns those that are wanted, without what may be long.
func (s *Service) ReadCandidates(
	ctx context.Context, run runner, op string, refs []*schema.WorkerRef, queue string, wanted func(*model.Worker) bool,
) ([]*model.Worker, error) {
	var conditions []condition
	if queue != "" {
		conditions = []condition{{schema.WorkerQueue, is, queue}}
	}
	return s.readSome(ctx, run, op, refs, conditions, candidateFields, wanted)
}

// readSome reads the named fields of those workers that meet all conditions, and returns those that are wanted, without what may be
// long.
func (s *Service) readSome(ctx context.Context, run runner, op string, refs []*schema.WorkerRef, conditions []condition, fields []string,
	wanted func(*model.Worker) bool) (workers []*model.Worker, err error) {
	groupsOf, atOnce := schema.ShortByShard, shortAtOnce
	switch {
	case slices.ContainsFunc(fields, isLong):
		groupsOf, atOnce = schema.WorkersByShard, workersAtOnce
	case slices.ContainsFunc(conditions, func(c condition) bool { return isLong(c.field) }):
		groupsOf = schema.SoughtByShard
	}
	type page struct {
		groups [][]*schema.WorkerRef
		calls  []*store.Call
	}
	pages := make(chan page, 1) // the next one is read while one is looked at
	go func() {
		defer close(pages)
		for refs := range slices.Chunk(refs, atOnce) {
			p := page{groups: groupsOf(refs)}
			for _, group := range p.groups {
				p.calls = append(p.calls, s.candidatesCall(group, conditions, fields))
			}
			run(ctx, op, p.calls)
			if pages <- p; store.FirstError(p.calls) != nil {
				return
			}
		}
	}()
	for p := range pages {
		if err := store.FirstError(p.calls); err != nil {
			return nil, err
		}
		for g, group := range p.groups {
			readCandidates(p.calls[g].Reply, len(group), fields, func(i int, now time.Time, as stored) {
				if w := newWorker(group[i], now, as); w != nil && wanted(w) {
					workers = append(workers, w.Slim())
				}
			})
		}
	}
	return workers, nil
}

// isLong reports whether a field of a worker's record may have kilobytes.
func isLong(field string) bool {
	return field == schema.WorkerTypes || field == schema.WorkerRuntimes || field == schema.WorkerLabels
}

// nobodyLeft is the error of a selection that left nobody.
func nobodyLeft(op string, code model.Code, s *model.Selection) error {
	e := &model.Error{Code: code, Op: op, Cause: &model.SelectionError{Selection: *s}}
	switch {
	case code == model.NoFreshWorkers:
		e.Message = "No workers with fresh heartbeats available"
	case code == model.NoCapacity:
		e.Message = "every worker that could do it is at its maxConcurrent; try again when one has finished something, or add workers"
	case s.Considered == 0:
		e.Message = "no worker is registered for this queue; start one, or check the queue's name"
	case s.Rejected[model.ByCordon] > 0:
		e.Message = "no worker that is ONLINE and not cordoned has what is asked for; uncordon one of those that rejected counts, " +
			"or start another"
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
