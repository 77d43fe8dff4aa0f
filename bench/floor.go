package bench

import (
	"context"
	"fmt"
	"strconv"

	"github.com/lubdub-io/lubdub/bench/load"
	"github.com/lubdub-io/lubdub/bench/report"
)

// runFloor sets what a beat costs Redis against the least that it could cost. One batch at a time is under way, so
// that a flush carries 100 beats and no more; the metrics tell whether it did.
func runFloor(ctx context.Context, b *bench, s *report.Scenario) error {
	f, err := b.fewTasks(ctx)
	if err != nil {
		return err
	}
	pool, err := load.Dial(ctx, f.address(), 1)
	if err != nil {
		return err
	}
	defer pool.Close()
	one := f.target
	one.pool = pool
	path, ok := b.baseline(zadd)
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
			ours, _, err := b.drive(ctx, &one, report.Run{Round: round, Variant: v.name, BeatsPerRequest: batchBeats},
				load.Load{Source: f.tasks.beatInBatches(batchBeats, v.progress, false), For: b.For})
			s.Runs = append(s.Runs, ours)
			if err != nil {
				return err
			}
			if !ok {
				continue
			}
			b.progress.step("zadd %s", v.name)
			args := []string{"--redis", redis.URL, "--members", strconv.Itoa(f.tasks.len()), "--batch", strconv.Itoa(batchBeats), "--for", b.For.String()}
			if v.progress {
				args = append(args, "--progress")
			}
			own, err := b.self(ctx, zadd, path, args...)
			if err != nil {
				return err
			}
			floor := report.Run{
				Program: zadd, Variant: v.name, Round: round, Loop: report.Closed, BeatsPerRequest: batchBeats, Tracked: f.tasks.len(),
				Seconds: own.Seconds, Beats: own.Ops, BeatsPerSecond: float64(own.Ops) / own.Seconds, RedisMicros: own.perOp(own.RedisCPUSeconds),
			}
			s.Runs = append(s.Runs, floor)
			b.give(v.bar, ratio(ours.RedisMicros, floor.RedisMicros))
			if ours.FlushBeats != nil {
				b.because(v.bar, fmt.Sprintf("%.0f beats a flush", *ours.FlushBeats))
			}
		}
	}
	return nil
}
