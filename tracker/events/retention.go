package events

import (
	"context"

	"github.com/lubdub-io/lubdub/tracker/store"
)

// Trim drops what the settings say is not kept any more in some shards of a node, past the lanes. It reports whether there may
// be more to drop.
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
