package api

import (
	"context"
	"errors"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/lubdub-io/lubdub/api/token"
	v1 "github.com/lubdub-io/lubdub/sdk/go/v1"
	"github.com/lubdub-io/lubdub/tracker"
	"github.com/lubdub-io/lubdub/tracker/model"
	"github.com/lubdub-io/lubdub/tracker/stats"
	"github.com/lubdub-io/lubdub/tracker/store"
)

// counts has a replica leave what it counts, as a server does.
func counts(o *tracker.Options) {
	r := prometheus.NewRegistry()
	o.Registerer, o.Gatherer, o.ReplicaID = r, r, "replica_1"
	o.Replica = stats.Facts{Version: "1.2.3", Commit: "abc", Roles: []string{"api"}, Since: time.Unix(1700000000, 0),
		Settings: map[string]string{"shards": "0001"}}
}

// leave leaves what was counted until now, as at the end of a step.
func (l *live) leave() {
	l.t.Helper()
	l.pass(10 * time.Second)
	if _, err := l.tr.Stats.Leave(context.Background()); err != nil {
		l.t.Fatal(err)
	}
}

// One answer contains current levels and recent activity, of one scope or of all, and in the series of every replica.
func TestContractStats(t *testing.T) {
	t.Parallel()
	contract(t, func(t *testing.T, l *live) {
		l.leave()
		w := l.register(`{"queue":"default","types":["send_email"],"machineId":"host-7","version":"2.0"}`)
		for range 3 {
			l.do("POST", "/v1/tasks", l.control(roleDispatcher), `{"queue":"default","type":"send_email","heartbeatTimeoutMs":60000}`).want(201)
		}
		l.claim(w, `{"max":1}`)
		l.create(`{"taskId":"dies","heartbeatTimeoutMs":2000,"heartbeatIntervalMs":1000}`)
		l.do("POST", "/v1/tasks", l.controlFor(roleDispatcher, "other", "prod"), `{"taskId":"theirs"}`).want(201)
		l.leave() // of the step before, in which there was nothing yet
		l.leave()
		var mine, all v1.Stats
		l.do("GET", "/v1/stats", l.control(roleViewer), "").want(200).into(&mine)
		if mine.Tasks["QUEUED"] != 2 || mine.Tasks["DISPATCHED"] != 2 || mine.Tasks["FAILED"] != 0 || *mine.TenantID != "acme" ||
			mine.Machines.Online != 1 || mine.Workers.Online != 1 {
			t.Errorf("%+v", mine.Levels)
		}
		n := len(mine.Series.Steps)
		if n == 0 || mine.Series.StepMs != 10000 || mine.Series.Steps[n-1].Replicas != 1 || mine.Series.Steps[n-1].Levels != nil {
			t.Fatalf("%+v", mine.Series)
		}
		if mine.LastHour.ClaimedTasks != 1 || mine.LastHour.Claims["tasks"] != 1 {
			t.Errorf("%+v", mine.LastHour)
		}
		everything := l.controlFor(roleViewer, token.Wildcard, token.Wildcard)
		l.do("GET", "/v1/stats", everything, "").want(200).into(&all)
		if all.Tasks["DISPATCHED"] != 3 || all.TenantID != nil || all.Series.Steps[n-1].Levels == nil ||
			all.Series.Steps[n-1].Levels.Tasks["QUEUED"] != 2 {
			t.Errorf("%+v %+v", all.Levels, all.Series.Steps[n-1].Levels)
		}
		l.do("GET", "/v1/stats?tenantId=acme", everything, "").want(200).into(&all)
		if all.Tasks["DISPATCHED"] != 2 || *all.TenantID != "acme" || all.WorkspaceID != nil {
			t.Errorf("%+v", all.Levels)
		}
		l.do("GET", "/v1/stats?workspaceId=prod", everything, "").refused(400, v1.CodeInvalidRequest)
		l.do("GET", "/v1/stats", l.control(roleSubmitter), "").refused(403, v1.CodeForbidden)
	}, counts)
}

