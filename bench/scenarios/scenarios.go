// Package scenarios contains the benchmark's scenarios: kinds of load, and the bars that they measure. It measures Lubdub from outside,
// over real sockets, as its workers see it, next to baselines on the same host in the same minutes. Results are ratios and CPU per
// beat: absolute rates drift from host to host.
package scenarios

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/lubdub-io/lubdub/bench/proc"
	"github.com/lubdub-io/lubdub/bench/report"
	"github.com/lubdub-io/lubdub/bench/testbed"
)

// Scenario is one kind of load.
type Scenario struct {
	Name, Title, About string
	needs              need
	run                func(*testbed.Bed)
}

// onlyNamed reports whether a scenario runs only when it is named: these test promises, not speed.
func (s *Scenario) onlyNamed() bool { return s.Name == "flood" || s.Name == "overload" }

// need is what a scenario requires; each value includes those before it.
type need int

const (
	aDeployment need = iota // any, even one that runs elsewhere
	aRedis                  // processes that the benchmark starts, on any Redis
	ownRedis                // separate Redis processes
)

// All scenarios in the order in which they run: those that add tasks to the few come after those that need them to be few, and those that
// kill tasks come late.
var All = []*Scenario{
	{"single", "Single beats", "Closed loop, one beat a request; each connection beats for tasks of its own in random order. Lubdub and " +
		"the baselines alternate within a round.", aDeployment, runSingle},
	{"batch", "Batches of beats", "Closed loop, 100 beats a request over 16 connections, alternating with single beats.", aDeployment,
		runBatch},
	{"floor", "What a beat costs Redis", "Batches of 100, one at a time, against bulk ZADD XX GT CH of as many members.", ownRedis, runFloor},
	{"latency", "Latency at half of the top rate", "Open loop: latency counts from the intended start, so that a stall is seen by every " +
		"beat that it held up.", aDeployment, runLatency},
	{"paced", "Beats at a steady rate", "Open loop over 1,000 connections at 10,000, 25,000 and 50,000 beats a second, where flushes carry " +
		"few beats. Lubdub and the baselines alternate within a round.", aRedis, runPaced},
	{"beside", "Beats beside other calls", "Open loop at half of the top rate, each time alone and then beside 1,000 long polls, 100 " +
		"bodies that come a byte a second, or a client that lists 10,000 tasks again and again.", aRedis, runAlongside},
	{"lifecycle", "Life cycles", "Closed loop; each connection takes one task after the other from creation to completion.", aDeployment,
		runLifecycle},
	{"connections", "Many connections", "Open loop: 100,000 connections that beat every 10 s, alternating with 1,000 at the same rate, " +
		"each with a server of their own.", aRedis, runConnections},
	{"populate", "Filling a deployment", "Creates the tracked tasks and starts them by their first beats, then weighs them in Redis.", aRedis,
		runPopulate},
	{"growth", "Growth", "Single beats with 10,000 tracked tasks and with all of them, alternating.", ownRedis, runGrowth},
	{"tenants", "Many tenants", "Single beats for as many tasks of one tenant and of 1,000, alternating.", aRedis, runTenants},
	{"idle", "Idle", "All tasks are tracked, and nobody beats.", aRedis, runIdle},
	{"cold-start", "Cold start", "A new replica, which has seen no token yet, meets the workers of all tracked tasks.", aRedis, runColdStart},
	{"replica", "What a replica weighs", "Memory of a replica for the tokens that it remembers and for its connections.", aRedis, runReplica},
	{"lag", "Detection lag", "Some tasks fall silent while the tracked ones beat at half of the top rate; the lag is what their evidence " +
		"says.", aRedis, runLag},
	{"deaths", "Mass death", "100,000 tasks die at the same time, first while nobody beats, then while the tracked ones beat at half " +
		"of the top rate.", aRedis, runDeaths},
	{"worker-beat", "Worker beats", "Closed loop: a worker that holds 10,000 tasks beats for all of them, alternating with one that holds " +
		"one; then 1,000 workers beat.", aRedis, runWorkerBeat},
	{"claims", "Claims", "Closed loop: 1, 10 and 100 workers claim one task a request from a queue that was filled before.", aRedis,
		runClaims},
	{"noops", "Tasks with nothing to do", "A client that does no more than this, in turns with a worker of the Go SDK, claims, starts and " +
		"completes tasks, 1, 10 and 100 at a time.", aRedis, runNoOps},
	{"life", "A task's whole life", "16 callers create tasks with nothing to do, one and 100 a request, and a worker with a concurrency of " +
		"32 runs them: Lubdub with its Go SDK, asynq and BullMQ in turns. Then an idle worker gets tasks one by one.", ownRedis, runLife},
	{"pollers", "Idle pollers", "1,000 workers wait in long polls for tasks that do not come.", aRedis, runPollers},
	{"streams", "Streams of events", "Tasks come and go at 5,000 transitions a second, and listeners tell how long each event takes; " +
		"then beats at half of the top rate without and beside 10,000 clients that listen.", aRedis, runStreams},
	{"webhooks", "Webhooks", "One webhook is told of 20,000 tasks as they are created; one sweeper posts them to a sink on this machine.",
		aRedis, runWebhooks},
	{"schedules", "Schedules that catch up", "Open loop at half of the top rate, alone and while 1,200 schedules catch up with 10 fires " +
		"each.", aRedis, runSchedules},
	{"recovery", "Recovery", "A worker that holds 10,000 tasks falls silent; each must be requeued, once.", aRedis, runRecovery},
	{"etcd", "etcd", "Keep-alives of 256 leases on one etcd node, for scale; only where there is an etcd.", aRedis, runEtcd},
	{"flood", "Slow and idle connections", "Open loop at half of the top rate, without and beside 5,000 connections that dawdle. Runs only " +
		"when it is named.", aRedis, runFlood},
	{"overload", "Overload", "Ten times the connections that make the top rate, on bounded connections, on a slow Redis, and as creations " +
		"and lists beside the beats. Runs only when it is named.", ownRedis, runOverload},
}

