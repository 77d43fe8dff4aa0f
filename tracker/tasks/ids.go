package tasks

import (
	"context"
	"slices"
	"strings"

	"github.com/lubdub-io/lubdub/tracker/model"
	"github.com/lubdub-io/lubdub/tracker/schema"
	"github.com/lubdub-io/lubdub/tracker/store"
	"github.com/lubdub-io/lubdub/tracker/workers"
)

// idPage is one page of task IDs in order, over all shards.
type idPage struct {
	refs   []*schema.TaskRef
	names  []string            // names of the refs, which determine the order
	counts map[model.State]int // of the states that the query counts, over all of its scope or run
	next   string              // "" on the last page
}

// idQuery selects IDs. Their order does not depend on state, so a page token stays valid while tasks are created, end and change
// state. Ends are in the order of their times, with which their names begin.
type idQuery struct {
	scope   model.Scope
	run     string // "": the whole scope
	ends    bool   // only finished tasks, in the order of their ends
	states  []model.State
	count   []model.State
	after   string // name
	before  string // name; "": to the end
	reverse bool   // the last first
	limit   int
}

// compare is the order of the query.
func (q *idQuery) compare(a, b string) int {
	if q.reverse {
		a, b = b, a
	}
	return strings.Compare(a, b)
}

// idIn returns the ID in a name.
func (q *idQuery) idIn(name string) string {
	if q.ends {
		_, name, _ = strings.Cut(name, "/")
	}
	return name
}

// ids merges the results of all shards. IDs are spread evenly over the shards, so it requests a share of the page and some more
// from each; if that is too little, it requests those after the IDs that are certain.
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
		slices.SortFunc(ids, q.compare)
		ids = slices.Compact(ids)
		if len(ids) > q.limit && (certain == "" || q.compare(ids[q.limit], certain) <= 0) {
			ids = ids[:q.limit]
			page.next = ids[q.limit-1]
			break
		}
		if certain == "" {
			break
		}
		count, after, quota = nil, certain, min(q.limit+1, 2*quota)
	}
	for _, name := range ids {
		page.refs = append(page.refs, s.store.Ref(q.scope, q.idIn(name)))
	}
	page.names = ids
	return page, nil
}

// idsAfter requests up to quota IDs of each state from every shard. Up to the ID that it returns no shard can have more; "": there
// are none after these.
func (s *Service) idsAfter(ctx context.Context, op string, q idQuery, count []model.State, after string, quota int,
	counts map[model.State]int) (ids []string, certain string, err error) {
	list := workers.ListArgs{States: schema.Letters(q.states...), After: after, Before: q.before, Reverse: q.reverse, Limit: quota,
		Count: schema.Letters(count...)}
	switch {
	case q.ends:
		list.Prefix = schema.EndEntry + q.scope.String() + "/"
	case q.run == "":
		list.Prefix = q.scope.String() + "/"
	}
	groups := s.store.AllTogether()
	calls := store.CallEach(groups, func(shards []int) *store.Call { return s.workers.ListCall(shards[0], s.indexKeys(shards, q), list) })
	s.store.DoBulk(ctx, op, calls)
	if err := store.FirstError(calls); err != nil {
		return nil, "", err
	}
	for i, c := range calls {
		for _, index := range workers.ReadList(c.Reply, len(groups[i]), len(q.states)) {
			for _, of := range index.IDs {
				ids = append(ids, of...)
				if len(of) == quota && (certain == "" || q.compare(of[quota-1], certain) < 0) {
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

// indexKeys returns the keys of the lists that a query needs, in some shards.
func (s *Service) indexKeys(shards []int, q idQuery) []string {
	keys := make([]string, len(shards))
	for i, shard := range shards {
		if q.run == "" || q.ends {
			keys[i] = s.store.Keys[shard].Index
		} else {
			keys[i] = s.store.Keys[shard].Run(q.scope, q.run)
		}
	}
	return keys
}

// ownRun finds tasks whose run is named after them, which are in no run set.
func (s *Service) ownRun(ctx context.Context, op string, q idQuery, page *idPage) ([]string, error) {
	var ids []string
	if q.ends {
		return nil, nil
	}
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
		if slices.Contains(q.states, v.State) && (q.after == "" || q.compare(id, q.after) > 0) {
			ids = append(ids, id)
		}
	}
	return ids, nil
}
