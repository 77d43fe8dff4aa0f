package capacity

import (
	"math"
	"strings"
	"testing"
	"time"
)

// round costs, so that results can be verified by mental arithmetic.
func testCosts() *Costs {
	return &Costs{
		Source: "test", Machine: "a machine",
		Single: Cost{1, Share{10, 4}}, Batch: Cost{100, Share{1.09, 3.01}}, Progress: Share{1, 2},
		Growth: Growth{10_000, 1_000_000, 1.2, 1.4}, FlushMicros: 10, TaskBytes: 1000,
		LifeServerMicros: 100, LifeRedisMicros: 50, DeathsPerSecond: 50_000,
		ReplicaBytes: 50 << 20, TokenBytes: 1000, ConnectionBytes: 10_000,
	}
}

func fleet(tasks int64) Fleet {
	return Fleet{
		Tasks: tasks, Interval: 10 * time.Second, Way: Single, Progress: 1,
		Headroom: 0.5, Cores: 4, RedisMemory: 32 << 30, RoundTrip: time.Millisecond, Retention: 24 * time.Hour,
	}
}

func mustPlan(t *testing.T, f Fleet) *Plan {
	t.Helper()
	p, err := Compute(f, testCosts())
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func near(a, b float64) bool { return math.Abs(a-b) <= 1e-6*math.Max(math.Abs(a), math.Abs(b)) }

func TestOneServerIsEnough(t *testing.T) {
	p := mustPlan(t, fleet(10_000))
	if p.BeatsPerSecond != 1000 || !near(p.APIBusyCores, 0.01) || !near(p.APICores, 0.02) || p.APIReplicas != 2 ||
		p.APIBoundBy != "failover" ||
		!near(p.RedisBusyCores, 0.004) || p.RedisPrimaries != 1 || p.RedisServers != 2 || p.RedisBoundBy != "" || p.Shards != 4 ||
		p.RedisDataBytes != 10e6 || p.RedisMemoryBytes != 20e6 || p.Connections != 10_000 || p.Deployments != 1 ||
		p.TimeoutSeconds != 30 || p.DeclaredWithinMs != 30_250 || !near(p.MassDeathSeconds, 0.02) {
		t.Errorf("%+v", p)
	}
	if want := 50<<20 + 5000*11_000.0; p.APIReplicaMemory != want {
		t.Errorf("memory of a replica %v, want %v", p.APIReplicaMemory, want)
	}
}

// A replica remembers the tokens of tasks that are over until they expire, as far as its cache goes.
func TestTokensOfTasksThatAreOverTakeMemory(t *testing.T) {
	f := fleet(100_000)
	for life, want := range map[time.Duration]int64{0: 50_000, 10 * time.Hour: 55_000, 10 * time.Minute: defaultTokens} {
		f.Life = life
		p := mustPlan(t, f)
		if memory := 50<<20 + 1000*float64(want) + 10_000*50_000; p.TokensPerReplica != 50_000 || p.TokensRemembered != want ||
			p.APIReplicaMemory != memory {
			t.Errorf("a life of %v: %d tokens of %d, %v bytes; want %d, %v bytes", life, p.TokensRemembered, p.TokensPerReplica,
				p.APIReplicaMemory, want, memory)
		}
	}
}

func TestCPURequiresPrimaries(t *testing.T) {
	p := mustPlan(t, fleet(10_000_000)) // 1,000,000 beats/s
	if p.RedisBoundBy != "cpu" || p.RedisPrimaries < 8 || p.RedisBusiestShare > 0.5 {
		t.Errorf("%+v", p)
	}
	// None is superfluous: with one primary less the fullest would be too busy.
	fullest := math.Ceil(float64(p.Shards)/float64(p.RedisPrimaries-1)) / float64(p.Shards)
	if busy := p.RedisBusyCores * fullest; busy <= 0.5 {
		t.Errorf("%d primaries would do: the busiest %v", p.RedisPrimaries-1, busy)
	}
	if p.Shards < 4*p.RedisPrimaries {
		t.Errorf("%d shards on %d primaries", p.Shards, p.RedisPrimaries)
	}
}

func TestMemoryDeterminesPrimaries(t *testing.T) {
	f := fleet(1_000_000)
	f.Interval, f.RedisMemory = time.Hour, 512<<20
	p := mustPlan(t, f)
	if p.RedisBoundBy != "memory" || p.RedisMemoryBytes > f.RedisMemory || p.RedisPrimaries < 4 {
		t.Errorf("%+v", p)
	}
}

func TestFinishedTasksTakeMemory(t *testing.T) {
	f := fleet(10_000)
	f.Life, f.Retention = time.Minute, time.Hour
	p := mustPlan(t, f)
	if want := (10_000+10_000.0/60*3600)*1000 + p.EventsBytes; !near(p.RedisDataBytes, want) {
		t.Errorf("%v bytes, want %v", p.RedisDataBytes, want)
	}
	small := testCosts()
	small.TaskBytes = 500
	if p, err := Compute(f, small); err != nil || !near(p.RedisDataBytes, 10_000*500+10_000.0/60*3600*finishedBytes+p.EventsBytes) {
		t.Errorf("%v bytes where a running task takes less than a finished one, %v", p.RedisDataBytes, err)
	}
	if want := (1000*10 + 10_000.0/60*100) / 1e6; !near(p.APIBusyCores, want) {
		t.Errorf("%v cores, want %v", p.APIBusyCores, want)
	}
}

// Events, schedules and what waits for webhooks take memory: events as many as their streams keep, and no more than come while finished
// tasks are kept.
func TestEventsSchedulesAndWebhooksTakeMemory(t *testing.T) {
	f := fleet(10_000)
	f.Life, f.Retention = time.Minute, 24*time.Hour
	bare := 10_000.0 + 10_000.0/60*86_400
	f.Schedules, f.Webhooks = 100, 3
	p := mustPlan(t, f)
	if !near(p.EventsBytes, 16*10_000*212) || !near(p.RedisDataBytes, bare*1000+16*10_000*212+100*1300) || p.WebhookBytes != 3*64<<20 ||
		!near(p.RedisMemoryBytes, 2*p.RedisDataBytes) {
		t.Errorf("%+v", p)
	}
	f.EventsPerShard = 1_000_000
	if p := mustPlan(t, f); !near(p.EventsBytes, 4*1_000_000*212) {
		t.Errorf("a million a shard take %v bytes", p.EventsBytes)
	}
	f.Life = 24 * time.Hour
	if p := mustPlan(t, f); !near(p.EventsBytes, 10_000*4*212) {
		t.Errorf("as many as come in a day take %v bytes", p.EventsBytes)
	}
	f.Retention = 3 * time.Hour
	if p := mustPlan(t, f); !near(p.EventsBytes, 10_000*4*212/8) {
		t.Errorf("as many as come in three hours take %v bytes", p.EventsBytes)
	}
	f.Webhooks = -1
	if _, err := Compute(f, testCosts()); err == nil {
		t.Error("less than no webhooks")
	}
}

// Events are kept for as long as it takes tasks to come and go so often that the streams of all shards are full.
func TestEventRetention(t *testing.T) {
	f := fleet(75_000)
	if p := mustPlan(t, f); p.EventsRetentionSeconds != 0 || p.EventsPerSecond != 0 {
		t.Errorf("without lives: %+v", p)
	}
	f.Life = time.Minute
	p := mustPlan(t, f)
	if want := float64(p.Shards) * 10_000 / 5000; !near(p.EventsPerSecond, 5000) || !near(p.EventsRetentionSeconds, want) {
		t.Errorf("%v events a second, kept for %v s, want 5000 and %v", p.EventsPerSecond, p.EventsRetentionSeconds, want)
	}
	f.EventsPerShard = 100_000
	if again := mustPlan(t, f); !near(again.EventsRetentionSeconds, 10*p.EventsRetentionSeconds) {
		t.Errorf("ten times as many are kept for %v s", again.EventsRetentionSeconds)
	}
	f.EventsPerShard = -1
	if _, err := Compute(f, testCosts()); err == nil {
		t.Error("a negative number is let through")
	}
}

// What creations and claims leave behind for their repeats takes memory too.
func TestKeysAndClaimIDsTakeMemory(t *testing.T) {
	f := fleet(10_000)
	f.Life, f.Retention, f.Keys, f.ClaimIDs = time.Minute, time.Hour, 0.5, 1
	lives := 10_000.0 / 60
	want := (10_000+lives*3600)*1000 + lives*0.5*86_400*keyBytes
	if p := mustPlan(t, f); !near(p.RedisDataBytes-p.EventsBytes, want) {
		t.Errorf("%v bytes, want %v", p.RedisDataBytes, want)
	}
	f.Way, f.Together = Worker, 100
	want += lives*3600*(heldFinishedBytes-1000+claimIDBytes) + 100*workerBytes
	if p := mustPlan(t, f); !near(p.RedisDataBytes-p.EventsBytes, want) {
		t.Errorf("with claims: %v bytes, want %v", p.RedisDataBytes, want)
	}
	f.Keys = 1.5
	if _, err := Compute(f, testCosts()); err == nil {
		t.Error("a share above 1 is let through")
	}
}

func TestWays(t *testing.T) {
	f := fleet(10_000)
	f.Way, f.Together = Batch, 100
	p := mustPlan(t, f)
	if p.BeatsPerSecond != 1000 || p.RequestsPerSecond != 10 || !near(p.ServerMicros, 1.09) || !near(p.RedisMicros, 3.01) ||
		p.Connections != 100 {
		t.Errorf("batch of 100: %+v", p)
	}
	f.Together = 10 // 9 µs a request, 1 µs a beat
	if p = mustPlan(t, f); !near(p.ServerMicros, 1.9) {
		t.Errorf("batch of 10: %+v", p)
	}
	f.Together = 1
	if p = mustPlan(t, f); !near(p.ServerMicros, 10) || !near(p.RedisMicros, 4) {
		t.Errorf("batch of 1: %+v", p)
	}
	f.Way, f.Together = Worker, 50
	if p = mustPlan(t, f); p.BeatsPerSecond != 20 || p.Connections != 200 || !near(p.ServerMicros, 10) {
		t.Errorf("workers of 50: %+v", p)
	}
	f = fleet(10_000)
	f.Progress = 0
	if p = mustPlan(t, f); !near(p.ServerMicros, 9) || !near(p.RedisMicros, 2) {
		t.Errorf("no progress: %+v", p)
	}
}

// A worker's beat is one write and carries no progress; sets grow with the workers, not with their tasks.
func TestWorkerBeatsAsMeasured(t *testing.T) {
	costs := testCosts()
	costs.Worker = &Cost{1, Share{60, 30}}
	f := fleet(1_000_000)
	f.Way, f.Together, f.Progress = Worker, 100, 0
	p, err := Compute(f, costs)
	if err != nil {
		t.Fatal(err)
	}
	if p.BeatsPerSecond != 1000 || p.ServerMicros != 60 || p.RedisMicros != 30 || p.ServerGrowth != 1 || p.RedisGrowth != 1 {
		t.Errorf("%+v", p)
	}
	if advice := strings.Join(p.Advice, "\n"); strings.Contains(advice, "not been measured") {
		t.Error(advice)
	}
	costs.Worker.RedisMicros = 0
	if err := costs.Check(); err == nil || !strings.Contains(err.Error(), "worker.redisMicros") {
		t.Errorf("a worker's beat for nothing: %v", err)
	}
}

func TestGrowth(t *testing.T) {
	g := testCosts().Growth
	for tasks, want := range map[float64]float64{1: 1, 10_000: 1, 100_000: 1.2, 1_000_000: 1.4, 10_000_000: 1.6} {
		if got := g.at(tasks, g.Redis); !near(got, want) {
			t.Errorf("%v tasks: × %v, want %v", tasks, got, want)
		}
	}
}

func TestFlushesWaitForEachOther(t *testing.T) {
	p := mustPlan(t, fleet(1_000_000)) // one server
	want := (float64(p.APIReplicas)*10e-6 + 1e-3) / (1 - p.RedisBusiestShare) * 1e3
	if p.RedisPrimaries != 3 && !near(p.FlushWaitMs, want) {
		t.Errorf("%v ms, want %v", p.FlushWaitMs, want)
	}
	few, many := fleet(100_000_000), fleet(100_000_000)
	few.Cores, many.Cores = 64, 1
	a, b := mustPlan(t, few), mustPlan(t, many)
	if a.APIReplicas >= b.APIReplicas || a.FlushWaitMs >= b.FlushWaitMs || a.CallsPerFlush < 1 {
		t.Errorf("%d replicas %v ms, %d replicas %v ms", a.APIReplicas, a.FlushWaitMs, b.APIReplicas, b.FlushWaitMs)
	}
}

func TestMoreThanAClusterIsDealtOut(t *testing.T) {
	f := fleet(100_000_000_000)
	p := mustPlan(t, f)
	if p.Deployments < 2 || p.RedisServers > clusterServers || int64(p.Deployments)*p.Tasks < f.Tasks {
		t.Errorf("%+v", p)
	}
	if advice := strings.Join(p.Advice, "\n"); !strings.Contains(advice, "deal your tenants out") {
		t.Error(advice)
	}
}

// More of anything never needs less of anything.
func TestMonotone(t *testing.T) {
	var before *Plan
	for tasks := int64(1000); tasks <= 1_000_000_000; tasks *= 3 {
		p := mustPlan(t, fleet(tasks))
		if before != nil && p.Deployments == before.Deployments &&
			(p.APIReplicas < before.APIReplicas || p.RedisPrimaries < before.RedisPrimaries || p.RedisDataBytes < before.RedisDataBytes ||
				p.Shards < before.Shards) {
			t.Errorf("%d tasks need %+v, fewer %+v", tasks, p, before)
		}
		before = p
	}
}

func TestRefusals(t *testing.T) {
	for want, change := range map[string]func(*Fleet){
		"no tasks":                 func(f *Fleet) { f.Tasks = 0 },
		"an interval of":           func(f *Fleet) { f.Interval = time.Millisecond },
		"shorter than two":         func(f *Fleet) { f.Timeout = 15 * time.Second },
		"a timeout of":             func(f *Fleet) { f.Timeout = 48 * time.Hour },
		"no way to beat":           func(f *Fleet) { f.Way = "pigeon" },
		"one a request":            func(f *Fleet) { f.Together = 5 },
		"1 to 1000 beats":          func(f *Fleet) { f.Way, f.Together = Batch, 1001 },
		"tasks a worker":           func(f *Fleet) { f.Way, f.Together = Worker, 0 },
		"a headroom of":            func(f *Fleet) { f.Headroom = 1 },
		"a replica of":             func(f *Fleet) { f.Cores = 0 },
		"less than 256MiB":         func(f *Fleet) { f.RedisMemory = 1 << 20 },
		"a round trip of":          func(f *Fleet) { f.RoundTrip = 2 * time.Second },
		"longer than the interval": func(f *Fleet) { f.Life = time.Second },
		"a retention of":           func(f *Fleet) { f.Retention = -1 },
	} {
		f := fleet(10_000)
		change(&f)
		if _, err := Compute(f, testCosts()); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
		}
	}
}

