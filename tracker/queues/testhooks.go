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
func (t *Service) WaitingClaims() (n int) {
	t.rooms.mu.Lock()
	defer t.rooms.mu.Unlock()
	for _, m := range t.rooms.byName {
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
func (t *Service) Looks() int {
	return int(testutil.ToFloat64(t.metrics.looks))
}

// ReserveClaim reserves room for a claim that is under way; call the result when it is over.
func (t *Service) ReserveClaim(scope model.Scope, worker string, n int) (settle func(), err error) {
	g, err := t.reserveClaim(context.Background(), scope, worker, n, true)
	return func() { t.settleClaim(context.Background(), g, 0) }, err
}

// Nudged gives a channel that is told when the claims of a worker are.
func (t *Service) Nudged(scope model.Scope, worker string) (told <-chan struct{}, leave func()) {
	c := &claim{ClaimRequest: ClaimRequest{Scope: scope, WorkerID: worker}, t: t}
	leave = t.nudges.join(c)
	heard := make(chan struct{})
	go func() {
		<-c.nudge
		t.nudges.mu.Lock() // until the others have been told
		defer t.nudges.mu.Unlock()
		close(heard)
	}()
	return heard, leave
}

// HoldOffer has a claim be offered tasks that it neither takes nor leaves until `leave` is called.
func (t *Service) HoldOffer(r ClaimRequest) (offered int, leave func(), err error) {
	c := &claim{ClaimRequest: r, t: t}
	if err := c.reserve(context.Background(), true); err != nil {
		return 0, nil, err
	}
	m := t.rooms.of(t, r.Scope, r.Queue)
	w := m.join(c)
	o := <-w.offers
	return len(o.entries), func() { m.leave(w); c.giveBack(context.Background()) }, o.err
}

// OnlyWhenTold has full claims look for a free place only when they are told.
func (t *Service) OnlyWhenTold() { t.fullRetry = time.Hour }

// TellWhenFree asks what a claim of a full worker asks for.
func (t *Service) TellWhenFree(worker string) { t.tellWhenFree(context.Background(), worker) }

// FullClaims counts the shards that are asked to say when an attempt of a worker ends.
func (t *Service) FullClaims(worker string) (n int) {
	for shard := range t.store.Keys {
		r, err := t.store.Do(context.Background(), "test", store.NewCall(shard, t.store.Scripts.Get("held"), []string{t.store.Keys[shard].Held}, "~"+worker, "", 1))
		if err == nil {
			n += len(r)
		}
	}
	return n
}

// ClaimStep does a step of a claim's record as another request does, which may take tasks for so long.
func (t *Service) ClaimStep(scope model.Scope, worker, claimID, request, what string, turn time.Duration) error {
	shard, key := t.claimKey(scope, worker, claimID)
	_, err := t.store.Do(context.Background(), "test", store.NewCall(shard, t.store.Scripts.Get("claimed"), []string{key}, request, model.Millis(claimLife), what, model.Millis(turn)))
	return err
}

func (t *Service) claimKey(scope model.Scope, worker, claimID string) (shard int, key string) {
	sum := sha256.Sum256([]byte(claimID))
	shard = t.store.ShardOf(scope, worker)
	return shard, t.store.Keys[shard].Claim(scope, worker, base64.RawURLEncoding.EncodeToString(sum[:15]))
}

// ClaimKey is the key of a claim's record.
func (t *Service) ClaimKey(scope model.Scope, worker, claimID string) string {
	_, key := t.claimKey(scope, worker, claimID)
	return key
}

// BreakLooks has every look at a queue panic.
func (t *Service) BreakLooks() { t.metrics.looks = nil }
