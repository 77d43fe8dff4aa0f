package tracker_test

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lubdub-io/lubdub/internal/redistest"
	"github.com/lubdub-io/lubdub/internal/testenv"
	"github.com/lubdub-io/lubdub/tracker"
	"github.com/lubdub-io/lubdub/tracker/model"
	"github.com/lubdub-io/lubdub/tracker/trackertest"
)

// The rule of docs/redis-keys.md: whatever clients have sent and stored, no script blocks Redis for longer than about 5 ms, and its
// arguments and reply are bounded.
const (
	longestScript = 5 * time.Millisecond
	longestSeen   = longestScript * 3 / 2 // measurements on a busy host are inaccurate, even corrected ones
	mostSent      = 2 << 20               // bytes of one call's keys and arguments
	mostGot       = 2 << 20               // bytes of its reply
)

// A call that seems too long is compared with a script that does a known amount of work, and with its time when the bounds were set: on a
// slower host, or while other work keeps its caches busy, scripts may take longer in proportion. Some hosts are slow to provide memory
// besides: of a call with much data, the time to store as much counts as it was when the bounds were set, and the rest is compared. What
// a call receives stays stored, in new memory; what it replies does not.
const (
	lookUp    = `for i = 1, 10000 do redis.call('ZSCORE', KEYS[1], i) end`
	lookUpWas = 6500 * time.Microsecond

	keepData     = `redis.call('RPUSH', KEYS[1], ARGV[1])`
	passData     = `redis.call('HSET', KEYS[1], 'data', ARGV[1]) redis.call('UNLINK', KEYS[1])`
	storeByteWas = 2 * time.Nanosecond
	much         = 256 << 10
)

// notMeasured has scripts that neither the story nor the steps after it run, and why their cost needs no test.
var notMeasured = map[string]string{
	"claimed":       "it reads and writes one hash of three fields",
	"schema":        "it reads and writes one hash of three fields",
	"worker_probed": "it needs a worker that answers; it reads one record, as worker_expire reads fifty",
}

// bounds is a store that is as full as clients can make it, and the cost of each script in it.
type bounds struct {
	*story
	server *redistest.Server
}

// Every operation runs in a store that is full of everything, and on the largest possible task, worker, machine and queue. Each script's
// calls are measured one by one, in CPU time of Redis, so that other load on the host does not matter.
func TestScriptsAreBounded(t *testing.T) {
	testenv.OnlyAll(t)
	testenv.MeasuresScripts(t)
	redistest.Measured(t, everyScript)
}

func everyScript(t *testing.T) redistest.TooLong {
	store, server := redistest.Alone(t)
	out := &outside{}
	h := trackertest.NewHarness(t, store, trackertest.Braked, func(o *tracker.Options) {
		o.WebhookPoster = out
		o.TenantWebhookBytes = 8 << 20 // the largest tenant's 62 webhooks have little each, so that much is dropped
		o.WorkerInterval, o.WorkerTimeoutMultiplier = time.Second, 3
		o.TenantTasks, o.TenantBytes, o.TenantWorkers = 1e9, 1e15, 1e9 // so high that they only count
	})
	b := &bounds{server: server, story: &story{Fleet: trackertest.NewFleet(h), outside: out, names: map[string]string{},
		records: map[string][]string{}}}
	b.fillShards()
	calls := b.measure()
	for _, act := range []func(){b.play, b.fillTenant, b.rebuildQueueLists, b.largeTasks, b.largeSchedules, b.largeWorkers, b.deepQueue,
		b.herdOfTasks, b.manyRevocations, b.everythingEnds, b.events, b.largeWebhooks} {
		act()
	}
	of, tooLong := b.compare(calls())
	for _, name := range store.Scripts.Names() {
		if _, left := notMeasured[name]; of[name] == nil && !left {
			t.Errorf("%s was not measured: run it at its worst (bounds*_test.go), or add it to notMeasured with the reason", name)
		}
	}
	return tooLong
}

