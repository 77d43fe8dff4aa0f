package bench

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/lubdub-io/lubdub/bench/load"
	"github.com/lubdub-io/lubdub/bench/report"
)

// background is beats on the tracked tasks while something else is measured.
type background struct {
	began  time.Time // by the wall's clock, as verdicts are
	cancel func()    // may be called again
	done   chan struct{}
	run    report.Run
	result load.Result
	err    error
}

// beatMeanwhile starts an open loop that goes on until stop.
func (b *bench) beatMeanwhile(ctx context.Context, c *crowd, perSecond float64) *background {
	until := make(chan struct{})
	g := &background{began: time.Now(), cancel: sync.OnceFunc(func() { close(until) }), done: make(chan struct{})}
	go func() {
		defer close(g.done)
		quiet := func(load.Progress) {}
		g.run, g.result, g.err = b.drive(ctx, &c.target, report.Run{Round: 1, Variant: "meanwhile"},
			load.Load{Source: c.tasks.beatOneByOne, PerSecond: perSecond, Poisson: b.Poisson, Window: window, Progress: quiet, Until: until})
	}()
	return g
}

// stop ends the beats and returns what they were like.
func (g *background) stop() (report.Run, load.Result, error) {
	g.cancel()
	<-g.done
	return g.run, g.result, g.err
}

// Silent tasks fall silent one after the other within lagSpread, and are due lagTimeout later.
const (
	lagTasks   = 5000
	lagTimeout = 2 * time.Second
	lagSpread  = 2 * time.Second
)

// runLag lets some of the tracked tasks fall silent while the others beat at half of the top rate.
func runLag(ctx context.Context, b *bench, s *report.Scenario) error {
	c, err := b.manyTasks(ctx)
	if err != nil {
		return err
	}
	rate, err := b.halfOfTop(ctx, &c.fixture)
	if err != nil {
		return err
	}
	for round := 1; round <= b.Rounds; round++ {
		if err := b.fallSilent(ctx, s, c, round, rate); err != nil {
			return err
		}
	}
	return nil
}

func (b *bench) fallSilent(ctx context.Context, s *report.Scenario, c *crowd, round int, rate float64) error {
	silent := newTasks(newPrefix(), min(lagTasks, b.Tracked/4), lagTimeout/2, lagTimeout, 0)
	pool, err := load.Dial(ctx, c.address(), populateConnections)
	if err != nil {
		return err
	}
	defer pool.Close()
	r, err := pool.Run(ctx, load.Load{Source: silent.create(c.control),
		Progress: b.progress.of("creating those that will fall silent", "tasks", int64(silent.len()))})
	if err == nil {
		err = complete(r, silent.len(), "created")
	}
	if err != nil {
		return err
	}
	before, err := c.running(ctx)
	if err != nil {
		return err
	}
	meanwhile := b.beatMeanwhile(ctx, c, rate)
	err = func() error {
		const each = 10
		r, err := pool.Run(ctx, load.Load{
			Source:    silent.beatInBatches(each, true, true),
			PerSecond: float64(silent.len()) / each / lagSpread.Seconds(),
			Progress:  b.progress.of("first and last beats", "beats", int64(silent.len())),
		})
		if err == nil {
			err = complete(r, silent.len(), "started")
		}
		if err != nil {
			return err
		}
		return b.awaitDead(ctx, &c.fixture, before, lagTimeout+20*time.Second)
	}()
	run, res, bgErr := meanwhile.stop()
	run.Round = round
	s.Runs = append(s.Runs, run)
	if err := errors.Join(err, bgErr); err != nil {
		return err
	}
	verdicts, err := b.verdicts(ctx, &c.fixture, silent)
	if err != nil {
		return err
	}
	q := quantiles(lags(verdicts))
	b.give("detection-lag-p99", &q.P99Ms)
	if round < b.Rounds {
		return nil
	}
	b.because("detection-lag-p99", fmt.Sprintf("max %.0f ms, %s tracked", q.MaxMs, grouped(int64(c.tasks.len()))))
	s.Timelines = append(s.Timelines, report.Timeline{
		Name: "lag-meanwhile", Title: "Beats while tasks fall silent and are found dead", IntervalMs: ms(window),
		Series: []report.Series{rates("beats", res.Windows), p99s("p99 of beats", res.Windows)},
	})
	s.Distributions = append(s.Distributions, report.Distribution{
		Name: "detection-lag", What: fmt.Sprintf("detection lag of %s silent tasks among %s", grouped(int64(silent.len())),
			grouped(int64(c.tasks.len()))), Quantiles: *q,
	})
	return nil
}
