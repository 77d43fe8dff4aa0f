package workers

import (
	"context"
	"slices"
	"time"

	"github.com/lubdub-io/lubdub/tracker/model"
	"github.com/lubdub-io/lubdub/tracker/schema"
	"github.com/lubdub-io/lubdub/tracker/store"
)

// A placed task is pinned to the worker that was selected at its creation. A reservation keeps the place between the selection and
// the creation, so that many tasks placed at once do not all find the same worker free. When the task returns to its queue, or the
// worker ends or drains before, the pin is removed and a sweeper places the task again; until then any worker that can run it may
// claim it.

// placementLife is longer than a creation takes: it ends reservations that a dead replica left behind.
const placementLife = 5 * time.Second

// placePause is the pause before a worker that is full of reservations is evaluated again.
const placePause = 5 * time.Millisecond

// Placer places the tasks of one request, one after the other. Only one goroutine may use it.
type Placer struct {
	placement *placement
	op        string
	create    func() // creates the tasks that have a place; nil: do not wait for places, since tasks without one are retried later

	pools  map[string]*pool // by the requirements of the tasks
	places []Reservation    // reserved for tasks that are not created yet
	mine   map[string]int   // how many of them each worker has
	since  time.Time        // when the first of them was reserved
}

// pool is the candidates of all tasks with the same requirements, which are read once.
type pool struct {
	left     []*model.Worker
	found    *model.Selection
	err      error
	patience time.Duration // how long to wait, in total, for the reservations of others to become tasks or to end
}

// NewPlacer returns a placer for one request. The placer calls `create` for tasks with a place before others have to wait for the
// places or the reservations expire; call Release when the remaining tasks are in their queues. Without `create`, call it after
// each task.
func (s *placement) NewPlacer(op string, create func()) *Placer {
	return &Placer{placement: s, op: op, create: create, pools: map[string]*pool{}, mine: map[string]int{}}
}

// poolOf returns the candidates for a task, which it reads the first time.
func (p *Placer) poolOf(ctx context.Context, wanted *model.Selector) *pool {
	key := wanted.Key()
	of := p.pools[key]
	if of == nil {
		of = &pool{}
		if p.create != nil {
			of.patience = placementLife
		}
		of.left, of.found, of.err = p.placement.candidates(ctx, p.op, wanted)
		p.pools[key] = of
	}
	return of
}

// Place selects a worker and reserves a place there. It counts the worker's load again after the reservation; a worker that has
// filled up meanwhile is evaluated again. A worker that is full only because of reservations is not rejected: a reservation may be
// for a task that is already counted, or about to be given back. Place evaluates it again until no reservation is in the way, and
// every one of them expires. If no worker is left, the error's cause is a *SelectionError.
func (p *Placer) Place(ctx context.Context, wanted *model.Selector) (workerID string, err error) {
	of := p.poolOf(ctx, wanted)
	if of.err != nil {
		return "", of.err
	}
	if len(p.places) > 0 && time.Since(p.since) > placementLife/4 {
		p.settle(ctx)
	}
	left, found := slices.Clone(of.left), of.found.Clone()
	var reserved []*model.Worker // full only because of others' reservations
	drop := func(w *model.Worker) {
		left = slices.DeleteFunc(left, func(o *model.Worker) bool { return o == w })
	}
	for tries := 3*len(left) + 8; ; tries-- {
		if len(left) == 0 && len(reserved) > 0 {
			waited, err := p.wait(ctx, of)
			if err != nil {
				return "", err
			}
			if waited {
				left, reserved = reserved, nil
			}
		}
		if len(left) == 0 {
			found.Rejected[model.ByCapacity] += len(reserved)
			return "", noWorkerLeft(p.op, model.NoCapacity, found)
		}
		rank(left, wanted.Strategy)
		w, before := left[0], *left[0]
		r := Reservation{Worker: p.placement.reader.refOf(w), Name: model.NewID("")}
		others, online, err := p.reserve(ctx, r, w)
		if err != nil {
			return "", err
		}
		switch {
		case !online:
			found.Rejected[model.ByStatus]++
			drop(w)
		case !w.Passes(model.ByCapacity, wanted):
			p.placement.unreserve(ctx, p.op, []Reservation{r})
			drop(w)
			if w.Placed -= others - p.mine[w.ID]; w.Passes(model.ByCapacity, wanted) {
				reserved = append(reserved, w)
			} else {
				found.Rejected[model.ByCapacity]++
			}
		case tries > 0 && w.Moved(&before, wanted.Strategy) && len(left) > 1:
			p.placement.unreserve(ctx, p.op, []Reservation{r}) // others were faster: is it still the best?
		default:
			w.Placed++
			p.keep(r)
			return w.ID, nil
		}
	}
}

