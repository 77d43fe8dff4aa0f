package stats

import (
	"context"
	"slices"
	"time"

	"github.com/lubdub-io/lubdub/tracker/model"
	"github.com/lubdub-io/lubdub/tracker/store"
)

// Counts are the counts of some scopes at one moment.
type Counts struct {
	Tasks         map[model.State]int
	Workers       map[model.WorkerStatus]int
	Liveness      map[model.Liveness]int // of workers that are not OFFLINE
	Machines      map[model.WorkerStatus]int
	Only          string        // the scope if only one was counted, as <tenant>/<workspace>
	OldestOverdue time.Duration // of all overdue deadlines in every scope; 0: nothing is overdue
}

func newCounts() *Counts {
	return &Counts{
		Tasks: map[model.State]int{}, Workers: map[model.WorkerStatus]int{}, Liveness: map[model.Liveness]int{},
		Machines: map[model.WorkerStatus]int{},
	}
}

// Names of levels in a step.
const (
	tasksLevel    = "tasks:"
	workersLevel  = "workers:"
	livenessLevel = "liveness:"
	machinesLevel = "machines:"
	overdueLevel  = "overdue"
	onlyLevel     = "only"
)

// levels returns the counts as a step stores them.
func (c *Counts) levels() map[string]int64 {
	levels := map[string]int64{overdueLevel: c.OldestOverdue.Milliseconds()}
	for state, n := range c.Tasks {
		levels[tasksLevel+string(state)] = int64(n)
	}
	for status, n := range c.Workers {
		levels[workersLevel+string(status)] = int64(n)
	}
	for liveness, n := range c.Liveness {
		levels[livenessLevel+string(liveness)] = int64(n)
	}
	for status, n := range c.Machines {
		levels[machinesLevel+string(status)] = int64(n)
	}
	return levels
}

// count counts some scopes, and the oldest overdue deadline.
func (s *Service) count(ctx context.Context, scopes []string) (*Counts, error) {
	counts := newCounts()
	if len(scopes) == 1 {
		counts.Only = scopes[0]
	}
	var calls []*store.Call
	var sizes []int
	for part := range slices.Chunk(scopes, countsAtOnce) {
		for shard := range s.store.Keys {
			calls, sizes = append(calls, s.countsCall(shard, part)), append(sizes, len(part))
		}
	}
	s.store.DoBulk(ctx, "stats", calls)
	if err := store.FirstError(calls); err != nil {
		return nil, err
	}
	for i, c := range calls {
		readCounts(c.Reply, sizes[i], counts)
	}
	var err error
	counts.OldestOverdue, err = s.overdue(ctx)
	return counts, err
}

// countAll counts the scopes of one tenant, or of all for "", up to maxScopes.
func (s *Service) countAll(ctx context.Context, tenant string) (*Counts, error) {
	scopes, err := s.scopes(ctx, ScopeFilter{Tenant: tenant}, "", maxScopes)
	if err != nil {
		return nil, err
	}
	for i, scope := range scopes {
		scopes[i] = scope[:len(scope)-1]
	}
	return s.count(ctx, scopes)
}

// overdue returns by how much the oldest deadline is overdue.
func (s *Service) overdue(ctx context.Context) (most time.Duration, err error) {
	shards, err := s.readShards(ctx, false)
	for _, shard := range shards {
		most = max(most, shard.Overdue)
	}
	return most, err
}
