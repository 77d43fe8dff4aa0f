package tracker_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lubdub-io/lubdub/internal/redistest"
	"github.com/lubdub-io/lubdub/tracker"
	"github.com/lubdub-io/lubdub/tracker/trackertest"
)

// On one server a script may be about many shards: it stays within the bounds where each of them has as much to tell as a
// shard may have.
func TestScriptsAboutManyShardsAreBounded(t *testing.T) {
	const shards = 64
	store, server := redistest.Alone(t)
	h := trackertest.NewHarness(t, store, trackertest.Braked, func(o *tracker.Options) { o.Shards = shards })
	b := &bounds{server: server, story: &story{Crew: trackertest.NewCrew(h)}}
	now := store.Clock.Now().UnixMilli()
	for shard := range shards {
		key := func(set string) string { return fmt.Sprintf("lubdub:{%d}:%s", shard, set) }
		pipe := store.Client.Pipeline()
		b.fillTimeouts(pipe, key)
		for i := range 999 {
			pipe.RPush(b.Ctx, key("outages"), fmt.Sprintf("%d\t%d\t10\t0", now-int64(i), i))
		}
		pipe.HSet(b.Ctx, key("clock"), "o", 999) // none of which has been told
		for i := range 200 {
			pipe.ZAdd(b.Ctx, key("ix"), redis.Z{Member: trackertest.Scope.String() + "/R/" + fmt.Sprintf("task_%03d_%d", i, shard)})
		}
		b.exec(pipe)
	}
	calls := trackertest.MeasureCalls(b.Tracker, func() time.Duration { return server.CPU(t) })
	limit := longestScript
	for range 5 {
		h.Advance(250 * time.Millisecond)
		h.MustSweep()
		_, err := h.List(h.Ctx, tracker.TaskFilter{Scope: trackertest.Scope, PageSize: 100})
		b.check("list", err)
		limit = max(limit, b.limit())
	}
	b.judge(calls(), limit)
}
