package scenarios

import (
	"fmt"
	"strings"

	"github.com/lubdub-io/lubdub/bench/load"
	"github.com/lubdub-io/lubdub/bench/report"
	"github.com/lubdub-io/lubdub/bench/requests"
	"github.com/lubdub-io/lubdub/bench/testbed"
)

// The number of beats in a batch request, as from a supervisor of as many tasks; batchConnections keep the server busy with them.
const (
	batchBeats       = 100
	batchConnections = 16
)

// beats is a way to beat for tasks, one per request.
func beats(on *testbed.Target, variant string, tasks *requests.Tasks, l load.Load) testbed.Way {
	l.Source = tasks.Beats
	return testbed.Way{On: on, Like: report.Run{Variant: variant}, Load: l}
}

// runSingle drives Lubdub and the baselines at full speed.
func runSingle(b *testbed.Bed) {
	f := b.FewTasks()
	var ways []testbed.Way
	for _, t := range b.WithBaselines(f) {
		ways = append(ways, beats(t, "", f.Tasks, load.Load{For: b.For}))
	}
	b.Warm(ways...)
	b.Turns(ways, func(runs []report.Run) {
		ours, empty := runs[0], of(testbed.Empty, runs)
		b.AddTopRate(ours)
		b.AddRound("frontend-cpu-vs-empty", testbed.Of(ours.ServerMicros)/testbed.Of(empty.ServerMicros))
		b.AddRound("single-rate-vs-empty", ours.BeatsPerSecond/empty.BeatsPerSecond)
		b.AddRound("single-cpu-vs-naive", testbed.Both(ours)/testbed.Both(of(testbed.Naive, runs)))
		b.AddRound("single-cpu-vs-autopipeline", testbed.Both(ours)/testbed.Both(of(testbed.Autopipeline, runs)))
	})
}

// of returns a program's run, or an empty one if it is missing.
func of(program string, runs []report.Run) (r report.Run) {
	for _, run := range runs {
		if run.Program == program {
			return run
		}
	}
	return r
}

// runBatch compares batches with single beats.
func runBatch(b *testbed.Bed) {
	f := b.FewTasks()
	single := beats(&f.Target, "single", f.Tasks, load.Load{For: b.Short()})
	batch := testbed.Way{On: b.Wide(&f.Target, min(batchConnections, b.Connections), false),
		Like: report.Run{Variant: "batch", BeatsPerRequest: batchBeats},
		Load: load.Load{Source: f.Tasks.Batches(batchBeats, true, false), For: b.Short()}}
	b.Warm(single)
	b.Turns([]testbed.Way{single, batch}, func(runs []report.Run) {
		b.AddRound("batch-rate", runs[1].BeatsPerSecond)
		b.AddRound("batch-rate-vs-single", runs[1].BeatsPerSecond/runs[0].BeatsPerSecond)
	})
}

// runGrowth compares few tasks with many.
func runGrowth(b *testbed.Bed) {
	few, many := b.FewTasks(), b.ManyTasks()
	ways := []testbed.Way{beats(&few.Target, "few", few.Tasks, load.Load{For: b.Short()}),
		beats(&many.Target, "many", many.Tasks, load.Load{For: b.Short()})}
	b.Warm(ways...)
	b.Turns(ways, func(runs []report.Run) { b.AddRound("growth", testbed.Both(runs[1])/testbed.Both(runs[0])) })
	if n := many.Tasks.Len(); n < 1_000_000 {
		b.Explain("growth", "at %s tracked tasks", testbed.N(n))
	}
}

// tenantCount is the number of tenants that share the tasks of the scenario.
const tenantCount = 1000

// runTenants compares the tasks of one tenant with as many of many tenants.
func runTenants(b *testbed.Bed) {
	f := b.FewTasks()
	all, spread := *f, requests.NewQuiet(f.Tasks.Len())
	spread.Tenants, all.Control = tenantCount, b.ControlToken("*", "*")
	b.Populate(&all, spread)
	f.Tracked = all.Tracked
	ways := []testbed.Way{beats(&f.Target, "1 tenant", f.Tasks, load.Load{For: b.Short()}),
		beats(&f.Target, testbed.N(tenantCount)+" tenants", spread, load.Load{For: b.Short()})}
	b.Warm(ways...)
	var ratios []float64
	b.Turns(ways, func(runs []report.Run) { ratios = append(ratios, testbed.Both(runs[1])/testbed.Both(runs[0])) })
	b.Figure("tenants-cpu", "CPU of server and Redis per beat with many tenants, to that with one", report.Median(ratios), "×")
}

// runLatency drives an open loop.
func runLatency(b *testbed.Bed) {
	f := b.FewTasks()
	rate := b.HalfOfTop(f)
	for round := range b.Rounds {
		r, _ := b.Drive(&f.Target, report.Run{Round: round + 1},
			load.Load{Source: f.Tasks.Beats, For: b.For, PerSecond: rate, Poisson: b.Poisson})
		b.AddRound("latency-p99", testbed.P99(r))
	}
}

// pacedConnections is how many connections a paced load has: each beats every 20 to 100 ms.
const pacedConnections = 1000

