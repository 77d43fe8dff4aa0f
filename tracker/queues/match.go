package queues

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/lubdub-io/lubdub/tracker/schema"
	"github.com/lubdub-io/lubdub/tracker/store"
)

// match pairs the waiting claims of a queue with its ready tasks, once: it reads as few shards as the claims need and offers what
// fits. Its goroutine owns it.
type match struct {
	waitlist *waitlist
	open     []*waitingClaim
	todo     map[int]map[string]bool // groups to read, by shard
	all      []string                // groups to read in every shard

	shards int // number of shards read

	wants map[*waitingClaim]int // places without a task so far
	found map[*waitingClaim][]*schema.ReadyEntry
}

func (m *match) run(ctx context.Context) error {
	m.wants, m.found = map[*waitingClaim]int{}, map[*waitingClaim][]*schema.ReadyEntry{}
	for _, w := range m.open {
		m.wants[w] = w.places
	}
	var err error
	for shards := m.order(); len(shards) > 0 && m.hungry(); {
		// When many tasks wait in many shards, a few shards are enough; the next ones may have what is missing.
		k := min(len(shards), max(1, (m.want()+3)/4))
		if m.waitlist.depth[shards[0]] == 0 {
			k = len(shards) // nothing is known to wait: one round trip for all
		}
		if err = m.read(ctx, shards[:k]); err != nil {
			break
		}
		m.shards += k
		shards = shards[k:]
	}
	for _, w := range m.open {
		if entries := m.found[w]; len(entries) > 0 {
			m.waitlist.offerTo(w, entries)
		}
	}
	return err
}

func (m *match) want() (n int) {
	for _, k := range m.wants {
		n += k
	}
	return n
}

// hungry reports whether some claim has no task yet. Claims that have one do not wait for more.
func (m *match) hungry() bool {
	return slices.ContainsFunc(m.open, func(w *waitingClaim) bool { return len(m.found[w]) == 0 })
}

// order lists the shards to read: first those with waiting tasks at their last read or with something new, starting with a
// different one each time, then the others.
func (m *match) order() []int {
	l := m.waitlist
	n := len(l.depth)
	var some, none []int
	for i := range n {
		shard := (l.next + i) % n
		switch {
		case len(m.all) == 0 && m.todo[shard] == nil:
		case l.depth[shard] > 0 || m.todo[shard] != nil:
			some = append(some, shard)
		default:
			none = append(none, shard)
		}
	}
	l.next = (l.next + 1) % n
	return append(some, none...)
}

// read reads shards and distributes what it finds. It continues where a group has more classes than a script lists at once, so
// that tasks that no claim here can take do not hide those behind them.
func (m *match) read(ctx context.Context, shards []int) error {
	left := map[int][]groupAfter{}
	for _, shard := range shards {
		for group := range m.groupsIn(shard) {
			left[shard] = append(left[shard], groupAfter{group: group})
		}
	}
	l := m.waitlist
	for len(left) > 0 && m.hungry() {
		calls := m.calls(left)
		l.queues.store.DoAll(ctx, "claim", calls)
		l.queues.metrics.reads.Add(float64(len(calls)))
		if err := store.FirstError(calls); err != nil {
			return err
		}
		rest := map[int][]groupAfter{}
		var entries []*schema.ReadyEntry
		for _, c := range calls {
			reply := readReady(c.Reply, c.Shard, left[c.Shard])
			l.depth[c.Shard] = reply.waiting
			entries = append(entries, reply.entries...)
			if len(reply.rest) > 0 {
				rest[c.Shard] = reply.rest
			}
		}
		left = rest
		m.share(ctx, entries)
	}
	return nil
}

// groupsIn returns the groups to read in a shard, in random order: otherwise a script would always run out of time for the same
// ones.
func (m *match) groupsIn(shard int) map[string]bool {
	groups := map[string]bool{}
	for _, group := range m.all {
		groups[group] = true
	}
	maps.Copy(groups, m.todo[shard])
	return groups
}

func (m *match) calls(left map[int][]groupAfter) (calls []*store.Call) {
	l := m.waitlist
	l.mu.Lock()
	out := slices.Clone(l.out) // all of these may come before the free ones
	l.mu.Unlock()
	limit := min(m.want(), matchLimit)
	for shard, groups := range left {
		calls = append(calls, l.queues.readyCall(shard, l.name, limit+out[shard], groups))
	}
	return calls
}

// share distributes entries to claims that can run them: the classes take turns, starting with the one served longest ago; within
// a class the oldest entry is first; among claims the one with the fewest gets it.
func (m *match) share(ctx context.Context, entries []*schema.ReadyEntry) {
	l := m.waitlist
	l.mu.Lock()
	byClass := map[string][]*schema.ReadyEntry{}
	for _, e := range entries {
		if !l.offered[e.Text] {
			byClass[e.Class.Name] = append(byClass[e.Class.Name], e)
		}
	}
	l.mu.Unlock()
	var queue [][]*schema.ReadyEntry
	var heads []*schema.ReadyEntry
	for _, of := range byClass {
		slices.SortFunc(of, func(a, b *schema.ReadyEntry) int {
			return cmp.Or(strings.Compare(a.Since, b.Since), strings.Compare(a.Ref.ID, b.Ref.ID))
		})
		heads = append(heads, of[0])
	}
	labels := l.queues.labelsOf(ctx, heads)
	for _, of := range byClass {
		if m.takers(of[0], labels) != nil {
			queue = append(queue, slices.CompactFunc(of, func(a, b *schema.ReadyEntry) bool { return a.Text == b.Text }))
		}
	}
	if len(l.served) > maxIdleWaitlists {
		clear(l.served)
	}
	slices.SortFunc(queue, func(a, b []*schema.ReadyEntry) int {
		return cmp.Or(cmp.Compare(l.served[a[0].Class.Name], l.served[b[0].Class.Name]), strings.Compare(a[0].Since, b[0].Since),
			strings.Compare(a[0].Class.Name, b[0].Class.Name))
	})
	takers := map[string][]*waitingClaim{}
	for len(queue) > 0 {
		var left [][]*schema.ReadyEntry
		for _, of := range queue {
			name := of[0].Class.Name
			if takers[name] == nil {
				takers[name] = m.takers(of[0], labels)
			}
			w := m.least(takers[name])
			if w == nil {
				continue
			}
			m.found[w] = append(m.found[w], of[0])
			m.wants[w]--
			l.turn++
			l.served[name] = l.turn
			if len(of) > 1 {
				left = append(left, of[1:])
			}
		}
		queue = left
	}
}

// takers lists the claims that can run the class of an entry.
func (m *match) takers(e *schema.ReadyEntry, labels requiredLabels) []*waitingClaim {
	required, known := labels.of(e.Class)
	if !known {
		return nil
	}
	var takers []*waitingClaim
	for _, w := range m.open {
		if w.fits(e.Class, required) {
			takers = append(takers, w)
		}
	}
	return takers
}

// least returns the claim with the fewest entries that wants more; among equals the one that came first.
func (m *match) least(takers []*waitingClaim) *waitingClaim {
	var least *waitingClaim
	for _, w := range takers {
		if m.wants[w] > 0 && (least == nil || len(m.found[w]) < len(m.found[least])) {
			least = w
		}
	}
	return least
}