// compare compares the cost and size of each script with the bounds.
func (b *bounds) compare(calls []trackertest.ScriptCall) (of map[string]*scriptCost, tooLong redistest.TooLong) {
	b.Helper()
	of, tooLong = map[string]*scriptCost{}, redistest.TooLong{}
	for _, c := range calls {
		if of[c.Script] == nil {
			of[c.Script] = &scriptCost{name: c.Script}
		}
		of[c.Script].add(c)
	}
	for _, c := range slices.SortedFunc(maps.Values(of), func(a, b *scriptCost) int { return cmp.Compare(b.took[0], a.took[0]) }) {
		b.Log(c)
		outlier := 10 * longestSeen // occasionally Redis does other work meanwhile, such as resizing a table
		if c.calls < 3 {
			outlier = 3 * longestSeen
		}
		if c.sent > mostSent || c.got > mostGot {
			b.Errorf("%s breaks the bounds: %d bytes to it, %d bytes back", c, mostSent, mostGot)
		}
		if c.took[1] > longestSeen || c.took[0] > outlier {
			tooLong[c.name] = fmt.Sprintf("%s; want %v", c, longestScript)
		}
	}
	return of, tooLong
}

// scriptCost is the largest cost and size of the calls of one script.
type scriptCost struct {
	name             string
	calls, sent, got int
	took             [2]time.Duration // the worst and the second worst
}

func (c *scriptCost) add(call trackertest.ScriptCall) {
	c.calls++
	c.sent, c.got = max(c.sent, call.Sent), max(c.got, call.Got)
	c.took[1] = max(c.took[1], min(c.took[0], call.Took))
	c.took[0] = max(c.took[0], call.Took)
}

func (c *scriptCost) String() string {
	return fmt.Sprintf("%-18s %5d calls, %v and %v at most, %d bytes to it, %d bytes back", c.name, c.calls,
		c.took[0].Round(10*time.Microsecond), c.took[1].Round(10*time.Microsecond), c.sent, c.got)
}

// measure measures each call of a script, and compares one that seems too long with the reference at once, since a busy host is slow for a
// moment only and for both equally.
func (b *bounds) measure() (calls func() []trackertest.ScriptCall) {
	cpu := func() time.Duration { return b.server.CPU(b) }
	eval := func(script, key string, args ...any) time.Duration {
		before := cpu()
		if err := b.Store.Client.Eval(b.Ctx, script, []string{key}, args...).Err(); err != nil && err != redis.Nil {
			b.Fatal(err)
		}
		return cpu() - before
	}
	return trackertest.MeasureCalls(b.Tracker, cpu, func(c trackertest.ScriptCall) time.Duration {
		if c.Took <= longestScript {
			return c.Took
		}
		took, known := c.Took, time.Duration(0) // without storing much data, and the usual time of that
		if bytes := max(c.Sent, c.Got); bytes > much {
			script, key := keepData, b.Key("any", "kept")
			if c.Got > c.Sent {
				script, key = passData, b.Key("any", "reference")
			}
			store := func() time.Duration { return eval(script, key, make([]byte, bytes)) }
			stored := min(store(), store())
			took, known = max(0, took-stored), min(stored, time.Duration(bytes)*storeByteWas)
		}
		return known + took*lookUpWas/max(lookUpWas, eval(lookUp, b.Key("any", "ix")))
	})
}

// many is how many unrelated entries are in every set of a shard.
const many = 20_000