// A client that follows the series requests its newest steps only; by default it gets the whole last hour.
func TestContractStatsOfTheNewestSteps(t *testing.T) {
	t.Parallel()
	contract(t, func(t *testing.T, l *live) {
		var all, newest v1.Stats
		for range 4 {
			l.create(`{}`)
			l.leave()
		}
		l.wait()
		l.do("GET", "/v1/stats", l.control(roleViewer), "").want(200).into(&all)
		n := len(all.Series.Steps)
		if n < 3 {
			t.Fatalf("%d steps: %+v", n, all.Series)
		}
		for steps, want := range map[int]int{1: 1, 2: 2, stats.MaxSteps: n} {
			l.do("GET", "/v1/stats?steps="+strconv.Itoa(steps), l.control(roleViewer), "").want(200).into(&newest)
			if !reflect.DeepEqual(newest.Series.Steps, all.Series.Steps[n-want:]) {
				t.Errorf("%d: %+v, of %+v", steps, newest.Series, all.Series)
			}
			if !reflect.DeepEqual(newest.LastHour, all.LastHour) || !reflect.DeepEqual(newest.Rates, all.Rates) {
				t.Errorf("%d: %+v and %+v, not %+v and %+v", steps, newest.LastHour, newest.Rates, all.LastHour, all.Rates)
			}
		}
		for _, wrong := range []string{"", "0", "-1", "361", "x", "1.5"} {
			if e := l.do("GET", "/v1/stats?steps="+wrong, l.control(roleViewer), "").refused(400, v1.CodeInvalidRequest); e.Field != "steps" {
				t.Errorf("%q: field %q", wrong, e.Field)
			}
		}
	}, counts)
}

// Workers are counted by liveness without being read, and again when they are back.
func TestContractStatsOfLateWorkers(t *testing.T) {
	t.Parallel()
	contract(t, func(t *testing.T, l *live) {
		l.register(`{"queue":"default","types":["x"],"machineId":"host-1"}`)
		late := l.register(`{"queue":"default","types":["x"],"machineId":"host-2"}`)
		is := func(tenant string, fresh, lateNow, lost, offline int) {
			t.Helper()
			var s v1.Stats
			l.do("GET", "/v1/stats?tenantId="+tenant+"&workspaceId=prod", l.controlFor(roleViewer, token.Wildcard, token.Wildcard),
				"").want(200).into(&s)
			if w := s.Workers; w.Fresh != fresh || w.Late != lateNow || w.Lost != lost || w.Offline != offline {
				t.Fatalf("%+v, want %d fresh, %d late, %d lost, %d offline", w, fresh, lateNow, lost, offline)
			}
		}
		l.pass(16 * time.Second)
		l.sweep()
		is("acme", 0, 2, 0, 0)
		l.wait()
		l.mine(late, "heartbeat", `{}`).want(200)
		is("acme", 1, 1, 0, 0)
		l.pass(14 * time.Second)
		l.wait()
		is("acme", 1, 0, 1, 0)
		l.sweep()
		l.wait()
		is("acme", 1, 0, 0, 1)
		var machines v1.MachineList
		l.do("GET", "/v1/machines?status=OFFLINE", l.control(roleViewer), "").want(200).into(&machines)
		if len(machines.Machines) != 1 || machines.Machines[0].MachineID != "host-1" || machines.TotalCount != 1 {
			t.Errorf("%+v", machines)
		}
	})
}

// wait lets answers that may be a second old become old.
func (l *live) wait() { l.tr.Stats.ForgetSnapshots() }

