package sweep

import (
	"context"
	"log/slog"
	"time"

	"github.com/lubdub-io/lubdub/tracker/schema"
)

// The number of lines of each kind that are logged in a second; further ones are only counted.
const (
	verdictLines = 10 // about tasks
	probeLines   = 10
)

// logVerdict logs that an attempt or a task was ended.
func (s *Service) logVerdict(by sweeperID, f *found, took taken) {
	suppressed, ok := s.logVerdicts.Allow(time.Now())
	if !ok {
		return
	}
	what := "task is overdue"
	if f.isSilent() {
		what = "task heartbeat is stale"
	}
	attempt, _, _ := schema.SplitAttempt(f.member) // 0: a deadline belongs to the task
	s.log.LogAttrs(context.Background(), slog.LevelWarn, what,
		f.ref.Scope.LogAttr(), slog.String("taskId", f.ref.ID), slog.Int("attempt", attempt),
		slog.String("reason", string(f.reason())), slog.Bool("requeued", took.what == schema.TookRequeued),
		slog.Duration("detectionLag", took.lag), slog.String("by", string(by)), slog.Int64("moreNotLogged", suppressed))
}

// logUnanswered logs why the probe of a late worker failed: the worker may be dead, or the probe may not get through to it.
func (s *Service) logUnanswered(r *schema.WorkerRef, cause error) {
	if suppressed, ok := s.logProbes.Allow(time.Now()); ok {
		s.log.LogAttrs(context.Background(), slog.LevelWarn, "the probe of a late worker was not answered",
			r.Scope.LogAttr(), slog.String("workerId", r.ID), slog.String("error", cause.Error()), slog.Int64("moreNotLogged", suppressed))
	}
}

// logStale logs that a worker was ended because it was silent.
func (s *Service) logStale(by sweeperID, r *schema.WorkerRef, is expired) {
	attrs := []slog.Attr{r.Scope.LogAttr(), slog.String("workerId", r.ID), slog.String("machineId", is.machine)}
	if !is.lastSeen.IsZero() {
		attrs = append(attrs, slog.Time("lastSeen", is.lastSeen), slog.Duration("silent", s.beats.RedisNow().Sub(is.lastSeen)))
	}
	attrs = append(attrs, slog.Duration("detectionLag", is.lag), slog.String("by", string(by)))
	s.log.LogAttrs(context.Background(), slog.LevelWarn, "worker heartbeat is stale", attrs...)
}
