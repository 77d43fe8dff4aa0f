package bench

import (
	"context"
	"fmt"

	"github.com/lubdub-io/lubdub/bench/load"
	"github.com/lubdub-io/lubdub/bench/report"
)

// tenantCount share the tasks of the scenario.
const tenantCount = 1000

// runTenants alternates between as many tasks of one tenant and of many.
func runTenants(ctx context.Context, b *bench, s *report.Scenario) error {
	f, err := b.fewTasks(ctx)
	if err != nil {
		return err
	}
	all := *f
	if all.control, err = b.control(ctx, "*", "*"); err != nil {
		return err
	}
	spread := newTasks(newPrefix(), f.tasks.len(), quietInterval, quietTimeout, tenantCount)
	if _, err := b.populate(ctx, &all, spread); err != nil {
		return err
	}
	f.tracked = all.tracked
	if err := b.warm(ctx, &f.target, f.tasks); err != nil {
		return err
	}
	if err := b.warm(ctx, &f.target, spread); err != nil {
		return err
	}
	var ratios []float64
	for round := 1; round <= b.Rounds; round++ {
		one, _, err := b.drive(ctx, &f.target, report.Run{Round: round, Variant: "1 tenant"},
			load.Load{Source: f.tasks.beatOneByOne, For: b.short()})
		s.Runs = append(s.Runs, one)
		if err != nil {
			return err
		}
		many, _, err := b.drive(ctx, &f.target, report.Run{Round: round, Variant: fmt.Sprintf("%s tenants", grouped(tenantCount))},
			load.Load{Source: spread.beatOneByOne, For: b.short()})
		s.Runs = append(s.Runs, many)
		if err != nil {
			return err
		}
		if v := ratio(both(many), both(one)); v != nil {
			ratios = append(ratios, *v)
		}
	}
	if len(ratios) > 0 {
		s.Figures = append(s.Figures, report.Figure{Name: "tenants-cpu",
			What: "CPU of server and Redis per beat with many tenants, to that with one", Value: report.Median(ratios), Unit: "×"})
	}
	return nil
}
