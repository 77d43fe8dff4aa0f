package bench

import (
	"context"
	"fmt"
	"syscall"
	"time"

	"github.com/lubdub-io/lubdub/bench/load"
	"github.com/lubdub-io/lubdub/bench/proc"
	"github.com/lubdub-io/lubdub/bench/report"
)

const (
	// manyConnections are open at a time, and each beats every connectionInterval.
	manyConnections    = 100_000
	connectionInterval = 10 * time.Second
	// spareFiles are what server and generator need beside these connections.
	spareFiles = 2048
)

// runConnections holds many connections that beat seldom, and sets what that costs against few connections that beat at the
// same rate for the same tasks. Each side has a server of its own, so that their memory can be told apart.
func runConnections(ctx context.Context, b *bench, s *report.Scenario) error {
	most := manyConnections
	if b.Quick {
		most = max(min(5000, b.Tracked/4), b.Connections)
	}
	n := most
	if room := proc.FileLimit() - spareFiles; room < n {
		n = room
		s.Notes = append(s.Notes, fmt.Sprintf("The limit of open files leaves room for %s of %s connections; raise it with ulimit -n.",
			grouped(int64(n)), grouped(int64(most))))
	}
	if n < 2 {
		return fmt.Errorf("the limit of open files leaves no room for connections; raise it with ulimit -n: %w", syscall.EMFILE)
	}
	limit := fmt.Sprint(n + spareFiles/2)
	// All tasks are there also when the connections are not, so that both servers know as many tokens as they should.
	f, err := b.newFixture(ctx, most)
	if err != nil {
		return err
	}
	defer f.stop()
	f.tasks = newTasks(newPrefix(), most, quietInterval, quietTimeout, 0)
	if _, err := b.populate(ctx, f, f.tasks); err != nil {
		return err
	}
	var sides [2]*target
	for i, size := range []int{max(1, min(pacedConnections, n/5)), n} {
		side := &target{program: lubdub, redis: f.redis, tracked: f.tracked}
		if side.server, err = b.serve(ctx, f.redis, most, "--max-connections", limit, "--roles", "api"); err != nil {
			return err
		}
		defer side.server.Stop()
		if err := b.connect(ctx, side, f.tasks, size); err != nil {
			return err
		}
		defer side.pool.Close()
		sides[i] = side
	}
	for round := 1; round <= b.Rounds; round++ {
		if err := b.fewAndMany(ctx, s, f.tasks, sides, round, most); err != nil {
			return err
		}
	}
	return nil
}

// connect opens so many connections to a server, and beats once for each task, so that its token is known.
func (b *bench) connect(ctx context.Context, t *target, tasks *tasks, n int) (err error) {
	b.progress.step("opening %s connections", grouped(int64(n)))
	if t.pool, err = load.DialLight(ctx, t.address(), n); err != nil {
		return err
	}
	if _, _, err = b.drive(ctx, t, report.Run{Variant: "(warming up)"}, load.Load{Source: tasks.beatOnce, PerSecond: 20_000}); err != nil {
		t.pool.Close()
		return err
	}
	collect(ctx, t.server)
	return nil
}

func (b *bench) fewAndMany(ctx context.Context, s *report.Scenario, tasks *tasks, sides [2]*target, round, most int) error {
	rate := float64(most) / connectionInterval.Seconds()
	length := max(b.For, connectionInterval) // every connection beats
	if b.Quick {
		length = b.short()
	}
	var cpu, rss [2]*float64
	for i, t := range sides {
		r, _, err := b.drive(ctx, t, report.Run{Round: round, Variant: grouped(int64(t.pool.Size())) + " connections"},
			load.Load{Source: tasks.beatOneByOne, For: length, PerSecond: rate})
		s.Runs = append(s.Runs, r)
		if err != nil {
			return err
		}
		cpu[i] = both(r)
		if bytes, err := proc.RSS(t.server.Pid); err == nil {
			mb := float64(bytes) / 1e6
			rss[i] = &mb
		}
	}
	b.give("connections-cpu", ratio(cpu[1], cpu[0]))
	if rss[0] == nil || rss[1] == nil {
		return nil
	}
	all, few, there := *rss[1], sides[0].pool.Size(), sides[1].pool.Size()
	each := (*rss[1] - *rss[0]) * 1e6 / float64(there-few)
	if there < manyConnections {
		all += max(each, 0) * float64(manyConnections-there) / 1e6
		note := fmt.Sprintf("%s connections", grouped(int64(there)))
		b.because("connections-cpu", note)
		b.because("connections-rss", "reckoned from "+note)
	}
	b.give("connections-rss", &all)
	if round == b.Rounds {
		addFigure(s, "connections-rss-few", fmt.Sprintf("memory of the server with %s connections, last round",
			grouped(int64(few))), rss[0], "MB")
		addFigure(s, "connections-rss-many", fmt.Sprintf("and of that with %s", grouped(int64(there))), rss[1], "MB")
		kb := each / 1e3
		addFigure(s, "connections-rss-each", "which is for each connection more", &kb, "KB")
	}
	return nil
}
