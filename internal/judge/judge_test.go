package judge

import (
	"slices"
	"strings"
	"testing"

	v1 "github.com/lubdub-io/lubdub/sdk/go/v1"
)

func text(s string) *string { return &s }

// well is a deployment that nothing is wrong with.
func well() Known {
	return Known{
		Health: &v1.Health{Status: "ok"},
		System: &v1.System{
			Replicas: []v1.SystemReplica{{Version: "1", Roles: []string{"api", "sweeper"}}},
			Shards:   []v1.SystemShard{{Shard: 0, Sweeper: text("swp"), LagMs: 40}, {Shard: 1, Sweeper: text("swp")}},
			Redis: []v1.SystemRedis{{Address: text("10.0.0.1:6379"), Version: text("7.0.15"), MaxMemoryPolicy: text("noeviction"), AppendOnly: true,
				MemoryBytes: 1 << 30, MaxMemoryBytes: 4 << 30, RoundTripMs: 0.3}},
		},
		Stats:  &v1.Stats{Levels: v1.Levels{Workers: v1.WorkerLevels{Online: 3, Fresh: 3}}},
		Queues: []v1.Queue{{Queue: "mail", Depth: 2}},
	}
}

func TestWhatIsWellIsFoundWell(t *testing.T) {
	k := well()
	for _, f := range append(Us(k), Them(k)...) {
		if f.Level != OK || f.Do != "" || f.Says == "" {
			t.Errorf("%+v", f)
		}
	}
	if all := Us(Known{}); len(all) != 0 || Worst(all) != OK {
		t.Errorf("what is not known was judged: %+v", all)
	}
}

func TestEachTroubleIsFound(t *testing.T) {
	for name, c := range map[string]struct {
		harm  func(*Known)
		check string
		level Level
		says  string
	}{
		"degraded":   {func(k *Known) { k.Health = &v1.Health{Status: "degraded", Message: "no Redis"} }, "ready", Fail, "no Redis"},
		"no sweeper": {func(k *Known) { k.System.Replicas[0].Roles = []string{"api"} }, "replicas", Fail, "Nobody looks"},
		"two versions": {func(k *Known) { k.System.Replicas = append(k.System.Replicas, v1.SystemReplica{Version: "2"}) }, "replicas", Warn,
			"2 versions"},
		"other keys":     {func(k *Known) { k.System.DifferingSettings = []string{"signing-keys"} }, "settings", Warn, "signing-keys"},
		"brake":          {func(k *Known) { k.System.Brake.Held = 7 }, "brake", Warn, "7"},
		"orphan":         {func(k *Known) { k.System.Shards[1].Sweeper = nil }, "shards", Fail, "shard 1"},
		"lag":            {func(k *Known) { k.System.Shards[1].LagMs = 4000 }, "shards", Warn, "4s"},
		"stopped":        {func(k *Known) { k.System.Shards[0].StoppedMs = 1500 }, "shard-time", Fail, "shard 0 (for 1.5s)"},
		"credit":         {func(k *Known) { k.System.Shards[0].OutageCreditMs = 2000 }, "shard-time", Warn, "2s"},
		"down":           {func(k *Known) { k.System.Redis[0].Error = text("timeout") }, "redis", Fail, "10.0.0.1:6379 does not answer: timeout"},
		"old":            {func(k *Known) { k.System.Redis[0].Version = text("6.2.1") }, "redis-version", Warn, "6.2.1"},
		"no version":     {func(k *Known) { k.System.Redis[0].Version = nil }, "redis-version", Warn, "not tell"},
		"embedded":       {func(k *Known) { k.System.Redis[0].Version = text("embedded") }, "redis", Warn, "for trying"},
		"evicts":         {func(k *Known) { k.System.Redis[0].MaxMemoryPolicy = text("allkeys-lru") }, "redis-policy", Fail, "allkeys-lru"},
		"full":           {func(k *Known) { k.System.Redis[0].MemoryBytes = 39 << 27 }, "redis-memory", Warn, "4992 MiB of 4096"},
		"no persistence": {func(k *Known) { k.System.Redis[0].AppendOnly = false }, "redis-persistence", Warn, "crash loses"},
		"far":            {func(k *Known) { k.System.Redis[0].RoundTripMs = 80 }, "redis-round-trip", Warn, "80.0 ms"},
		"clock":          {func(k *Known) { k.System.Redis[0].ClockOffsetMs = -3000 }, "clock", Warn, "-3000 ms"},
		"lost":           {func(k *Known) { k.Stats.Workers.Lost = 1 }, "workers", Fail, "1 lost"},
		"late":           {func(k *Known) { k.Stats.Workers.Late = 1 }, "workers", Warn, "1 late"},
		"stuck":          {func(k *Known) { k.Queues[0].Types = []v1.QueueType{{Unrunnable: 2}} }, "queue", Fail, "2 tasks in the queue mail"},
		"paused":         {func(k *Known) { k.Queues[0].Paused = true }, "queue", Warn, "paused"},
	} {
		t.Run(name, func(t *testing.T) {
			k := well()
			c.harm(&k)
			all := append(Us(k), Them(k)...)
			at := slices.IndexFunc(all, func(f Finding) bool { return f.Level != OK })
			if at < 0 {
				t.Fatal("nothing was found")
			}
			if f := all[at]; f.Check != c.check || f.Level != c.level || !strings.Contains(f.Says, c.says) || f.Do == "" {
				t.Errorf("%+v", f)
			}
			if Worst(all) != c.level {
				t.Errorf("the worst is %s", Worst(all))
			}
		})
	}
}
