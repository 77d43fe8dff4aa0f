package judge

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

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
	for _, f := range All(k) {
		if f.Severity != v1.SeverityOK || f.Remedy != "" || f.Message == "" {
			t.Errorf("%+v", f)
		}
	}
	if all := All(Known{}); len(all) != 0 || v1.Worst(all) != v1.SeverityOK {
		t.Errorf("what is not known was evaluated: %+v", all)
	}
}

// series is so many steps like one.
func series(n int, step v1.StatsStep) v1.StatsSeries {
	return v1.StatsSeries{StepMs: 10_000, Steps: slices.Repeat([]v1.StatsStep{step}, n)}
}

// lostWorker is one of some workers that were lost with 4 attempts each.
func lostWorker(n int) v1.LostWorker {
	return v1.LostWorker{WorkerID: fmt.Sprintf("wkr_%d", n), Name: text(fmt.Sprintf("mailer-%d", n)), MachineID: fmt.Sprintf("host-%d", n),
		Queue: "mail", Reason: "HEARTBEAT_TIMEOUT", Attempts: 4, Requeued: 3, Exhausted: 1}
}

func poisonTask(id string, state v1.State) v1.PoisonTask {
	return v1.PoisonTask{TaskID: id, Queue: text("mail"), State: state, Workers: []v1.LostWorker{lostWorker(3), lostWorker(2), lostWorker(1)},
		Errors: []v1.ErrorGroup{{Error: "LOST: WORKER_LOST (HEARTBEAT_TIMEOUT)", Count: 3}, {Error: "FAILED: USER_CODE boom", Count: 1}}}
}

func flaps(w v1.LostWorker) v1.LostWorker {
	w.StaleCount24h, w.Flapping = 3, true
	return w
}

