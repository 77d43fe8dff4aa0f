package tasks

import (
	"context"
	"slices"

	"github.com/lubdub-io/lubdub/tracker/model"
	"github.com/lubdub-io/lubdub/tracker/schema"
	"github.com/lubdub-io/lubdub/tracker/store"
	"github.com/lubdub-io/lubdub/tracker/workers"
)

// idPage is one page of task ids in their order, over all shards.
type idPage struct {
	refs   []*schema.TaskRef
	counts map[model.State]int // of the states that the query counts, over everything that its scope or run holds
	next   string              // "" when this was the last page
}

// idQuery asks for ids. The order is that of ids and does not depend on state, so a page token stays right while
// tasks come, go and move from state to state.
type idQuery struct {
	scope  model.Scope
	run    string // "" : all of the scope
	states []model.State
	count  []model.State
	after  string
	limit  int
}

// ids merges what every shard has. Ids are spread evenly over the shards, so each is asked for its part of the page and some
// more; where that was too little, all are asked again for what comes after the ids that are certain.
func (s *Service) ids(ctx context.Context, op string, q idQuery) (*idPage, error) {
	page := &idPage{counts: map[model.State]int{}}
	ids, err := s.ownRun(ctx, op, q, page)
	if err != nil {
		return nil, err
	}
	count, after, quota := q.count, q.after, min(q.limit+1, 2*q.limit/s.store.Shards()+4)
	for {
		found, certain, err := s.idsAfter(ctx, op, q, count, after, quota, page.counts)
		if err != nil {
			return nil, err
		}
		ids = append(ids, found...)
		slices.Sort(ids)
		ids = slices.Compact(ids)
		if len(ids) > q.limit && (certain == "" || ids[q.limit] <= certain) {
			ids = ids[:q.limit]
			page.next = ids[q.limit-1]
			break
		}
		if certain == "" {
			break
		}
		count, after, quota = nil, certain, min(q.limit+1, 2*quota)
	}
	for _, id := range ids {
		page.refs = append(page.refs, s.store.Ref(q.scope, id))
	}
	return page, nil
}

// idsAfter asks every shard for so many ids of each state. Up to the id that it returns no other shard can have more; ""
// when there are none after these.
func (s *Service) idsAfter(ctx context.Context, op string, q idQuery, count []model.State, after string, quota int,
	counts map[model.State]int) (ids []string, certain string, err error) {
	list := workers.ListArgs{States: schema.Letters(q.states...), After: after, Limit: quota, Count: schema.Letters(count...)}
	if q.run == "" {
		list.Prefix = q.scope.String() + "/"
	}
	groups := s.store.AllTogether()
	calls := make([]*store.Call, len(groups))
	for i, shards := range groups {
		calls[i] = s.workers.ListCall(shards[0], s.indexKeys(shards, q), list)
	}
	s.store.DoBulk(ctx, op, calls)
	if err := store.FirstError(calls); err != nil {
		return nil, "", err
	}
	for i, c := range calls {
		for _, index := range workers.ReadList(c.Reply, len(groups[i]), len(q.states)) {
			for _, of := range index.IDs {
				ids = append(ids, of...)
				if len(of) == quota && (certain == "" || of[quota-1] < certain) {
					certain = of[quota-1]
				}
			}
			for j, n := range index.Counts {
				counts[count[j]] += n
			}
		}
	}
	return ids, certain, nil
}

// indexKeys returns the keys of what lists the tasks that a query is about, in some shards.
func (s *Service) indexKeys(shards []int, q idQuery) []string {
	keys := make([]string, len(shards))
	for i, shard := range shards {
		if q.run == "" {
			keys[i] = s.store.Keys[shard].Index
		} else {
			keys[i] = s.store.Keys[shard].Run(q.scope, q.run)
		}
	}
	return keys
}

// ownRun finds the tasks whose run is named after them, which no run set holds.
func (s *Service) ownRun(ctx context.Context, op string, q idQuery, page *idPage) ([]string, error) {
	var ids []string
	for _, id := range schema.TasksOf(q.run) {
		if !model.ValidID(id) {
			continue
		}
		v, err := s.get(ctx, op, s.store.Ref(q.scope, id), glance)
		switch {
		case model.CodeOf(err) == model.NotFound:
			continue
		case err != nil:
			return nil, err
		case v.RunID != q.run:
			continue
		}
		if slices.Contains(q.count, v.State) {
			page.counts[v.State]++
		}
		if slices.Contains(q.states, v.State) && id > q.after {
			ids = append(ids, id)
		}
	}
	return ids, nil
}