// keep stores a place until it is given back.
func (p *Placer) keep(r Reservation) {
	if len(p.places) == 0 {
		p.since = time.Now()
	}
	p.places = append(p.places, r)
	p.mine[r.Worker.ID]++
}

// wait waits for the blocking reservations to become tasks or to end; false: it has waited long enough.
func (p *Placer) wait(ctx context.Context, of *pool) (bool, error) {
	switch began := time.Now(); {
	case len(p.places) > 0: // others may wait for these
		p.settle(ctx)
	case of.patience <= 0:
		return false, nil
	case !store.Pause(ctx, store.Jittered(placePause)):
		return false, store.AsUnavailable(p.op, ctx.Err())
	default:
		of.patience -= time.Since(began)
	}
	return true, nil
}

// settle creates the tasks that have a place, so that no other request has to wait for them.
func (p *Placer) settle(ctx context.Context) {
	if p.create != nil {
		p.create()
	}
	p.Release(ctx)
}

// Release ends the reservations of tasks that are in their queues or were not created.
func (p *Placer) Release(ctx context.Context) {
	if len(p.places) == 0 {
		return
	}
	places := p.places
	p.places = nil
	clear(p.mine)
	p.placement.store.Tidy(ctx, func(ctx context.Context) {
		for r, is := range p.placement.unreserve(ctx, p.op, places) {
			if is.Cordoned || is.Code == schema.CodeDraining { // since its place was reserved: only this call frees tasks that came later
				_ = p.placement.holdings.UnpinAll(ctx, p.op, &r, is.Queue)
			}
		}
	})
}

// reserve reserves a place and then counts the worker's load, including the places that others have reserved. False: the worker is
// not ONLINE any more.
func (p *Placer) reserve(ctx context.Context, r Reservation, w *model.Worker) (others int, online bool, err error) {
	s := p.placement
	selected := s.scripts.selectedCall(r, placementLife)
	loads, setLoads := s.loads.LoadCalls([]*model.Worker{w})
	if !s.store.OnCluster() { // one connection runs them in order
		s.store.DoAll(ctx, p.op, append([]*store.Call{selected}, loads...))
	} else {
		s.store.DoAll(ctx, p.op, []*store.Call{selected})
		s.store.DoAll(ctx, p.op, loads)
	}
	if err := store.FirstError(append(loads, selected)); err != nil {
		return 0, false, err
	}
	re := readSelected(selected.Reply)
	if !re.online {
		return 0, false, nil
	}
	setLoads()
	w.Placed += re.others
	w.LastSelected = re.before
	return re.others, true, nil
}

// unreserve ends reservations without a task and returns the current state of their workers.
func (s *placement) unreserve(ctx context.Context, op string, places []Reservation) map[schema.WorkerRef]Reserved {
	calls := store.CallEach(places, func(r Reservation) *store.Call { return s.scripts.EndReservationCall(r, 0) })
	s.store.DoAll(ctx, op, calls)
	are := map[schema.WorkerRef]Reserved{}
	for i, c := range calls {
		if c.Err == nil {
			are[*places[i].Worker] = ReadReserved(c.Reply)
		}
	}
	return are
}
