package tracker

import (
	"context"
	"slices"
	"strings"
	"time"
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
func (t *Tracker) Release(ctx context.Context, scope Scope, lasts time.Duration) (*Released, error) {
	t = t.within(ctx, 0)
	const op = "release"
	if lasts == 0 {
		lasts = DefaultRelease
	}
	if lasts < MinTimeout || lasts > MaxRelease {
		return nil, invalid("durationMs", "is %d; use %d to %d", ms(lasts), ms(MinTimeout), ms(MaxRelease))
	}
	calls := make([]*call, t.store.shards())
	for shard, k := range t.store.keys {
		calls[shard] = newCall(shard, t.store.scripts.Get("brake_release"), []string{k.clock, k.braked}, scope.String(), ms(lasts))
	}
	t.store.doAll(op, calls)
	r := &Released{}
	for _, c := range calls {
		if c.err != nil {
			return nil, c.err
		}
		r.Until = c.reply.time(0)
	}
	for shard := range t.store.keys {
		if err := t.releaseShard(op, shard, scope, r); err != nil {
			return nil, err
		}
	}
	t.metrics.brake.released.WithLabelValues("task").Add(float64(r.Tasks))
	t.metrics.brake.released.WithLabelValues("worker").Add(float64(r.Workers))
	t.log.Info("operators released the mass expiry brake", "scope", scope.String(), "tasks", r.Tasks, "workers", r.Workers, "for", lasts)
	return r, nil
}

func (t *Tracker) releaseShard(op string, shard int, scope Scope, r *Released) error {
	const page = 500
	k, prefix := t.store.keys[shard], scope.String()+"/"
	byTimeout := map[string][]string{} // "": workers
	for from := 0; ; from += page {
		listed, err := t.store.do(op, newCall(shard, t.store.scripts.Get("braked"), []string{k.clock, k.braked}, from, page))
		if err != nil {
			return err
		}
		for _, entry := range listed.strings() {
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
	var calls []*call
	for timeout, names := range byTimeout {
		for part := range slices.Chunk(names, takeLimit) {
			script, keys, args := "brake_tasks", []string{k.clock, k.braked, k.beats(timeout)}, []any{"free", timeout}
			if timeout == "" {
				script, keys, args = "brake_workers", []string{k.clock, k.braked, k.workerBeats}, []any{"free"}
			}
			for _, name := range part {
				_, id, _ := splitName(name)
				if timeout == "" {
					keys, args = append(keys, k.worker(name)), append(args, scope.String(), id)
				} else {
					keys, args = append(keys, k.task(taskName(scope, id))), append(args, scope.String(), name)
				}
			}
			calls = append(calls, newCall(shard, t.store.scripts.Get(script), keys, args...))
		}
	}
	t.store.doAll(op, calls)
	for _, c := range calls {
		if c.err != nil {
			return c.err
		}
		freed := 0
		for i := range c.reply {
			freed += int(c.reply.int(i))
		}
		if c.script.Name == "brake_workers" {
			r.Workers += freed
		} else {
			r.Tasks += freed
		}
	}
	return nil
}
