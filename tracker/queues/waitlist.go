package queues

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/lubdub-io/lubdub/tracker/model"
	"github.com/lubdub-io/lubdub/tracker/schema"
	"github.com/lubdub-io/lubdub/tracker/store"
)

// rooms are the queues in which claims of this replica wait. One look at Redis serves all that wait in a room, and
// while nothing becomes ready nobody looks: the first task of a class to become ready wakes the room (wake.go), and
// a slow look now and then finds what a lost message would have told.
type waitlists struct {
	mu     sync.Mutex
	byName map[string]*waitlist
}

const maxIdleWaitlists = 10000

func (r *waitlists) of(t *Service, scope model.Scope, queue string) *waitlist {
	name := scope.String() + "/" + queue
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.byName == nil {
		r.byName = map[string]*waitlist{}
	}
	if len(r.byName) >= maxIdleWaitlists {
		for name, idle := range r.byName {
			if idle.empty() {
				delete(r.byName, name)
			}
		}
	}
	m := r.byName[name]
	if m == nil {
		m = &waitlist{queues: t, name: name, offered: map[string]bool{}, served: map[string]uint64{}, todo: map[int]map[string]bool{}, depth: make([]int64, t.store.Shards()), out: make([]int, t.store.Shards())}
		r.byName[name] = m
	}
	m.expect()
	return m
}

func (r *waitlists) find(name string) *waitlist {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.byName[name]
}

// wakeAll has every room look through everything: something may have become ready unheard.
func (r *waitlists) wakeAll() {
	r.mu.Lock()
	all := make([]*waitlist, 0, len(r.byName))
	for _, m := range r.byName {
		all = append(all, m)
	}
	r.mu.Unlock()
	for _, m := range all {
		m.matchAll()
	}
}

// room matches the claims that wait in one queue with what is ready there.
type waitlist struct {
	queues *Service
	name   string // <tenant>/<workspace>/<queue>

	mu      sync.Mutex
	joining int // claims that are about to join
	waiters []*waitingClaim
	offered map[string]bool         // entries that a claim of this replica tries to take just now
	out     []int                   // how many of them there are in each shard
	todo    map[int]map[string]bool // by shard: the groups of classes in which something may be new
	running bool                    // somebody looks
	safety  *time.Timer

	served map[string]uint64 // by class: when a task of it was offered last, in turns; only the looker uses it
	turn   uint64
	next   int     // shard to begin with
	depth  []int64 // tasks that waited in each shard at the last look

	emptySince time.Time // all shards were looked through then, nothing waited and no word has come since; zero: not so
	words      uint64    // that have come
}

// waitingClaim is one claim in a room.
type waitingClaim struct {
	ClaimRequest
	grant  *grant
	places int
	offers chan *offer // one at a time, and before it perhaps the word that there is none
	fresh  bool        // nothing was offered yet, and not everything was looked through for it
	offer  *offer      // out and not resolved
}

// offer is what a claim may try to take. None means that there is nothing now.
type offer struct {
	to      *waitingClaim
	entries []*schema.ReadyEntry
	err     error
}

const (
	matchLimit   = 200 // entries of a class, a look, besides those on offer
	classLimit   = 100 // classes of a group, a look
	safetyPeriod = 10 * time.Second
	matchRetry   = 500 * time.Millisecond // until a look that failed is tried again
)

func (l *waitlist) expect() {
	l.mu.Lock()
	l.joining++
	l.mu.Unlock()
}

func (l *waitlist) empty() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.waiters) == 0 && l.joining == 0
}

func (l *waitlist) join(c *claim) *waitingClaim {
	w := &waitingClaim{ClaimRequest: c.ClaimRequest, grant: c.grant, places: c.places, offers: make(chan *offer, 2), fresh: true}
	l.queues.listener.start()
	l.mu.Lock()
	defer l.mu.Unlock()
	if c.Wait > 0 && time.Since(l.emptySince) < safetyPeriod {
		w.fresh = false // a word that is still on its way will wake it; a claim that does not wait must look
		w.offers <- &offer{to: w}
	}
	l.joining--
	l.waiters = append(l.waiters, w)
	l.queues.metrics.waiting.Inc()
	if l.safety == nil {
		l.safety = time.AfterFunc(store.Jittered(safetyPeriod), l.matchAll)
	}
	l.start()
	return w
}

// leave takes a claim out. An offer that it did not get to see goes back.
func (l *waitlist) leave(w *waitingClaim) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.queues.metrics.waiting.Dec()
	l.waiters = slices.DeleteFunc(l.waiters, func(o *waitingClaim) bool { return o == w })
	if w.offer != nil {
		l.release(w.offer, 0)
	}
	if len(l.waiters) == 0 && l.safety != nil {
		l.safety.Stop()
		l.safety = nil
	}
}

