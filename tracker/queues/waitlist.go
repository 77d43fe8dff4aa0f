package queues

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/lubdub-io/lubdub/tracker/model"
	"github.com/lubdub-io/lubdub/tracker/schema"
	"github.com/lubdub-io/lubdub/tracker/store"
)

// waitlists are the queues in which claims of this replica wait. One read of Redis serves all claims of a queue, and while nothing
// becomes ready Redis is not read: the first ready task of a class wakes the waitlist (wake.go), and a slow periodic scan finds
// what a lost message would have announced.
type waitlists struct {
	mu     sync.Mutex           // protects the map
	byName map[string]*waitlist // <tenant>/<workspace>/<queue>
}

const maxIdleWaitlists = 10000

// of returns the waitlist of a queue, which then expects a claim.
func (w *waitlists) of(s *Service, scope model.Scope, queue string) *waitlist {
	name := scope.String() + "/" + queue
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.byName == nil {
		w.byName = map[string]*waitlist{}
	}
	if len(w.byName) >= maxIdleWaitlists {
		for name, idle := range w.byName {
			if idle.empty() {
				delete(w.byName, name)
			}
		}
	}
	l := w.byName[name]
	if l == nil {
		l = &waitlist{
			queues: s, name: name, offered: map[string]bool{}, served: map[string]uint64{}, todo: map[int]map[string]bool{},
			depth: make([]int64, s.store.Shards()), out: make([]int, s.store.Shards()),
		}
		w.byName[name] = l
	}
	l.expect()
	return l
}

func (w *waitlists) find(name string) *waitlist {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.byName[name]
}

// wakeAll makes every waitlist read everything: a task may have become ready unnoticed.
func (w *waitlists) wakeAll() {
	w.mu.Lock()
	lists := slices.Collect(maps.Values(w.byName))
	w.mu.Unlock()
	for _, l := range lists {
		l.matchAll()
	}
}

// waitlist is the claims that wait in one queue; they are matched with what is ready there (match.go).
type waitlist struct {
	queues *Service
	name   string // <tenant>/<workspace>/<queue>

	mu      sync.Mutex // protects what follows
	joining int        // claims that are about to join
	waiters []*waitingClaim
	offered map[string]bool         // entries that a claim of this replica is trying to take
	out     []int                   // how many of them there are in each shard
	todo    map[int]map[string]bool // by shard: the groups of classes in which something may be new
	running bool                    // a goroutine is matching
	safety  *time.Timer

	emptySince time.Time // when all shards were read while nothing waited, if no wake has come since; else zero
	wakes      uint64    // number of wakes so far

	// Only the goroutine that matches uses these; `running` ensures that there is one at a time.
	served map[string]uint64 // by class: when a task of it was last offered, in turns
	turn   uint64
	next   int     // shard to begin with
	depth  []int64 // tasks that waited in each shard at its last read; round reads it in between
}

const (
	matchLimit   = 200 // entries of a class per match, in addition to those on offer
	classLimit   = 100 // classes of a group per script
	safetyPeriod = 10 * time.Second
	matchRetry   = 500 * time.Millisecond // until a failed match is retried
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

func (l *waitlist) join(c *claim, places int) *waitingClaim {
	w := &waitingClaim{ClaimRequest: c.ClaimRequest, list: l, can: c.can, places: places, offers: make(chan *offer, 2), fresh: true}
	l.queues.store.ListenForWakes()
	l.mu.Lock()
	defer l.mu.Unlock()
	if c.Wait > 0 && time.Since(l.emptySince) < l.queues.safety {
		w.fresh = false // a wake that is still on its way will reach it; a claim that does not wait must read
		w.offers <- &offer{to: w}
	}
	l.joining--
	l.waiters = append(l.waiters, w)
	l.queues.metrics.waiting.Inc()
	if l.safety == nil {
		l.safety = time.AfterFunc(store.Jittered(l.queues.safety), l.matchAll)
	}
	l.start()
	return w
}

// leave removes a claim and gives back an offer that it has not seen.
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

// resolve ends an offer: this claim or another one took its first `tried` entries.
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
		if i >= tried || len(l.waiters) > 1 { // more may wait behind what was taken: only the first task of a class is announced
			l.note(e.Shard, e.Class.Group())
		}
	}
	l.start()
}

// note marks a group of a shard to be read again.
func (l *waitlist) note(shard int, group string) {
	if l.todo[shard] == nil {
		l.todo[shard] = map[string]bool{}
	}
	l.todo[shard][group] = true
}

// noteWake records a wake, after which the queue may not be empty.
func (l *waitlist) noteWake() {
	l.emptySince = time.Time{}
	l.wakes++
}

// woken handles the message that the first task of a class became ready in a shard.
func (l *waitlist) woken(shard int, group string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.noteWake()
	if len(l.waiters) > 0 {
		l.note(shard, group)
		l.start()
	}
}

// matchAll makes all shards be read for all claims.
func (l *waitlist) matchAll() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.noteWake()
	if len(l.waiters) == 0 {
		return
	}
	for _, group := range groupsOf(l.waiters) {
		for shard := range l.depth {
			l.note(shard, group)
		}
	}
	if l.safety != nil {
		l.safety.Reset(store.Jittered(l.queues.safety))
	}
	l.start()
}

// start starts a goroutine that matches unless one is running. The caller holds the mutex.
func (l *waitlist) start() {
	if !l.running && (len(l.todo) > 0 || slices.ContainsFunc(l.waiters, (*waitingClaim).wants)) {
		l.running = true
		l.queues.store.Go("looking at a queue", l.run)
	}
}

// run matches until all waiting claims know what is ready.
func (l *waitlist) run() {
	for l.round() {
	}
}

// round matches once: everything for new claims, and what may be new for all claims.
func (l *waitlist) round() (more bool) {
	l.mu.Lock()
	if len(l.waiters) == 0 {
		clear(l.todo)
	}
	open := l.open()
	fresh := slices.DeleteFunc(slices.Clone(open), func(w *waitingClaim) bool { return !w.fresh })
	if len(open) == 0 || len(fresh) == 0 && len(l.todo) == 0 {
		l.running = false // the next claim that becomes free starts the next match
		l.mu.Unlock()
		return false
	}
	m := &match{waitlist: l, open: open, todo: l.todo, all: groupsOf(fresh)}
	l.todo = map[int]map[string]bool{}
	start, wakes := time.Now(), l.wakes
	l.mu.Unlock()

	err := m.run(context.Background())

	l.mu.Lock()
	defer l.mu.Unlock()
	if err != nil { // keep the groups to read, and do not read Redis again at once
		for shard, groups := range m.todo {
			for group := range groups {
				l.note(shard, group)
			}
		}
		l.joining++ // nor may the waitlist be dropped
		time.AfterFunc(store.Jittered(matchRetry), l.retry)
	}
	nothing := !slices.ContainsFunc(l.depth, func(n int64) bool { return n > 0 })
	if err == nil && m.shards == len(l.depth) && l.wakes == wakes && nothing {
		l.emptySince = start
	}
	answered := fresh
	if err != nil {
		answered = l.waiters // also those that came meanwhile: the next match takes a while
	}
	for _, w := range answered {
		if w.wants() {
			w.fresh = false
			w.offers <- &offer{to: w, err: err}
		}
	}
	l.running = err == nil
	return l.running
}

// retry matches again after a failed match.
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

// offerTo hands an offer to the claim unless it has left; then the next match finds the entries again.
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
