package bench

import (
	"context"
	"time"

	"github.com/lubdub-io/lubdub/bench/load"
	"github.com/lubdub-io/lubdub/bench/report"
)

// warmUp is how long programs are driven before they are measured: token caches fill, heaps find their size.
const warmUp = 1500 * time.Millisecond

func (b *bench) warm(ctx context.Context, t *target, tasks *tasks) error {
	_, _, err := b.drive(ctx, t, report.Run{Variant: "(warming up)"}, load.Load{Source: tasks.beatOneByOne, For: min(warmUp, b.short())})
	return err
}

func runSingle(ctx context.Context, b *bench, s *report.Scenario) error {
	f, err := b.fewTasks(ctx)
	if err != nil {
		return err
	}
	targets, stop, err := b.beside(ctx, f)
	defer stop()
	if err != nil {
		return err
	}
	for _, t := range targets {
		if err := b.warm(ctx, t, f.tasks); err != nil {
			return err
		}
	}
	for round := 1; round <= b.Rounds; round++ {
		runs := map[string]report.Run{}
		for _, t := range targets {
			r, _, err := b.drive(ctx, t, report.Run{Round: round}, load.Load{Source: f.tasks.beatOneByOne, For: b.For})
			s.Runs = append(s.Runs, r)
			if err != nil {
				return err
			}
			runs[t.program] = r
		}
		ours := runs[lubdub]
		b.topRates = append(b.topRates, ours.BeatsPerSecond)
		b.give("frontend-cpu-vs-empty", ratio(ours.ServerMicros, runs[empty].ServerMicros))
		if floor := runs[empty].BeatsPerSecond; floor > 0 {
			b.give("single-rate-vs-empty", ratio(&ours.BeatsPerSecond, &floor))
		}
		b.give("single-cpu-vs-naive", ratio(both(ours), both(runs[naive])))
		b.give("single-cpu-vs-autopipeline", ratio(both(ours), both(runs[autopipeline])))
	}
	return nil
}

// halfOfTop is the rate of an open loop: what was asked for, else half of the top rate of single beats, which is
// measured if it has not been.
func (b *bench) halfOfTop(ctx context.Context, f *fixture) (float64, error) {
	if b.Rate > 0 {
		return b.Rate, nil
	}
	if len(b.topRates) == 0 {
		if err := b.warm(ctx, &f.target, f.tasks); err != nil {
			return 0, err
		}
		r, _, err := b.drive(ctx, &f.target, report.Run{Variant: "(top rate)"}, load.Load{Source: f.tasks.beatOneByOne, For: b.For})
		if err != nil {
			return 0, err
		}
		b.topRates = append(b.topRates, r.BeatsPerSecond)
	}
	return report.Median(b.topRates) / 2, nil
}
