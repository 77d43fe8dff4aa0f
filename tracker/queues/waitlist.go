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
type rooms struct {
	mu     sync.Mutex
	byName map[string]*room
}

const maxIdleRooms = 10000

func (r *rooms) of(t *Service, scope model.Scope, queue string) *room {
	name := scope.String() + "/" + queue
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.byName == nil {
		r.byName = map[string]*room{}
	}
	if len(r.byName) >= maxIdleRooms {
		for name, idle := range r.byName {
			if idle.empty() {
				delete(r.byName, name)
			}
		}
	}
	m := r.byName[name]
	if m == nil {
		m = &room{t: t, name: name, offered: map[string]bool{}, served: map[string]uint64{}, todo: map[int]map[string]bool{}, depth: make([]int64, t.store.Shards()), out: make([]int, t.store.Shards())}
		r.byName[name] = m
	}
	m.hold()
	return m
}

func (r *rooms) find(name string) *room {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.byName[name]
}

// wakeAll has every room look through everything: something may have become ready unheard.
func (r *rooms) wakeAll() {
	r.mu.Lock()
	all := make([]*room, 0, len(r.byName))
	for _, m := range r.byName {
		all = append(all, m)
	}
	r.mu.Unlock()
	for _, m := range all {
		m.lookAgain()
	}
}

// room matches the claims that wait in one queue with what is ready there.
type room struct {
	t    *Service
	name string // <tenant>/<workspace>/<queue>

	mu      sync.Mutex
	held    int // claims that are about to join
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
	can    *grant
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
	lookLimit    = 200 // entries of a class, a look, besides those on offer
	classLimit   = 100 // classes of a group, a look
	safetyPeriod = 10 * time.Second
	lookRetry    = 500 * time.Millisecond // until a look that failed is tried again
)

func (m *room) hold() {
	m.mu.Lock()
	m.held++
	m.mu.Unlock()
}

func (m *room) empty() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.waiters) == 0 && m.held == 0
}

func (m *room) join(c *claim) *waitingClaim {
	w := &waitingClaim{ClaimRequest: c.ClaimRequest, can: c.can, places: c.room, offers: make(chan *offer, 2), fresh: true}
	m.t.listener.start()
	m.mu.Lock()
	defer m.mu.Unlock()
	if c.Wait > 0 && time.Since(m.emptySince) < safetyPeriod {
		w.fresh = false // a word that is still on its way will wake it; a claim that does not wait must look
		w.offers <- &offer{to: w}
	}
	m.held--
	m.waiters = append(m.waiters, w)
	m.t.metrics.waiting.Inc()
	if m.safety == nil {
		m.safety = time.AfterFunc(store.Jittered(safetyPeriod), m.lookAgain)
	}
	m.start()
	return w
}

// leave takes a claim out. An offer that it did not get to see goes back.
func (m *room) leave(w *waitingClaim) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.t.metrics.waiting.Dec()
	m.waiters = slices.DeleteFunc(m.waiters, func(o *waitingClaim) bool { return o == w })
	if w.offer != nil {
		m.release(w.offer, 0)
	}
	if len(m.waiters) == 0 && m.safety != nil {
		m.safety.Stop()
		m.safety = nil
	}
}

// resolve tells what became of an offer: the first `tried` of its entries were taken, by this claim or by another.
func (m *room) resolve(o *offer, tried int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.release(o, tried)
}

func (m *room) release(o *offer, tried int) {
	if o.to.offer != o {
		return // was released already
	}
	o.to.offer, o.to.fresh = nil, true
	for i, e := range o.entries {
		delete(m.offered, e.Text)
		m.out[e.Shard]--
		if i >= tried || len(m.waiters) > 1 { // behind what was taken more may wait: only the first of a class is told
			m.note(e.Shard, e.Class.Group())
		}
	}
	m.start()
}

// note has a group of a shard looked through again.
func (m *room) note(shard int, group string) {
	if m.todo[shard] == nil {
		m.todo[shard] = map[string]bool{}
	}
	m.todo[shard][group] = true
}

