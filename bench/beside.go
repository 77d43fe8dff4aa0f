package bench

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/lubdub-io/lubdub/bench/load"
	"github.com/lubdub-io/lubdub/bench/report"
)

const (
	besidePolls  = 1000   // that wait
	besideBodies = 100    // that come a byte a second
	besideListed = 10_000 // tasks, in pages
)

// runBeside measures beats at half of the top rate alone, and beside what else a server has to do at the same time.
func runBeside(ctx context.Context, b *bench, s *report.Scenario) error {
	f, err := b.fewTasks(ctx)
	if err != nil {
		return err
	}
	rate, err := b.halfOfTop(ctx, f)
	if err != nil {
		return err
	}
	site := &workerSite{*f}
	queue := newJobs(0).queue
	polls := min(besidePolls, max(b.workerCount(), 1))
	workers, err := site.hire(ctx, b, queue, polls)
	if err != nil {
		return err
	}
	others := []struct {
		bar, what string
		begin     func() (end func() error, err error)
	}{
		{"beside-polls", fmt.Sprintf("%s long polls", grouped(int64(polls))), func() (func() error, error) {
			return site.pollMeanwhile(ctx, queue, workers)
		}},
		{"beside-bodies", fmt.Sprintf("%d slow bodies", besideBodies), func() (func() error, error) {
			return f.dawdleMeanwhile(ctx, besideBodies)
		}},
		{"beside-list", fmt.Sprintf("a list of %s tasks", grouped(int64(min(besideListed, f.tasks.len())))), func() (func() error, error) {
			return f.listMeanwhile(ctx)
		}},
	}
	for round := 1; round <= b.pairs(); round++ {
		for _, other := range others {
			// Each has its own run alone just before, since what a machine does otherwise changes within seconds.
			alone, err := b.withAnother(ctx, f, s, round, rate, "before "+other.what, nil)
			if err != nil {
				return err
			}
			with, err := b.withAnother(ctx, f, s, round, rate, "beside "+other.what, other.begin)
			if err != nil {
				return fmt.Errorf("%s: %w", other.what, err)
			}
			if alone.Latency != nil && with.Latency != nil {
				b.give(other.bar, ratio(&with.Latency.P99Ms, &alone.Latency.P99Ms))
			}
		}
	}
	return nil
}

// pairs is how often beats are driven alone and then beside something. A p99 of some seconds is the work of a few pauses of the machine,
// alone too: only the median of many says what the others do.
func (b *bench) pairs() int {
	if b.Quick {
		return b.Rounds
	}
	return 3 * b.Rounds
}

// withAnother drives beats while something else goes on.
func (b *bench) withAnother(ctx context.Context, f *fixture, s *report.Scenario, round int, rate float64, variant string,
	begin func() (func() error, error)) (r report.Run, err error) {
	end := func() error { return nil }
	if begin != nil {
		if end, err = begin(); err != nil {
			return r, err
		}
	}
	r, _, err = b.drive(ctx, &f.target, report.Run{Round: round, Variant: variant},
		load.Load{Source: f.tasks.beatOneByOne, For: b.For, PerSecond: rate, Poisson: b.Poisson})
	s.Runs = append(s.Runs, r)
	return r, errors.Join(err, end())
}

// pollMeanwhile has workers wait for tasks that do not come; it returns when all of them wait.
func (s *workerSite) pollMeanwhile(ctx context.Context, queue string, workers []*worker) (end func() error, err error) {
	on, err := s.wide(ctx, len(workers))
	if err != nil {
		return nil, err
	}
	polling, hangUp := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() {
		_, err := on.pool.Run(polling, load.Load{Source: pollsOf(queue, workers, new(atomic.Int64))})
		ended <- err
	}()
	end = func() error {
		hangUp() // the longest would wait for a minute more
		err := <-ended
		on.pool.Close()
		if errors.Is(err, context.Canceled) && ctx.Err() == nil {
			return nil
		}
		return err
	}
	if err := s.awaitPolls(ctx, len(workers)); err != nil {
		return nil, errors.Join(err, end())
	}
	return end, nil
}

// dawdleMeanwhile has connections send their requests a byte a second; it returns when all of them are open.
func (f *fixture) dawdleMeanwhile(ctx context.Context, n int) (end func() error, err error) {
	inner, stop := context.WithCancel(ctx)
	var open atomic.Int64
	var all sync.WaitGroup
	for range n {
		all.Go(func() { dawdle(inner, f.address(), false, &open) })
	}
	end = func() error { stop(); all.Wait(); return nil }
	for limit := time.Now().Add(30 * time.Second); open.Load() < int64(n); {
		if time.Now().After(limit) || ctx.Err() != nil {
			return nil, errors.Join(fmt.Errorf("%d of %d slow connections were open after half a minute", open.Load(), n), end())
		}
		time.Sleep(10 * time.Millisecond) // between two counts
	}
	return end, nil
}

// listMeanwhile has one client list all tasks, page by page, again and again.
func (f *fixture) listMeanwhile(ctx context.Context) (end func() error, err error) {
	pool, err := load.Dial(ctx, f.address(), 1)
	if err != nil {
		return nil, err
	}
	over, ended := make(chan struct{}), make(chan error, 1)
	go func() {
		r, err := pool.Run(ctx, load.Load{Source: func(int, int) load.Source { return &listing{control: []byte(f.control)} }, Until: over})
		if err == nil && (len(r.NotOK) > 0 || r.Beats == 0) {
			err = fmt.Errorf("%d pages were listed: %s", r.Beats, refusals(r.NotOK))
		}
		ended <- err
	}()
	return func() error {
		close(over)
		err := <-ended
		pool.Close()
		return err
	}, nil
}
