package queues

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/lubdub-io/lubdub/tracker/model"
	"github.com/lubdub-io/lubdub/tracker/store"
)

// WaitingClaims counts the claims of this tracker that wait and have been told that there is nothing.
func (s *Service) WaitingClaims() (n int) {
	s.waitlists.mu.Lock()
	defer s.waitlists.mu.Unlock()
	for _, m := range s.waitlists.byName {
		m.mu.Lock()
		for _, w := range m.waiters {
			if !w.fresh && w.offer == nil {
				n++
			}
		}
		m.mu.Unlock()
	}
	return n
}

// Looks counts the looks at what is ready in a shard.
func (s *Service) Looks() int {
	return int(testutil.ToFloat64(s.metrics.looks))
}

// ReserveClaim reserves room for a claim that is under way; call the result when it is over.
func (s *Service) ReserveClaim(scope model.Scope, worker string, n int) (settle func(), err error) {
	g, err := s.reserveClaim(context.Background(), scope, worker, n, true)
	return func() { s.settleClaim(context.Background(), g, 0) }, err
}

// Nudged gives a channel that is told when the claims of a worker are.
func (s *Service) Nudged(scope model.Scope, worker string) (told <-chan struct{}, leave func()) {
	c := &claim{ClaimRequest: ClaimRequest{Scope: scope, WorkerID: worker}, queues: s}
	leave = s.nudges.join(c)
	heard := make(chan struct{})
	go func() {
		<-c.nudge
		s.nudges.mu.Lock() // until the others have been told
		defer s.nudges.mu.Unlock()
		close(heard)
	}()
	return heard, leave
}

// HoldOffer has a claim be offered tasks that it neither takes nor leaves until `leave` is called.
func (s *Service) HoldOffer(r ClaimRequest) (offered int, leave func(), err error) {
	c := &claim{ClaimRequest: r, queues: s}
	if err := c.reserve(context.Background(), true); err != nil {
		return 0, nil, err
	}
	m := s.waitlists.of(s, r.Scope, r.Queue)
	w := m.join(c)
	o := <-w.offers
	return len(o.entries), func() { m.leave(w); c.giveBack(context.Background()) }, o.err
}

// OnlyWhenTold has full claims look for a free place only when they are told.
func (s *Service) OnlyWhenTold() { s.fullRetry = time.Hour }

// TellWhenFree asks what a claim of a full worker asks for.
func (s *Service) TellWhenFree(worker string) { s.tellWhenFree(context.Background(), worker) }

// FullClaims counts the shards that are asked to say when an attempt of a worker ends.
func (s *Service) FullClaims(worker string) (n int) {
	for shard := range s.store.Keys {
		r, err := s.store.Do(context.Background(), "test",
			store.NewCall(shard, s.store.Scripts.Get("held"), []string{s.store.Keys[shard].Held}, "~"+worker, "", 1))
		if err == nil {
			n += len(r)
		}
	}
	return n
}

// ClaimStep does a step of a claim's record as another request does, which may take tasks for so long.
func (s *Service) ClaimStep(scope model.Scope, worker, claimID, request, what string, turn time.Duration) error {
	shard, key := s.claimKey(scope, worker, claimID)
	_, err := s.store.Do(context.Background(), "test",
		store.NewCall(shard, s.store.Scripts.Get("claimed"), []string{key}, request, model.Millis(claimLife), what, model.Millis(turn)))
	return err
}

func (s *Service) claimKey(scope model.Scope, worker, claimID string) (shard int, key string) {
	sum := sha256.Sum256([]byte(claimID))
	shard = s.store.ShardOf(scope, worker)
	return shard, s.store.Keys[shard].Claim(scope, worker, base64.RawURLEncoding.EncodeToString(sum[:15]))
}

// ClaimKey is the key of a claim's record.
func (s *Service) ClaimKey(scope model.Scope, worker, claimID string) string {
	_, key := s.claimKey(scope, worker, claimID)
	return key
}

// BreakLooks has every look at a queue panic.
func (s *Service) BreakLooks() { s.metrics.looks = nil }
