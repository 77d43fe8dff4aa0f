package stats

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"github.com/lubdub-io/lubdub/tracker/model"
	"github.com/lubdub-io/lubdub/tracker/schema"
	"github.com/lubdub-io/lubdub/tracker/store"
)

const (
	// MaxLostWorkers is how many lost workers an answer has.
	MaxLostWorkers = 100
	recently       = time.Hour
)

// RecentlyLost returns the workers of a workspace that were lost in the last hour, newest first, MaxLostWorkers at most. The answer may
// be a second old, and is shared: nobody changes it.
func (s *Service) RecentlyLost(ctx context.Context, scope model.Scope) ([]*model.Worker, error) {
	ctx = s.store.Within(ctx, 0)
	lost, err := answer(ctx, s.snapshots, "lost "+scope.String(), func() ([]*model.Worker, error) { return s.readRecentlyLost(ctx, scope) })
	if err != nil {
		return nil, s.refused(err)
	}
	return lost, nil
}

func (s *Service) readRecentlyLost(ctx context.Context, scope model.Scope) ([]*model.Worker, error) {
	re, err := s.store.Do(ctx, "stats", s.fleetCall(nil))
	if err != nil {
		return nil, err
	}
	since := readFleet(re).now.Add(-recently)
	calls := make([]*store.Call, len(s.store.Keys))
	for shard := range calls {
		calls[shard] = s.lostCall(shard, scope, since)
	}
	s.store.DoBulk(ctx, "stats", calls)
	if err := store.FirstError(calls); err != nil {
		return nil, err
	}
	var entries []string
	for _, c := range calls {
		entries = append(entries, readLost(c.Reply)...)
	}
	slices.SortFunc(entries, func(a, b string) int { return cmp.Compare(b, a) })
	var refs []*schema.WorkerRef
	for _, entry := range entries[:min(len(entries), MaxLostWorkers)] {
		_, id, _ := strings.Cut(entry, "/")
		if r, ok := s.store.WorkerRef(scope, id); ok {
			refs = append(refs, r)
		}
	}
	lost, err := s.workers.ReadLost(ctx, "stats", refs)
	if err != nil {
		return nil, err
	}
	slices.SortFunc(lost, func(a, b *model.Worker) int {
		return cmp.Or(b.DeregisteredAt.Compare(a.DeregisteredAt), cmp.Compare(a.ID, b.ID))
	})
	return lost, nil
}
