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
	// MaxLostWorkers is how many lost workers a result lists.
	MaxLostWorkers = 100
	recently       = time.Hour
)

// LostWorkers are the workers of a workspace that were lost in the last hour.
type LostWorkers struct {
	Newest []*model.Worker // newest first, MaxLostWorkers at most
	Total  int             // including those that are not in Newest
}

// RecentlyLost returns the workers of a workspace that were lost in the last hour. The result may be a second old and is shared:
// the caller must not change it.
func (s *Service) RecentlyLost(ctx context.Context, scope model.Scope) (*LostWorkers, error) {
	ctx = s.store.Within(ctx, 0)
	lost, err := answer(ctx, s.snapshots, "lost "+scope.String(), func() (*LostWorkers, error) { return s.readRecentlyLost(ctx, scope) })
	if err != nil {
		return nil, s.refused(err)
	}
	return lost, nil
}

func (s *Service) readRecentlyLost(ctx context.Context, scope model.Scope) (*LostWorkers, error) {
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
	total := 0
	for _, c := range calls {
		found, all := readNewest(c.Reply)
		entries = append(entries, found...)
		total += all
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
	return &LostWorkers{Newest: lost, Total: total}, nil
}
