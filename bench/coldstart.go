package bench

import (
	"context"
	"time"

	"github.com/lubdub-io/lubdub/bench/load"
	"github.com/lubdub-io/lubdub/bench/proc"
	"github.com/lubdub-io/lubdub/bench/report"
)

// runColdStart lets a new replica, which knows no token, meet the workers of all tracked tasks; then the same tasks
// again, once it knows them.
func runColdStart(ctx context.Context, b *bench, s *report.Scenario) error {
	c, err := b.manyTasks(ctx)
	if err != nil {
		return err
	}
	start := time.Now()
	server, err := b.serve(ctx, c.redis, c.tasks.len(), "--roles", "api")
	if err != nil {
		return err
	}
	s.Figures = append(s.Figures, report.Figure{Name: "start", What: "from the start of the process until it listens",
		Value: ms(time.Since(start)), Unit: "ms"})
	replica := &target{program: lubdub, server: server, redis: c.redis, tracked: c.tracked}
	defer func() { // Redis is not its own
		if replica.pool != nil {
			replica.pool.Close()
		}
		server.Stop()
	}()
	if replica.pool, err = load.Dial(ctx, replica.address(), b.Connections); err != nil {
		return err
	}
	cold, res, err := b.drive(ctx, replica, report.Run{Round: 1, Variant: "cold"},
		load.Load{Source: c.tasks.beatOneByOne, For: b.For, Window: window})
	s.Runs = append(s.Runs, cold)
	if err != nil {
		return err
	}
	// A little shorter, so that only tasks that were met come again.
	warm, _, err := b.drive(ctx, replica, report.Run{Round: 1, Variant: "warm"}, load.Load{Source: c.tasks.beatOneByOne, For: b.For / 3})
	s.Runs = append(s.Runs, warm)
	if err != nil {
		return err
	}
	if v := ratio(cold.ServerMicros, warm.ServerMicros); v != nil {
		s.Figures = append(s.Figures, report.Figure{Name: "cold-server-cpu",
			What: "CPU of the server per beat with tokens it meets for the first time, to that with known ones", Value: *v, Unit: "×"})
	}
	s.Timelines = append(s.Timelines, report.Timeline{
		Name: "cold-start", Title: "Rate and p99 of beats at a replica that has just started", IntervalMs: ms(window),
		Series: []report.Series{rates("beats", res.Windows), p99s("p99 of beats", res.Windows)},
	})
	return nil
}

// runReplica weighs a replica: what its connections take, and the tokens it remembers.
func runReplica(ctx context.Context, b *bench, s *report.Scenario) error {
	c, err := b.manyTasks(ctx)
	if err != nil {
		return err
	}
	server, err := b.serve(ctx, c.redis, c.tasks.len(), "--roles", "api")
	if err != nil {
		return err
	}
	defer server.Stop()
	replica := &target{program: lubdub, server: server, redis: c.redis}
	figure := func(name, what string, value float64) {
		s.Figures = append(s.Figures, report.Figure{Name: name, What: what, Value: value, Unit: "MiB"})
	}
	settled := func() (float64, error) { return b.rss(ctx, server) }

	// The heap finds its size with some tokens, again and again; what grows after that is of the others.
	base := min(few, c.tasks.len()/2)
	others := min(100_000, c.tasks.len()-base)
	if replica.pool, err = load.Dial(ctx, replica.address(), populateConnections); err != nil {
		return err
	}
	defer func() { replica.pool.Close() }()
	known, unknown := c.tasks.slice(0, base), c.tasks.slice(base, base+others)
	for range 5 {
		if _, _, err := b.drive(ctx, replica, report.Run{Variant: "(warming up)"},
			load.Load{Source: known.beatInBatches(batchBeats, true, true)}); err != nil {
			return err
		}
	}
	before, err := settled()
	if err != nil {
		b.note("%v", err)
		return nil
	}
	figure("rss", "a replica that has warmed up", before)
	if _, _, err := b.drive(ctx, replica, report.Run{Variant: "new tokens"},
		load.Load{Source: unknown.beatInBatches(batchBeats, true, true)}); err != nil {
		return err
	}
	after, err := settled()
	if err != nil {
		return err
	}
	figure("rss-tokens", "for 100,000 tokens more that it remembers", (after-before)*100_000/float64(others))

	conns := 10_000
	if b.Quick {
		conns = 1000
	}
	b.progress.step("%s connections", grouped(int64(conns)))
	pool, err := load.Dial(ctx, replica.address(), conns)
	if err != nil {
		return err
	}
	defer pool.Close()
	wide := *replica
	wide.pool = pool
	all := c.tasks.slice(0, max(base, min(conns, c.tasks.len())))
	if _, _, err := b.drive(ctx, &wide, report.Run{Variant: "one beat on each"}, load.Load{Source: all.beatOnce}); err != nil {
		return err
	}
	wider, err := settled()
	if err != nil {
		return err
	}
	figure("rss-connections", "for 10,000 connections more", (wider-after)*10_000/float64(conns))
	return nil
}

// rss is a server's memory in MiB.
func (b *bench) rss(ctx context.Context, s *proc.Server) (float64, error) {
	select { // what the kernel is told to take back goes a moment later
	case <-ctx.Done():
		return 0, ctx.Err()
	case <-time.After(200 * time.Millisecond):
	}
	n, err := proc.RSS(s.Pid)
	return float64(n) / (1 << 20), err
}
