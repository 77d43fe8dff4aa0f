package scenarios

import (
	"fmt"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lubdub-io/lubdub/bench/load"
	"github.com/lubdub-io/lubdub/bench/proc"
	"github.com/lubdub-io/lubdub/bench/report"
	"github.com/lubdub-io/lubdub/bench/requests"
	"github.com/lubdub-io/lubdub/bench/testbed"
)

// runPopulate fills a deployment with the tracked tasks and measures their memory in Redis.
func runPopulate(b *testbed.Bed) {
	f := b.ManyTasks()
	n, filled := float64(f.Tasks.Len()), &b.Filled
	b.Figure("create-rate", "creations, 1,000 a request", n/filled.Create.Elapsed.Seconds(), "tasks/s")
	b.Figure("start-rate", "first beats, which start the tasks, 1,000 a request", n/filled.Start.Elapsed.Seconds(), "tasks/s")
	b.AddRound("redis-bytes-per-task", filled.BytesPerTask)
	b.Figure("redis-bytes-per-task", "Redis memory that came with a running task", filled.BytesPerTask, "bytes")
	rest := filled.BytesPerTask
	part := func(name, what string, value float64) {
		rest -= value
		b.Figure("redis-bytes-"+name, what, value, "bytes")
		b.Scenario.Figures[len(b.Scenario.Figures)-1].Group = "redis-bytes-per-task"
	}
	for _, k := range memoryByKind(b, f.Redis) {
		part(k.name, fmt.Sprintf("%s (%s keys)", k.name, testbed.N(k.keys)), k.bytes/n)
	}
	part("rest", "the rest: table of keys, allocator, buffers", rest)
}

// kind is the keys of one kind, such as all beats sets or all records.
type kind struct {
	name    string
	keys    int
	bytes   float64 // of all; estimated from the sampled ones if there are more
	sampled []*redis.IntCmd
}

// sampledKeys is how many keys of a kind are measured; the fixed keys of all shards are fewer, so each of these is.
const sampledKeys = 2000

// memoryByKind reads the size of keys from Redis, the largest kind first. A key is lubdub:{shard}:kind, followed by another colon and more
// if there are many of the kind.
func memoryByKind(b *testbed.Bed, r *proc.Redis) (kinds []*kind) {
	b.Step("memory by kind of key")
	sizes := r.Client.Pipeline()
	keys := r.Client.Scan(b.Ctx, 0, "lubdub:*", 5000).Iterator()
	for keys.Next(b.Ctx) {
		_, rest, _ := strings.Cut(keys.Val(), "}:")
		name, _, _ := strings.Cut(rest, ":")
		i := slices.IndexFunc(kinds, func(k *kind) bool { return k.name == name })
		if i < 0 {
			i, kinds = len(kinds), append(kinds, &kind{name: name})
		}
		k := kinds[i]
		if k.keys++; len(k.sampled) < sampledKeys {
			k.sampled = append(k.sampled, sizes.MemoryUsage(b.Ctx, keys.Val(), 1000)) // Redis samples a thousand elements of a large key
		}
	}
	testbed.Check(keys.Err())
	testbed.Must(sizes.Exec(b.Ctx))
	for _, k := range kinds {
		for _, size := range k.sampled {
			k.bytes += float64(size.Val()) * float64(k.keys) / float64(len(k.sampled))
		}
	}
	slices.SortFunc(kinds, func(a, b *kind) int { return int(b.bytes - a.bytes) })
	return kinds
}

// runIdle measures a deployment without beats.
func runIdle(b *testbed.Bed) {
	f := b.ManyTasks()
	b.Step("no beats for %v", b.For)
	server, redis := b.Busy(&f.Target, b.For)
	with := fmt.Sprintf(" with %s tracked tasks and no beats", testbed.N(f.Tasks.Len()))
	b.Figure("idle-server", "server, all roles,"+with, server, "% of a core")
	b.Figure("idle-redis", "Redis"+with, redis, "% of a core")
}

// runColdStart connects the workers of all tracked tasks to a new replica, which knows no token; then the same tasks again, once it knows
// them.
func runColdStart(b *testbed.Bed) {
	f := b.ManyTasks()
	start := time.Now()
	replica := b.Replica(f, f.Tasks.Len())
	b.Figure("start", "from the start of the process until it listens", testbed.Ms(time.Since(start)), "ms")
	replica = b.Wide(replica, b.Connections, false)
	cold, _ := b.Drive(replica, report.Run{Round: 1, Variant: "cold"}, load.Load{Source: f.Tasks.Beats, For: b.For})
	// A little shorter, so that only known tasks are repeated.
	warm, _ := b.Drive(replica, report.Run{Round: 1, Variant: "warm"}, load.Load{Source: f.Tasks.Beats, For: b.For / 3})
	b.Figure("cold-server-cpu", "CPU of the server per beat with tokens it meets for the first time, to that with known ones",
		testbed.Of(cold.ServerMicros)/testbed.Of(warm.ServerMicros), "×")
}

