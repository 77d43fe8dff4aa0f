package bench

import (
	"context"

	"github.com/lubdub-io/lubdub/bench/load"
	"github.com/lubdub-io/lubdub/bench/report"
)

// A batch request has so many beats, as a supervisor of as many tasks would send; batchConnections keep the server
// busy with them.
const (
	batchBeats       = 100
	batchConnections = 16
)

func runBatch(ctx context.Context, b *bench, s *report.Scenario) error {
	f, err := b.fewTasks(ctx)
	if err != nil {
		return err
	}
	pool, err := load.Dial(ctx, f.address(), min(batchConnections, b.Connections))
	if err != nil {
		return err
	}
	defer pool.Close()
	batched := f.target
	batched.pool = pool
	if err := b.warm(ctx, &f.target, f.tasks); err != nil {
		return err
	}
	for round := 1; round <= b.Rounds; round++ {
		single, _, err := b.drive(ctx, &f.target, report.Run{Round: round, Variant: "single"},
			load.Load{Source: f.tasks.beatOneByOne, For: b.short()})
		s.Runs = append(s.Runs, single)
		if err != nil {
			return err
		}
		batch, _, err := b.drive(ctx, &batched, report.Run{Round: round, Variant: "batch", BeatsPerRequest: batchBeats},
			load.Load{Source: f.tasks.beatInBatches(batchBeats, true, false), For: b.short()})
		s.Runs = append(s.Runs, batch)
		if err != nil {
			return err
		}
		b.give("batch-rate", &batch.BeatsPerSecond)
		b.give("batch-rate-vs-single", ratio(&batch.BeatsPerSecond, &single.BeatsPerSecond))
	}
	return nil
}
