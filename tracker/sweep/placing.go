package sweep

import (
	"context"
	"crypto/sha256"
	"errors"
	"slices"
	"sync"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"

	"github.com/lubdub-io/lubdub/tracker/model"
	"github.com/lubdub-io/lubdub/tracker/schema"
	"github.com/lubdub-io/lubdub/tracker/store"
	"github.com/lubdub-io/lubdub/tracker/tasks"
	"github.com/lubdub-io/lubdub/tracker/workers"
)

// Placed tasks without a worker are retried at growing intervals (due.lua), and a selector that no worker matched is not tried
// again at once: there may be very many ended workers, and very many tasks that wait for them.
const (
	vacancyPause    = time.Second // until workers are looked up again for a selector that none matched; it doubles each time
	maxVacancyPause = 15 * time.Second
	maxVacancies    = 1000   // that are remembered
	maxPlaceless    = 10_000 // tasks that wait to be placed again; further ones come due again
)

// placing chooses workers for placed tasks that have none.
type placing struct {
	service    *Service
	background *background
	placeless  placeless
	vacancies  vacancies
}

func newPlacing(s *Service, bg *background) *placing {
	return &placing{service: s, background: bg, vacancies: newVacancies()}
}

// placeless holds the tasks that are to be placed again in the background. Rounds add to it and one goroutine takes from it, under
// mu.
type placeless struct {
	mu   sync.Mutex
	refs []*schema.TaskRef
	busy bool // a goroutine is taking tasks
}

// add adds tasks and reports whether the caller must start a goroutine for them.
func (p *placeless) add(refs []*schema.TaskRef) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.refs = append(p.refs, refs[:min(len(refs), maxPlaceless-len(p.refs))]...)
	idle := !p.busy
	p.busy = true
	return idle
}

// take returns the tasks to place; none: the caller stops.
func (p *placeless) take() []*schema.TaskRef {
	p.mu.Lock()
	defer p.mu.Unlock()
	refs := p.refs
	p.refs, p.busy = nil, len(refs) > 0
	return refs
}

// rest drops the tasks after their placement was interrupted: they come due again.
func (p *placeless) rest() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.refs, p.busy = nil, false
}

// vacancies remembers the selectors that no worker matched, until a wall time of Redis.
type vacancies struct {
	*lru.Cache[vacancyKey, vacancy]
}

type vacancyKey [sha256.Size]byte

type vacancy struct {
	until time.Time
	pause time.Duration
}

func newVacancies() vacancies {
	cache, _ := lru.New[vacancyKey, vacancy](maxVacancies) // fails only for a size of 0
	return vacancies{cache}
}

func vacancyOf(s *model.Selector) vacancyKey { return sha256.Sum256([]byte(s.Key())) }

// vacancyInQueue is the key of the selector that matches all workers of a queue.
func vacancyInQueue(s *model.Selector) vacancyKey {
	return vacancyOf(&model.Selector{Scope: s.Scope, Queue: s.Queue})
}

// holds reports whether no worker is known to match the selector.
func (v vacancies) holds(s *model.Selector, now time.Time) bool {
	return slices.ContainsFunc([]vacancyKey{vacancyOf(s), vacancyInQueue(s)}, func(k vacancyKey) bool {
		seen, ok := v.Get(k)
		return ok && now.Before(seen.until) && seen.until.Sub(now) <= maxVacancyPause // else the clock was set back
	})
}

// note remembers the selector if the error is that no worker matched it. If no worker of the queue is up, it remembers the whole
// queue.
func (v vacancies) note(s *model.Selector, now time.Time, err error) {
	var none *model.SelectionError
	if !errors.As(err, &none) {
		return
	}
	key := vacancyOf(s)
	if none.Up == 0 {
		key = vacancyInQueue(s)
	}
	seen, _ := v.Get(key)
	pause := min(max(2*seen.pause, vacancyPause), maxVacancyPause)
	v.Add(key, vacancy{now.Add(pause), pause})
}

// forget removes a selector, since a worker matches it.
func (v vacancies) forget(s *model.Selector) {
	v.Remove(vacancyOf(s))
	v.Remove(vacancyInQueue(s))
}

// again places tasks again; a ranked sweeper does so in the background.
func (p *placing) again(ctx context.Context, r *round, refs []*schema.TaskRef) {
	switch {
	case len(refs) == 0:
	case !r.ranked:
		p.all(ctx, refs)
	case p.placeless.add(refs):
		p.background.run("placing tasks again", func() {
			done := false
			defer func() {
				if !done {
					p.placeless.rest()
				}
			}()
			for refs := p.placeless.take(); len(refs) > 0; refs = p.placeless.take() {
				p.all(ctx, refs)
			}
			done = true
		})
	}
}

// all places tasks one by one until the context ends. It reads tasks and candidates in batches.
func (p *placing) all(ctx context.Context, refs []*schema.TaskRef) {
	for some := range slices.Chunk(refs, schema.TakeLimit) {
		calls := store.CallEach(some, func(r *schema.TaskRef) *store.Call { return p.service.tasks.GetCall(r, tasks.Listed) })
		p.service.store.DoBulk(ctx, opPlace, calls)
		placer := p.service.workers.NewPlacer(opPlace, nil)
		for i, c := range calls {
			if ctx.Err() != nil {
				return
			}
			if c.Err == nil {
				p.one(ctx, some[i], c.Reply, placer)
			}
		}
	}
}

const opPlace = "place"

// one places a task that waits in its queue, given its record.
func (p *placing) one(ctx context.Context, r *schema.TaskRef, as store.Reply, placer *workers.Placer) {
	s, v := p.service, tasks.ReadTask(r, as)
	if v == nil || v.State != model.Queued || v.WorkerID != "" {
		return
	}
	now, wanted := v.Now, &model.Selector{
		Scope: v.Scope, Queue: v.Queue, Type: v.Type, Runtime: v.Runtime, Labels: v.WorkerLabels, Strategy: v.Placement,
	}
	if p.vacancies.holds(wanted, now) {
		return
	}
	worker, err := placer.Place(ctx, wanted)
	if err != nil {
		p.vacancies.note(wanted, now, err)
		return
	}
	p.vacancies.forget(wanted)
	s.store.DoAll(ctx, opPlace, []*store.Call{s.scripts.repinCall(r, s.tasks.KeysOf(r), worker)})
	placer.Release(ctx)
}
