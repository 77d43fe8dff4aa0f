package testbed

import (
	"encoding/json"
	"fmt"
	"os/exec"
	"strings"
	"time"

	"github.com/lubdub-io/lubdub/bench/proc"
)

// Life is what a program of bench/baselines did that takes tasks through their whole life, by phase.
type Life map[string]Phase

// Phase is one phase of it. CPU times are µs for a task, NaN where unknown.
type Phase struct {
	PerSecond           float64 // tasks
	Redis, Server, Self float64 // CPU; Self: of the program itself
	P50Ms, P99Ms        float64 // from a creation to its start, in the phase idle
}

// CPU returns the CPU of all processes for a task.
func (p Phase) CPU() float64 {
	sum := p.Redis + p.Self
	if p.Server == p.Server { // not NaN
		sum += p.Server
	}
	return sum
}

// Live runs such a program on a target and reads the CPU of all processes at the end of each phase. A missing program has no phases.
func (b *Bed) Live(program string, t *Target, env []string, tasks, idle int) Life {
	path, ok := b.baseline(program)
	if !ok {
		return nil
	}
	b.Step("lives with %s", program)
	cmd := exec.Command(path, "--tasks", fmt.Sprint(tasks), "--idle", fmt.Sprint(idle),
		"--redis", strings.TrimSuffix(strings.TrimPrefix(t.Redis.URL, "redis://"), "/0"))
	cmd.Env = append(b.environ(), env...)
	child := Must(proc.Start(program, cmd))
	defer child.Stop()
	life := Life{}
	before, self := CPU{}, (*proc.CPU)(nil)
	for {
		line, err := child.Line(b.Ctx, 2*time.Minute)
		if err != nil && len(life) > 0 && child.Wait(b.Ctx) == nil {
			return life
		}
		Check(err)
		var p struct {
			Phase        string
			N            int64
			Seconds      float64
			P50Ms, P99Ms float64
		}
		if err := json.Unmarshal([]byte(line), &p); err != nil {
			Check(fmt.Errorf("%s reports %q and not a phase: %w", program, line, err))
		}
		after, now := t.ReadCPU(), cpuOf(child.Pid)
		if p.Phase != "ready" {
			server, redis, _ := after.Since(before, p.N)
			_, _, own := CPU{self: now}.Since(CPU{self: self}, p.N)
			life[p.Phase] = Phase{PerSecond: float64(p.N) / p.Seconds, Redis: redis, Server: server, Self: own, P50Ms: p.P50Ms, P99Ms: p.P99Ms}
		}
		before, self = after, now
	}
}
