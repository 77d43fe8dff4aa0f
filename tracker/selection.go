package tracker

import (
	"cmp"
	"context"
	"maps"
	"math/rand/v2"
	"slices"
)

// Filter is one of the questions that every worker is asked before it is selected, in the order of Filters.
type Filter string

const (
	ByRuntime   Filter = "runtime"
	ByType      Filter = "type"
	ByLabels    Filter = "labels"
	ByStatus    Filter = "status"
	ByFreshness Filter = "stale"
	ByCapacity  Filter = "full"
)

// Filters in the order in which they are asked; a worker counts at the first that it fails.
var Filters = []Filter{ByRuntime, ByType, ByLabels, ByStatus, ByFreshness, ByCapacity}

// Selector says what a worker is wanted for. Empty fields want nothing.
type Selector struct {
	Scope    Scope
	Queue    string // workers of other queues are not even considered
	Type     string
	Runtime  string
	Labels   map[string]string // that the worker must have
	Strategy string            // one of Placements; empty: leastLoaded
}

// Validate checks what can be judged without the store.
func (s *Selector) Validate() error {
	for _, id := range []struct{ field, value string }{{"queue", s.Queue}, {"type", s.Type}, {"runtime", s.Runtime}} {
		if id.value != "" {
			if err := CheckID(id.field, id.value); err != nil {
				return err
			}
		}
	}
	if s.Strategy == "" {
		s.Strategy = Placements[0]
	}
	if !contains(Placements, s.Strategy) {
		return invalid("strategy", "is %q; use leastLoaded, roundRobin or random", clip(s.Strategy))
	}
	return checkLabels("labels", s.Labels)
}

// Selection is what came of a Selector.
type Selection struct {
	Worker     *Worker // nil: none was left
	Considered int     // workers of the queue
	Rejected   map[Filter]int

	up int // workers of the queue that are ONLINE and fresh, whatever they can do
}

func (s *Selection) clone() *Selection {
	c := *s
	c.Rejected = maps.Clone(s.Rejected)
	return &c
}

// Codes of a selection that left nobody.
const (
	NoFreshWorkers    Code = "no_fresh_workers"
	NoMatchingWorkers Code = "no_matching_workers"
	NoCapacity        Code = "no_capacity"
)

// SelectionError is the cause of a refusal that left nobody: how many fell at each filter.
type SelectionError struct{ Selection }

func (e *SelectionError) Error() string { return "no worker was left" }

// passes tells whether a worker passes one filter. It is the one judgement behind selection, placement and what is
// shown as schedulable.
func (w *Worker) passes(f Filter, s *Selector) bool {
	switch f {
	case ByRuntime:
		return s.Runtime == "" || contains(w.Runtimes, s.Runtime)
	case ByType:
		return s.Type == "" || contains(w.Types, s.Type)
	case ByLabels:
		return hasLabels(w.Labels, s.Labels)
	case ByStatus: // one that went OFFLINE by its silence alone falls at the next, whether or not a sweep came first
		return w.Status == Online || w.Status == Offline && w.EndReason == WorkerStale
	case ByFreshness:
		return w.Liveness != Lost
	}
	return w.load() < w.MaxConcurrent
}

// load is what it has to do: what it holds, what waits for it, and what it says that it has from elsewhere.
func (w *Worker) load() int { return w.Held + w.Placed + w.elsewhere }

func hasLabels(have, want map[string]string) bool {
	for k, v := range want {
		if got, ok := have[k]; !ok || got != v {
			return false
		}
	}
	return true
}

// unschedulable lists every filter that the worker fails whatever it is wanted for.
func (w *Worker) unschedulable() []Filter {
	var fails []Filter
	for _, f := range Filters {
		if !w.passes(f, &Selector{}) {
			fails = append(fails, f)
		}
	}
	return fails
}