func TestEachTroubleIsFound(t *testing.T) {
	for name, c := range map[string]struct {
		harm  func(*Known)
		check string
		level v1.Severity
		says  string
	}{
		"degraded": {func(k *Known) { k.Health = &v1.Health{Status: "degraded", Message: "no Redis"} }, "ready", v1.SeverityFail, "no Redis"},
		"no sweeper": {func(k *Known) { k.System.Replicas[0].Roles = []string{"api"} }, "replicas", v1.SeverityFail,
			"Without a sweeper no dead worker is detected"},
		"two versions": {func(k *Known) { k.System.Replicas = append(k.System.Replicas, v1.SystemReplica{Version: "2"}) }, "replicas",
			v1.SeverityWarn,
			"2 versions"},
		"other keys": {func(k *Known) { k.System.DifferingSettings = []string{"signing-keys"} }, "settings",
			v1.SeverityWarn, "signing-keys"},
		"brake": {func(k *Known) { k.System.Brake.Held, k.Braked = 7, []Scope{{"acme", "prod"}, {"acme", "test"}} }, "brake", v1.SeverityWarn,
			"The mass-expiry brake is delaying the expiry of 7 workers and tasks in acme/prod and 1 more scope: so many fell silent at once"},
		"brake elsewhere": {func(k *Known) { k.System.Brake.Held = 1 }, "brake", v1.SeverityWarn,
			"is delaying the expiry of 1 worker or task in other tenants or workspaces"},
		"dropped": {func(k *Known) { k.System.Webhooks.DroppedLastHour = 140 }, "webhooks", v1.SeverityWarn, "140 pending webhook deliveries"},
		"orphan":  {func(k *Known) { k.System.Shards[1].Sweeper = nil }, "shards", v1.SeverityFail, "shard 1"},
		"lag":     {func(k *Known) { k.System.Shards[1].LagMs = 4000 }, "shards", v1.SeverityWarn, "4s"},
		"stopped": {func(k *Known) { k.System.Shards[0].StoppedMs = 1500 }, "shard-time", v1.SeverityFail, "shard 0 (for 1.5s)"},
		"credit": {func(k *Known) {
			k.System.Shards[0].OutageCreditMs, k.OutageEnded = 2000, resolvedAfter-time.Second
		}, "shard-time", v1.SeverityWarn, "up to 2s in the last hour; the outage ended 4 min ago."},
		"down": {func(k *Known) { k.System.Redis[0].Error = text("timeout") }, "redis",
			v1.SeverityFail, "10.0.0.1:6379 is not responding: timeout"},
		"old":        {func(k *Known) { k.System.Redis[0].Version = text("6.2.1") }, "redis-version", v1.SeverityWarn, "6.2.1"},
		"no version": {func(k *Known) { k.System.Redis[0].Version = nil }, "redis-version", v1.SeverityWarn, "did not report"},
		"embedded":   {func(k *Known) { k.System.Redis[0].Version = text("embedded") }, "redis", v1.SeverityWarn, "for trying Lubdub only"},
		"evicts": {func(k *Known) { k.System.Redis[0].MaxMemoryPolicy = text("allkeys-lru") }, "redis-policy",
			v1.SeverityFail, "allkeys-lru"},
		"full": {func(k *Known) { k.System.Redis[0].MemoryBytes = 39 << 27 }, "redis-memory", v1.SeverityFail,
			"4992 MiB of 4096 MiB. It is at its memory limit"},
		"nearly full":    {func(k *Known) { k.System.Redis[0].MemoryBytes = 31 << 27 }, "redis-memory", v1.SeverityWarn, "3968 MiB of 4096 MiB."},
		"no persistence": {func(k *Known) { k.System.Redis[0].AppendOnly = false }, "redis-persistence", v1.SeverityWarn, "crash loses"},
		"far":            {func(k *Known) { k.System.Redis[0].RoundTripMs = 80 }, "redis-round-trip", v1.SeverityWarn, "80.0 ms"},
		"clock":          {func(k *Known) { k.System.Redis[0].ClockOffsetMs = -3000 }, "clock", v1.SeverityWarn, "-3000 ms"},
		"lost":           {func(k *Known) { k.Stats.Workers.Lost = 1 }, "workers", v1.SeverityFail, "1 silent past the timeout"},
		"late":           {func(k *Known) { k.Stats.Workers.Late = 1 }, "workers", v1.SeverityWarn, "1 late"},
		"stuck": {func(k *Known) { k.Queues[0].Types = []v1.QueueType{{Unrunnable: 2}} }, "queue",
			v1.SeverityFail, "Queue mail: 2 tasks have no online worker that can run them."},
		"stood a second": {func(k *Known) { k.System.Shards[0].OutageCreditMs = 1000 }, "shard-time",
			v1.SeverityWarn, "Heartbeats could not be stored for up to 1s in the last hour"},
		"long lag": {func(k *Known) { k.Stats.Series = series(6, v1.StatsStep{SweepLagMs: 300}) }, "sweep-lag", v1.SeverityWarn, "300ms"},
		"refused": {func(k *Known) {
			k.Stats.Series = series(1, v1.StatsStep{StatsCounts: v1.StatsCounts{Beats: 1000, Refused: map[string]int64{"overloaded": 20}}})
		}, "refusals", v1.SeverityFail, "Rejecting 2.0 heartbeats/s; accepting 100.0/s."},
		"lost a while ago": {func(k *Known) {
			k.System.RecentlyLost = []v1.LostWorker{lostWorker(1)}
		}, "recently-lost", v1.SeverityWarn,
			"1 worker lost in the last hour while holding 4 attempts (3 requeued, 1 failed with no retries left): mailer-1 on host-1, queue mail."},
		"many lost": {func(k *Known) {
			for n := range 5 {
				k.System.RecentlyLost = append(k.System.RecentlyLost, lostWorker(n))
			}
		}, "recently-lost", v1.SeverityWarn, "5 workers lost in the last hour while holding 20 attempts (15 requeued, " +
			"5 failed with no retries left): " +
			"mailer-0 on host-0, queue mail; mailer-1 on host-1, queue mail; mailer-2 on host-2, queue mail; and 2 more."},
		"more lost than are listed": {func(k *Known) {
			k.System.RecentlyLostTotal = 900
			k.System.RecentlyLost = slices.Repeat([]v1.LostWorker{lostWorker(1)}, 100)
		}, "recently-lost", v1.SeverityWarn, "900 workers lost in the last hour; the newest 100 held 400 attempts (300 requeued, " +
			"100 failed with no retries left): mailer-1 on host-1, queue mail."},
		"flapping": {func(k *Known) {
			two, four := flaps(lostWorker(2)), flaps(lostWorker(4))
			k.System.RecentlyLost = []v1.LostWorker{lostWorker(1), two, lostWorker(3), two, four}
		}, "flapping", v1.SeverityWarn, "2 workers are flapping (repeatedly lost and back): mailer-2 on host-2, queue mail (3 times in " +
			"24 h); mailer-4 on host-4, queue mail (3 times in 24 h). Lost in the last hour: 12 attempts (9 requeued, " +
			"3 failed with no retries left)."},
		"a flapping machine": {func(k *Known) {
			w := lostWorker(1)
			w.MachineFlapping = true
			k.System.RecentlyLost = []v1.LostWorker{lostWorker(2), w}
		}, "flapping", v1.SeverityWarn, "1 machine is flapping (all of its workers repeatedly lost and back): host-1. Lost in the last hour: " +
			"4 attempts"},
		"poison": {func(k *Known) { k.System.PoisonTasks = []v1.PoisonTask{poisonTask("t1", v1.Queued)} }, "poison-task", v1.SeverityWarn,
			"Task t1 (queue mail, type none, QUEUED) was running on 3 workers when they were lost in the last hour, so it may be killing " +
				"them: wkr_3 (mailer-3) on host-3; wkr_2 (mailer-2) on host-2; wkr_1 (mailer-1) on host-1. How its attempts ended: 3 x LOST: " +
				"WORKER_LOST (HEARTBEAT_TIMEOUT), 1 x FAILED: USER_CODE boom."},
		"unread": {func(k *Known) { k.Unread = "the queues cannot be read." }, "answers", v1.SeverityFail, "the queues"},
		"tight": {func(k *Known) { k.Stats.BeatGapRatio = &v1.BeatGapRatio{P99: 0.85, Samples: 1000} }, "timeouts", v1.SeverityWarn,
			"At p99, healthy tasks use 85 % of their timeout"},
		"paused": {func(k *Known) { k.Queues[0].Paused = true }, "queue", v1.SeverityWarn, "paused"},
	} {
		t.Run(name, func(t *testing.T) {
			k := well()
			c.harm(&k)
			all := All(k)
			at := slices.IndexFunc(all, func(f v1.Finding) bool { return f.Code == c.check && f.Severity != v1.SeverityOK })
			if at < 0 {
				t.Fatalf("it was not found: %+v", all)
			}
			if f := all[at]; f.Code != c.check || f.Severity != c.level || !strings.Contains(f.Message, c.says) || f.Remedy == "" {
				t.Errorf("%+v", f)
			}
			if s := Summarise(all); s.Severity != c.level || s.About != all[at].About || s.Title == "" ||
				!strings.Contains(s.Message, all[at].Message) {
				t.Errorf("the summary is %+v", s)
			}
		})
	}
}

