package beats

import (
	"time"

	"github.com/lubdub-io/lubdub/tracker/lane"
)

// HoldTime does what KeepTime does in each slot for shards whose beats are refused, and waits for it.
func (s *Service) HoldTime() {
	s.slowDown()
	s.store.AwaitBackground()
}

// OnClock sets the clock for the estimate whether the replica may be cut off from its clients.
func (s *Service) OnClock(now func() time.Duration) {
	s.keeper.cutOff.now = now
	s.keeper.cutOff.started.Store(0)
}

// BalancersKnowNothing puts the replica in the state right after its start.
func (s *Service) BalancersKnowNothing() { s.keeper.cutOff.begins() }

// Listen does what KeepTime does in each slot to notice that clients stay away.
func (s *Service) Listen() { s.keeper.cutOff.compareRate() }

// Slot is the time between two turns of the replicas that keep a shard's time.
const Slot = slot

// DueAt counts the shards that have their turn at a moment, as if none had just been reached.
func (s *Service) DueAt(at time.Time) int {
	s.keeper.skew.Store(0)
	for i := range s.keeper.shards {
		s.keeper.shards[i].last.Store(0)
	}
	return len(s.keeper.due(at))
}

// Flusher returns the flush of a separate lane to the node of a shard. It returns when each beat has a result.
func (s *Service) Flusher(shard int) func([]*Beat) { return s.FlusherSampling(shard, sampledFlushes) }

// FlusherSampling returns a flush that samples silences each n-th time; 0: never.
func (s *Service) FlusherSampling(shard, each int) func([]*Beat) {
	b := newBatcher(s, s.store.Node(shard))
	b.sampled = each
	return func(batch []*Beat) {
		w := lane.NewWaiter(len(batch))
		for _, beat := range batch {
			beat.waiter, beat.until = w, time.Now().Add(s.store.Patience())
		}
		b.flush(batch)
		w.Wait()
	}
}

// StoreLater does what Submit does with slow beats.
func (s *Service) StoreLater(slow []*Beat, done func([]*Beat)) { s.storeLater(slow, done) }

// SampledFlushes is the number of flushes of which one samples silences.
const SampledFlushes = sampledFlushes