// runReplica measures the memory of a replica: for its connections, and its cached tokens.
func runReplica(b *testbed.Bed) {
	f := b.ManyTasks()
	replica := b.Wide(b.Replica(f, f.Tasks.Len()), 4, false)
	rss := func() (mib float64, err error) {
		b.Sleep(200 * time.Millisecond) // the kernel reclaims released memory a moment later
		n, err := proc.RSS(replica.Server.Pid)
		return float64(n) / (1 << 20), err
	}
	beat := func(on *testbed.Target, variant string, source requests.Sources) {
		b.Drive(on, report.Run{Variant: variant}, load.Load{Source: source})
	}
	// The heap reaches its size with some tokens, repeatedly; growth after that is due to the others.
	n := f.Tasks.Len()
	base := min(testbed.Few, n/2)
	others := min(100_000, n-base)
	known, unknown := f.Tasks.Slice(0, base), f.Tasks.Slice(base, base+others)
	for range 5 {
		beat(replica, "(warming up)", known.Batches(batchBeats, true, true))
	}
	before, err := rss()
	if err != nil {
		b.Note("%v", err)
		return
	}
	b.Figure("rss", "a replica that has warmed up", before, "MiB")
	beat(replica, "new tokens", unknown.Batches(batchBeats, true, true))
	after := testbed.Must(rss())
	b.Figure("rss-tokens", "for 100,000 tokens more that it remembers", (after-before)*100_000/float64(others), "MiB")

	conns := 10_000
	if b.Quick {
		conns = 1000
	}
	beat(b.Wide(replica, conns, false), "one beat on each connection", f.Tasks.Slice(0, max(base, min(conns, n))).BeatOnce)
	b.Figure("rss-connections", "for 10,000 connections more", (testbed.Must(rss())-after)*10_000/float64(conns), "MiB")
}

const (
	// manyConnections are open at a time, and each beats every connectionInterval.
	manyConnections    = 100_000
	connectionInterval = 10 * time.Second
	// spareFiles is how many files server and generator need in addition to these connections.
	spareFiles = 2048
)

// runConnections keeps many connections open that beat rarely, and compares their cost with that of few connections that beat at the
// same rate for the same tasks. Each side has its own server, so that their memory can be measured separately.
func runConnections(b *testbed.Bed) {
	most, length := manyConnections, max(b.For, connectionInterval) // every connection beats
	if b.Quick {
		most, length = max(min(5000, b.Tracked/4), b.Connections), b.Short()
	}
	n := min(most, proc.FileLimit()-spareFiles)
	if n < most {
		b.Remark("The limit of open files leaves room for %s of %s connections; raise it with ulimit -n.", testbed.N(n), testbed.N(most))
	}
	if n < 2 {
		testbed.Check(fmt.Errorf("the limit of open files leaves no room for connections; raise it with ulimit -n: %w", syscall.EMFILE))
	}
	// All tasks exist even before the connections, so that both servers know as many tokens as they should.
	f := b.Deploy(most)
	f.Tasks = requests.NewQuiet(most)
	b.Populate(f, f.Tasks)
	var sides []testbed.Way
	for _, size := range []int{max(1, min(pacedConnections, n/5)), n} {
		side := b.Replica(f, most, "--max-connections", fmt.Sprint(n+spareFiles/2))
		b.Step("opening %s connections", testbed.N(size))
		side = b.Wide(side, size, true)
		// One beat for each task, so that its token is cached.
		b.Drive(side, report.Run{Variant: "(warming up)"}, load.Load{Source: f.Tasks.BeatOnce, PerSecond: 20_000})
		b.CollectGarbage(side)
		sides = append(sides, beats(side, testbed.N(size)+" connections", f.Tasks,
			load.Load{For: length, PerSecond: float64(most) / connectionInterval.Seconds()}))
	}
	few, many := sides[0].On, sides[1].On
	var rss [2]int64
	b.Turns(sides, func(runs []report.Run) {
		b.AddRound("connections-cpu", testbed.Both(runs[1])/testbed.Both(runs[0]))
		for i, way := range sides {
			var err error
			if rss[i], err = proc.RSS(way.On.Server.Pid); err != nil {
				return
			}
		}
		missing := manyConnections - n
		each := float64(rss[1]-rss[0]) / float64(n-few.Pool.Size())
		b.AddRound("connections-rss", (float64(rss[1])+max(each, 0)*float64(missing))/1e6)
		if missing > 0 {
			note := testbed.N(n) + " connections"
			b.Explain("connections-cpu", "%s", note)
			b.Explain("connections-rss", "estimated from %s", note)
		}
	})
	if rss[1] == 0 {
		return
	}
	b.Figure("connections-rss-few", fmt.Sprintf("memory of the server with %s connections, last round", testbed.N(few.Pool.Size())),
		float64(rss[0])/1e6, "MB")
	b.Figure("connections-rss-many", fmt.Sprintf("and of that with %s", testbed.N(many.Pool.Size())), float64(rss[1])/1e6, "MB")
	b.Figure("connections-rss-each", "which is for each connection more", float64(rss[1]-rss[0])/float64(n-few.Pool.Size())/1e3, "KB")
}