func TestParse(t *testing.T) {
	for text, want := range map[string]int64{"1": 1, "10000": 10_000, "10,000": 10_000, "10k": 10_000, "2.5M": 2_500_000,
		"1B": 1_000_000_000} {
		if got, err := ParseCount(text); err != nil || got != want {
			t.Errorf("%s: %d %v", text, got, err)
		}
	}
	for _, text := range []string{"", "10X", "k", "-1", "0", "0.5", "1.5", "1000B", "NaN", "Inf", "1e400", "10 M"} {
		if got, err := ParseCount(text); err == nil {
			t.Errorf("%q is taken for %d", text, got)
		}
	}
	for text, want := range map[string]float64{"50%": 0.5, "0.25": 0.25, "0": 0, "100%": 1} {
		if got, err := ParseShare(text); err != nil || got != want {
			t.Errorf("%s: %v %v", text, got, err)
		}
	}
	for text, want := range map[string]float64{"32GiB": 32 << 30, "1.5GB": 1.5e9, "512MiB": 512 << 20} {
		if got, err := ParseBytes(text); err != nil || got != want {
			t.Errorf("%s: %v %v", text, got, err)
		}
	}
	for _, text := range []string{"", "101%", "-1", "NaN", "half"} {
		if got, err := ParseShare(text); err == nil {
			t.Errorf("%q is taken for %v", text, got)
		}
		if got, err := ParseBytes(text); err == nil {
			t.Errorf("%q is taken for %v", text, got)
		}
	}
}

// A plan of workers warns of what their connections and the default limit of a tenant's workers need.
func TestAdviceNamesWorkerLimits(t *testing.T) {
	for workers, limited := range map[int64]bool{10_000: false, 10_001: true} {
		f := fleet(workers)
		f.Way, f.Together = Worker, 1
		advice := strings.Join(mustPlan(t, f).Advice, "\n")
		if !strings.Contains(advice, "with these alone it is "+comma(2*workers)+" connections") ||
			strings.Contains(advice, "raise --tenant-workers to at least "+comma(workers)) != limited {
			t.Errorf("%d workers: %s", workers, advice)
		}
	}
}