// Verdicts are counted by what their attempts had, and by their workers' machines and versions.
func TestContractVerdicts(t *testing.T) {
	t.Parallel()
	contract(t, func(t *testing.T, l *live) {
		w := l.register(`{"queue":"default","types":["send_email","other"],"machineId":"host-7","version":"2.0"}`)
		for _, kind := range []string{"send_email", "send_email", "other"} {
			l.do("POST", "/v1/tasks", l.control(roleDispatcher), `{"queue":"default","type":"`+kind+`","labels":{"team/a":"of-`+kind+
				`"},"heartbeatTimeoutMs":2000,"heartbeatIntervalMs":1000,"retry":{"maxAttempts":1,"maxLosses":0}}`).want(201)
		}
		for _, e := range l.claim(w, `{"max":3}`) {
			l.do("POST", "/v1/tasks/"+e.TaskID+"/started", e.TaskToken, `{"attempt":1}`).want(200)
		}
		e := l.create(`{"taskId":"pushed","heartbeatTimeoutMs":2000,"heartbeatIntervalMs":1000}`)
		l.call(e, "started", `{"attempt":1}`).want(200)
		l.pass(3 * time.Second)
		l.sweep()
		l.pass(time.Second)
		groups := func(query string) (found []string, c v1.VerdictCounts) {
			t.Helper()
			a := l.do("GET", "/v1/stats/verdicts?"+query, l.control(roleViewer), "").want(200)
			a.into(&c)
			for _, g := range c.Groups {
				var of []string
				for _, v := range []*string{g.MachineID, g.Version, g.Type, g.Queue, g.Reason} {
					if v != nil {
						of = append(of, *v)
					}
				}
				if team, ok := g.Labels["team/a"]; ok {
					of = append(of, team)
				}
				found = append(found, strings.Join(of, "/")+strings.Repeat("+", g.Count))
			}
			return found, c
		}
		for query, want := range map[string]string{
			"by=label:team/a":              "of-send_email++ + of-other+",
			"by=label:team/a,type":         "send_email/of-send_email++ /+ other/of-other+",
			"by=machineId,version,type":    "host-7/2.0/send_email++ //+ host-7/2.0/other+",
			"by=reason":                    "HEARTBEAT_TIMEOUT++++",
			"by=queue&type=send_email":     "default++",
			"by=type&queue=default":        "send_email++ other+",
			"":                             "++++",
			"by=reason&reason=WORKER_LOST": "",
			"by=reason&sinceMs=1":          "",
		} {
			if got, c := groups(query); strings.Join(got, " ") != want || c.Truncated {
				t.Errorf("%s: %q (%+v), want %q", query, strings.Join(got, " "), c, want)
			}
		}
		for query, field := range map[string]string{"by=host": "by", "by=": "by", "by=label:": "by", "by=label:a%20b": "by",
			"sinceMs=0": "sinceMs", "sinceMs=x": "sinceMs", "reason=X": "reason"} {
			if e := l.do("GET", "/v1/stats/verdicts?"+query, l.control(roleViewer), "").refused(400, v1.CodeInvalidRequest); e.Field != field {
				t.Errorf("%s: field %q", query, e.Field)
			}
		}
	})
}

// Findings about workers and queues are limited to the requested scope, or the token's; findings about Lubdub are returned to
// every caller.
func TestContractFindings(t *testing.T) {
	t.Parallel()
	contract(t, func(t *testing.T, l *live) {
		l.leave()
		l.sweep()
		l.register(`{"queue":"mail","types":["x"],"machineId":"host-1"}`)
		l.do("POST", "/v1/tasks", l.control(roleDispatcher), `{"queue":"mail","type":"unrunnable"}`).want(201)
		l.do("POST", "/v1/tasks", l.controlFor(roleDispatcher, "zeta", "prod"), `{"queue":"secret-of-zeta","type":"x"}`).want(201)
		read := func(token, query string) (s v1.System, body string) {
			t.Helper()
			l.wait()
			a := l.do("GET", "/v1/system"+query, token, "").want(200)
			a.into(&s)
			return s, a.body
		}
		codes := func(s *v1.System, about v1.Party) (found []string) {
			for _, f := range s.Findings {
				if f.About == about && f.Severity != v1.SeverityOK {
					found = append(found, f.Code)
				}
				if (f.Remedy == "") != (f.Severity == v1.SeverityOK) || f.Message == "" {
					t.Errorf("%+v", f)
				}
			}
			return found
		}
		mine, body := read(l.control(roleViewer), "")
		if got := codes(&mine, v1.Them); !slices.Equal(got, []string{"queue"}) || mine.Summary.About != v1.Both || // it has no sweeper
			mine.Summary.Severity != v1.SeverityFail || !strings.Contains(mine.Summary.Message, "Queue mail: 1 task has no online worker") {
			t.Errorf("%v %+v", got, mine.Summary)
		}
		if strings.Contains(body, "zeta") {
			t.Errorf("a token of acme reads about zeta: %s", body)
		}
		theirs, _ := read(l.controlFor(roleViewer, "zeta", "prod"), "")
		if !strings.Contains(theirs.Summary.Message, "secret-of-zeta") || strings.Contains(theirs.Summary.Message, "mail") {
			t.Errorf("%+v", theirs.Summary)
		}
		all := l.controlFor(roleViewer, token.Wildcard, token.Wildcard)
		for query, want := range map[string]int{"": 0, "?tenantId=zeta": 0, "?tenantId=zeta&workspaceId=prod": 1, "?workspaceId=prod": 0} {
			if of, _ := read(all, query); len(codes(&of, v1.Them)) != want || len(of.Findings) == 0 {
				t.Errorf("%q: %+v", query, of.Findings)
			}
		}
		l.do("GET", "/v1/system?tenantId=zeta", l.control(roleViewer), "").refused(403, v1.CodeForbidden)
		l.pass(16 * time.Second)
		l.sweep()
		late, _ := read(l.control(roleViewer), "")
		if got := codes(&late, v1.Them); !slices.Equal(got, []string{"queue", "workers"}) {
			t.Errorf("%v", got)
		}
		none, _ := read(l.controlFor(roleViewer, "empty", "prod"), "")
		if got := codes(&none, v1.Them); len(got) != 0 {
			t.Errorf("of a scope without anything: %v", got)
		}
	}, counts)
}

