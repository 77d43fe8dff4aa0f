package brake

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/lubdub-io/lubdub/tracker/model"
	"github.com/lubdub-io/lubdub/tracker/schema"
	"github.com/lubdub-io/lubdub/tracker/store"
)

// How long a release lasts: until the members that are silent now have expired. After it the brake may engage again.
const (
	DefaultRelease = 10 * time.Minute
	MaxRelease     = 24 * time.Hour
)

// Released is the result of a release.
type Released struct {
	Tasks, Workers int
	Until          time.Time // until then the brake holds nothing of the scope
}

// Release releases everything of a scope that the brake holds, and keeps it from holding more for this long; 0: DefaultRelease.
// Each shard records the release before it is searched, so that nothing is held in between. After an error, repeating the call
// completes it.
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
		return s.scripts.releaseCall(shard, scope, lasts, data)
	})
	if err != nil {
		return nil, err
	}
	r := &Released{}
	for _, c := range calls {
		r.Until = readRelease(c.Reply)
	}
	for shard := range calls {
		if err := s.releaseShard(ctx, op, shard, scope, r); err != nil {
			return nil, err
		}
	}
	s.metrics.released.WithLabelValues("task").Add(float64(r.Tasks))
	s.metrics.released.WithLabelValues("worker").Add(float64(r.Workers))
	s.log.Info("operators released the mass-expiry brake", "by", model.ActorOf(ctx), scope.LogAttr(),
		"tasks", r.Tasks, "workers", r.Workers, slog.Duration("lasts", lasts))
	return r, nil
}

func (s *Service) releaseShard(ctx context.Context, op string, shard int, scope model.Scope, r *Released) error {
	held, err := s.heldIn(ctx, op, shard, scope)
	if err != nil {
		return err
	}
	slices.SortStableFunc(held.attempts, func(a, b Attempt) int { return strings.Compare(a.Timeout, b.Timeout) })
	var calls []*store.Call
	for _, part := range schema.Runs(held.attempts, schema.TakeLimit, func(a, b Attempt) bool { return a.set() == b.set() }) {
		calls = append(calls, s.scripts.tasksCall(free, part))
	}
	ofTasks := len(calls)
	for part := range slices.Chunk(held.workers, schema.TakeLimit) {
		calls = append(calls, s.scripts.workersCall(free, part))
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

// heldIn lists what the brake holds of a scope in a shard.
func (s *Service) heldIn(ctx context.Context, op string, shard int, scope model.Scope) (of held, err error) {
	const page = 500
	for from := 0; ; from += page {
		reply, err := s.store.Do(ctx, op, s.scripts.brakedCall(shard, from, page))
		if err != nil {
			return held{}, err
		}
		all := readBraked(shard, reply)
		for _, a := range all.attempts {
			if a.Scope == scope {
				of.attempts = append(of.attempts, a)
			}
		}
		for _, w := range all.workers {
			if w.Scope == scope {
				of.workers = append(of.workers, w)
			}
		}
		if all.entries < page {
			return of, nil
		}
	}
}
