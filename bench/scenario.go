package bench

import (
	"context"

	"github.com/lubdub-io/lubdub/bench/report"
)

// scenario is one kind of load.
type scenario struct {
	name, title, about string
	needs              need
	run                func(context.Context, *bench, *report.Scenario) error
}

// asked reports whether a scenario runs only when it is named: these are about promises, not about speed.
func (s *scenario) asked() bool { return s.name == "flood" || s.name == "overload" }

// need is what a scenario cannot do without; each includes those before it.
type need int

const (
	aDeployment need = iota // any, also one that runs elsewhere
	aRedis                  // processes of the benchmark's own, on any Redis
	ownRedis                // Redis processes of its own
)

// scenarios in the order in which they run: what adds tasks to the few comes after what counts on there being few, and
// the deadly ones come late.
var scenarios []*scenario

func init() { // the functions look into the list
	scenarios = []*scenario{
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
			"bodies that come a byte a second, or a client that lists 10,000 tasks again and again.", aRedis, runBeside},
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
}

func find(name string) *scenario {
	for _, s := range scenarios {
		if s.name == name {
			return s
		}
	}
	return nil
}

// Scenario describes one for the list.
type Scenario struct{ Name, Title, About string }

// Scenarios lists what there is.
func Scenarios() (list []Scenario) {
	for _, s := range scenarios {
		list = append(list, Scenario{s.name, s.title, s.about})
	}
	return list
}