// runEtcd measures etcd for comparison, which keeps leases alive.
func runEtcd(b *testbed.Bed) {
	if t := b.StartEtcd(); t != nil {
		before := t.ReadCPU()
		r, ok := b.Self(testbed.Etcd, report.Run{Variant: "keep-alives", Round: 1, BeatsPerRequest: 1, Tracked: 256}, "--url", t.Server.URL,
			"--leases", "256")
		if ok {
			server, _, _ := t.ReadCPU().Since(before, r.Beats) // includes creating the leases, which is little
			r.ServerMicros = testbed.Known(server)
			b.Keep(r)
		}
	}
}

// chosen returns the scenarios to run, in the order of the list.
func chosen(o *testbed.Options) []*Scenario {
	return slices.DeleteFunc(slices.Clone(All), func(s *Scenario) bool {
		wanted := !s.onlyNamed()
		if len(o.Scenarios) > 0 {
			wanted = slices.Contains(o.Scenarios, s.Name)
		}
		return !wanted || o.URL != "" && s.needs > aDeployment || o.RedisURL != "" && s.needs > aRedis
	})
}

// validate returns everything that is wrong with the options.
func validate(o *testbed.Options) error {
	var errs []error
	refuse := func(wrong bool, format string, args ...any) {
		if wrong {
			errs = append(errs, fmt.Errorf(format, args...))
		}
	}
	refuse(o.Connections < 1, "--connections %d: it takes at least one", o.Connections)
	refuse(o.For < 100*time.Millisecond, "--for %v is too short to measure anything; give at least 100ms", o.For)
	refuse(o.Rounds < 1, "--rounds %d: it takes at least one", o.Rounds)
	refuse(o.Tracked < o.Connections, "--tracked %d: give at least one task for each of the %d connections", o.Tracked, o.Connections)
	refuse(o.Rate < 0, "--rate %v is negative", o.Rate)
	refuse(o.Cores < 0, "--cores %d is negative", o.Cores)
	refuse(o.URL != "" && len(o.ServerFlags) > 0, "--server-flag is for servers that the benchmark starts, so it does not go with --url")
	refuse(o.URL != "" && o.RedisURL != "", "--url loads a deployment that has its Redis, so it does not go with --redis")
	refuse(o.URL != "" && !strings.HasPrefix(o.URL, "http://"),
		"--url %s: the generator speaks plain http:// only; load the deployment behind what ends its TLS", o.URL)
	refuse((o.URL == "") != (o.Token == ""), "--url needs a control token that may create tasks, and only --url does: make one with "+
		"'lubdub token --role dispatcher' and give it as BENCH_TOKEN")
	refuse(o.RedisPid != 0 && o.RedisURL == "", "--redis-pid names the process of --redis; without that Redis is private, and known")
	for _, name := range o.Scenarios {
		i := slices.IndexFunc(All, func(s *Scenario) bool { return s.Name == name })
		if i < 0 {
			refuse(true, "there is no scenario %q; 'lubdub-bench --list' lists them", name)
			continue
		}
		needs := All[i].needs
		refuse(o.URL != "" && needs > aDeployment, "scenario %s starts processes of its own, so it does not go with --url", name)
		refuse(o.RedisURL != "" && needs > aRedis, "scenario %s needs a Redis of its own, so it does not go with --redis", name)
	}
	return errors.Join(errs...)
}