// runPaced drives Lubdub and the baselines at rates that leave them idle most of the time: flushes contain few beats, and the cost of a
// wake-up is visible.
func runPaced(b *testbed.Bed) {
	f := b.FewTasks()
	var ways []testbed.Way
	for _, t := range b.WithBaselines(f) {
		ways = append(ways, beats(b.Wide(t, min(pacedConnections, f.Tasks.Len()), true), "", f.Tasks, load.Load{For: b.For, Poisson: b.Poisson}))
	}
	b.Warm(ways...)
	for round := range b.Rounds {
		for _, thousands := range []int{10, 25, 50} {
			rate := 1000 * thousands
			if b.Quick {
				rate /= 10
			}
			for i := range ways {
				ways[i].Like.Variant, ways[i].Load.PerSecond = testbed.N(rate)+"/s", float64(rate)
				if b.Quick {
					ways[i].Load.For = b.Short()
				}
			}
			runs := b.Turn(round+1, ways...)
			ours, auto := runs[0], of(testbed.Autopipeline, runs)
			name := fmt.Sprintf("paced-%dk", thousands)
			b.AddRound(name+"-cpu-vs-autopipeline", testbed.Both(ours)/testbed.Both(auto))
			b.AddRound(name+"-p99", testbed.P99(ours))
			cpu, p99 := pacedNotes(ours, auto)
			if b.Quick {
				at := fmt.Sprintf("at %s/s", testbed.N(rate))
				cpu, p99 = strings.TrimSuffix(at+"; "+cpu, "; "), strings.TrimSuffix(at+"; "+p99, "; ")
			}
			b.Explain(name+"-cpu-vs-autopipeline", "%s", cpu)
			b.Explain(name+"-p99", "%s", p99)
		}
	}
}

// The share of the offered beats that must be accepted for CPU per beat to be valid at the rate, and how late the generator may be.
const (
	nearlyAll   = 0.98
	maxLateness = 1.0 // ms
)

// pacedNotes returns notes about the numbers of a round, for CPU and for p99; empty: none.
func pacedNotes(ours, auto report.Run) (cpu, p99 string) {
	var list []string
	for _, r := range []report.Run{ours, auto} {
		if r.BeatsPerSecond < nearlyAll*r.TargetPerSecond {
			list = append(list, fmt.Sprintf("%s took %s of %s/s", r.Program, testbed.N(int(r.BeatsPerSecond)), testbed.N(int(r.TargetPerSecond))))
		}
	}
	if late := ours.OwnLateness; late != nil && late.P99Ms > maxLateness {
		p99 = fmt.Sprintf("the generator itself was late by %.1f ms, p99", late.P99Ms)
	}
	return strings.Join(list, ", "), p99
}

// runLifecycle takes tasks through their whole life.
func runLifecycle(b *testbed.Bed) {
	f := b.FewTasks()
	before := f.ReadCPU()
	r, res, err := b.Measure(&f.Target, report.Run{Round: 1, Variant: "life cycles"},
		load.Load{Source: requests.Lives(f.Control), For: b.Short()})
	lives := res.Requests / requests.CallsOfALife
	server, redis, _ := f.ReadCPU().Since(before, lives)
	r.ServerMicros, r.RedisMicros, r.GeneratorMicros = nil, nil, nil // per beat they would include the other calls
	b.Keep(r)
	testbed.Check(err)
	b.Figure("life-cycles", fmt.Sprintf("life cycles of %d calls, %d of them beats", requests.CallsOfALife, requests.BeatsOfALife),
		testbed.PerSecond(lives, res.Elapsed), "tasks/s")
	b.Figure("life-cycle-server-cpu", "CPU of the server for a life cycle", server, "µs")
	b.Figure("life-cycle-redis-cpu", "CPU of Redis for a life cycle", redis, "µs")
}

// floorTasks is how many tasks the floor is measured with: so many that neither side's sets fit into the processor's caches, as in
// production. With few, the fixed cost of a script weighs more; that is reported too, alongside the bars.
const floorTasks = 100_000

// runFloor compares the cost of a beat for Redis with the least possible cost. One batch at a time is under way on either side, so that
// a flush contains 100 beats and no more; the metrics show whether it did.
func runFloor(b *testbed.Bed) {
	few := b.FewTasks()
	n := max(few.Tasks.Len(), min(floorTasks, b.Tracked))
	many := b.Deploy(n)
	many.Tasks = requests.NewQuiet(n)
	b.Populate(many, many.Tasks)
	redis := b.NewRedis()
	b.Cleanup(redis.Stop)
	few1, many1 := b.Wide(&few.Target, 1, false), b.Wide(&many.Target, 1, false)
	for round := range b.Rounds {
		for _, v := range []struct {
			progress  bool
			name, bar string
		}{{false, "bare", "redis-cpu-vs-zadd"}, {true, "with progress", "redis-cpu-vs-zadd-progress"}} {
			overFloor := func(on *testbed.Target, tasks *requests.Tasks) (ours report.Run, ratio float64) {
				like := report.Run{Round: round + 1, Variant: v.name, BeatsPerRequest: batchBeats}
				ours, _ = b.Drive(on, like, load.Load{Source: tasks.Batches(batchBeats, v.progress, false), For: b.For})
				like.Tracked = tasks.Len()
				floor, ok := b.Self(testbed.Zadd, like, "--redis", redis.URL, "--members", fmt.Sprint(tasks.Len()),
					"--batch", fmt.Sprint(batchBeats), fmt.Sprintf("--progress=%v", v.progress))
				if ok {
					b.Keep(floor)
				}
				return ours, testbed.Of(ours.RedisMicros) / testbed.Of(floor.RedisMicros)
			}
			ours, ratio := overFloor(many1, many.Tasks)
			b.AddRound(v.bar, ratio)
			note := testbed.N(many.Tasks.Len()) + " tasks"
			if ours.FlushBeats != nil {
				note = fmt.Sprintf("%.0f beats a flush, %s", *ours.FlushBeats, note)
			}
			b.Explain(v.bar, "%s", note)
			if round == 0 {
				_, ratio := overFloor(few1, few.Tasks)
				b.Figure(v.bar+"-few", fmt.Sprintf("CPU of Redis per beat to that of the floor, %s, with %s tasks", v.name,
					testbed.N(few.Tasks.Len())), ratio, "×")
			}
		}
	}
}