// heard forgets that the room was empty: a word has come.
func (m *room) heard() {
	m.emptySince = time.Time{}
	m.words++
}

// woken is told that the first task of a class became ready in a shard.
func (m *room) woken(shard int, group string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.heard()
	if len(m.waiters) > 0 {
		m.note(shard, group)
		m.start()
	}
}

// lookAgain has everything looked through for everyone.
func (m *room) lookAgain() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.heard()
	if len(m.waiters) == 0 {
		return
	}
	for _, group := range groupsOf(m.waiters) {
		for shard := range m.depth {
			m.note(shard, group)
		}
	}
	if m.safety != nil {
		m.safety.Reset(store.Jittered(safetyPeriod))
	}
	m.start()
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
func (m *room) start() {
	if !m.running && (len(m.todo) > 0 || slices.ContainsFunc(m.waiters, (*waitingClaim).wants)) {
		m.running = true
		m.t.store.Background.Go(m.t.store.Guard("looking at a queue", m.run))
	}
}

// wants tells whether the claim has still to be told what there is.
func (w *waitingClaim) wants() bool { return w.fresh && w.offer == nil }

// run looks until everyone who waits knows what there is.
func (m *room) run() {
	for m.round() {
	}
}

// round looks once: through everything for those who have just come, and where something may be new for everyone.
func (m *room) round() (more bool) {
	m.mu.Lock()
	if len(m.waiters) == 0 {
		clear(m.todo)
	}
	open := m.open()
	fresh := slices.DeleteFunc(slices.Clone(open), func(w *waitingClaim) bool { return !w.fresh })
	if len(open) == 0 || len(fresh) == 0 && len(m.todo) == 0 {
		m.running = false // whoever is free again starts the next look
		m.mu.Unlock()
		return false
	}
	l := &look{room: m, open: open, todo: m.todo, all: groupsOf(fresh)}
	m.todo = map[int]map[string]bool{}
	start, words := time.Now(), m.words
	m.mu.Unlock()

	err := l.run(context.Background())

	m.mu.Lock()
	defer m.mu.Unlock()
	if err != nil { // what it was to look through must not be forgotten, and Redis not be asked again at once
		for shard, groups := range l.todo {
			for group := range groups {
				m.note(shard, group)
			}
		}
		m.held++ // nor may the room
		time.AfterFunc(store.Jittered(lookRetry), m.retry)
	}
	if err == nil && l.shards == len(m.depth) && m.words == words && !slices.ContainsFunc(m.depth, func(n int64) bool { return n > 0 }) {
		m.emptySince = start
	}
	told := fresh
	if err != nil {
		told = m.waiters // also those who came meanwhile: the next look is a while away
	}
	for _, w := range told {
		if w.wants() {
			w.fresh = false
			w.offers <- &offer{to: w, err: err}
		}
	}
	m.running = err == nil
	return m.running
}

// retry looks again after a look that failed.
func (m *room) retry() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.held--; len(m.waiters) > 0 {
		m.start()
	}
}

// open lists the claims that could take something. The caller holds the mutex.
func (m *room) open() []*waitingClaim {
	return slices.DeleteFunc(slices.Clone(m.waiters), func(w *waitingClaim) bool { return w.offer != nil })
}

// offerTo hands an offer over, unless the claim has left. Then the next look finds what it would have got.
func (m *room) offerTo(w *waitingClaim, entries []*schema.ReadyEntry) {
	m.mu.Lock()
	defer m.mu.Unlock()
	o := &offer{to: w, entries: entries}
	if !slices.Contains(m.waiters, w) {
		for _, e := range entries {
			m.note(e.Shard, e.Class.Group())
		}
		return
	}
	for _, e := range entries {
		m.offered[e.Text] = true
		m.out[e.Shard]++
	}
	w.offer, w.fresh = o, false
	w.offers <- o
}
