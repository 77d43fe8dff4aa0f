package events

import (
	"context"

	"github.com/lubdub-io/lubdub/tracker/store"
)

// Trim drops events beyond the retention settings in some shards of a node, bypassing the lanes. It reports whether there may be more to
// drop, and returns the first error.
func (s *Service) Trim(ctx context.Context, n *store.Node, shards []int) (more bool, err error) {
	groups := s.store.Together(shards)
	calls := store.CallEach(groups, s.trimCall)
	s.store.Exec(ctx, n, calls)
	for i, group := range groups {
		if calls[i].Err != nil {
			continue
		}
		for j := range group {
			dropped, left := readTrim(calls[i].Reply, j)
			s.metrics.dropped.Add(float64(dropped))
			more = more || left
		}
	}
	return more, store.FirstError(calls)
}
