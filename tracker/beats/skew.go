package beats

import (
	"log/slog"
	"time"
)

// Skew is how far Redis's clock is ahead of this process's; 0 until a beat or an empty beat has been answered, whose replies
// tell it. Tokens and deadlines are judged by Redis's clock, which is the same for all replicas.
func (t *Service) Skew() time.Duration {
	return time.Duration(t.Keeper.Skew.Load()) * time.Millisecond
}

const (
	skewTold  = 2 * time.Second // is worth a line in the log
	skewPause = time.Minute     // between two of them
)

// tellSkew warns of a clock that somebody should set.
func (t *Service) tellSkew(now time.Time) {
	skew := t.Skew()
	last := t.Keeper.skewSaid.Load()
	if skew.Abs() < skewTold || now.UnixNano()-last < int64(skewPause) || !t.Keeper.skewSaid.CompareAndSwap(last, now.UnixNano()) {
		return
	}
	t.log.Warn("this machine's clock differs from Redis's, by which tokens and deadlines are judged: synchronise both",
		slog.Duration("redis_ahead", skew))
}
