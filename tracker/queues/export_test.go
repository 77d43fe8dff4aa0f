package queues

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/lubdub-io/lubdub/tracker/model"
	"github.com/lubdub-io/lubdub/tracker/store"
)

// WaitingClaims counts the claims of this tracker that wait after they learned that nothing is ready.
func (s *Service) WaitingClaims() (n int) {
	s.waitlists.mu.Lock()
	defer s.waitlists.mu.Unlock()
	for _, l := range s.waitlists.byName {
		l.mu.Lock()
		for _, w := range l.waiters {
			if !w.fresh && w.offer == nil {
				n++
			}
		}
		l.mu.Unlock()
	}
	return n
}

// Reads counts the reads of what is ready in a shard.
func (s *Service) Reads() int { return int(testutil.ToFloat64(s.metrics.reads)) }

// ReserveClaim reserves places for a claim in progress; call the result when it is over.
func (s *Service) ReserveClaim(scope model.Scope, worker string, n int) (settle func(), err error) {
	r, err := s.reserve(context.Background(), &ClaimRequest{Scope: scope, WorkerID: worker, Max: n}, nil, true)
	return func() { s.settle(context.Background(), r, 0) }, err
}

// Nudged returns a channel that is closed when the claims of a worker are nudged.
func (s *Service) Nudged(scope model.Scope, worker string) (nudged <-chan struct{}, leave func()) {
	c := &claim{ClaimRequest: ClaimRequest{Scope: scope, WorkerID: worker}, queues: s}
	leave = s.nudges.join(c)
	ch := make(chan struct{})
	go func() {
		<-c.nudge
		s.nudges.mu.Lock() // until the others have been nudged
		defer s.nudges.mu.Unlock()
		close(ch)
	}()
	return ch, leave
}

// HoldOffer has a claim be offered tasks that it neither takes nor gives back until `leave` is called.
func (s *Service) HoldOffer(r ClaimRequest) (offered int, leave func(), err error) {
	c := &claim{ClaimRequest: r, queues: s}
	if err := c.reserve(context.Background(), nil, true); err != nil {
		return 0, nil, err
	}
	l := s.waitlists.of(s, r.Scope, r.Queue)
	w := l.join(c, c.places)
	o := <-w.offers
	return len(o.entries), func() { l.leave(w); c.releasePlaces(context.Background()) }, o.err
}

// OnlyWhenNotified lets claims check for a task, or for a free place of a full worker, only after a notification. Call it before any
// claim waits.
func (s *Service) OnlyWhenNotified() { s.fullRetry, s.safety = time.Hour, time.Hour }

// NotifyWhenFree requests the notifications that the claim of a full worker requests.
func (s *Service) NotifyWhenFree(worker string) { s.notifyWhenFree(context.Background(), worker) }

// FullClaims counts the shards that are to announce the end of an attempt of a worker.
func (s *Service) FullClaims(worker string) (n int) {
	for shard, k := range s.store.Keys {
		held, err := s.store.Do(context.Background(), "test",
			store.NewCall(shard, s.store.Scripts.Get("held"), []string{k.Held}, "~"+worker, "", 1))
		if err == nil {
			n += len(held)
		}
	}
	return n
}

// ClaimStep executes a step on a claim's record as another request, which may take tasks for that long.
func (s *Service) ClaimStep(scope model.Scope, worker, claimID, request, what string, turn time.Duration) error {
	_, err := s.store.Do(context.Background(), "test", s.claimedCall(scope, worker, markOf(claimID),
		claimedArgs{request: request, step: claimStep(what), turn: turn}))
	return err
}

// ClaimKey is the key of a claim's record.
func (s *Service) ClaimKey(scope model.Scope, worker, claimID string) string {
	return s.store.Keys[s.store.ShardOf(scope, worker)].Claim(scope, worker, markOf(claimID))
}

// BreakReads makes every read of a queue panic.
func (s *Service) BreakReads() { s.metrics.reads = nil }

// PlacesAfter counts what a worker holds, as its next claim does first, runs `then`, and returns how many places that claim gets.
func (s *Service) PlacesAfter(r ClaimRequest, then func()) (places int, err error) {
	c := &claim{ClaimRequest: r, queues: s, server: context.Background()}
	counted := c.begin()
	c.leaveWaitlist()
	s.store.DoAll(context.Background(), "test", counted.calls)
	then()
	if err := c.reserve(context.Background(), counted, true); err != nil {
		return 0, err
	}
	defer c.releasePlaces(context.Background())
	return c.places, nil
}
