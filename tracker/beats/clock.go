package beats

import (
	"log/slog"
	"time"

	"github.com/lubdub-io/lubdub/tracker/model"
)

// Skew returns how far Redis's clock is ahead of this process's; 0 until the first beat has been answered. Tokens and deadlines use
// Redis's clock, which is the same for all replicas.
func (s *Service) Skew() time.Duration {
	return time.Duration(s.keeper.skew.Load()) * time.Millisecond
}

// RedisNow returns Redis's clock as this process estimates it, to the millisecond.
func (s *Service) RedisNow() time.Time { return s.keeper.redisClock(time.Now()) }

// redisClock converts a time of this process's clock to Redis's.
func (k *timekeeper) redisClock(now time.Time) time.Time {
	return time.UnixMilli(now.UnixMilli() + k.skew.Load())
}

const (
	skewLogged = 2 * time.Second // from which a log line is written
	skewPause  = time.Minute     // between two log lines
)

// logSkew logs a warning about a clock that an operator should correct.
func (s *Service) logSkew(now time.Time) {
	skew := s.Skew()
	last := s.keeper.skewLoggedAt.Load()
	if skew.Abs() < skewLogged || now.UnixNano()-last < int64(skewPause) || !s.keeper.skewLoggedAt.CompareAndSwap(last, now.UnixNano()) {
		return
	}
	s.log.Warn("this host's clock differs from Redis's, on which tokens and deadlines depend: synchronise both",
		slog.Duration("redisAhead", skew))
}

// A store that returns with an old snapshot, or as a replica that lagged, has lost writes that it had acknowledged. Shard time otherwise
// never goes back by more than a moment, so a clock that does reveals the loss.
const (
	regressMs  = 100             // the lazy clock and a step of the wall clock never move shard time back by more
	regressFor = 2 * time.Minute // how long unknown attempts may be lost ones
)

// regress takes an empty beat's shard time, and how long before it the clock was last written (noClock: it was missing). It reports
// whether the store has lost writes.
func (k *timekeeper) regress(shard int, shardTime, gap int64) bool {
	s := &k.shards[shard]
	seen := s.seen.Swap(shardTime)
	if seen == 0 || gap != noClock && shardTime >= seen-regressMs {
		return false
	}
	s.lost.Store(int64(k.cutOff.now() + regressFor))
	return true
}

// MayHaveLost reports whether the store has lost writes of a shard in the last two minutes.
func (s *Service) MayHaveLost(shard int) bool {
	return int64(s.keeper.cutOff.now()) < s.keeper.shards[shard].lost.Load()
}

// AttemptInDoubt is in the result of Owned, of package holdings, for an attempt that this replica does not know just after the store has
// lost writes: it may have been dispatched to the worker. A replica that served the claim, or has opened the attempt to its worker
// before, still knows it; and its own token proves it to every replica.
var AttemptInDoubt = new(model.Attempt)
