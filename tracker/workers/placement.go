package workers

import (
	"context"
	"slices"
	"time"

	"github.com/lubdub-io/lubdub/tracker/model"
	"github.com/lubdub-io/lubdub/tracker/store"
)

// Pool holds the candidates of all that ask the same.
type Pool struct {
	Left  []*model.Worker
	Found *model.Selection
	Err   error
}

// A placed task is pinned to the worker that was selected for it when it was created. Between the selection and the
// creation a reservation stands for it, so that many placed at once do not all find the same worker empty. When it
// comes back to its queue, or its worker ends or drains first, the pin goes and a sweeper places it again; until then
// any worker that can run it may have it.

// PlacementLife is more than a creation takes: a reservation that a dead replica left behind ends by then.
const PlacementLife = 5 * time.Second

// Placement is a worker that has room for one more, reserved.
type Placement struct {
	Worker *model.Worker
	name   string
}

// Placer places tasks that ask the same, one after the other.
type Placer struct {
	service  *Service
	op       string
	patience time.Duration  // how long to wait in all for others' reservations to become tasks, or nothing
	mine     map[string]int // by worker: reservations of the same request, for tasks that are still to be created
	settle   func()         // creates what has a place already, before others are waited for; nil: there is nothing
}

// NewPlacer makes a placer for one request; the fields of placer say what it is given.
func (s *Service) NewPlacer(op string, patience time.Duration, mine map[string]int, settle func()) *Placer {
	return &Placer{service: s, op: op, patience: patience, mine: mine, settle: settle}
}

const placePause = 5 * time.Millisecond // until a worker that others have reserved is judged again

// Place selects a worker and reserves a place there. What the worker holds is counted again once the reservation
// stands; one that has filled up by then is judged anew. A worker that is full only because others have reserved is not
// full: a reservation may be one for a task that is counted already, or about to be given back. It is judged again until
// none is in the way, and all end by themselves.
func (p *Placer) Place(ctx context.Context, s *model.Selector, left []*model.Worker, found *model.Selection) (*Placement, error) {
	var reserved []*model.Worker
	rejected := func(w *model.Worker, f model.Filter) {
		found.Rejected[f]++
		left = slices.DeleteFunc(left, func(o *model.Worker) bool { return o == w })
	}
	for tries := 3*len(left) + 8; ; tries-- {
		switch began := time.Now(); {
		case len(left) > 0 || len(reserved) == 0:
		case len(p.mine) > 0: // others may wait for these
			p.settle()
			left, reserved = reserved, nil
		case p.patience > 0:
			time.Sleep(store.Jittered(placePause))
			p.patience -= time.Since(began)
			left, reserved = reserved, nil
		}
		if len(left) == 0 {
			found.Rejected[model.ByCapacity] += len(reserved)
			return nil, nobodyLeft(p.op, model.NoCapacity, found)
		}
		rank(left, s.Strategy)
		at := &Placement{Worker: left[0], name: model.NewID("")}
		w, before := at.Worker, *at.Worker
		others, ok, err := p.reserve(ctx, at)
		if err != nil {
			return nil, err
		}
		switch {
		case !ok:
			rejected(w, model.ByStatus)
		case !w.Passes(model.ByCapacity, s):
			p.service.Unreserve(ctx, p.op, []*Placement{at})
			if w.Placed -= others - p.mine[w.ID]; !w.Passes(model.ByCapacity, s) {
				rejected(w, model.ByCapacity)
				continue
			}
			reserved = append(reserved, w)
			left = slices.DeleteFunc(left, func(o *model.Worker) bool { return o == w })
		case tries > 0 && w.Moved(&before, s.Strategy) && len(left) > 1:
			p.service.Unreserve(ctx, p.op, []*Placement{at}) // others were faster: is it still the best?
		default:
			w.Placed++
			p.mine[w.ID]++
			return at, nil
		}
	}
}

// reserve reserves a place and then counts the worker's load, with the reservations that stood before it. False: it is
// not ONLINE any more.
func (p *Placer) reserve(ctx context.Context, at *Placement) (others int, ok bool, err error) {
	s, w := p.service, at.Worker
	selected := s.selectedCall(s.reservation(at), PlacementLife)
	loads, setLoads := s.LoadCalls([]*model.Worker{w})
	if !s.store.OnCluster() { // one connection runs them in their order
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

func (s *Service) reservation(at *Placement) Reservation {
	return Reservation{Worker: s.refOf(at.Worker), Name: at.name}
}

// Unreserve ends reservations.
func (s *Service) Unreserve(ctx context.Context, op string, places []*Placement) {
	calls := make([]*store.Call, len(places))
	for i, at := range places {
		calls[i] = s.EndReservationCall(s.reservation(at), 0)
	}
	s.store.DoAll(ctx, op, calls)
}

// PlacementSelector is what a placed task wants of a worker.
func PlacementSelector(scope model.Scope, queue, kind, runtime string, labels map[string]string, strategy string) *model.Selector {
	return &model.Selector{Scope: scope, Queue: queue, Type: kind, Runtime: runtime, Labels: labels, Strategy: strategy}
}
