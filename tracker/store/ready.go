package store

import (
	"context"
)

// Ready tells what is wrong with Redis: it does not answer one read on every node, or a server of it may evict keys, which
// is an *EvictionError. nil: nothing is.
func (s *Store) Ready(ctx context.Context) error {
	ctx = s.Within(ctx, 0)
	var calls []*Call
	for _, shards := range s.ByNode() {
		calls = append(calls, s.FindCall(shards[0], Overdue{Set: s.Keys[shards[0]].Timers}))
	}
	s.DoAll(ctx, "ready", calls)
	if err := FirstError(calls); err != nil {
		return err
	}
	return s.evicting()
}
