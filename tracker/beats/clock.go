package beats

import (
	"log/slog"
	"time"

	"github.com/lubdub-io/lubdub/tracker/model"
)

// Skew is how far Redis's clock is ahead of this process's; 0 until a beat or an empty beat has been answered, whose replies
// tell it. Tokens and deadlines are judged by Redis's clock, which is the same for all replicas.
func (s *Service) Skew() time.Duration {
	return time.Duration(s.keeper.skew.Load()) * time.Millisecond
}

// RedisNow returns Redis's clock as this process knows it, to the millisecond.
func (s *Service) RedisNow() time.Time { return s.keeper.redisClock(time.Now()) }

// redisClock returns Redis's clock at a moment of this process's.
func (k *timekeeper) redisClock(now time.Time) time.Time {
	return time.UnixMilli(now.UnixMilli() + k.skew.Load())
}

const (
	skewTold  = 2 * time.Second // is worth a line in the log
	skewPause = time.Minute     // between two of them
)

// tellSkew warns of a clock that somebody should set.
func (s *Service) tellSkew(now time.Time) {
	skew := s.Skew()
	last := s.keeper.skewSaid.Load()
	if skew.Abs() < skewTold || now.UnixNano()-last < int64(skewPause) || !s.keeper.skewSaid.CompareAndSwap(last, now.UnixNano()) {
		return
	}
	s.log.Warn("this machine's clock differs from Redis's, by which tokens and deadlines are judged: synchronise both",
		slog.Duration("redisAhead", skew))
}

// A store that comes back with an old snapshot, or as a replica that lagged behind, has forgotten what it had acknowledged.
// Shard time never falls by more than a moment, so a clock that does shows it.
const (
	regressMs  = 100             // by which the lazy clock and a step of the wall clock never let shard time fall
	regressFor = 2 * time.Minute // for so long what is unknown may have been lost
)

// regress is told an empty beat's shard time, and for how long the clock had not been written (noClock: there was none). It
// reports whether the store has lost writes.
func (k *timekeeper) regress(shard int, shardTime, gap int64) bool {
	s := &k.shards[shard]
	seen := s.seen.Swap(shardTime)
	if seen == 0 || gap != noClock && shardTime >= seen-regressMs {
		return false
	}
	s.lost.Store(int64(k.cutOff.now() + regressFor))
	return true
}

// MayHaveLost reports whether the store has lost writes of a shard shortly before.
func (s *Service) MayHaveLost(shard int) bool {
	return int64(s.keeper.cutOff.now()) < s.keeper.shards[shard].lost.Load()
}

// AttemptInDoubt stands in the answer of Owned, of package holdings, for an attempt of which this replica knows nothing while
// the store has just lost writes: it may have been dispatched to the worker. A replica that served the claim, or has opened
// the attempt to its worker before, still knows it; and its own token proves it to all.
var AttemptInDoubt = new(model.Attempt)
