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
type match struct {
	waitlist *waitlist
	open     []*waitingClaim
	todo     map[int]map[string]bool // groups to look through, by shard
	all      []string                // groups to look through in every shard

	shards int // that were read

	wants map[*waitingClaim]int // places that still have nothing
	found map[*waitingClaim][]*schema.ReadyEntry
}

func (m *match) run(ctx context.Context) error {
	m.wants, m.found = map[*waitingClaim]int{}, map[*waitingClaim][]*schema.ReadyEntry{}
	for _, w := range m.open {
		m.wants[w] = w.places
	}
	var err error
	for shards := m.order(); len(shards) > 0 && m.hungry(); {
		// With much waiting in many shards a few of them are enough; what they lack the next ones may have.
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

// hungry tells whether a claim has nothing yet. Those that have something do not wait for more.
func (m *match) hungry() bool {
	return slices.ContainsFunc(m.open, func(w *waitingClaim) bool { return len(m.found[w]) == 0 })
}

// order lists the shards to read: those in which something waited at the last look first, beginning with another one
// each time, then the others.
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

// read reads shards and shares out what it finds. It goes on where the classes of a group are more than a script
// lists at once, so that tasks which nobody here can run do not hide those behind them.
func (m *match) read(ctx context.Context, shards []int) error {
	after := map[int]map[string]string{} // by shard and group: the class after which to go on
	for _, shard := range shards {
		after[shard] = map[string]string{}
		for _, group := range m.all {
			after[shard][group] = ""
		}
		for group := range m.todo[shard] {
			after[shard][group] = ""
		}
	}
	for len(after) > 0 && m.hungry() {
		calls, groups := m.calls(after)
		m.waitlist.queues.store.DoAll(ctx, "claim", calls)
		m.waitlist.queues.metrics.looks.Add(float64(len(calls)))
		after = map[int]map[string]string{}
		var entries []*schema.ReadyEntry
		for i, c := range calls {
			if c.Err != nil {
				return c.Err
			}
			m.waitlist.depth[c.Shard] = c.Reply.Int(1)
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
		m.share(ctx, entries)
	}
	return nil
}

func (m *match) calls(after map[int]map[string]string) (calls []*store.Call, groups [][]string) {
	m.waitlist.mu.Lock()
	out := slices.Clone(m.waitlist.out) // may all stand before those that are free
	m.waitlist.mu.Unlock()
	limit := min(m.want(), matchLimit)
	for shard, of := range after {
		k := m.waitlist.queues.store.Keys[shard]
		args := []any{m.waitlist.name, limit + out[shard], classLimit}
		var asked []string
		for group, class := range of {
			asked = append(asked, group)
			args = append(args, group, class)
		}
		calls = append(calls, store.NewCall(shard, m.waitlist.queues.store.Scripts.Get("ready"), []string{k.Ready, k.Pauses}, args...))
		groups = append(groups, asked)
	}
	return calls, groups
}

// share gives entries to claims that can run them: class by class in turns, beginning with the class that was served
// longest ago; within a class the oldest first; among claims to the one that has got least.
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
func (m *match) takers(e *schema.ReadyEntry, labels askedLabels) []*waitingClaim {
	asked, known := labels.of(e.Class)
	if !known {
		return nil
	}
	var takers []*waitingClaim
	for _, w := range m.open {
		if w.fits(e.Class, asked) {
			takers = append(takers, w)
		}
	}
	return takers
}

// least gives the claim that has got least and wants more; of several the one that came first.
func (m *match) least(takers []*waitingClaim) *waitingClaim {
	var least *waitingClaim
	for _, w := range takers {
		if m.wants[w] > 0 && (least == nil || len(m.found[w]) < len(m.found[least])) {
			least = w
		}
	}
	return least
}
