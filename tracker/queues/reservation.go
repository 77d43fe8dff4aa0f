package queues

import (
	"context"
	"time"

	"github.com/lubdub-io/lubdub/tracker/model"
	"github.com/lubdub-io/lubdub/tracker/store"
	"github.com/lubdub-io/lubdub/tracker/workers"
)

// reservation is the places of a worker that a claim keeps while it takes tasks.
type reservation struct {
	workers.Reservation
	workers.Reserved // what there was when it was made; Places 0: the worker is at its maxConcurrent, or cordoned
}

// reservationLife is longer than any claim takes: a reservation that a dead replica left behind ends by then.
const reservationLife = 10 * time.Second

// reserve reserves up to `want` places of a worker. The registration knows an upper bound of what the worker holds; only when
// that leaves too little is what it holds counted in every shard. Settle the reservation when what was claimed stands in the
// held sets, or nothing was. `heard`: the worker has just asked, which counts as its beat.
func (s *Service) reserve(ctx context.Context, scope model.Scope, workerID string, want int, heard bool) (*reservation, error) {
	ref, ok := s.store.WorkerRef(scope, workerID)
	if !ok {
		return nil, workers.NoWorker("claim")
	}
	r := &reservation{Reservation: workers.Reservation{Worker: ref, Name: model.NewID("")}}
	err := s.extend(ctx, r, workers.ReserveArgs{Want: want, Life: reservationLife, Heard: heard})
	if err == nil && r.Places < want && !r.Lost && !r.Cordoned {
		w := &model.Worker{Scope: scope, ID: workerID}
		load, settle := s.workers.LoadCalls([]*model.Worker{w})
		s.store.DoAll(ctx, "claim", load)
		if err := store.FirstError(load); err != nil {
			s.settle(ctx, r, 0)
			return nil, err
		}
		settle()
		err = s.extend(ctx, r, workers.ReserveArgs{Want: want, Life: reservationLife, Held: w.Held, Counted: r.Ended})
	}
	if err != nil {
		return nil, err
	}
	return r, nil
}

// extend makes a reservation, or renews it with what is known by now.
func (s *Service) extend(ctx context.Context, r *reservation, a workers.ReserveArgs) error {
	re, err := s.store.Do(ctx, "claim", s.workers.ReserveCall(r.Reservation, a))
	if err != nil {
		return err
	}
	r.Reserved = workers.ReadReserved(re)
	return workers.WorkerRefusal("claim", r.Code, r.Reason)
}

// settle ends a reservation of which `used` places now hold tasks. It waits, so that the worker's next claim does not find it;
// one that could not be settled ends by itself.
func (s *Service) settle(ctx context.Context, r *reservation, used int) {
	s.store.DoAll(ctx, "claim", []*store.Call{s.workers.EndReservationCall(r.Reservation, used)})
}
