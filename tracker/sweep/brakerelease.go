package sweep

import (
	"context"
	"slices"
	"strings"
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

// Released counts what operators let go.
type Released struct {
	Tasks, Workers int
	Until          time.Time // the brake holds nothing of the scope before
}

// Release lets everything of a scope that the mass expiry brake holds expire now, and keeps it from holding more for a
// while. Each shard is told first and searched then, so that no hold comes in between. What a failure cuts off is done
// by the same call again.
func (t *Service) Release(ctx context.Context, scope model.Scope, lasts time.Duration) (*Released, error) {
	ctx = t.store.Within(ctx, 0)
	const op = "release"
	if lasts == 0 {
		lasts = DefaultRelease
	}
	if lasts < model.MinTimeout || lasts > MaxRelease {
		return nil, model.Invalidf("durationMs", "is %d; use %d to %d", model.Millis(lasts), model.Millis(model.MinTimeout), model.Millis(MaxRelease))
	}
	calls := make([]*store.Call, t.store.Shards())
	for shard, k := range t.store.Keys {
		calls[shard] = store.NewCall(shard, t.store.Scripts.Get("brake_release"), []string{k.Clock, k.Braked}, scope.String(), model.Millis(lasts))
	}
	t.store.DoAll(ctx, op, calls)
	r := &Released{}
	for _, c := range calls {
		if c.Err != nil {
			return nil, c.Err
		}
		r.Until = c.Reply.Time(0)
	}
	for shard := range t.store.Keys {
		if err := t.releaseShard(ctx, op, shard, scope, r); err != nil {
			return nil, err
		}
	}
	t.brakeMetrics.released.WithLabelValues("task").Add(float64(r.Tasks))
	t.brakeMetrics.released.WithLabelValues("worker").Add(float64(r.Workers))
	t.log.Info("operators released the mass expiry brake", "scope", scope.String(), "tasks", r.Tasks, "workers", r.Workers, "for", lasts)
	return r, nil
}

func (t *Service) releaseShard(ctx context.Context, op string, shard int, scope model.Scope, r *Released) error {
	const page = 500
	k, prefix := t.store.Keys[shard], scope.String()+"/"
	byTimeout := map[string][]string{} // "": workers
	for from := 0; ; from += page {
		listed, err := t.store.Do(ctx, op, store.NewCall(shard, t.store.Scripts.Get("braked"), []string{k.Clock, k.Braked}, from, page))
		if err != nil {
			return err
		}
		for _, entry := range listed.Strings() {
			kind, name, _ := strings.Cut(entry, ":")
			timeout := ""
			if kind == "h" {
				timeout, name, _ = strings.Cut(name, ":")
			}
			if (kind == "h" || kind == "w") && strings.HasPrefix(name, prefix) {
				byTimeout[timeout] = append(byTimeout[timeout], name)
			}
		}
		if len(listed) < page {
			break
		}
	}
	var calls []*store.Call
	for timeout, names := range byTimeout {
		for part := range slices.Chunk(names, schema.TakeLimit) {
			script, keys, args := "brake_tasks", []string{k.Clock, k.Braked, k.Beats(timeout)}, []any{"free", timeout}
			if timeout == "" {
				script, keys, args = "brake_workers", []string{k.Clock, k.Braked, k.WorkerBeats}, []any{"free"}
			}
			for _, name := range part {
				_, id, _ := schema.SplitName(name)
				if timeout == "" {
					keys, args = append(keys, k.Worker(name)), append(args, scope.String(), id)
				} else {
					keys, args = append(keys, k.Task(schema.TaskName(scope, id))), append(args, scope.String(), name)
				}
			}
			calls = append(calls, store.NewCall(shard, t.store.Scripts.Get(script), keys, args...))
		}
	}
	t.store.DoAll(ctx, op, calls)
	for _, c := range calls {
		if c.Err != nil {
			return c.Err
		}
		freed := 0
		for i := range c.Reply {
			freed += int(c.Reply.Int(i))
		}
		if c.Script.Name == "brake_workers" {
			r.Workers += freed
		} else {
			r.Tasks += freed
		}
	}
	return nil
}
