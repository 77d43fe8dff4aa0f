package bench

import (
	"context"
	"fmt"
	"strings"

	"github.com/lubdub-io/lubdub/bench/load"
	"github.com/lubdub-io/lubdub/bench/report"
)

// pacedConnections is how many connections a paced load has: each beats every 20 to 100 ms.
const pacedConnections = 1000

// pacedRates are beats per second, and what the names of their bars begin with.
var pacedRates = []struct {
	perSecond float64
	name      string
}{{10_000, "paced-10k"}, {25_000, "paced-25k"}, {50_000, "paced-50k"}}

// runPaced drives Lubdub and the baselines at rates that keep nobody busy: flushes carry few beats, and what a wake-up costs
// is seen.
func runPaced(ctx context.Context, b *bench, s *report.Scenario) error {
	f, err := b.fewTasks(ctx)
	if err != nil {
		return err
	}
	targets, stop, err := b.beside(ctx, f)
	defer stop()
	if err != nil {
		return err
	}
	n := min(pacedConnections, f.tasks.len())
	var paced []*target
	for _, t := range targets {
		wide := *t
		if wide.pool, err = load.DialLight(ctx, t.address(), n); err != nil {
			return err
		}
		defer wide.pool.Close()
		if err := b.warm(ctx, &wide, f.tasks); err != nil {
			return err
		}
		paced = append(paced, &wide)
	}
	for round := 1; round <= b.Rounds; round++ {
		for _, rate := range pacedRates {
			if err := b.pace(ctx, s, f, paced, round, rate.name, b.scaled(rate.perSecond)); err != nil {
				return err
			}
		}
	}
	return nil
}

// scaled is a rate that a quick run takes a tenth of.
func (b *bench) scaled(perSecond float64) float64 {
	if b.Quick {
		return perSecond / 10
	}
	return perSecond
}

func (b *bench) pace(ctx context.Context, s *report.Scenario, f *fixture, targets []*target, round int, name string, rate float64) error {
	runs, length := map[string]report.Run{}, b.For
	if b.Quick {
		length = b.short()
	}
	for _, t := range targets {
		r, _, err := b.drive(ctx, t, report.Run{Round: round, Variant: grouped(int64(rate)) + "/s"},
			load.Load{Source: f.tasks.beatOneByOne, For: length, PerSecond: rate, Poisson: b.Poisson})
		s.Runs = append(s.Runs, r)
		if err != nil {
			return err
		}
		runs[t.program] = r
	}
	ours := runs[lubdub]
	b.give(name+"-cpu-vs-autopipeline", ratio(both(ours), both(runs[autopipeline])))
	if ours.Latency != nil {
		b.give(name+"-p99", &ours.Latency.P99Ms)
	}
	cpu, p99 := pacedNotes(ours, runs[autopipeline])
	if b.Quick {
		at := fmt.Sprintf("at %s/s", grouped(int64(rate)))
		cpu, p99 = strings.TrimSuffix(at+"; "+cpu, "; "), strings.TrimSuffix(at+"; "+p99, "; ")
	}
	b.because(name+"-cpu-vs-autopipeline", cpu)
	b.because(name+"-p99", p99)
	return nil
}

// nearlyAll of the offered beats must be taken for CPU per beat to be that at the rate, and so late may the generator be.
const (
	nearlyAll  = 0.98
	lateEnough = 1.0 // ms
)

// pacedNotes are what to know about the numbers of a round, for CPU and for p99; empty: nothing.
func pacedNotes(ours, auto report.Run) (cpu, p99 string) {
	var list []string
	for _, r := range []report.Run{ours, auto} {
		if r.BeatsPerSecond < nearlyAll*r.TargetPerSecond {
			list = append(list, fmt.Sprintf("%s took %s of %s/s", r.Program, grouped(int64(r.BeatsPerSecond)), grouped(int64(r.TargetPerSecond))))
		}
	}
	if late := ours.OwnLateness; late != nil && late.P99Ms > lateEnough {
		p99 = fmt.Sprintf("the generator itself was late by %.1f ms, p99", late.P99Ms)
	}
	return strings.Join(list, ", "), p99
}
