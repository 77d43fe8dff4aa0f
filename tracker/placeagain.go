package tracker

import (
	"crypto/sha256"
	"errors"
	"slices"
	"sync"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"
)

// Placed tasks that find no worker are looked at again ever later (due.lua), and what nobody could take is not asked
// about again at once: those who are gone may be very many, and so may the tasks that wait for them.
const (
	vacancyPause    = time.Second // until workers are asked again for what nobody could take; it doubles each time
	maxVacancyPause = 15 * time.Second
	maxVacancies    = 1000   // that are remembered
	maxPlaceless    = 10_000 // tasks that wait to be placed again; others come due again
)

// placeless are tasks that are to be placed again beside the rounds.
type placeless struct {
	mu   sync.Mutex
	refs []*taskRef
	busy bool
}

// add tells whether somebody must begin with them.
func (p *placeless) add(refs []*taskRef) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.refs = append(p.refs, refs[:min(len(refs), maxPlaceless-len(p.refs))]...)
	idle := !p.busy
	p.busy = true
	return idle
}

// take gives what is to be placed; nothing: whoever asks is done.
func (p *placeless) take() []*taskRef {
	p.mu.Lock()
	defer p.mu.Unlock()
	refs := p.refs
	p.refs, p.busy = nil, len(refs) > 0
	return refs
}

// rest lets go of them where the work on them broke off: they come due again.
func (p *placeless) rest() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.refs, p.busy = nil, false
}

// vacancies remembers what nobody could take, by selector, in Redis's wall time.
type vacancies struct {
	*lru.Cache[vacancyKey, vacancy]
}

type vacancyKey [sha256.Size]byte

type vacancy struct {
	until time.Time
	pause time.Duration
}

func newVacancies() vacancies {
	cache, _ := lru.New[vacancyKey, vacancy](maxVacancies) // fails for a size of 0 only
	return vacancies{cache}
}

func (s *Selector) vacancy() vacancyKey { return sha256.Sum256([]byte(s.key())) }

// inQueue is of all that a queue's workers could be wanted for.
func (s *Selector) inQueue() vacancyKey { return (&Selector{Scope: s.Scope, Queue: s.Queue}).vacancy() }

// holds tells whether nobody is there, as far as is known.
func (v vacancies) holds(s *Selector, now time.Time) bool {
	return slices.ContainsFunc([]vacancyKey{s.vacancy(), s.inQueue()}, func(k vacancyKey) bool {
		seen, ok := v.Get(k)
		return ok && now.Before(seen.until) && seen.until.Sub(now) <= maxVacancyPause // else the clock was put back
	})
}

// note remembers that nobody was left, if that is what the error says: for all of the queue when none of its workers is
// up.
func (v vacancies) note(s *Selector, now time.Time, err error) {
	var none *SelectionError
	if !errors.As(err, &none) {
		return
	}
	key := s.vacancy()
	if none.up == 0 {
		key = s.inQueue()
	}
	seen, _ := v.Get(key)
	pause := min(max(2*seen.pause, vacancyPause), maxVacancyPause)
	v.Add(key, vacancy{now.Add(pause), pause})
}

// forget is of what somebody can take.
func (v vacancies) forget(s *Selector) {
	v.Remove(s.vacancy())
	v.Remove(s.inQueue())
}

// placeAgain chooses workers for placed tasks that have none. A ranked sweeper does it beside its rounds.
func (s *Sweeper) placeAgain(refs []*taskRef, ranked bool) {
	switch {
	case len(refs) == 0:
	case !ranked:
		s.placeAll(refs)
	case s.placeless.add(refs):
		s.beside.Go(s.t.store.guard("placing tasks again", func() {
			done := false
			defer func() {
				if !done {
					s.placeless.rest()
				}
			}()
			for refs := s.placeless.take(); len(refs) > 0; refs = s.placeless.take() {
				s.placeAll(refs)
			}
			done = true
		}))
	}
}

// placeAll places tasks one by one; what the tasks and the candidates are is read for some at a time.
func (s *Sweeper) placeAll(refs []*taskRef) {
	for some := range slices.Chunk(refs, takeLimit) {
		calls := make([]*call, len(some))
		for i, r := range some {
			calls[i] = s.t.getCall(r, listed)
		}
		s.t.store.doBulk("place", calls)
		pools := map[string]*pool{}
		for i, c := range calls {
			if s.ended.Load() {
				return
			}
			if c.err == nil {
				s.replace(some[i], c.reply, pools)
			}
		}
	}
}

// pool holds the candidates of all that ask the same.
type pool struct {
	left  []*Worker
	found *Selection
	err   error
}

// replace places one task that waits in its queue, as it was read.
func (s *Sweeper) replace(r *taskRef, as reply, pools map[string]*pool) {
	const op = "place"
	t, v := s.t, readTask(r, as)
	if v == nil || v.State != Queued || v.WorkerID != "" {
		return
	}
	now, wanted := as.time(0), placementSelector(v.Scope, v.Queue, v.Type, v.Runtime, v.WorkerLabels, v.placement)
	if s.vacancies.holds(wanted, now) {
		return
	}
	p := pools[wanted.key()]
	if p == nil {
		p = &pool{}
		p.left, p.found, p.err = t.candidates(op, wanted)
		pools[wanted.key()] = p
	}
	if p.err != nil {
		s.vacancies.note(wanted, now, p.err)
		return
	}
	// It comes again: no need to wait.
	at, err := (&placer{t: t, op: op, mine: map[string]int{}}).place(wanted, slices.Clone(p.left), p.found.clone())
	if err != nil {
		s.vacancies.note(wanted, now, err)
		return
	}
	s.vacancies.forget(wanted)
	k := t.store.keys[r.shard]
	c := newCall(r.shard, t.store.scripts.Get("repin"), append(t.keysOf(r), k.fences), r.scope.String(), r.id, at.worker.ID)
	t.store.doAll(op, []*call{c})
	t.unreserve(op, []*placement{at})
}
