package tracker_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lubdub-io/lubdub/internal/redistest"
	"github.com/lubdub-io/lubdub/tracker"
)

// On one server a script may be about many shards: it stays within the bounds where each of them has as much to tell as a
// shard may have.
func TestScriptsAboutManyShardsAreBounded(t *testing.T) {
	const shards = 64
	store, server := redistest.Alone(t)
	h := newHarness(t, store, braked, func(o *tracker.Options) { o.Shards = shards })
	b := &bounds{server: server, story: &story{crew: &crew{h, map[string]string{}}}}
	now := store.Clock.Now().UnixMilli()
	for shard := range shards {
		key := func(set string) string { return fmt.Sprintf("lubdub:{%d}:%s", shard, set) }
		pipe := store.Client.Pipeline()
		b.fillTimeouts(pipe, key)
		for i := range 999 {
			pipe.RPush(b.ctx, key("outages"), fmt.Sprintf("%d\t%d\t10\t0", now-int64(i), i))
		}
		pipe.HSet(b.ctx, key("clock"), "o", 999) // none of which has been told
		for i := range 200 {
			pipe.ZAdd(b.ctx, key("ix"), redis.Z{Member: scope.String() + "/R/" + fmt.Sprintf("task_%03d_%d", i, shard)})
		}
		b.exec(pipe)
	}
	calls := b.MeasureCalls(func() time.Duration { return server.CPU(t) })
	limit := longestScript
	for range 5 {
		h.advance(250 * time.Millisecond)
		h.sweep()
		_, err := h.List(h.ctx, tracker.TaskFilter{Scope: scope, PageSize: 100})
		b.check("list", err)
		limit = max(limit, b.limit())
	}
	b.judge(calls(), limit)
}