// How close workers come to their timeouts is reported as that of tasks is.
func TestContractGapsBetweenBeatsOfWorkers(t *testing.T) {
	t.Parallel()
	contract(t, func(t *testing.T, l *live) {
		w := l.register(mailer)
		for range 3 {
			l.pass(12 * time.Second)
			l.mine(w, "heartbeat", "").want(200)
		}
		l.leave()
		l.leave()
		l.wait()
		var s v1.Stats
		l.do("GET", "/v1/stats", l.control(roleViewer), "").want(200).into(&s)
		if g := s.BeatGapRatio; g == nil || g.Kind != "worker" || g.Samples != 3 || g.Max != 0.4 || g.P99 <= 0.3 || g.P99 > 0.4 {
			t.Errorf("%+v", s.BeatGapRatio)
		}
	}, counts)
}

// Workers that were lost are in the answer about their own workspace, with what became of their attempts, and are a finding there long
// after they have been recovered. Those that are lost repeatedly are named as flapping.
func TestContractRecentlyLost(t *testing.T) {
	t.Parallel()
	contract(t, func(t *testing.T, l *live) {
		for _, losses := range []string{"9", "9", "0"} {
			l.do("POST", "/v1/tasks", l.control(roleDispatcher),
				`{"queue":"mail","type":"x","retry":{"initialBackoffMs":0,"maxLosses":`+losses+`}}`).want(201)
		}
		const times = 3
		for range times {
			w := l.register(`{"queue":"mail","types":["x"],"name":"mailer-1","machineId":"host-7","hostname":"seven","maxConcurrent":10}`)
			l.do("POST", "/v1/queues/mail/claim", w.WorkerToken, `{"max":10}`).want(200)
			l.pass(40 * time.Second)
			l.sweep()
			l.pass(time.Second)
			l.sweep()
		}
		read := func(token string) (s v1.System, warned map[string]string) {
			t.Helper()
			l.wait()
			l.do("GET", "/v1/system", token, "").want(200).into(&s)
			warned = map[string]string{}
			for _, f := range s.Findings {
				if f.Severity == v1.SeverityWarn {
					warned[f.Code] += f.Message + " " + f.Remedy + "\n"
				}
			}
			return s, warned
		}
		s, warned := read(l.control(roleViewer))
		if len(s.RecentlyLost) != times || s.RecentlyLostTotal != times {
			t.Fatalf("%d of %d are listed: %+v", len(s.RecentlyLost), s.RecentlyLostTotal, s.RecentlyLost)
		}
		first := s.RecentlyLost[times-1]
		if *first.Name != "mailer-1" || first.MachineID != "host-7" || *first.Hostname != "seven" || first.Queue != "mail" ||
			first.Reason != "HEARTBEAT_TIMEOUT" || first.Attempts != 3 || first.Requeued != 2 || first.Failed != 0 || first.Exhausted != 1 ||
			first.LastHeartbeatAt.IsZero() || !first.LostAt.After(first.LastHeartbeatAt.Time) || first.LostAt.After(s.RecentlyLost[0].LostAt.Time) {
			t.Errorf("%+v", first)
		}
		for code, want := range map[string]string{
			"recently-lost": "3 workers lost in the last hour while holding 7 attempts (6 requeued, 1 failed with no retries left): " +
				"mailer-1 on host-7, queue mail. lubdub why " + s.RecentlyLost[0].WorkerID,
			"poison-task": "so it may be killing them: " + s.RecentlyLost[0].WorkerID + " (mailer-1) on host-7",
			"flapping":    "mailer-1 on host-7, queue mail (3 times in 24 h). Lost in the last hour: 7 attempts",
		} {
			if !strings.Contains(warned[code], want) {
				t.Errorf("%s: %q does not contain %q", code, warned[code], want)
			}
		}
		if n := len(s.PoisonTasks); n != 2 || len(s.PoisonTasks[0].Workers) != times || s.PoisonTasks[0].State != v1.Queued ||
			*s.PoisonTasks[0].Queue != "mail" || !reflect.DeepEqual(s.PoisonTasks[0].Errors, []v1.ErrorGroup{
			{Error: "LOST: WORKER_LOST (HEARTBEAT_TIMEOUT)", Count: times}}) ||
			!strings.Contains(warned["poison-task"], "ask an operator to run lubdub task cancel "+s.PoisonTasks[0].TaskID) {
			t.Errorf("%d: %+v; %s", n, s.PoisonTasks, warned["poison-task"])
		}
		for _, scope := range []string{"zeta", token.Wildcard} {
			if s, _ := read(l.controlFor(roleViewer, scope, "prod")); len(s.RecentlyLost) != 0 || s.RecentlyLost == nil {
				t.Errorf("%s: %+v", scope, s.RecentlyLost)
			}
		}
		l.store.Clock.Advance(time.Hour)
		if s, warned := read(l.control(roleViewer)); len(s.RecentlyLost) != 0 || s.RecentlyLostTotal != 0 || warned["recently-lost"] != "" {
			t.Errorf("an hour later: %+v", s.RecentlyLost)
		}
	}, counts)
}

