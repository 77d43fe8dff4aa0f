package scenarios

import (
	"fmt"

	"github.com/lubdub-io/lubdub/bench/proc"
	"github.com/lubdub-io/lubdub/bench/report"
	"github.com/lubdub-io/lubdub/bench/testbed"
)

// lifeTasks and idleTasks are how many tasks the phases of a life have.
const (
	lifeTasks = 20_000
	idleTasks = 200
)

// runLife takes tasks with nothing to do through their whole life: Lubdub, asynq and BullMQ in turns.
func runLife(b *testbed.Bed) {
	tasks, idle := lifeTasks, idleTasks
	if b.Quick {
		tasks, idle = tasks/20, idle/10
	}
	figures := map[string][]float64{}
	for range b.Rounds {
		f := b.Deploy(tasks)
		redis := b.NewRedis()
		b.Cleanup(redis.Stop)
		other := b.NewRedis()
		b.Cleanup(other.Stop)
		lives := map[string]testbed.Life{}
		for _, of := range []struct {
			program string
			redis   *proc.Redis
			server  *proc.Server
			env     []string
		}{
			{testbed.Lives, f.Redis, f.Server, []string{"LUBDUB_URL=" + f.Server.URL, "LUBDUB_TOKEN=" + f.Control}},
			{testbed.Asynq, redis, nil, nil}, {testbed.BullMQ, other, nil, nil},
		} {
			life := b.Live(of.program, &testbed.Target{Redis: of.redis, Server: of.server}, of.env, tasks, idle)
			lives[of.program] = life
			for phase, p := range life {
				name := of.program + ", " + phase
				figures[name+": rate"] = append(figures[name+": rate"], p.PerSecond)
				figures[name+": CPU of Redis"] = append(figures[name+": CPU of Redis"], p.Redis)
				figures[name+": CPU of the server"] = append(figures[name+": CPU of the server"], p.Server)
				figures[name+": CPU of the client or worker"] = append(figures[name+": CPU of the client or worker"], p.Self)
			}
		}
		ours, asynq, bull := lives[testbed.Lives], lives[testbed.Asynq], lives[testbed.BullMQ]
		const create, process = "create", "process after create"
		if len(ours) == 0 { // the program is missing
			continue
		}
		b.AddRound("life-start-p50", ours["idle"].P50Ms)
		b.AddRound("life-start-p99", ours["idle"].P99Ms)
		if len(asynq) == 0 || len(bull) == 0 {
			continue
		}
		b.AddRound("life-process-rate", ours[process].PerSecond/asynq[process].PerSecond)
		b.AddRound("life-cpu", (ours[create].CPU()+ours[process].CPU())/(asynq[create].CPU()+asynq[process].CPU()))
		b.AddRound("life-redis-cpu", (ours[create].Redis+ours[process].Redis)/(asynq[create].Redis+asynq[process].Redis))
		b.AddRound("life-create-rate", ours[create].PerSecond/asynq[create].PerSecond)
		b.AddRound("life-batch-rate", ours["batch"].PerSecond/bull["batch"].PerSecond)
	}
	for _, program := range []string{testbed.Lives, testbed.Asynq, testbed.BullMQ} {
		for _, phase := range []string{"create", "process after create", "batch", "process after batch"} {
			name := program + ", " + phase
			for _, what := range []struct{ name, unit string }{{"rate", "tasks/s"}, {"CPU of Redis", "µs"}, {"CPU of the server", "µs"},
				{"CPU of the client or worker", "µs"}} {
				if values := figures[name+": "+what.name]; len(values) > 0 {
					b.Figure(fmt.Sprintf("%s: %s", name, what.name), fmt.Sprintf("%s: %s", name, what.name), report.Median(values), what.unit)
				}
			}
		}
	}
}