// Normal conditions are not reported as problems.
func TestWhatIsOrdinaryIsWell(t *testing.T) {
	for name, change := range map[string]func(*Known){
		"valkey":            func(k *Known) { k.System.Redis[0].Version = text("valkey 8.0.1") },
		"stood for moments": func(k *Known) { k.System.Shards[0].StoppedMs = 999 },
		"a lag that passed": func(k *Known) {
			k.Stats.Series = series(6, v1.StatsStep{SweepLagMs: 900})
			k.Stats.Series.Steps[5].SweepLagMs = 10
		},
		"an idle worker that was replaced": func(k *Known) {
			k.System.RecentlyLost = []v1.LostWorker{{WorkerID: "wkr_1", Reason: "SUPERSEDED"}}
		},
		"a lag that began": func(k *Known) { k.Stats.Series = series(5, v1.StatsStep{SweepLagMs: 900}) },
		"refusals that concern their workers": func(k *Known) {
			k.Stats.Series = series(1, v1.StatsStep{StatsCounts: v1.StatsCounts{Refused: map[string]int64{v1.CodeTaskExpired: 1000}}})
		},
		"one that was refused": func(k *Known) {
			k.Stats.Series = series(1, v1.StatsStep{StatsCounts: v1.StatsCounts{Refused: map[string]int64{v1.CodeOverloaded: 1}}})
		},
		"gaps of a few":    func(k *Known) { k.Stats.BeatGapRatio = &v1.BeatGapRatio{P99: 0.99, Samples: 100} },
		"gaps as meant":    func(k *Known) { k.Stats.BeatGapRatio = &v1.BeatGapRatio{P99: 0.8, Samples: 1000} },
		"ample timeouts":   func(k *Known) { k.Stats.BeatGapRatio = &v1.BeatGapRatio{P99: 0.05, Samples: 1000} },
		"paused and empty": func(k *Known) { k.Queues[0].Paused, k.Queues[0].Depth = true, 0 },
	} {
		k := well()
		change(&k)
		for _, f := range All(k) {
			if f.Severity != v1.SeverityOK || f.Remedy != "" {
				t.Errorf("%s: %+v", name, f)
			}
		}
	}
}

