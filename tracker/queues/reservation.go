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
	workers.Reserved // the state when it was made; Places 0: the worker is at its maxConcurrent, or cordoned
}

// reservationLife is longer than any claim takes: it ends reservations that a dead replica left behind.
const reservationLife = 10 * time.Second

// reserve reserves up to `want` places of a worker. The registration has an upper bound of what the worker holds; only if that
// leaves too little, what it holds is counted in every shard. Settle the reservation when the claimed tasks are in the held sets,
// or when nothing was claimed. `heartbeat`: this counts as a heartbeat of the worker.
func (s *Service) reserve(ctx context.Context, scope model.Scope, workerID string, want int, heartbeat bool) (*reservation, error) {
	ref, ok := s.store.WorkerRef(scope, workerID)
	if !ok {
		return nil, workers.NoWorker("claim")
	}
	r := &reservation{Reservation: workers.Reservation{Worker: ref, Name: model.NewID("")}}
	err := s.extend(ctx, r, workers.ReserveArgs{Want: want, Life: reservationLife, AsHeartbeat: heartbeat})
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

// extend makes a reservation, or renews it with the current count.
func (s *Service) extend(ctx context.Context, r *reservation, a workers.ReserveArgs) error {
	re, err := s.store.Do(ctx, "claim", s.workers.ReserveCall(r.Reservation, a))
	if err != nil {
		return err
	}
	r.Reserved = workers.ReadReserved(re)
	return workers.WorkerRefusal("claim", r.Code, r.Reason)
}

// settle ends a reservation of which `used` places now hold tasks. It waits for the result, so that the worker's next claim does
// not find the reservation; one that cannot be settled expires.
func (s *Service) settle(ctx context.Context, r *reservation, used int) {
	s.store.DoAll(ctx, "claim", []*store.Call{s.workers.EndReservationCall(r.Reservation, used)})
}
