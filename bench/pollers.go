package bench

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/lubdub-io/lubdub/bench/load"
	"github.com/lubdub-io/lubdub/bench/report"
)

// runPollers has workers wait for tasks that do not come, and measures what that costs above what the deployment costs at rest just
// before: what it does by itself, such as looking whether indexes are whole, comes and goes.
func runPollers(ctx context.Context, b *bench, s *report.Scenario) error {
	site, err := b.workers(ctx)
	if err != nil {
		return err
	}
	n := b.workerCount()
	queue := newJobs(0).queue
	workers, err := site.hire(ctx, b, queue, n)
	if err != nil {
		return err
	}
	on, err := site.wide(ctx, n) // they are connected also while they do not poll
	if err != nil {
		return err
	}
	defer on.pool.Close()
	var rest, with *busy
	for range b.Rounds {
		b.progress.step("nobody polls for %v", b.For)
		if rest, err = site.busy(ctx, b.For); err != nil {
			return err
		}
		if with, err = site.busyBesidePolls(ctx, b, s, on, queue, workers); err != nil {
			return err
		}
		if a, z := sum(with.server, with.redis), sum(rest.server, rest.redis); a != nil && z != nil {
			more := max(*a-*z, 0)
			b.give("pollers", &more)
			note := fmt.Sprintf("in the last round: at rest %.1f %%, with them %.1f %%", *z, *a)
			if n < 1000 {
				note = fmt.Sprintf("%d pollers; %s", n, note)
			}
			b.because("pollers", note)
		}
	}
	for _, f := range []struct {
		name, what string
		v          *float64
	}{
		{"rest-server", "server, all roles, at rest", rest.server}, {"rest-redis", "Redis at rest", rest.redis},
		{"polled-server", fmt.Sprintf("server with %s idle pollers", grouped(int64(n))), with.server},
		{"polled-redis", fmt.Sprintf("Redis with %s idle pollers", grouped(int64(n))), with.redis},
	} {
		addFigure(s, f.name, f.what+", last round", f.v, "% of a core")
	}
	return nil
}

// busyBesidePolls measures a deployment while all workers poll.
func (s *workerSite) busyBesidePolls(ctx context.Context, b *bench, to *report.Scenario, on *target, queue string,
	workers []*worker) (with *busy, err error) {
	polling, hangUp := context.WithCancel(ctx)
	defer hangUp()
	var refused atomic.Int64
	ended := make(chan error, 1)
	go func() {
		_, err := on.pool.Run(polling, load.Load{Source: pollsOf(queue, workers, &refused)})
		ended <- err
	}()
	var early int64
	if err = s.awaitPolls(ctx, len(workers)); err == nil {
		b.progress.step("%s poll for %v, and then for %v", grouped(int64(len(workers))), b.For, 2*b.For)
		_, err = s.busy(ctx, b.For) // what the beginning left behind
	}
	if err == nil {
		early = refused.Load()
		with, err = s.busy(ctx, 2*b.For)
	}
	late := refused.Load() - early
	hangUp() // the longest would wait for a minute more
	if ran := <-ended; err == nil && !errors.Is(ran, context.Canceled) {
		err = fmt.Errorf("the polls ended: %w", ran)
	}
	if err == nil && late > 0 {
		err = fmt.Errorf("%d polls were refused in the middle of the measurement", late)
	}
	if err == nil && early > 0 {
		to.Notes = append(to.Notes, fmt.Sprintf("All began to poll at the same moment; %s of these first requests were refused with 503 "+
			"and sent again.", grouped(early)))
	}
	return with, err
}

// busy is how much of a core a deployment used; nil where that cannot be read.
type busy struct{ server, redis *float64 }

func (t *target) busy(ctx context.Context, d time.Duration) (*busy, error) {
	before, start := t.read(), time.Now()
	select {
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-time.After(d):
	}
	after, elapsed := t.read(), time.Since(start)
	// Per microsecond, as micros is per beat.
	share := func(perMicro *float64) *float64 {
		if perMicro != nil {
			*perMicro *= 100
		}
		return perMicro
	}
	n := elapsed.Microseconds()
	return &busy{server: share(micros(after.server, before.server, n)), redis: share(micros(after.redis, before.redis, n))}, nil
}

// awaitPolls waits until so many claims wait at the server, as it tells itself.
func (s *workerSite) awaitPolls(ctx context.Context, n int) error {
	const patience = 30 * time.Second
	for limit := time.Now().Add(patience); ; {
		waiting := int(scrape(ctx, s.server)["lubdub_claims_waiting"])
		// Some of the first waits are over at once, and the next ones may not have begun.
		if waiting >= n-n/50 {
			return nil
		}
		if time.Now().After(limit) {
			return fmt.Errorf("%d of %d polls wait at the server after %v", waiting, n, patience)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(100 * time.Millisecond):
		}
	}
}