// A summary names who is at fault, by the worst that was found; what else is wrong comes after it.
func TestASummaryNamesThePartyAtFault(t *testing.T) {
	us := func(how v1.Severity) v1.Finding {
		return v1.Finding{Code: "a", Severity: how, About: v1.Us, Message: "Ours."}
	}
	them := func(how v1.Severity) v1.Finding {
		return v1.Finding{Code: "b", Severity: how, About: v1.Them, Message: "Theirs."}
	}
	stands := v1.Finding{Code: "shards", Severity: v1.SeverityOK, About: v1.Us, Message: "Swept."}
	for _, c := range []struct {
		all  []v1.Finding
		want v1.Summary
	}{
		{nil, v1.Summary{Severity: v1.SeverityOK, About: v1.None, Title: "All systems healthy", Message: "No problems found."}},
		{[]v1.Finding{stands}, v1.Summary{Severity: v1.SeverityOK, About: v1.None, Title: "All systems healthy",
			Message: "No problems found. Swept."}},
		{[]v1.Finding{us(v1.SeverityFail), them(v1.SeverityFail), stands},
			v1.Summary{Severity: v1.SeverityFail, About: v1.Both, Title: "Lubdub is at fault; possibly the workers too",
				Message: "Ours. Theirs. Swept."}},
		{[]v1.Finding{us(v1.SeverityWarn), them(v1.SeverityFail)},
			v1.Summary{Severity: v1.SeverityFail, About: v1.Them, Title: "Your workers and queues are at fault", Message: "Theirs. Ours."}},
		{[]v1.Finding{us(v1.SeverityWarn)},
			v1.Summary{Severity: v1.SeverityWarn, About: v1.Us, Title: "Working, with warnings about Lubdub itself", Message: "Ours."}},
		{slices.Repeat([]v1.Finding{us(v1.SeverityFail)}, 9),
			v1.Summary{Severity: v1.SeverityFail, About: v1.Us, Title: "Lubdub or Redis is at fault", Message: "Ours. Ours. Ours. And 6 more."}},
	} {
		if got := Summarise(c.all); got != c.want {
			t.Errorf("%+v, want %+v", got, c.want)
		}
	}
	for _, how := range []v1.Severity{v1.SeverityWarn, v1.SeverityFail} {
		for _, about := range []v1.Party{v1.Us, v1.Them, v1.Both} {
			if titles[how][about] == "" {
				t.Errorf("%s about %s has no title", how, about)
			}
		}
	}
}

// A summary is titled by the first finding: workers are not at fault for a paused queue, nor for a task that kills them.
func TestASummaryIsTitledByItsCause(t *testing.T) {
	for title, harm := range map[string]func(*Known){
		"Workers are silent past their timeout":             func(k *Known) { k.Stats.Workers.Lost = 1 },
		"Waiting tasks have no eligible worker":             func(k *Known) { k.Queues[0].Types = []v1.QueueType{{Unrunnable: 2}} },
		"Working, but a queue with waiting tasks is paused": func(k *Known) { k.Queues[0].Paused = true },
		"Redis is full and rejects writes": func(k *Known) {
			k.System.Redis[0].MemoryBytes, k.System.Shards[0].StoppedMs = 4<<30, 1500
		},
		"Working, but a task may be killing its workers": func(k *Known) {
			k.System.PoisonTasks = []v1.PoisonTask{poisonTask("t1", v1.Queued)}
			k.System.RecentlyLost = []v1.LostWorker{flaps(lostWorker(1))}
			k.System.Redis[0].AppendOnly = false
		},
		"Working, but workers are repeatedly lost and come back": func(k *Known) {
			k.System.RecentlyLost = []v1.LostWorker{lostWorker(2), flaps(lostWorker(1))}
		},
		"Working, but workers were lost recently": func(k *Known) {
			k.System.RecentlyLost, k.Stats.Workers.Late = []v1.LostWorker{lostWorker(1)}, 1
			k.System.Shards[0].OutageCreditMs, k.System.Redis[0].AppendOnly = 2000, false
		},
	} {
		k := well()
		harm(&k)
		if s := Summarise(All(k)); s.Title != title {
			t.Errorf("%q, want %q", s.Title, title)
		}
	}
}