// Run runs the scenarios. With an error the report is as complete as possible; every process that it started has ended when it returns.
func Run(ctx context.Context, o testbed.Options) (*report.Report, error) {
	if err := validate(&o); err != nil {
		return nil, err
	}
	proc.RaiseFileLimit()
	var servers, own []int
	if o.URL == "" {
		var err error
		if servers, own, err = proc.SplitCores(o.Cores); err != nil {
			return nil, err
		}
	}
	started := time.Now()
	r := &report.Report{
		Version: report.Version, Command: o.Command, StartedAt: started.UTC(), Quick: o.Quick, Machine: proc.Machine(),
		Lubdub: report.Lubdub{Version: o.Version, Commit: o.Commit, Go: runtime.Version(), URL: o.URL},
		Settings: report.Settings{Connections: o.Connections, ForSeconds: o.For.Seconds(), Rounds: o.Rounds, Tracked: o.Tracked,
			RatePerSecond: o.Rate, ServerCores: servers, GeneratorCores: own},
		Bars: bars(),
	}
	if o.Commit != "" {
		r.Name = started.UTC().Format(time.DateOnly) + "-" + o.Commit
	}
	b := testbed.New(ctx, o, r)
	if servers != nil {
		b.Note("servers and Redis ran on the cores %v, the generator on %v", servers, own)
	}
	defer b.End()
	err := testbed.Try(func() { detectEnvironment(b) })
	if err == nil {
		err = playAll(b)
	}
	for i := range r.Bars {
		r.Bars[i].Evaluate()
	}
	r.Complete = err == nil
	r.Seconds = time.Since(started).Seconds()
	return r, err
}

// playAll runs the chosen scenarios until the run is interrupted.
func playAll(b *testbed.Bed) (err error) {
	list := chosen(&b.Options)
	for _, s := range list {
		b.Report.Settings.Scenarios = append(b.Report.Settings.Scenarios, s.Name)
	}
	for _, s := range list {
		if b.Ctx.Err() == nil {
			err = errors.Join(err, b.Play(report.Scenario{Name: s.Name, Title: s.Title, About: s.About}, s.run))
		}
	}
	return err
}

// detectEnvironment determines the available programs and limits.
func detectEnvironment(b *testbed.Bed) {
	if _, err := proc.ReadCPU(0); errors.Is(err, proc.ErrNoProc) {
		b.Note("%v: CPU and memory are left out", err)
	}
	if b.URL != "" {
		b.Note("the deployment at %s was not started by this run: CPU, memory and Redis are left out", b.URL)
		return
	}
	redis := b.NewRedis()
	defer redis.Stop()
	b.Report.Redis = report.Redis{Version: testbed.Must(redis.Version(b.Ctx)), Private: redis.Private()}
	if redis.Private() {
		b.Report.Redis.Settings = slices.DeleteFunc(slices.Clone(proc.RedisArgs), func(s string) bool { return s == "" })
	} else if b.RedisPid == 0 {
		b.Note("the process of the Redis of --redis is not known, so its CPU is left out; --redis-pid names it")
	}
}