// fillShards adds unrelated entries to every set that all tasks and workers of a shard share. Their names belong to other shards, so that
// the reconciler ignores them.
func (b *bounds) fillShards() {
	b.Helper()
	far := float64(b.Store.Clock.Now().Add(1000 * time.Hour).UnixMilli())
	now := b.Store.Clock.Now().UnixMilli()
	for shard := range b.Tracker.Store.Shards() {
		key := func(set string) string { return fmt.Sprintf("lubdub:{%d}:%s", shard, set) }
		pipe := b.Store.Client.Pipeline()
		other := model.Scope{Tenant: "others", Workspace: "all"}
		for i, n := 0, 0; n < many; i++ {
			id := fmt.Sprintf("task_%060d", i)
			if b.Tracker.Store.ShardOf(other, id) == shard {
				continue
			}
			n++
			name := other.String() + "/" + id
			member := name + "#1.abcd"
			for set, entry := range map[string]string{"timers": "r:" + member, "due": "x:" + name, "beats:2000": member,
				"outbox": "wkr_9\t" + member + "\tl\tgone", "braked": "h:2000:" + member, "scheduledue": name} {
				pipe.ZAdd(b.Ctx, key(set), redis.Z{Score: far, Member: entry})
			}
			for set, entry := range map[string]string{"ix": other.String() + "/R/" + id, "held": "wkr_9/" + member + "/0//",
				"schedules": name, "ready": fmt.Sprintf("%s/q//type%d///%013d/%s/0/", other, n/2, i, id)} {
				pipe.ZAdd(b.Ctx, key(set), redis.Z{Member: entry})
			}
			pipe.ZAdd(b.Ctx, key("fences"), redis.Z{Score: float64(now - 2*time.Hour.Milliseconds()), Member: fmt.Sprint("wkr_", i)})
			pipe.HSet(b.Ctx, key("progress"), member, "\t\t5\t")
			pipe.HSet(b.Ctx, key("cancels"), member, "30000\t\t")
			if n <= 10_000 {
				pipe.XAdd(b.Ctx, &redis.XAddArgs{Stream: key("events"),
					Values: []any{"type", "task.created", "time", now, "scope", other.String(), "subject", id, "attempt", 1, "data", "{}"}})
			}
			if n%1000 == 0 {
				b.exec(pipe)
			}
		}
		for i := range 999 {
			pipe.RPush(b.Ctx, key("outages"), fmt.Sprintf("%.0f\t%d\t10\t0", far, i)) // later than any beat: all are read for evidence
		}
		for i := range 50 {
			pipe.ZAdd(b.Ctx, key("replicas"), redis.Z{Score: float64(now), Member: fmt.Sprint("r", i)})
			pipe.ZAdd(b.Ctx, key("sweepers"), redis.Z{Score: float64(now), Member: fmt.Sprint("s", i)})
		}
		b.fillTimeouts(pipe, key)
		b.exec(pipe)
	}
}

// fillTenant creates very many workspaces of one tenant, and tasks of every size.
func (b *bounds) fillTenant() {
	b.Helper()
	for shard := range b.Tracker.Store.Shards() {
		key := func(set string) string { return fmt.Sprintf("lubdub:{%d}:%s", shard, set) }
		pipe := b.Store.Client.Pipeline()
		for i := range 2000 {
			name := big.Tenant + "/" + longest("workspace", i+1)
			pipe.ZAdd(b.Ctx, key("ix"), redis.Z{Member: name + "/R/" + longest("task", i)},
				redis.Z{Member: fmt.Sprintf("}%s/%013d/%s/1/WORKER_LOST/%s/%s/%s", big, i, longest("old", i), longest("queue", 0),
					longest("type", 0), longest("worker", 0))},
				redis.Z{Member: fmt.Sprintf("~%s/%c/%s", big.Tenant, 'A'+i%58, longest("task", i))})
			pipe.ZAdd(b.Ctx, key("workers"), redis.Z{Member: name + "/N/" + longest("worker", i)})
		}
		b.exec(pipe)
	}
}

// fillTimeouts uses every possible timeout.
func (b *bounds) fillTimeouts(pipe redis.Pipeliner, key func(set string) string) {
	for _, d := range trackertest.AllTimeouts() {
		pipe.SAdd(b.Ctx, key("timeouts"), d.Milliseconds())
		pipe.ZAdd(b.Ctx, key(fmt.Sprint("beats:", d.Milliseconds())), redis.Z{Score: 9007199254740991, Member: "!"})
	}
}

func (b *bounds) exec(pipe redis.Pipeliner) {
	b.Helper()
	if _, err := pipe.Exec(context.Background()); err != nil {
		b.Fatal(err)
	}
}

// registered registers a worker.
func (b *bounds) registered(change ...func(*model.NewWorker)) string {
	b.Helper()
	return b.MustRegister(change...).WorkerID
}
