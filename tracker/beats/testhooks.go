package beats

import (
	"time"

	"github.com/lubdub-io/lubdub/tracker/lane"
)

// HoldTime does what KeepTime does in each slot for shards whose beats are refused, and waits for it.
func (t *Service) HoldTime() {
	t.holdTime()
	t.store.Background.Wait()
}

// OnClock has the replica judge by another clock than its process's whether it may be cut off from its clients.
func (t *Service) OnClock(now func() time.Duration) {
	t.Keeper.cutOff.now = now
	t.Keeper.cutOff.started.Store(0)
}

// BalancersKnowNothing is as if the replica had just started.
func (t *Service) BalancersKnowNothing() { t.Keeper.cutOff.begins() }

// Listen does what KeepTime does in each slot to notice that clients stay away.
func (t *Service) Listen() { t.Keeper.cutOff.listen() }

// Slot is the time between two turns of those that keep a shard's time.
const Slot = slot

// DueAt counts the shards whose turn it is at a moment, as if nothing had touched any.
func (t *Service) DueAt(at time.Time) int {
	t.Keeper.Skew.Store(0)
	for i := range t.Keeper.shards {
		t.Keeper.shards[i].last.Store(0)
	}
	return len(t.Keeper.due(at))
}

// Flusher gives the flush of a lane of its own to the node of a shard; it returns when each beat has its fate.
func (t *Service) Flusher(shard int) func([]*Beat) {
	b := newBatcher(t, t.store.Node(shard))
	return func(batch []*Beat) {
		w := lane.NewWaiter(len(batch))
		for _, beat := range batch {
			beat.wait = w
		}
		b.flush(batch)
		w.Wait()
	}
}
