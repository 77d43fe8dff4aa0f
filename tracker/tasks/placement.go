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
func (t *Service) placeBatch(ctx context.Context, batch []*creation) (givenBack func()) {
	var places []*workers.Placement
	var placed, failed []*creation
	var since time.Time // the oldest reservation
	mine := map[string]int{}
	giveBack := func() {
		if len(places) > 0 {
			given := places
			t.store.Tidy(ctx, func(ctx context.Context) { t.workers.Unreserve(ctx, "create", given) })
		}
	}
	settle := func() {
		t.CreateAll(ctx, placed)
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
		s := workers.PlacementSelector(c.Scope, c.Queue, c.Type, c.Runtime, c.WorkerLabels, c.Placement)
		key := s.Key()
		p := pools[key]
		if p == nil {
			p = &ours{by: t.workers.NewPlacer("create", workers.PlacementLife, mine, settle)}
			p.Left, p.Found, p.Err = t.workers.Candidates(ctx, "create", s)
			pools[key] = p
		}
		if c.err = p.Err; c.err != nil {
			failed = append(failed, c)
			continue
		}
		if len(places) > 0 && time.Since(since) > workers.PlacementLife/4 {
			settle()
		}
		at, err := p.by.Place(ctx, s, slices.Clone(p.Left), p.Found.Clone())
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
	t.forgiveExisting(ctx, failed)
	return giveBack
}

// forgiveExisting lets creations go on that found no worker and whose task is there already: what they are told is that,
// or, of a repeat, what the first one was told.
func (t *Service) forgiveExisting(ctx context.Context, failed []*creation) {
	refs := make([]*schema.TaskRef, len(failed))
	for i, c := range failed {
		refs[i] = t.store.Ref(c.Scope, c.TaskID)
	}
	calls, resolve := t.NameCalls(refs)
	t.store.DoAll(ctx, "create", calls)
	resolve()
	for i, c := range failed {
		if refs[i].Exists {
			c.err = nil
		}
	}
}
