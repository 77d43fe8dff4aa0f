package queues

import (
	"context"
	"strings"

	"github.com/lubdub-io/lubdub/tracker/schema"
	"github.com/lubdub-io/lubdub/tracker/store"
)

// grouping counts the entries of one of the shards' indexes by the first parts of their names.
type grouping struct {
	key    func(*schema.ShardKeys) string
	prefix string // of the names, with the final slash
	parts  int    // the number of parts after it that identify a group
	each   func(group) (more bool)
}

// group is the entries of a shard that a grouping counts as one.
type group struct {
	names   []string // the parts of its first entry's name
	entries int
}

// of returns the i-th part of its name after the scope.
func (g group) of(i int) string { return g.names[2+i] }

func workersKey(k *schema.ShardKeys) string { return k.Workers }

func indexKey(k *schema.ShardKeys) string { return k.Index }

// count reads groupings in all shards, a page of each at a time, until each is complete or wants no more.
func (s *Service) count(ctx context.Context, op string, groupings ...*grouping) error {
	type place struct {
		shard int
		of    *grouping
		after string
	}
	var open []place
	for shard := range s.store.Keys {
		for _, g := range groupings {
			open = append(open, place{shard, g, ""})
		}
	}
	for len(open) > 0 {
		calls := store.CallEach(open, func(p place) *store.Call { return s.groupsCall(p.shard, p.of, p.after) })
		s.store.DoBulk(ctx, op, calls)
		if err := store.FirstError(calls); err != nil {
			return err
		}
		var next []place
		full := map[*grouping]bool{}
		for i, p := range open {
			groups := readGroups(calls[i].Reply)
			for _, g := range groups {
				full[p.of] = full[p.of] || !p.of.each(g)
			}
			if len(groups) == groupPage {
				last := groups[groupPage-1].names
				p.after = strings.Join(last[:strings.Count(p.of.prefix, "/")+p.of.parts], "/")
				next = append(next, p)
			}
		}
		open = open[:0]
		for _, p := range next {
			if !full[p.of] {
				open = append(open, p)
			}
		}
	}
	return nil
}