// While no Redis responds, the system endpoint returns a 503 which reports that timeouts are paused, whatever was read a moment ago. While
// one of several responds, or Redis only evicts, it returns what can be read.
func TestSystemWithoutRedis(t *testing.T) {
	t.Parallel()
	down := store.NodeHealth{Address: "10.0.0.1:6379", Err: errors.New("secret")}
	unavailable := &model.Error{Code: model.Unavailable, Cause: errors.New("secret")}
	one := []store.NodeHealth{down, {Version: "7.0.15"}}
	for name, c := range map[string]struct {
		ready, system error
		nodes         []store.NodeHealth
		status        int
		message       string
	}{
		"no node responds":         {unavailable, nil, []store.NodeHealth{down}, 503, "Redis 10.0.0.1:6379 is not responding."},
		"nodes are not known":      {unavailable, nil, nil, 503, "Redis is not responding."},
		"it stopped just now":      {nil, unavailable, nil, 503, "Redis is not responding."},
		"one node responds":        {unavailable, nil, one, 200, ""},
		"and not that of the data": {nil, unavailable, one, 503, "Redis 10.0.0.1:6379 is not responding."},
		"Redis evicts":             {&store.EvictionError{Message: "it evicts"}, nil, nil, 200, "it evicts"},
		"all nodes responded":      {nil, nil, nil, 200, ""},
		"something else failed":    {nil, &model.Error{Code: model.Invalid, Message: "tenantId is wrong"}, nil, 400, ""},
	} {
		e := newEnv(t)
		e.fake.ready, e.fake.nodes, e.fake.systemErr = func() error { return c.ready }, c.nodes, c.system
		a := e.do("GET", "/v1/system", e.control(roleViewer), "")
		if a.status != c.status || !strings.Contains(a.body, c.message) || strings.Contains(a.body, "secret") {
			t.Errorf("%s: %d %s", name, a.status, a.body)
		}
		if a.status != 503 {
			continue
		}
		var s v1.SystemUnavailable
		a.into(&s)
		if s.Error != v1.CodeStoreUnavailable || a.header.Get("Retry-After") != "1" || s.Message == "" ||
			s.Summary.Title != "Redis is not responding; timeouts are paused" || s.Summary.Severity != v1.SeverityFail || s.Summary.About != v1.Us ||
			!strings.Contains(s.Summary.Message, "Timeouts are paused") || len(s.Redis) != min(1, len(c.nodes)) ||
			s.Shards == nil || s.Time.IsZero() {
			t.Errorf("%s: %s", name, a.body)
		}
		if all := s.Findings; len(all) != 1 || all[0].Code != "redis" || all[0].Severity != v1.SeverityFail || all[0].Remedy == "" {
			t.Errorf("%s: %+v", name, all)
		}
	}
}

// If the data takes long, the reason is Redis only if it does not respond: otherwise the answer waits for the data.
func TestSystemWhileTheDataTakesLong(t *testing.T) {
	t.Parallel()
	responds, again := store.NodeHealth{Version: "7.0.15"}, &model.Error{Code: model.Unavailable, Message: "Try again"}
	for name, c := range map[string]struct {
		node   store.NodeHealth
		system error
		want   int
		text   string
	}{
		"Redis responds":           {responds, nil, 200, `"summary"`},
		"and the data is not read": {responds, again, 503, "Try again"},
		"Redis does not respond":   {store.NodeHealth{Err: errors.New("timeout")}, nil, 503, "Redis is not responding"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := newEnv(t)
			e.fake.nodes, e.fake.systemErr, e.fake.systemHeld = []store.NodeHealth{c.node}, c.system, make(chan struct{})
			if a := e.do("GET", "/v1/system", e.control(roleViewer), "").want(c.want); !strings.Contains(a.body, c.text) {
				t.Error(a.body)
			}
		})
	}
}

