package bench

import (
	"context"
	"fmt"

	"github.com/lubdub-io/lubdub/bench/load"
	"github.com/lubdub-io/lubdub/bench/report"
)

// Variants of a worker's beat; the capacity model reads the last.
const (
	holdsOne    = "holds 1 task"
	manyWorkers = "many workers"
)

// runWorkerBeat alternates between a worker that holds many tasks and one that holds one, and lets many workers beat.
func runWorkerBeat(ctx context.Context, b *bench, s *report.Scenario) error {
	site, err := b.workers(ctx)
	if err != nil {
		return err
	}
	n := b.heldByOne()
	holdsMany := fmt.Sprintf("holds %s tasks", grouped(int64(n)))
	beating := map[string][]*worker{}
	for variant, tasks := range map[string]int{holdsOne: 1, holdsMany: n} {
		one, j, err := site.one(ctx, b, tasks)
		if err == nil {
			err = site.hold(ctx, b, one, j)
		}
		if err != nil {
			return err
		}
		beating[variant] = []*worker{one}
	}
	if beating[manyWorkers], err = site.hire(ctx, b, newJobs(0).queue, b.workerCount()); err != nil {
		return err
	}
	one, err := site.wide(ctx, min(batchConnections, b.Connections))
	if err != nil {
		return err
	}
	defer one.pool.Close()
	all, err := site.wide(ctx, min(b.Connections, b.workerCount()))
	if err != nil {
		return err
	}
	defer all.pool.Close()
	ways := []struct {
		variant string
		on      *target
		held    int
	}{{holdsOne, one, 1}, {holdsMany, one, n}, {manyWorkers, all, 0}}
	for _, w := range ways {
		if _, _, err := b.drive(ctx, w.on, report.Run{Variant: "(warming up)"},
			load.Load{Source: beatsOf(beating[w.variant]), For: min(warmUp, b.short())}); err != nil {
			return err
		}
	}
	for round := 1; round <= b.Rounds; round++ {
		runs := map[string]report.Run{}
		for _, w := range ways {
			r, _, err := b.drive(ctx, w.on, report.Run{Round: round, Variant: w.variant, Tracked: w.held},
				load.Load{Source: beatsOf(beating[w.variant]), For: b.short()})
			r.FlushBeats = nil // these do not travel in such flushes
			s.Runs = append(s.Runs, r)
			if err != nil {
				return err
			}
			runs[w.variant] = r
		}
		b.give("worker-beat", ratio(both(runs[holdsMany]), both(runs[holdsOne])))
	}
	s.Notes = append(s.Notes, fmt.Sprintf("The many workers are %s. Each beat carries how many tasks are active, completed and failed.",
		grouped(int64(b.workerCount()))))
	if n < 10_000 {
		b.because("worker-beat", fmt.Sprintf("%s tasks", grouped(int64(n))))
	}
	return nil
}
