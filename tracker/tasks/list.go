package tasks

import (
	"context"
	"slices"

	"github.com/lubdub-io/lubdub/tracker/model"
	"github.com/lubdub-io/lubdub/tracker/schema"
	"github.com/lubdub-io/lubdub/tracker/store"
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

// ids merges what every shard has. Ids fall evenly on the shards, so each is asked for its part of the page and some
// more; where that was too little, all are asked again for what comes after the ids that are certain.
func (t *Service) ids(ctx context.Context, op string, q idQuery) (*idPage, error) {
	page := &idPage{counts: map[model.State]int{}}
	ids, err := t.ownRun(ctx, op, q, page)
	if err != nil {
		return nil, err
	}
	count, after, quota := q.count, q.after, min(q.limit+1, 2*q.limit/t.store.Shards()+4)
	for {
		found, certain, err := t.idsAfter(ctx, op, q, count, after, quota, page.counts)
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
		page.refs = append(page.refs, t.store.Ref(q.scope, id))
	}
	return page, nil
}

// idsAfter asks every shard for so many ids of each state. Up to the id that it tells no other shard can have more; ""
// when there are none after these.
func (t *Service) idsAfter(ctx context.Context, op string, q idQuery, count []model.State, after string, quota int, counts map[model.State]int) (ids []string, certain string, err error) {
	prefix := q.scope.String() + "/"
	if q.run != "" {
		prefix = ""
	}
	groups := t.store.AllTogether()
	calls := make([]*store.Call, len(groups))
	for i, group := range groups {
		keys := make([]string, len(group))
		for j, shard := range group {
			if keys[j] = t.store.Keys[shard].Index; q.run != "" {
				keys[j] = t.store.Keys[shard].Run(q.scope, q.run)
			}
		}
		calls[i] = store.NewCall(group[0], t.store.Scripts.Get("list"), keys, prefix, schema.Letters(q.states...), after, quota, schema.Letters(count...))
	}
	t.store.DoBulk(ctx, op, calls)
	for i, c := range calls {
		if c.Err != nil {
			return nil, "", c.Err
		}
		lists := c.Reply
		for range groups[i] {
			for range q.states {
				of := lists.List(0).Strings()
				lists = lists[1:]
				ids = append(ids, of...)
				if len(of) == quota && (certain == "" || of[quota-1] < certain) {
					certain = of[quota-1]
				}
			}
			for j, s := range count {
				counts[s] += int(lists.List(0).Int(j))
			}
			lists = lists[1:]
		}
	}
	return ids, certain, nil
}

// ownRun finds the tasks whose run is named after them, which no run set holds.
func (t *Service) ownRun(ctx context.Context, op string, q idQuery, page *idPage) ([]string, error) {
	var ids []string
	for _, id := range schema.TasksOf(q.run) {
		if !model.ValidID(id) {
			continue
		}
		v, err := t.get(ctx, op, t.store.Ref(q.scope, id), glance)
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