// What has been over for a while is history: it is reported, and asks for nothing.
func TestWhatIsOverIsHistory(t *testing.T) {
	k := well()
	k.System.Shards[0].OutageCreditMs, k.OutageEnded = 2000, 12*time.Minute
	w := lostWorker(1)
	k.System.Time = v1.At(time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC))
	w.LostAt = v1.At(k.System.Time.Add(-resolvedAfter))
	k.System.RecentlyLost = []v1.LostWorker{w}
	s := Summarise(All(k))
	for _, part := range []string{"the last outage was resolved 12 min ago (up to 2s of the last hour were not counted as silence).",
		"1 worker lost in the last hour while holding 4 attempts", "The last was lost 5 min ago."} {
		if s.Severity != v1.SeverityOK || !strings.Contains(s.Message, part) {
			t.Errorf("%+v does not say %q", s, part)
		}
	}
}

// Pauses that are less than a second in the last hour are normal.
func TestAMomentIsNoOutage(t *testing.T) {
	k := well()
	k.System.Shards[0].StoppedMs, k.System.Shards[0].OutageCreditMs = 999, 999
	s := Summarise(All(k))
	if part := "Timeouts are being enforced normally."; s.Severity != v1.SeverityOK || !strings.Contains(s.Message, part) {
		t.Errorf("%+v does not say %q", s, part)
	}
}

// While Redis does not respond, that is one failure, however many servers it has.
func TestWithoutRedisThereIsOneFinding(t *testing.T) {
	all, s := NoRedis([]v1.SystemRedis{{Address: text("10.0.0.1:6379")}, {Address: text("10.0.0.2:6379")}})
	if len(all) != 1 || !strings.Contains(all[0].Message, "Redis 10.0.0.1:6379, 10.0.0.2:6379 is not responding") ||
		!strings.Contains(all[0].Message, "Timeouts are paused") || s.Title != "Redis is not responding; timeouts are paused" ||
		!strings.Contains(all[0].Remedy, "lubdub doctor --redis redis://10.0.0.1:6379;") {
		t.Errorf("%+v %+v", all, s)
	}
}

// However many queues there are, the findings are few.
func TestManyQueuesAreFewFindings(t *testing.T) {
	var k Known
	for n := range 1000 {
		k.Queues = append(k.Queues, v1.Queue{Queue: fmt.Sprintf("q%d", n), Paused: true, Depth: n + 1, Types: []v1.QueueType{{Unrunnable: 1}}})
	}
	all := Workers(k)
	if len(all) != queuesShown+2 || !strings.HasPrefix(all[queuesShown].Message, "990 queues more with tasks") ||
		all[queuesShown+1].Remedy != "ask an operator to run lubdub queue resume q999 q998 q997 q996 q995 (995 more: lubdub queue ls)" ||
		all[queuesShown+1].Message != "1000 queues are paused: q999 (1000 tasks waiting), q998 (999 tasks waiting), q997 (998 tasks waiting), "+
			"q996 (997 tasks waiting), q995 (996 tasks waiting), and 995 more." {
		t.Errorf("%d findings: %+v", len(all), all[len(all)-1])
	}
}

