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

// OnClock has the replica judge by another clock than its process's whether it may be cut off from its clients.
func (s *Service) OnClock(now func() time.Duration) {
	s.keeper.cutOff.now = now
	s.keeper.cutOff.started.Store(0)
}

// BalancersKnowNothing is as if the replica had just started.
func (s *Service) BalancersKnowNothing() { s.keeper.cutOff.begins() }

// Listen does what KeepTime does in each slot to notice that clients stay away.
func (s *Service) Listen() { s.keeper.cutOff.listen() }

// Slot is the time between two turns of those that keep a shard's time.
const Slot = slot

// DueAt counts the shards whose turn it is at a moment, as if nothing had touched any.
func (s *Service) DueAt(at time.Time) int {
	s.keeper.skew.Store(0)
	for i := range s.keeper.shards {
		s.keeper.shards[i].last.Store(0)
	}
	return len(s.keeper.due(at))
}

// Flusher returns the flush of a lane of its own to the node of a shard, which returns when each beat has its fate.
func (s *Service) Flusher(shard int) func([]*Beat) { return s.FlusherSampling(shard, sampledFlushes) }

// FlusherSampling returns one that asks each so many-th flush for silences, or, with 0, none.
func (s *Service) FlusherSampling(shard, each int) func([]*Beat) {
	b := newBatcher(s, s.store.Node(shard))
	b.sampled = each
	return func(batch []*Beat) {
		w := lane.NewWaiter(len(batch))
		for _, beat := range batch {
			beat.told, beat.until = w, time.Now().Add(s.store.Patience())
		}
		b.flush(batch)
		w.Wait()
	}
}

// ExplainLater does what a landing does with slow beats.
func (s *Service) ExplainLater(slow []*Beat, landed func([]*Beat)) { s.explainLater(slow, landed) }

// SampledFlushes is of how many flushes one is asked for silences.
const SampledFlushes = sampledFlushes
