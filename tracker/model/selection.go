package model

import (
	"encoding/json"
	"maps"
	"slices"
)

// Filter is one condition that a worker must meet to be selected, in the order of Filters.
type Filter string

const (
	ByRuntime   Filter = "runtime"
	ByType      Filter = "type"
	ByLabels    Filter = "labels"
	ByStatus    Filter = "status"
	ByCordon    Filter = "cordoned"
	ByFreshness Filter = "stale"
	ByCapacity  Filter = "full"
)

// Filters are all conditions in the order of evaluation; a worker is counted at the first one that it fails.
var Filters = []Filter{ByRuntime, ByType, ByLabels, ByStatus, ByCordon, ByFreshness, ByCapacity}

// These are the strategies for choosing one of the remaining workers.
const (
	LeastLoaded = "leastLoaded" // the worker with the least load
	RoundRobin  = "roundRobin"  // the worker that was selected longest ago
	Random      = "random"
)

// Placements are the strategies; the first is the default.
var Placements = []string{LeastLoaded, RoundRobin, Random}

// Selector describes the worker that is needed. Empty fields are no condition.
type Selector struct {
	Scope    Scope
	Queue    string // workers of other queues are not considered
	Type     string
	Runtime  string
	Labels   map[string]string // that the worker must have
	Strategy string            // one of Placements; empty: LeastLoaded
}

// Validate returns an error for invalid fields, and sets the default strategy. It checks what needs no store.
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
	if !slices.Contains(Placements, s.Strategy) {
		return Invalidf("strategy", "is %q; use leastLoaded, roundRobin or random", Clip(s.Strategy))
	}
	return CheckLabels("labels", s.Labels)
}

// Key is equal for selectors with the same conditions.
func (s *Selector) Key() string {
	b, _ := json.Marshal(s) // strings and a map with sorted keys: cannot fail
	return string(b)
}

// Selection is the result of a Selector.
type Selection struct {
	Worker     *Worker // nil: none remained
	Considered int     // workers of the queue
	Rejected   map[Filter]int

	Up int // workers of the queue that are ONLINE, not cordoned and fresh, whatever they can run
}

// Clone returns a copy with its own counts.
func (s *Selection) Clone() *Selection {
	c := *s
	c.Rejected = maps.Clone(s.Rejected)
	return &c
}

// These are the codes of a selection without a worker.
const (
	NoFreshWorkers    Code = "no_fresh_workers"
	NoMatchingWorkers Code = "no_matching_workers"
	NoCapacity        Code = "no_capacity"
)

// Code returns why no worker remained, by the filter that removed the last one.
func (s *Selection) Code() Code {
	switch {
	case s.Rejected[ByCapacity] > 0:
		return NoCapacity
	case s.Rejected[ByFreshness] > 0:
		return NoFreshWorkers
	}
	return NoMatchingWorkers
}

// SelectionError is the cause of a refusal when no worker remained, with the number that failed each filter.
type SelectionError struct{ Selection }

func (e *SelectionError) Error() string { return "no worker was left" }

// Passes reports whether a worker passes one filter. Selection, placement and the schedulable status all use it.
func (w *Worker) Passes(f Filter, s *Selector) bool {
	switch f {
	case ByRuntime:
		return s.Runtime == "" || slices.Contains(w.Runtimes, s.Runtime)
	case ByType:
		return s.Type == "" || slices.Contains(w.Types, s.Type)
	case ByLabels:
		return HasLabels(w.Labels, s.Labels)
	case ByStatus: // a worker that is OFFLINE only because it was silent fails the freshness filter, whether or not a sweep came first
		return w.Status == Online || w.Status == Offline && w.EndReason == WorkerStale
	case ByCordon:
		return w.Cordon == nil
	case ByFreshness:
		return w.Liveness != Lost
	}
	return w.Load() < w.MaxConcurrent
}

// FailedFilters returns every filter that the worker fails for any selector.
func (w *Worker) FailedFilters() []Filter {
	var fails []Filter
	for _, f := range Filters {
		if !w.Passes(f, &Selector{}) {
			fails = append(fails, f)
		}
	}
	return fails
}

// Load returns how much the worker has to do: its attempts, the tasks placed on it, and what it reports from elsewhere.
func (w *Worker) Load() int { return w.Held + w.Placed + w.Elsewhere }

// Moved reports whether the value that a strategy uses has changed since the worker was ranked.
func (w *Worker) Moved(before *Worker, strategy string) bool {
	switch strategy {
	case RoundRobin:
		return w.LastSelected.After(before.LastSelected)
	case LeastLoaded:
		return w.Load() > before.Load()
	}
	return false
}
