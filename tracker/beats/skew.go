package beats

import (
	"log/slog"
	"time"
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
		slog.Duration("redis_ahead", skew))
}
