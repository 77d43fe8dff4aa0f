package tracker_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lubdub-io/lubdub/internal/redistest"
	"github.com/lubdub-io/lubdub/internal/testenv"
	"github.com/lubdub-io/lubdub/tracker"
	"github.com/lubdub-io/lubdub/tracker/model"
	"github.com/lubdub-io/lubdub/tracker/revocations"
	"github.com/lubdub-io/lubdub/tracker/schema"
	"github.com/lubdub-io/lubdub/tracker/trackertest"
)

// On one server a script may cover many shards: it stays within the bounds when each of them has the largest reply.
func TestScriptsAboutManyShardsAreBounded(t *testing.T) {
	testenv.OnlyAll(t)
	testenv.MeasuresScripts(t)
	const shards = 64
	store, server := redistest.Alone(t)
	h := trackertest.NewHarness(t, store, trackertest.Braked, func(o *tracker.Options) { o.Shards = shards })
	b := &bounds{server: server, story: &story{Fleet: trackertest.NewFleet(h)}}
	now := store.Clock.Now().UnixMilli()
	for shard := range shards {
		key := func(set string) string { return fmt.Sprintf("lubdub:{%d}:%s", shard, set) }
		pipe := store.Client.Pipeline()
		b.fillTimeouts(pipe, key)
		for i := range 999 {
			pipe.RPush(b.Ctx, key("outages"), fmt.Sprintf("%d\t%d\t10\t0", now-int64(i), i))
		}
		pipe.HSet(b.Ctx, key("clock"), "o", 999) // none of which was reported
		for i := range 200 {
			pipe.ZAdd(b.Ctx, key("ix"), redis.Z{Member: trackertest.Scope.String() + "/R/" + fmt.Sprintf("task_%03d_%d", i, shard)})
		}
		b.exec(pipe)
	}
	calls := b.measure()
	for range 5 {
		h.Advance(250 * time.Millisecond)
		h.MustSweep()
		_, err := h.Tasks.List(h.Ctx, model.TaskFilter{Scope: trackertest.Scope, PageSize: 100})
		b.check("list", err)
		h.Stats.ForgetSnapshots()
		_, err = h.Stats.System(h.Ctx)
		b.check("system", err)
	}
	b.compare(calls())
}

// rebuildQueueLists makes the running replica list by queue what an older release has left.
func (b *bounds) rebuildQueueLists() {
	b.Helper()
	b.check("older", b.Store.Client.HSet(b.Ctx, schema.MetaKey, "schema", 2).Err())
	trackertest.Until(b, func() bool { return b.Store.Client.HGet(b.Ctx, schema.MetaKey, "schema").Val() == "3" })
}

// manyRevocations fills the list of revoked tokens, loses it, and stores it again.
func (b *bounds) manyRevocations() {
	b.Helper()
	before := b.Store.Clock.Now().Truncate(time.Second)
	fill := func(from, to int) {
		var all []redis.Z
		for i := range to - from {
			r := revocations.Revocation{Name: longest("subject", from+i), Tenant: longest("tenant", from+i), Workspace: longest("workspace", 1)}
			all = append(all, redis.Z{Score: float64(before.Add(model.MaxControlTTL).UnixMilli()),
				Member: fmt.Sprintf("s/%s/%s/%s", r.Tenant, r.Workspace, r.Name)})
		}
		b.check("fill", b.Store.Client.ZAdd(b.Ctx, schema.RevocationsKey, append(all, redis.Z{Score: -float64(from + 1), Member: "!"})...).Err())
	}
	fill(0, revocations.MaxRevocations-100)
	b.check("look", b.Revocations.Refresh(b.Ctx))
	b.check("lose", b.Store.Client.Del(b.Ctx, schema.RevocationsKey).Err())
	b.check("look", b.Revocations.Refresh(b.Ctx))
	r := revocations.Revocation{Kind: revocations.OfSubject, Tenant: longest("tenant", 1), Workspace: "*", Name: longest("subject", 1),
		IssuedBefore: before}
	b.check("revoke", b.Revocations.Revoke(b.Ctx, r))
	b.check("look", b.Revocations.Refresh(b.Ctx))
	if n, err := b.Store.Client.ZCard(b.Ctx, schema.RevocationsKey).Result(); err != nil || n < revocations.MaxRevocations-100 {
		b.Fatalf("%d revocations, %v", n, err)
	}
}
