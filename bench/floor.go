package bench

import (
	"context"
	"fmt"
	"strconv"

	"github.com/lubdub-io/lubdub/bench/load"
	"github.com/lubdub-io/lubdub/bench/proc"
	"github.com/lubdub-io/lubdub/bench/report"
)

// floorTasks is how many tasks the floor is measured with: so many that neither side's sets fit into the processor's
// caches, as in production. With few, what a script costs at all weighs more; that is reported too, beside the bars.
const floorTasks = 100_000

// runFloor sets what a beat costs Redis against the least that it could cost. One batch at a time is under way on
// either side, so that a flush carries 100 beats and no more; the metrics show whether it did.
func runFloor(ctx context.Context, b *bench, s *report.Scenario) error {
	few, err := b.fewTasks(ctx)
	if err != nil {
		return err
	}
	n := max(few.tasks.len(), min(floorTasks, b.Tracked))
	many, err := b.newFixture(ctx, n)
	if err != nil {
		return err
	}
	defer many.stop()
	many.tasks = newTasks(newPrefix(), n, quietInterval, quietTimeout, 0)
	if _, err := b.populate(ctx, many, many.tasks); err != nil {
		return err
	}
	redis, err := b.newRedis(ctx)
	if err != nil {
		return err
	}
	defer redis.Stop()
	for round := 1; round <= b.Rounds; round++ {
		for _, v := range []struct {
			progress  bool
			name, bar string
		}{{false, "bare", "redis-cpu-vs-zadd"}, {true, "with progress", "redis-cpu-vs-zadd-progress"}} {
			ours, r, err := b.overFloor(ctx, s, many, redis, round, v.name, v.progress)
			if err != nil {
				return err
			}
			b.give(v.bar, r)
			note := fmt.Sprintf("%s tasks", grouped(int64(many.tasks.len())))
			if ours.FlushBeats != nil {
				note = fmt.Sprintf("%.0f beats a flush, %s", *ours.FlushBeats, note)
			}
			b.because(v.bar, note)
			if round > 1 {
				continue
			}
			_, r, err = b.overFloor(ctx, s, few, redis, round, v.name, v.progress)
			if err != nil {
				return err
			}
			if r != nil {
				s.Figures = append(s.Figures, report.Figure{
					Name: v.bar + "-few", What: fmt.Sprintf("CPU of Redis per beat to that of the floor, %s, with %s tasks", v.name,
						grouped(int64(few.tasks.len()))), Value: *r, Unit: "×",
				})
			}
		}
	}
	return nil
}

// overFloor runs Lubdub and then the floor, and returns the ratio of what they cost Redis.
func (b *bench) overFloor(ctx context.Context, s *report.Scenario, f *fixture, redis *proc.Redis, round int, variant string,
	progress bool) (ours report.Run, r *float64, err error) {
	pool, err := load.Dial(ctx, f.address(), 1)
	if err != nil {
		return ours, nil, err
	}
	defer pool.Close()
	one := f.target
	one.pool = pool
	ours, _, err = b.drive(ctx, &one, report.Run{Round: round, Variant: variant, BeatsPerRequest: batchBeats},
		load.Load{Source: f.tasks.beatInBatches(batchBeats, progress, false), For: b.For})
	s.Runs = append(s.Runs, ours)
	path, ok := b.baseline(zadd)
	if err != nil || !ok {
		return ours, nil, err
	}
	b.progress.step("zadd %s", variant)
	args := []string{"--redis", redis.URL, "--members", strconv.Itoa(f.tasks.len()), "--batch", strconv.Itoa(batchBeats), "--for",
		b.For.String()}
	if progress {
		args = append(args, "--progress")
	}
	own, err := b.self(ctx, zadd, path, args...)
	if err != nil {
		return ours, nil, err
	}
	floor := report.Run{
		Program: zadd, Variant: variant, Round: round, Loop: report.Closed, BeatsPerRequest: batchBeats, Tracked: f.tasks.len(),
		Seconds: own.Seconds, Beats: own.Ops, BeatsPerSecond: float64(own.Ops) / own.Seconds, RedisMicros: own.perOp(own.RedisCPUSeconds),
	}
	s.Runs = append(s.Runs, floor)
	return ours, ratio(ours.RedisMicros, floor.RedisMicros), nil
}
