package sweep

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/lubdub-io/lubdub/tracker/model"
	"github.com/lubdub-io/lubdub/tracker/schema"
	"github.com/lubdub-io/lubdub/tracker/store"
)

// How long a release stands: until what is silent now has expired. After it the brake is itself again.
const (
	DefaultRelease = 10 * time.Minute
	MaxRelease     = 24 * time.Hour
)

// Released counts what a release let go.
type Released struct {
	Tasks, Workers int
	Until          time.Time // until then the brake spares nothing of the scope
}

// Release lets everything of a scope that the mass expiry brake spares expire now, and keeps it from sparing more for a
// while. Each shard is told first and searched then, so that nothing is spared in between. What a failure cuts off is done
// by the same call again.
func (s *Service) Release(ctx context.Context, scope model.Scope, lasts time.Duration) (*Released, error) {
	ctx = s.store.Within(ctx, 0)
	const op = "release"
	if lasts == 0 {
		lasts = DefaultRelease
	}
	if lasts < model.MinTimeout || lasts > MaxRelease {
		return nil, model.Invalidf("durationMs", "is %d; use %d to %d",
			model.Millis(lasts), model.Millis(model.MinTimeout), model.Millis(MaxRelease))
	}
	home := s.homeOf(scope)
	calls, err := s.store.EachShard(ctx, op, func(shard int, _ *schema.ShardKeys) *store.Call {
		data := ""
		if shard == home {
			data = fmt.Sprintf(`{"durationMs":%d}`, model.Millis(lasts))
		}
		return s.scripts.brakeReleaseCall(shard, scope, lasts, data)
	})
	if err != nil {
		return nil, err
	}
	r := &Released{}
	for _, c := range calls {
		r.Until = readBrakeRelease(c.Reply)
	}
	for shard := range calls {
		if err := s.releaseShard(ctx, op, shard, scope, r); err != nil {
			return nil, err
		}
	}
	s.metrics.brake.released.WithLabelValues("task").Add(float64(r.Tasks))
	s.metrics.brake.released.WithLabelValues("worker").Add(float64(r.Workers))
	s.log.Info("operators released the mass expiry brake", "by", model.ActorOf(ctx), scope.LogAttr(),
		"tasks", r.Tasks, "workers", r.Workers, slog.Duration("lasts", lasts))
	return r, nil
}

// homeOf is the shard in which what happens to a scope as a whole is remembered and told.
func (s *Service) homeOf(scope model.Scope) int { return s.store.ShardOf(scope, "") }

func (s *Service) releaseShard(ctx context.Context, op string, shard int, scope model.Scope, r *Released) error {
	attempts, workers, err := s.sparedOf(ctx, op, shard, scope)
	if err != nil {
		return err
	}
	var calls []*store.Call
	for timeout, spared := range attempts {
		for part := range slices.Chunk(spared, schema.TakeLimit) {
			calls = append(calls, s.scripts.brakeTasksCall(shard, letThemGo, timeout, part))
		}
	}
	ofTasks := len(calls)
	for part := range slices.Chunk(workers, schema.TakeLimit) {
		calls = append(calls, s.scripts.brakeWorkersCall(shard, letThemGo, part))
	}
	s.store.DoAll(ctx, op, calls)
	for i, c := range calls {
		if c.Err != nil {
			return c.Err
		}
		if i < ofTasks {
			r.Tasks += readFreed(c.Reply)
		} else {
			r.Workers += readFreed(c.Reply)
		}
	}
	return nil
}

// sparedOf lists what the brake spares of a scope in a shard: attempts, by their timeout, and workers.
func (s *Service) sparedOf(ctx context.Context, op string, shard int, scope model.Scope) (
	attempts map[string][]attempt, workers []*schema.WorkerRef, err error) {
	const page = 500
	attempts = map[string][]attempt{}
	for from := 0; ; from += page {
		reply, err := s.store.Do(ctx, op, s.scripts.brakedCall(shard, from, page))
		if err != nil {
			return nil, nil, err
		}
		spared := readBraked(shard, reply)
		for timeout, all := range spared.attempts {
			for _, a := range all {
				if a.scope == scope {
					attempts[timeout] = append(attempts[timeout], a)
				}
			}
		}
		for _, w := range spared.workers {
			if w.Scope == scope {
				workers = append(workers, w)
			}
		}
		if spared.entries < page {
			return attempts, workers, nil
		}
	}
}
