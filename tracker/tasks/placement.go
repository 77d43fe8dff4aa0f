package tasks

import (
	"context"
	"slices"
	"time"

	"github.com/lubdub-io/lubdub/tracker/schema"
	"github.com/lubdub-io/lubdub/tracker/workers"
)

// placeBatch chooses workers for the placed tasks of a batch; those that find none fail. Call the result when the
// tasks stand in their queues. Tasks whose places others may wait for, or would not be kept for much longer, it creates.
func (s *Service) placeBatch(ctx context.Context, batch []*creation) (givenBack func()) {
	var places []*workers.Placement
	var placed, failed []*creation
	var since time.Time // the oldest reservation
	mine := map[string]int{}
	giveBack := func() {
		if len(places) > 0 {
			given := places
			s.store.Tidy(ctx, func(ctx context.Context) { s.workers.Unreserve(ctx, "create", given) })
		}
	}
	settle := func() {
		s.createAll(ctx, placed)
		giveBack()
		placed, places = nil, nil
		clear(mine)
	}
	type ours struct {
		workers.Pool
		by *workers.Placer
	}
	pools := map[string]*ours{} // candidates are read once for all that ask the same
	for _, c := range batch {
		if c.Placement == "" || c.err != nil || c.done || !c.NotBefore.IsZero() {
			continue
		}
		selector := workers.PlacementSelector(c.Scope, c.Queue, c.Type, c.Runtime, c.WorkerLabels, c.Placement)
		key := selector.Key()
		p := pools[key]
		if p == nil {
			p = &ours{by: s.workers.NewPlacer("create", workers.PlacementLife, mine, settle)}
			p.Left, p.Found, p.Err = s.workers.Candidates(ctx, "create", selector)
			pools[key] = p
		}
		if c.err = p.Err; c.err != nil {
			failed = append(failed, c)
			continue
		}
		if len(places) > 0 && time.Since(since) > workers.PlacementLife/4 {
			settle()
		}
		at, err := p.by.Place(ctx, selector, slices.Clone(p.Left), p.Found.Clone())
		if c.err = err; err != nil {
			failed = append(failed, c)
			continue
		}
		if len(places) == 0 {
			since = time.Now()
		}
		c.WorkerID = at.Worker.ID
		places, placed = append(places, at), append(placed, c)
	}
	s.forgiveExisting(ctx, failed)
	return giveBack
}

// forgiveExisting lets creations go on that found no worker and whose task is there already: what they are told is that,
// or, of a repeat, what the first one was told.
func (s *Service) forgiveExisting(ctx context.Context, failed []*creation) {
	refs := make([]*schema.TaskRef, len(failed))
	for i, c := range failed {
		refs[i] = s.store.Ref(c.Scope, c.TaskID)
	}
	calls, resolve := s.NameCalls(refs)
	s.store.DoAll(ctx, "create", calls)
	resolve()
	for i, c := range failed {
		if refs[i].Exists {
			c.err = nil
		}
	}
}
