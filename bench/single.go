package bench

import (
	"context"
	"time"

	"github.com/lubdub-io/lubdub/bench/load"
	"github.com/lubdub-io/lubdub/bench/report"
)

// warmUp is how long programs are driven before they are measured: token caches fill, heaps find their size.
const warmUp = time.Second

func runSingle(ctx context.Context, b *bench, s *report.Scenario) error {
	f, err := b.fewTasks(ctx)
	if err != nil {
		return err
	}
	targets := []*target{&f.target}
	for _, t := range targets {
		if err := b.warm(ctx, t, f.tasks); err != nil {
			return err
		}
	}
	for round := 1; round <= b.Rounds; round++ {
		for _, t := range targets {
			r, _, err := b.drive(ctx, t, report.Run{Round: round}, load.Load{Source: f.tasks.beatOneByOne, For: b.For})
			s.Runs = append(s.Runs, r)
			if err != nil {
				return err
			}
		}
	}
	return nil
}

func (b *bench) warm(ctx context.Context, t *target, tasks *tasks) error {
	_, _, err := b.drive(ctx, t, report.Run{Variant: "(warming up)"}, load.Load{Source: tasks.beatOneByOne, For: min(warmUp, b.For)})
	return err
}
