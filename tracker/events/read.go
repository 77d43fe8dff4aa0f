package events

import (
	"context"
	"slices"
	"time"

	"github.com/lubdub-io/lubdub/tracker/store"
)

// ShardRead is the result of one read of a shard.
type ShardRead struct {
	Shard  int
	From   Position // where the read began
	Events []*Event // oldest first; going back, newest first
	At     Position // position behind what was read
	Gap    *Gap     // the next entries were trimmed; nil: none is missing
	Lost   bool     // the store has lost writes that the reader had seen: it starts again with the first entry left
	More   bool     // there may be more
	read   int      // entries; not all need be events
}

// Gap is what a reader has missed because it was trimmed.
type Gap struct {
	From, To time.Time // from the reader's position to the first event left
	Shards   []int
}

// ReadNode reads on in shards of one node in one round trip that bypasses the lanes. Events are not resolved. It returns the looks of the
// successful calls, and the first error.
func (s *Service) ReadNode(ctx context.Context, n *store.Node, shards []int, at func(shard int) Position) ([]ShardRead, error) {
	r := s.newRead(shards, readOfEach, sought{}, at, false)
	s.store.Exec(ctx, n, r.calls)
	return r.results(), store.FirstError(r.calls)
}

// Read reads on in some shards through the bulk lanes. Events are not resolved. It returns the looks of the successful calls, and the
// first error.
func (s *Service) Read(ctx context.Context, shards []int, at func(shard int) Position) ([]ShardRead, error) {
	return s.read(ctx, shards, readOfEach, sought{}, at, false)
}

func (s *Service) read(
	ctx context.Context, shards []int, ofEach int, of sought, at func(shard int) Position, back bool,
) ([]ShardRead, error) {
	r := s.newRead(shards, ofEach, of, at, back)
	s.store.DoBulk(ctx, "events", r.calls)
	return r.results(), store.FirstError(r.calls)
}

// reading is one read of several shards.
type reading struct {
	back   bool
	at     func(shard int) Position
	groups [][]int // of shards, one for each call
	calls  []*store.Call
}

func (s *Service) newRead(shards []int, ofEach int, of sought, at func(shard int) Position, back bool) *reading {
	r := &reading{back: back, at: at, groups: s.store.Together(shards)}
	for _, group := range r.groups {
		r.calls = append(r.calls, s.readCall(group, ofEach, of, func(shard int) string {
			if back {
				return at(shard).backwards()
			}
			return at(shard).forwards()
		}))
	}
	return r
}

// results returns the results of the successful calls for each of their shards.
func (r *reading) results() (all []ShardRead) {
	for i, c := range r.calls {
		if c.Err != nil {
			continue
		}
		for j, shard := range r.groups[i] {
			all = append(all, r.result(shard, readRead(c.Reply, j)))
		}
	}
	return all
}

func (r *reading) result(shard int, reply readReply) ShardRead {
	from := r.at(shard)
	l := ShardRead{Shard: shard, From: from, At: from, More: reply.more, Lost: reply.how == lost, read: reply.read}
	if reply.how == unread {
		return l
	}
	for _, entry := range reply.entries {
		if e := parse(shard, entry); e != nil {
			l.Events = append(l.Events, e)
		}
	}
	if !r.back && from.kind == atEntry && reply.how == continued {
		if len(l.Events) == 0 || l.Events[0].At.Mark != from.Mark {
			return ShardRead{Shard: shard, From: from, Lost: true, More: true} // another entry has the ID of the one that was read
		}
		l.Events = l.Events[1:]
	}
	if n := len(l.Events); n > 0 {
		l.At = l.Events[n-1].At
	} else if l.Lost {
		l.At = Position{}
	}
	if reply.how == trimmed && len(l.Events) > 0 {
		l.Gap = &Gap{From: from.Time(), To: l.Events[0].At.Time(), Shards: []int{shard}}
	}
	return l
}

// and returns the union of two gaps; nil is none.
func (g *Gap) and(other *Gap) *Gap {
	if g == nil || other == nil {
		if g == nil {
			return other
		}
		return g
	}
	both := &Gap{From: g.From, To: g.To, Shards: append(slices.Clone(g.Shards), other.Shards...)}
	if other.From.Before(both.From) {
		both.From = other.From
	}
	if other.To.After(both.To) {
		both.To = other.To
	}
	slices.Sort(both.Shards)
	both.Shards = slices.Compact(both.Shards)
	return both
}