// Findings come in the order of their severity, of Lubdub before those of workers where that is the same.
func TestFindingsAreOrdered(t *testing.T) {
	k := well()
	k.Queues[0].Paused, k.Stats.Workers.Lost = true, 1                                           // theirs: a warning and a failure
	k.System.Brake.Held, k.System.Shards[0].Sweeper, k.System.Redis[0].RoundTripMs = 7, nil, 300 // ours: two warnings and a failure
	var got []string
	for _, f := range All(k) {
		if f.Severity != v1.SeverityOK || len(got) == 0 || got[len(got)-1] != "ok" {
			got = append(got, strings.TrimSuffix(string(f.Severity)+" "+string(f.About), " them"))
		}
		if f.Severity == v1.SeverityOK {
			got[len(got)-1] = "ok"
		}
	}
	if want := []string{"fail us", "fail", "warn us", "warn us", "warn", "ok"}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

// Warnings come in the order of what an operator does first: causes, then symptoms and what is over, then what can wait.
func TestWarningsAreOrderedByCause(t *testing.T) {
	k := well()
	k.Queues[0].Paused, k.Stats.Workers.Late, k.System.Brake.Held = true, 1, 7
	k.System.PoisonTasks = []v1.PoisonTask{poisonTask("t1", v1.Queued)}
	k.System.RecentlyLost = []v1.LostWorker{flaps(lostWorker(1))}
	k.System.Shards[0].OutageCreditMs, k.System.Redis[0].AppendOnly = 2000, false
	var got []string
	for _, f := range All(k) {
		if f.Severity == v1.SeverityWarn {
			got = append(got, f.Code)
		}
	}
	want := []string{"brake", "poison-task", "flapping", "queue", "recently-lost", "shard-time", "workers", "redis-persistence"}
	if !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

// However much is wrong, a paused queue in which tasks wait and Redis at its memory limit are in the summary.
func TestASummaryNeverHidesWhatStopsWork(t *testing.T) {
	k := well()
	k.Queues[0].Paused, k.System.Redis[0].MemoryBytes, k.System.Brake.Held = true, 4<<30, 7
	k.System.Shards[0].Sweeper, k.System.Shards[1].StoppedMs, k.Stats.Workers.Lost = nil, 5000, 1
	k.System.Redis[0].AppendOnly, k.System.DifferingSettings = false, []string{"signing-keys"}
	for n := range 9 {
		k.Queues = append(k.Queues, v1.Queue{Queue: fmt.Sprintf("q%d", n), Types: []v1.QueueType{{Unrunnable: 1}}})
	}
	s := Summarise(All(k))
	for _, part := range []string{"1 queue is paused: mail (2 tasks waiting).", "It is at its memory limit and rejects writes.", " more."} {
		if !strings.Contains(s.Message, part) {
			t.Errorf("%q does not say %q", s.Message, part)
		}
	}
	if strings.Count(s.Message, "no online worker") > messagesShown {
		t.Errorf("it hides nothing: %q", s.Message)
	}
}

// However many tasks there are that lost workers, the findings are few.
func TestMuchPoisonIsFewFindings(t *testing.T) {
	k := well()
	for n := range 10 {
		k.System.PoisonTasks = append(k.System.PoisonTasks, poisonTask(fmt.Sprint("t", n), v1.Running))
	}
	var got []string
	for _, f := range All(k) {
		if f.Code == "poison-task" {
			got = append(got, f.Message)
		}
	}
	if len(got) != poisonNamed+1 || got[poisonNamed] != "7 tasks more lost several workers in the last hour." {
		t.Errorf("%d: %q", len(got), got)
	}
}

// A remedy names only what the reader's token can do.
func TestRemediesAreWhatTheReaderMayDo(t *testing.T) {
	k := well()
	k.Queues[0].Paused, k.System.Brake.Held, k.System.Shards[0].OutageCreditMs = true, 7, 2000
	k.Braked = []Scope{{"acme", "prod"}}
	k.System.PoisonTasks = []v1.PoisonTask{poisonTask("t1", v1.Queued), poisonTask("t2", v1.Failed)}
	remedies := func(r Reader) (all string) {
		k.Reader = r
		for _, f := range All(k) {
			all += f.Remedy + "\n"
			if (f.Remedy == "") != (f.Severity == v1.SeverityOK) {
				t.Errorf("%+v: %+v", r, f)
			}
		}
		return all
	}
	for command, needs := range map[string]Reader{
		"event ls --type 'system.*'": {AllScopes: true},
		"dead, declare them dead immediately: lubdub system release --tenant acme --workspace prod": {Operates: true},
	} {
		if text := remedies(needs); !strings.Contains(text, command) {
			t.Errorf("%+v does not get the remedy %q: %s", needs, command, text)
		}
		if text := remedies(Reader{}); strings.Contains(text, command) {
			t.Errorf("a viewer of a workspace gets the remedy %q: %s", command, text)
		}
	}
	for _, remedy := range []string{"ask an operator to run lubdub queue resume mail\n", "ask an operator to run lubdub task cancel t1\n",
		"find the cause before it is retried: lubdub why t2\n"} {
		if text := remedies(Reader{}); !strings.Contains(text, remedy) {
			t.Errorf("%q is not in %s", remedy, text)
		}
	}
	if text := "\n" + remedies(Reader{Cancels: true}); !strings.Contains(text, "cause: lubdub task cancel t1\n") {
		t.Errorf("%s", text)
	}
}