// Select chooses the worker that a task would best be given to now. Freshness is judged at this moment, not by the
// last sweep. When nobody is left the error's cause is a *SelectionError.
func (t *Tracker) Select(ctx context.Context, s Selector) (*Selection, error) {
	t = t.within(ctx, 0)
	left, selection, err := t.candidates("select", &s)
	if err != nil {
		return nil, err
	}
	rank(left, s.Strategy)
	if s.Strategy == RoundRobin {
		t.selected(left[0])
	}
	selection.Worker, err = t.Worker(ctx, s.Scope, left[0].ID)
	return selection, err
}

// candidates gives the workers that pass every filter, with what the filters and strategies ask for, what they hold
// included.
func (t *Tracker) candidates(op string, s *Selector) ([]*Worker, *Selection, error) {
	refs, err := t.workerIDs(op, s.Scope, WorkerStatuses)
	if err != nil {
		return nil, nil, err
	}
	selection := &Selection{Rejected: map[Filter]int{}}
	left, err := t.readCandidates(t.store.doAll, op, refs, s.Queue, func(w *Worker) bool {
		selection.Considered++
		if w.passes(ByStatus, s) && w.passes(ByFreshness, s) {
			selection.up++
		}
		for _, f := range Filters {
			if f != ByCapacity && !w.passes(f, s) {
				selection.Rejected[f]++
				return false
			}
		}
		return true
	})
	if err != nil {
		return nil, nil, err
	}
	if err := t.countLoad(t.store.doAll, op, left); err != nil {
		return nil, nil, err
	}
	fit := len(left)
	left = slices.DeleteFunc(left, func(w *Worker) bool { return !w.passes(ByCapacity, s) })
	selection.Rejected[ByCapacity] = fit - len(left)
	if len(left) == 0 {
		return nil, nil, nobodyLeft(op, selection.code(), selection)
	}
	return left, selection, nil
}

// code tells why nobody is left, by the filter that took the last.
func (s *Selection) code() Code {
	switch {
	case s.Rejected[ByCapacity] > 0:
		return NoCapacity
	case s.Rejected[ByFreshness] > 0:
		return NoFreshWorkers
	}
	return NoMatchingWorkers
}

func nobodyLeft(op string, code Code, s *Selection) error {
	e := &Error{Code: code, Op: op, Cause: &SelectionError{*s}}
	switch {
	case code == NoFreshWorkers:
		e.Message = "No workers with fresh heartbeats available"
	case code == NoCapacity:
		e.Message = "every worker that could do it is at its maxConcurrent; try again when one has finished something, or add workers"
	case s.Considered == 0:
		e.Message = "no worker is registered for this queue; start one, or check the queue's name"
	default:
		e.Message = "no worker that is ONLINE has what is asked for; rejected tells how many fell at each filter"
	}
	return e
}

// RoundRobin is the strategy that takes whoever was selected longest ago.
const RoundRobin = "roundRobin"

// rank puts the best first.
func rank(workers []*Worker, strategy string) {
	rand.Shuffle(len(workers), func(i, j int) { workers[i], workers[j] = workers[j], workers[i] }) // equals share
	switch strategy {
	case RoundRobin:
		slices.SortStableFunc(workers, func(a, b *Worker) int {
			return cmp.Or(a.lastSelected.Compare(b.lastSelected), cmp.Compare(a.ID, b.ID))
		})
	case "leastLoaded":
		slices.SortStableFunc(workers, func(a, b *Worker) int { // by share, so that large and small ones fill alike
			return cmp.Compare(a.load()*b.MaxConcurrent, b.load()*a.MaxConcurrent)
		})
	}
}

// selected remembers when a worker was last selected.
func (t *Tracker) selected(w *Worker) {
	shard, _ := t.store.workerShard(w.ID)
	k := t.store.keys[shard]
	c := newCall(shard, t.store.scripts.Get("worker_selected"), []string{k.worker(taskName(w.Scope, w.ID)), k.reserved(taskName(w.Scope, w.ID))}, "", 0)
	t.store.doAll("select", []*call{c})
}
