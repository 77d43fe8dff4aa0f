package model

import (
	"encoding/json"
	"maps"
	"slices"
)

// Filter is one of the questions asked of every worker before it is selected, in the order of Filters.
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

// Filters in the order in which they are asked; a worker counts at the first that it fails.
var Filters = []Filter{ByRuntime, ByType, ByLabels, ByStatus, ByCordon, ByFreshness, ByCapacity}

// Strategies that choose a worker among those that are left.
const (
	LeastLoaded = "leastLoaded" // whoever has the least to do
	RoundRobin  = "roundRobin"  // whoever was selected longest ago
	Random      = "random"
)

// Placements are the strategies; the first is the default.
var Placements = []string{LeastLoaded, RoundRobin, Random}

// Selector says what a worker is wanted for. Empty fields ask for nothing.
type Selector struct {
	Scope    Scope
	Queue    string // workers of other queues are not even considered
	Type     string
	Runtime  string
	Labels   map[string]string // that the worker must have
	Strategy string            // one of Placements; empty: LeastLoaded
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
	if !slices.Contains(Placements, s.Strategy) {
		return Invalidf("strategy", "is %q; use leastLoaded, roundRobin or random", Clip(s.Strategy))
	}
	return CheckLabels("labels", s.Labels)
}

// Key is the same for selectors that ask for the same.
func (s *Selector) Key() string {
	b, _ := json.Marshal(s) // strings and a map, whose keys are sorted
	return string(b)
}

// Selection is the outcome of a Selector.
type Selection struct {
	Worker     *Worker // nil: none was left
	Considered int     // workers of the queue
	Rejected   map[Filter]int

	Up int // workers of the queue that are ONLINE, not cordoned and fresh, whatever they can do
}

// Clone returns a copy whose counts are its own.
func (s *Selection) Clone() *Selection {
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

// Code says why nobody is left, by the filter that removed the last.
func (s *Selection) Code() Code {
	switch {
	case s.Rejected[ByCapacity] > 0:
		return NoCapacity
	case s.Rejected[ByFreshness] > 0:
		return NoFreshWorkers
	}
	return NoMatchingWorkers
}

// SelectionError is the cause of a refusal when nobody was left: how many failed each filter.
type SelectionError struct{ Selection }

func (e *SelectionError) Error() string { return "no worker was left" }

// Passes reports whether a worker passes one filter. It is the one judgement behind selection, placement and what is
// shown as schedulable.
func (w *Worker) Passes(f Filter, s *Selector) bool {
	switch f {
	case ByRuntime:
		return s.Runtime == "" || slices.Contains(w.Runtimes, s.Runtime)
	case ByType:
		return s.Type == "" || slices.Contains(w.Types, s.Type)
	case ByLabels:
		return HasLabels(w.Labels, s.Labels)
	case ByStatus: // one that went OFFLINE by its silence alone falls at the next, whether or not a sweep came first
		return w.Status == Online || w.Status == Offline && w.EndReason == WorkerStale
	case ByCordon:
		return w.Cordon == nil
	case ByFreshness:
		return w.Liveness != Lost
	}
	return w.Load() < w.MaxConcurrent
}

// FailedFilters lists every filter that the worker fails whatever it is wanted for.
func (w *Worker) FailedFilters() []Filter {
	var fails []Filter
	for _, f := range Filters {
		if !w.Passes(f, &Selector{}) {
			fails = append(fails, f)
		}
	}
	return fails
}

// Load is how much it has to do: what it holds, what waits for it, and what it says it has from elsewhere.
func (w *Worker) Load() int { return w.Held + w.Placed + w.Elsewhere }

// Moved reports whether what a strategy goes by has changed since the worker was ranked.
func (w *Worker) Moved(before *Worker, strategy string) bool {
	switch strategy {
	case RoundRobin:
		return w.LastSelected.After(before.LastSelected)
	case LeastLoaded:
		return w.Load() > before.Load()
	}
	return false
}