// resolve tells what became of an offer: the first `tried` of its entries were taken, by this claim or by another.
func (l *waitlist) resolve(o *offer, tried int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.release(o, tried)
}

func (l *waitlist) release(o *offer, tried int) {
	if o.to.offer != o {
		return // was released already
	}
	o.to.offer, o.to.fresh = nil, true
	for i, e := range o.entries {
		delete(l.offered, e.Text)
		l.out[e.Shard]--
		if i >= tried || len(l.waiters) > 1 { // behind what was taken more may wait: only the first of a class is told
			l.note(e.Shard, e.Class.Group())
		}
	}
	l.start()
}

// note has a group of a shard looked through again.
func (l *waitlist) note(shard int, group string) {
	if l.todo[shard] == nil {
		l.todo[shard] = map[string]bool{}
	}
	l.todo[shard][group] = true
}

// heard forgets that the room was empty: a word has come.
func (l *waitlist) heard() {
	l.emptySince = time.Time{}
	l.words++
}

// woken is told that the first task of a class became ready in a shard.
func (l *waitlist) woken(shard int, group string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.heard()
	if len(l.waiters) > 0 {
		l.note(shard, group)
		l.start()
	}
}

// lookAgain has everything looked through for everyone.
func (l *waitlist) matchAll() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.heard()
	if len(l.waiters) == 0 {
		return
	}
	for _, group := range groupsOf(l.waiters) {
		for shard := range l.depth {
			l.note(shard, group)
		}
	}
	if l.safety != nil {
		l.safety.Reset(store.Jittered(safetyPeriod))
	}
	l.start()
}

func groupsOf(waiters []*waitingClaim) []string {
	var all []string
	for _, w := range waiters {
		all = append(all, w.groups()...)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// start has somebody look unless somebody does. The caller holds the mutex.
func (l *waitlist) start() {
	if !l.running && (len(l.todo) > 0 || slices.ContainsFunc(l.waiters, (*waitingClaim).wants)) {
		l.running = true
		l.queues.store.Beside("looking at a queue", l.run)
	}
}

// wants tells whether the claim has still to be told what there is.
func (w *waitingClaim) wants() bool { return w.fresh && w.offer == nil }

// run looks until everyone who waits knows what there is.
func (l *waitlist) run() {
	for l.round() {
	}
}

// round looks once: through everything for those who have just come, and where something may be new for everyone.
func (l *waitlist) round() (more bool) {
	l.mu.Lock()
	if len(l.waiters) == 0 {
		clear(l.todo)
	}
	open := l.open()
	fresh := slices.DeleteFunc(slices.Clone(open), func(w *waitingClaim) bool { return !w.fresh })
	if len(open) == 0 || len(fresh) == 0 && len(l.todo) == 0 {
		l.running = false // whoever is free again starts the next look
		l.mu.Unlock()
		return false
	}
	m := &match{waitlist: l, open: open, todo: l.todo, all: groupsOf(fresh)}
	l.todo = map[int]map[string]bool{}
	start, words := time.Now(), l.words
	l.mu.Unlock()

	err := m.run(context.Background())

	l.mu.Lock()
	defer l.mu.Unlock()
	if err != nil { // what it was to look through must not be forgotten, and Redis not be asked again at once
		for shard, groups := range m.todo {
			for group := range groups {
				l.note(shard, group)
			}
		}
		l.joining++ // nor may the room
		time.AfterFunc(store.Jittered(matchRetry), l.retry)
	}
	if err == nil && m.shards == len(l.depth) && l.words == words && !slices.ContainsFunc(l.depth, func(n int64) bool { return n > 0 }) {
		l.emptySince = start
	}
	told := fresh
	if err != nil {
		told = l.waiters // also those who came meanwhile: the next look is a while away
	}
	for _, w := range told {
		if w.wants() {
			w.fresh = false
			w.offers <- &offer{to: w, err: err}
		}
	}
	l.running = err == nil
	return l.running
}

// retry looks again after a look that failed.
func (l *waitlist) retry() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.joining--; len(l.waiters) > 0 {
		l.start()
	}
}

// open lists the claims that could take something. The caller holds the mutex.
func (l *waitlist) open() []*waitingClaim {
	return slices.DeleteFunc(slices.Clone(l.waiters), func(w *waitingClaim) bool { return w.offer != nil })
}

// offerTo hands an offer over, unless the claim has left. Then the next look finds what it would have got.
func (l *waitlist) offerTo(w *waitingClaim, entries []*schema.ReadyEntry) {
	l.mu.Lock()
	defer l.mu.Unlock()
	o := &offer{to: w, entries: entries}
	if !slices.Contains(l.waiters, w) {
		for _, e := range entries {
			l.note(e.Shard, e.Class.Group())
		}
		return
	}
	for _, e := range entries {
		l.offered[e.Text] = true
		l.out[e.Shard]++
	}
	w.offer, w.fresh = o, false
	w.offers <- o
}
