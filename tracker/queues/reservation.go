package queues

import (
	"context"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"

	"github.com/lubdub-io/lubdub/tracker/model"
	"github.com/lubdub-io/lubdub/tracker/schema"
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

// newLastCache returns a cache for the workers that claim most on this replica.
func newLastCache() *lru.Cache[string, workers.Reserved] {
	cache, _ := lru.New[string, workers.Reserved](10_000) // fails only for a size of 0
	return cache
}

// reserve reserves as many places of its worker as a claim wants. The registration has an upper bound of what the worker holds;
// only if that leaves too little, what it holds is counted in every shard. Settle the reservation when the claimed tasks are in
// the held sets, or when nothing was claimed. `counted`: a count that has run, nil for none; `heartbeat`: this counts as a
// heartbeat of the worker.
func (s *Service) reserve(ctx context.Context, by *ClaimRequest, counted *count, heartbeat bool) (*reservation, error) {
	ref, ok := s.store.WorkerRef(by.Scope, by.WorkerID)
	if !ok {
		return nil, workers.NoWorker("claim")
	}
	r := &reservation{Reservation: workers.Reservation{Worker: ref, Name: model.NewID("")}}
	a := workers.ReserveArgs{Want: by.Max, Life: reservationLife, AsHeartbeat: heartbeat}
	if counted != nil && store.FirstError(counted.calls) == nil {
		a.Held, a.Counted = counted.held(), counted.ended
	}
	err := s.extend(ctx, r, a)
	if err == nil && r.Places < by.Max && r.Ended != a.Counted && !r.Lost && !r.Cordoned {
		n := s.newCount(by.Scope, by.WorkerID, r.Ended)
		s.store.DoAll(ctx, "claim", n.calls)
		if err := store.FirstError(n.calls); err != nil {
			s.settle(ctx, r, 0)
			return nil, err
		}
		err = s.extend(ctx, r, workers.ReserveArgs{Want: by.Max, Life: reservationLife, Held: n.held(), Counted: n.ended})
	}
	if err != nil {
		return nil, err
	}
	return r, nil
}

// count counts in every shard what a worker holds. A reservation can use it if none of the worker's other reservations has ended since
// `ended` was read.
type count struct {
	worker *model.Worker
	ended  string // how many of the worker's reservations had ended before the count began
	calls  []*store.Call
	set    func()
}

func (s *Service) newCount(scope model.Scope, workerID, ended string) *count {
	n := &count{worker: &model.Worker{Scope: scope, ID: workerID}, ended: ended}
	n.calls, n.set = s.workers.LoadCalls([]*model.Worker{n.worker})
	return n
}

// held returns how many tasks it has counted; its calls have run.
func (n *count) held() int {
	n.set()
	return n.worker.Held
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
	call := s.workers.EndReservationCall(r.Reservation, used)
	s.store.DoAll(ctx, "claim", []*store.Call{call})
	s.settled(r, call)
}

// settled remembers for the worker's next claim what the call that ended this reservation returned. It reports whether that call succeeded.
func (s *Service) settled(r *reservation, call *store.Call) (ended bool) {
	if call.Err != nil {
		return false
	}
	s.last.Add(schema.TaskName(r.Worker.Scope, r.Worker.ID), workers.ReadReserved(call.Reply))
	return true
}
