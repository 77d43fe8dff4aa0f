package bench

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/lubdub-io/lubdub/bench/load"
	"github.com/lubdub-io/lubdub/bench/report"
)

// lead is how long beats go on before the mass dies, for comparison.
const lead = 2 * time.Second

// runDeaths lets a mass of tasks die at once, at rest and then while the tracked ones beat on.
func runDeaths(ctx context.Context, b *bench, s *report.Scenario) error {
	c, err := b.manyTasks(ctx)
	if err != nil {
		return err
	}
	rate, err := b.halfOfTop(ctx, &c.fixture)
	if err != nil {
		return err
	}
	for round := 1; round <= b.Rounds; round++ {
		for _, d := range []massDeath{
			{bar: "mass-death-at-rest", what: "at rest", suffix: "-at-rest"},
			{bar: "mass-death", what: "beside beats", rate: rate},
		} {
			d.last = round == b.Rounds
			if err := b.massDie(ctx, s, c, &d); err != nil {
				return fmt.Errorf("%s: %w", d.what, err)
			}
		}
	}
	return nil
}

// massDeath is one of a mass of tasks.
type massDeath struct {
	bar, what string
	suffix    string  // of the names of its figures
	rate      float64 // of beats meanwhile; 0: nobody beats
	last      bool    // round

	lastBeats time.Duration // of the mass
	began     time.Time     // the beats did
	run       report.Run
	windows   []load.Window
}

func (b *bench) massDie(ctx context.Context, s *report.Scenario, c *crowd, d *massDeath) error {
	n := min(100_000, max(100, b.Tracked/4))
	// They must live until all have started: that takes the longest, and the populating told how long.
	timeout := 2*time.Duration(float64(c.start.Elapsed)*float64(n)/float64(c.tasks.len())) + lead + 2*time.Second
	timeout = timeout.Truncate(time.Second) + time.Second
	mass := newTasks(newPrefix(), n, timeout/2, timeout, 0)
	before, err := c.running(ctx)
	if err != nil {
		return err
	}
	if err := b.bringUp(ctx, c, mass, d); err != nil {
		return err
	}
	b.progress.step("waiting for them to be due")
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(timeout - d.lastBeats - lead):
	}
	stop := func() error { return nil }
	if d.rate > 0 {
		meanwhile := b.beatMeanwhile(ctx, c, d.rate)
		d.began = meanwhile.began
		stop = func() (err error) {
			var res load.Result
			d.run, res, err = meanwhile.stop()
			d.windows = res.Windows
			s.Runs = append(s.Runs, d.run)
			return err
		}
	}
	err = b.awaitDead(ctx, &c.fixture, before, lead+60*time.Second)
	if err == nil && d.rate > 0 {
		select {
		case <-ctx.Done():
		case <-time.After(lead / 2):
		}
	}
	if err := errors.Join(err, stop()); err != nil {
		return err
	}
	verdicts, err := b.verdicts(ctx, &c.fixture, mass)
	if err != nil {
		return err
	}
	b.tellDeaths(s, verdicts, d)
	return nil
}

// bringUp creates a mass of tasks, starts them, and beats for the last time.
func (b *bench) bringUp(ctx context.Context, c *crowd, mass *tasks, d *massDeath) error {
	if _, err := b.populate(ctx, &c.fixture, mass); err != nil {
		return err
	}
	n := mass.len() // less those that were refused
	c.tracked -= n  // they are about to die
	pool, err := load.Dial(ctx, c.address(), populateConnections)
	if err != nil {
		return err
	}
	defer pool.Close()
	last, err := pool.Run(ctx, load.Load{Source: mass.beatInBatches(batchSize, true, true),
		Progress: b.progress.of("last beats", "beats", int64(n))})
	if err == nil {
		err = complete(last, n, "beaten for at the last")
	}
	d.lastBeats = last.Elapsed
	return err
}

func (b *bench) tellDeaths(s *report.Scenario, verdicts []verdict, d *massDeath) {
	due := func(v verdict) time.Time { return v.at.Add(-v.lag) }
	firstDue := due(slices.MinFunc(verdicts, func(a, b verdict) int { return due(a).Compare(due(b)) }))
	lastAt := slices.MaxFunc(verdicts, func(a, b verdict) int { return a.at.Compare(b.at) }).at
	handled := lastAt.Sub(firstDue).Seconds()
	q := quantiles(lags(verdicts))
	b.give(d.bar, &handled)
	if !d.last {
		return
	}
	note := fmt.Sprintf("lag p99 %.0f ms, max %.0f ms", q.P99Ms, q.MaxMs)
	if len(verdicts) < 100_000 {
		note = fmt.Sprintf("%s deaths; %s", grouped(int64(len(verdicts))), note)
	}
	b.because(d.bar, note)
	n := grouped(int64(len(verdicts)))
	s.Figures = append(s.Figures,
		report.Figure{Name: "last-beats" + d.suffix, What: fmt.Sprintf("%s: the last beats of %s tasks took", d.what, n), Value: ms(d.lastBeats),
			Unit: "ms"},
		report.Figure{Name: "handled" + d.suffix, What: d.what + ": from the first due to the last verdict", Value: handled, Unit: "s"})
	s.Distributions = append(s.Distributions, report.Distribution{
		Name: "mass-detection-lag" + d.suffix, What: fmt.Sprintf("detection lag of %s simultaneous deaths, %s", n, d.what), Quantiles: *q,
	})
	if d.windows == nil {
		return
	}
	// One axis for beats and deaths: the windows of the load, counted from the first due.
	deaths := make([]float64, len(d.windows))
	for _, v := range verdicts {
		if w := int(v.at.Sub(d.began) / window); w >= 0 && w < len(deaths) {
			deaths[w]++
		}
	}
	handledPerWindow := report.Series{Name: "deaths handled", Unit: "deaths"}
	for i := range deaths {
		handledPerWindow.Values = append(handledPerWindow.Values, &deaths[i])
	}
	s.Timelines = append(s.Timelines, report.Timeline{
		Name: "mass-death", Title: "p99 of beats while a mass of tasks dies", IntervalMs: ms(window), FromMs: -ms(firstDue.Sub(d.began)),
		Series: []report.Series{p99s("p99 of beats", d.windows), handledPerWindow},
		Marks:  []report.Mark{{AtMs: 0, Label: "first due"}, {AtMs: handled * 1000, Label: "last verdict"}},
	})
}
