package queues

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/lubdub-io/lubdub/tracker/schema"
	"github.com/lubdub-io/lubdub/tracker/store"
)

// look is one look at what is ready in a queue: it reads as few shards as those who wait need, and offers what fits.
type look struct {
	room *room
	open []*waitingClaim
	todo map[int]map[string]bool // groups to look through, by shard
	all  []string                // groups to look through in every shard

	shards int // that were read

	wants map[*waitingClaim]int // places that still have nothing
	found map[*waitingClaim][]*schema.ReadyEntry
}

func (l *look) run(ctx context.Context) error {
	l.wants, l.found = map[*waitingClaim]int{}, map[*waitingClaim][]*schema.ReadyEntry{}
	for _, w := range l.open {
		l.wants[w] = w.places
	}
	var err error
	for shards := l.order(); len(shards) > 0 && l.hungry(); {
		// With much waiting in many shards a few of them are enough; what they lack the next ones may have.
		k := min(len(shards), max(1, (l.want()+3)/4))
		if l.room.depth[shards[0]] == 0 {
			k = len(shards) // nothing is known to wait: one round trip for all
		}
		if err = l.read(ctx, shards[:k]); err != nil {
			break
		}
		l.shards += k
		shards = shards[k:]
	}
	for _, w := range l.open {
		if entries := l.found[w]; len(entries) > 0 {
			l.room.offerTo(w, entries)
		}
	}
	return err
}

func (l *look) want() (n int) {
	for _, k := range l.wants {
		n += k
	}
	return n
}

// hungry tells whether a claim has nothing yet. Those that have something do not wait for more.
func (l *look) hungry() bool {
	return slices.ContainsFunc(l.open, func(w *waitingClaim) bool { return len(l.found[w]) == 0 })
}

// order lists the shards to read: those in which something waited at the last look first, beginning with another one
// each time, then the others.
func (l *look) order() []int {
	m := l.room
	n := len(m.depth)
	var some, none []int
	for i := range n {
		shard := (m.next + i) % n
		switch {
		case len(l.all) == 0 && l.todo[shard] == nil:
		case m.depth[shard] > 0 || l.todo[shard] != nil:
			some = append(some, shard)
		default:
			none = append(none, shard)
		}
	}
	m.next = (m.next + 1) % n
	return append(some, none...)
}

// read reads shards and shares out what it finds. It goes on where the classes of a group are more than a script
// lists at once, so that tasks which nobody here can run do not hide those behind them.
func (l *look) read(ctx context.Context, shards []int) error {
	after := map[int]map[string]string{} // by shard and group: the class after which to go on
	for _, shard := range shards {
		after[shard] = map[string]string{}
		for _, group := range l.all {
			after[shard][group] = ""
		}
		for group := range l.todo[shard] {
			after[shard][group] = ""
		}
	}
	for len(after) > 0 && l.hungry() {
		calls, groups := l.calls(after)
		l.room.t.store.DoAll(ctx, "claim", calls)
		l.room.t.metrics.looks.Add(float64(len(calls)))
		after = map[int]map[string]string{}
		var entries []*schema.ReadyEntry
		for i, c := range calls {
			if c.Err != nil {
				return c.Err
			}
			l.room.depth[c.Shard] = c.Reply.Int(1)
			for _, text := range c.Reply.List(2).Strings() {
				if e, ok := schema.ParseReady(text, c.Shard); ok {
					entries = append(entries, e)
				}
			}
			for j, class := range c.Reply.List(3).Strings() {
				if class != "" {
					if class == "/" { // the script had enough before it
						class = ""
					}
					if after[c.Shard] == nil {
						after[c.Shard] = map[string]string{}
					}
					after[c.Shard][groups[i][j]] = class
				}
			}
		}
		l.share(ctx, entries)
	}
	return nil
}

func (l *look) calls(after map[int]map[string]string) (calls []*store.Call, groups [][]string) {
	l.room.mu.Lock()
	out := slices.Clone(l.room.out) // may all stand before those that are free
	l.room.mu.Unlock()
	limit := min(l.want(), lookLimit)
	for shard, of := range after {
		k := l.room.t.store.Keys[shard]
		args := []any{l.room.name, limit + out[shard], classLimit}
		var asked []string
		for group, class := range of {
			asked = append(asked, group)
			args = append(args, group, class)
		}
		calls = append(calls, store.NewCall(shard, l.room.t.store.Scripts.Get("ready"), []string{k.Ready, k.Pauses}, args...))
		groups = append(groups, asked)
	}
	return calls, groups
}

// share gives entries to claims that can run them: class by class in turns, beginning with the class that was served
// longest ago; within a class the oldest first; among claims to the one that has got least.
func (l *look) share(ctx context.Context, entries []*schema.ReadyEntry) {
	m := l.room
	m.mu.Lock()
	byClass := map[string][]*schema.ReadyEntry{}
	for _, e := range entries {
		if !m.offered[e.Text] {
			byClass[e.Class.Name] = append(byClass[e.Class.Name], e)
		}
	}
	m.mu.Unlock()
	var queue [][]*schema.ReadyEntry
	var heads []*schema.ReadyEntry
	for _, of := range byClass {
		slices.SortFunc(of, func(a, b *schema.ReadyEntry) int {
			return cmp.Or(strings.Compare(a.Since, b.Since), strings.Compare(a.Ref.ID, b.Ref.ID))
		})
		heads = append(heads, of[0])
	}
	labels := m.t.labelsOf(ctx, heads)
	for _, of := range byClass {
		if l.takers(of[0], labels) != nil {
			queue = append(queue, slices.CompactFunc(of, func(a, b *schema.ReadyEntry) bool { return a.Text == b.Text }))
		}
	}
	if len(m.served) > maxIdleRooms {
		clear(m.served)
	}
	slices.SortFunc(queue, func(a, b []*schema.ReadyEntry) int {
		return cmp.Or(cmp.Compare(m.served[a[0].Class.Name], m.served[b[0].Class.Name]), strings.Compare(a[0].Since, b[0].Since),
			strings.Compare(a[0].Class.Name, b[0].Class.Name))
	})
	takers := map[string][]*waitingClaim{}
	for len(queue) > 0 {
		var left [][]*schema.ReadyEntry
		for _, of := range queue {
			name := of[0].Class.Name
			if takers[name] == nil {
				takers[name] = l.takers(of[0], labels)
			}
			w := l.least(takers[name])
			if w == nil {
				continue
			}
			l.found[w] = append(l.found[w], of[0])
			l.wants[w]--
			m.turn++
			m.served[name] = m.turn
			if len(of) > 1 {
				left = append(left, of[1:])
			}
		}
		queue = left
	}
}

// takers lists the claims that can run the class of an entry.
func (l *look) takers(e *schema.ReadyEntry, labels askedLabels) []*waitingClaim {
	asked, known := labels.of(e.Class)
	if !known {
		return nil
	}
	var takers []*waitingClaim
	for _, w := range l.open {
		if w.fits(e.Class, asked) {
			takers = append(takers, w)
		}
	}
	return takers
}

// least gives the claim that has got least and wants more; of several the one that came first.
func (l *look) least(takers []*waitingClaim) *waitingClaim {
	var least *waitingClaim
	for _, w := range takers {
		if l.wants[w] > 0 && (least == nil || len(l.found[w]) < len(l.found[least])) {
			least = w
		}
	}
	return least
}
