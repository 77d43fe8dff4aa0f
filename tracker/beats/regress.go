package beats

import (
	"time"

	"github.com/lubdub-io/lubdub/tracker/model"
)

// A store that comes back with an old snapshot, or as a replica that lagged behind, has forgotten what it had acknowledged.
// Shard time never falls by more than a moment, so a clock that does tells it.
const (
	regressMs  = 100             // by which the lazy clock and a step of the wall clock never let shard time fall
	regressFor = 2 * time.Minute // for so long what is unknown may have been lost
)

// regress hears an empty beat's shard time, and how long it had not been written, -1 for ever. It reports whether the store
// has lost writes.
func (k *timekeeper) regress(shard int, shardTime, gap int64) bool {
	s := &k.shards[shard]
	seen := s.seen.Swap(shardTime)
	if seen == 0 || gap != noClock && shardTime >= seen-regressMs {
		return false
	}
	s.lost.Store(int64(k.cutOff.now() + regressFor))
	return true
}

// MayHaveLost reports whether the store has lost writes of a shard a short time ago.
func (s *Service) MayHaveLost(shard int) bool {
	return int64(s.keeper.cutOff.now()) < s.keeper.shards[shard].lost.Load()
}

// AttemptInDoubt stands in the answer of Owned, of package holdings, for an attempt of which this replica knows nothing while the store has just lost
// writes: it may have been dispatched to the worker. A replica that served the claim, or has opened the attempt to its
// worker before, still knows it; and its own token proves it to all.
var AttemptInDoubt = new(model.Attempt)