// How close tasks come to their timeouts is computed from the last hour of all replicas; without data nothing is reported.
func TestContractGapsBetweenBeats(t *testing.T) {
	t.Parallel()
	contract(t, func(t *testing.T, l *live) {
		l.leave()
		var s v1.Stats
		l.do("GET", "/v1/stats", l.control(roleViewer), "").want(200).into(&s)
		if s.BeatGapRatio != nil {
			t.Errorf("%+v", s.BeatGapRatio)
		}
		e := l.create(`{"heartbeatTimeoutMs":10000,"heartbeatIntervalMs":1000}`)
		l.call(e, "started", `{"attempt":1}`).want(200)
		for range 65 { // one flush in 64 is sampled
			l.pass(200 * time.Millisecond)
			l.call(e, "heartbeat", `{"attempt":1}`).want(200)
		}
		l.leave()
		l.leave()
		l.wait()
		l.do("GET", "/v1/stats", l.control(roleViewer), "").want(200).into(&s)
		if g := s.BeatGapRatio; g == nil || g.Samples == 0 || g.Max != 0.1 || g.P99 <= 0 || g.P99 > 0.1 || g.P50 > g.P99 {
			t.Errorf("%+v", s.BeatGapRatio)
		}
	}, counts)
}

// Replicas, shards and Redis are reported, and a caller that may list scopes can use them.
func TestContractSystemAndScopes(t *testing.T) {
	t.Parallel()
	contract(t, func(t *testing.T, l *live) {
		l.leave()
		l.sweep()
		for _, scope := range [][2]string{{"acme", "prod"}, {"acme", "prod-2"}, {"acme.eu", "prod"}, {"zeta", "a"}} {
			l.do("POST", "/v1/tasks", l.controlFor(roleDispatcher, scope[0], scope[1]), `{}`).want(201)
		}
		var s v1.System
		l.do("GET", "/v1/system", l.control(roleViewer), "").want(200).into(&s)
		if len(s.Replicas) != 1 || s.Replicas[0].ReplicaID != "replica_1" || s.Replicas[0].Version != "1.2.3" || len(s.Shards) != 4 ||
			s.Shards[3].Shard != 3 || s.Shards[0].Sweeper == nil || *s.Shards[0].Sweeper != "swp_test" || len(s.Redis) != 1 ||
			s.Redis[0].Error != nil || s.Redis[0].Version == nil || s.Shards[0].Events == 0 || s.Reconciler.RatePerSecond != 250 ||
			len(s.DifferingSettings) != 0 {
			t.Errorf("%+v", s)
		}
		list := func(tenant, query string) (names string) {
			var page v1.ScopeList
			for next := ""; ; next = "&pageToken=" + page.NextPageToken {
				page = v1.ScopeList{}
				l.do("GET", "/v1/scopes?pageSize=2"+query+next, l.controlFor(roleViewer, tenant, token.Wildcard), "").want(200).into(&page)
				for _, of := range page.Scopes {
					names += " " + of.TenantID + "/" + of.WorkspaceID
				}
				if page.NextPageToken == "" {
					return strings.TrimSpace(names)
				}
			}
		}
		for _, c := range [][3]string{
			{"*", "", "acme.eu/prod acme/prod-2 acme/prod zeta/a"},
			{"*", "&order=desc", "zeta/a acme/prod acme/prod-2 acme.eu/prod"},
			{"*", "&tenantId=acme", "acme/prod-2 acme/prod"},
			{"acme", "", "acme/prod-2 acme/prod"},
			{"empty", "", ""},
		} {
			if got := list(c[0], c[1]); got != c[2] {
				t.Errorf("%s %s: %s, want %s", c[0], c[1], got, c[2])
			}
		}
		l.do("GET", "/v1/scopes", l.control(roleAdmin), "").refused(403, v1.CodeForbidden)
		l.do("GET", "/v1/scopes?tenantId=zeta", l.controlFor(roleViewer, "acme", token.Wildcard), "").refused(403, v1.CodeForbidden)
	}, counts)
}
