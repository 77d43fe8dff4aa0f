package bench

import (
	"context"
	"fmt"
	"time"

	"github.com/lubdub-io/lubdub/bench/load"
	"github.com/lubdub-io/lubdub/bench/proc"
	"github.com/lubdub-io/lubdub/bench/report"
)

// crowd is a deployment with many tasks, and what it was like to fill.
type crowd struct {
	fixture
	populated
	bytesBefore, bytesAfter int64 // of Redis; 0: not known
}

// manyTasks returns the deployment with many tasks.
func (b *bench) manyTasks(ctx context.Context) (*crowd, error) {
	if b.many == nil && b.manyErr == nil {
		b.many, b.manyErr = b.fillMany(ctx)
	}
	return b.many, b.manyErr
}

func (b *bench) fillMany(ctx context.Context) (*crowd, error) {
	f, err := b.newFixture(ctx, b.Tracked)
	if err != nil {
		return nil, err
	}
	b.atEnd(f.stop)
	c := &crowd{fixture: *f}
	if c.bytesBefore, err = c.redis.UsedMemory(ctx); err != nil {
		return nil, err
	}
	c.tasks = newTasks(newPrefix(), b.Tracked, quietInterval, quietTimeout, 0)
	if c.populated, err = b.populate(ctx, &c.fixture, c.tasks); err != nil {
		return nil, err
	}
	if c.bytesAfter, err = c.redis.UsedMemory(ctx); err != nil {
		return nil, err
	}
	return c, nil
}

// runPopulate fills a deployment with the tracked tasks and measures what they take up in Redis.
func runPopulate(ctx context.Context, b *bench, s *report.Scenario) error {
	c, err := b.manyTasks(ctx)
	if err != nil {
		return err
	}
	n := int64(c.tasks.len())
	s.Figures = append(s.Figures,
		report.Figure{Name: "create-rate", What: "creations, 1,000 a request", Value: perSecond(n, c.create.Elapsed), Unit: "tasks/s"},
		report.Figure{Name: "start-rate", What: "first beats, which start the tasks, 1,000 a request", Value: perSecond(n, c.start.Elapsed),
			Unit: "tasks/s"})
	perTask := float64(c.bytesAfter-c.bytesBefore) / float64(n)
	b.give("redis-bytes-per-task", &perTask)
	s.Figures = append(s.Figures, report.Figure{Name: "redis-bytes-per-task", What: "Redis memory that came with a running task",
		Value: perTask, Unit: "bytes"})
	b.progress.step("memory by kind of key")
	kinds, err := memoryByKind(ctx, c.redis)
	if err != nil {
		return err
	}
	rest := perTask
	for _, k := range kinds {
		v := k.bytes / float64(n)
		rest -= v
		s.Figures = append(s.Figures, report.Figure{Name: "redis-bytes-" + k.name, What: fmt.Sprintf("%s (%s keys)", k.name, grouped(k.keys)),
			Value: v, Unit: "bytes", Group: "redis-bytes-per-task"})
	}
	s.Figures = append(s.Figures, report.Figure{Name: "redis-bytes-rest", What: "the rest: table of keys, allocator, buffers", Value: rest,
		Unit: "bytes", Group: "redis-bytes-per-task"})
	return nil
}

// runGrowth alternates between few tasks and many.
func runGrowth(ctx context.Context, b *bench, s *report.Scenario) error {
	f, err := b.fewTasks(ctx)
	if err != nil {
		return err
	}
	c, err := b.manyTasks(ctx)
	if err != nil {
		return err
	}
	if err := b.warm(ctx, &f.target, f.tasks); err != nil {
		return err
	}
	if err := b.warm(ctx, &c.target, c.tasks); err != nil {
		return err
	}
	for round := 1; round <= b.Rounds; round++ {
		few, _, err := b.drive(ctx, &f.target, report.Run{Round: round, Variant: "few"}, load.Load{Source: f.tasks.beatOneByOne, For: b.short()})
		s.Runs = append(s.Runs, few)
		if err != nil {
			return err
		}
		many, _, err := b.drive(ctx, &c.target, report.Run{Round: round, Variant: "many"},
			load.Load{Source: c.tasks.beatOneByOne, For: b.short()})
		s.Runs = append(s.Runs, many)
		if err != nil {
			return err
		}
		b.give("growth", ratio(both(many), both(few)))
	}
	if c.tasks.len() < 1_000_000 {
		b.because("growth", fmt.Sprintf("at %s tracked tasks", grouped(int64(c.tasks.len()))))
	}
	return nil
}

// runIdle lets nobody beat.
func runIdle(ctx context.Context, b *bench, s *report.Scenario) error {
	c, err := b.manyTasks(ctx)
	if err != nil {
		return err
	}
	length := b.For
	b.progress.step("nobody beats for %v", length)
	before, start := c.read(), time.Now()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(length):
	}
	after, elapsed := c.read(), time.Since(start)
	for _, p := range []struct {
		name, what    string
		after, before *proc.CPU
	}{{"idle-server", "server, all roles", after.server, before.server}, {"idle-redis", "Redis", after.redis, before.redis}} {
		if p.after != nil && p.before != nil {
			s.Figures = append(s.Figures, report.Figure{
				Name: p.name, What: fmt.Sprintf("%s with %s tracked tasks and no beats", p.what, grouped(int64(c.tasks.len()))),
				Value: 100 * p.after.Since(*p.before).Seconds() / elapsed.Seconds(), Unit: "% of a core",
			})
		}
	}
	return nil
}
