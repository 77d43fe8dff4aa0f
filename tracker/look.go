package tracker

import (
	"cmp"
	"slices"
	"strings"
)

// look is one look at what is ready in a queue: it reads as few shards as those who wait need, and offers what fits.
type look struct {
	room *room
	open []*waitingClaim
	todo map[int]map[string]bool // groups to look through, by shard
	all  []string                // groups to look through in every shard

	shards int // that were read

	wants map[*waitingClaim]int // places that still have nothing
	found map[*waitingClaim][]*readyEntry
}

func (l *look) run() error {
	l.wants, l.found = map[*waitingClaim]int{}, map[*waitingClaim][]*readyEntry{}
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
		if err = l.read(shards[:k]); err != nil {
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
func (l *look) read(shards []int) error {
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
		l.room.t.store.doAll("claim", calls)
		l.room.t.metrics.claims.looks.Add(float64(len(calls)))
		after = map[int]map[string]string{}
		var entries []*readyEntry
		for i, c := range calls {
			if c.err != nil {
				return c.err
			}
			l.room.depth[c.shard] = c.reply.int(1)
			for _, text := range c.reply.list(2).strings() {
				if e, ok := parseReady(text, c.shard); ok {
					entries = append(entries, e)
				}
			}
			for j, class := range c.reply.list(3).strings() {
				if class != "" {
					if class == "/" { // the script had enough before it
						class = ""
					}
					if after[c.shard] == nil {
						after[c.shard] = map[string]string{}
					}
					after[c.shard][groups[i][j]] = class
				}
			}
		}
		l.share(entries)
	}
	return nil
}

func (l *look) calls(after map[int]map[string]string) (calls []*call, groups [][]string) {
	l.room.mu.Lock()
	out := slices.Clone(l.room.out) // may all stand before those that are free
	l.room.mu.Unlock()
	limit := min(l.want(), lookLimit)
	for shard, of := range after {
		k := l.room.t.store.keys[shard]
		args := []any{l.room.name, limit + out[shard], classLimit}
		var asked []string
		for group, class := range of {
			asked = append(asked, group)
			args = append(args, group, class)
		}
		calls = append(calls, newCall(shard, l.room.t.store.scripts.Get("ready"), []string{k.ready, k.pauses}, args...))
		groups = append(groups, asked)
	}
	return calls, groups
}

// share gives entries to claims that can run them: class by class in turns, beginning with the class that was served
// longest ago; within a class the oldest first; among claims to the one that has got least.
func (l *look) share(entries []*readyEntry) {
	m := l.room
	m.mu.Lock()
	byClass := map[string][]*readyEntry{}
	for _, e := range entries {
		if !m.offered[e.text] {
			byClass[e.class.name] = append(byClass[e.class.name], e)
		}
	}
	m.mu.Unlock()
	var queue [][]*readyEntry
	var heads []*readyEntry
	for _, of := range byClass {
		slices.SortFunc(of, func(a, b *readyEntry) int {
			return cmp.Or(strings.Compare(a.since, b.since), strings.Compare(a.ref.id, b.ref.id))
		})
		heads = append(heads, of[0])
	}
	labels := m.t.labelsOf(heads)
	for _, of := range byClass {
		if l.takers(of[0], labels) != nil {
			queue = append(queue, slices.CompactFunc(of, func(a, b *readyEntry) bool { return a.text == b.text }))
		}
	}
	if len(m.served) > maxIdleRooms {
		clear(m.served)
	}
	slices.SortFunc(queue, func(a, b []*readyEntry) int {
		return cmp.Or(cmp.Compare(m.served[a[0].class.name], m.served[b[0].class.name]), strings.Compare(a[0].since, b[0].since),
			strings.Compare(a[0].class.name, b[0].class.name))
	})
	takers := map[string][]*waitingClaim{}
	for len(queue) > 0 {
		var left [][]*readyEntry
		for _, of := range queue {
			name := of[0].class.name
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
func (l *look) takers(e *readyEntry, labels askedLabels) []*waitingClaim {
	asked, known := labels.of(e.class)
	if !known {
		return nil
	}
	var takers []*waitingClaim
	for _, w := range l.open {
		if w.fits(e.class, asked) {
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
