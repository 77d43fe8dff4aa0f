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

// runDeaths lets a mass of tasks die at once while the tracked ones beat on.
func runDeaths(ctx context.Context, b *bench, s *report.Scenario) error {
	c, err := b.manyTasks(ctx)
	if err != nil {
		return err
	}
	rate, err := b.halfOfTop(ctx, &c.fixture)
	if err != nil {
		return err
	}
	n := min(100_000, max(100, b.Tracked/4))
	// They must live until all have started: that takes the longest, and the populating told how long.
	timeout := 2*time.Duration(float64(c.start.Elapsed)*float64(n)/float64(c.tasks.len())) + lead + 2*time.Second
	timeout = timeout.Truncate(time.Second) + time.Second
	mass := newTasks(newPrefix(), n, timeout/2, timeout, 0)
	before, err := c.running(ctx)
	if err != nil {
		return err
	}
	if _, err := b.populate(ctx, &c.fixture, mass); err != nil {
		return err
	}
	n = mass.len() // less those that were refused
	c.tracked -= n // they are about to die
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
	if err != nil {
		return err
	}
	s.Figures = append(s.Figures, report.Figure{Name: "last-beats", What: fmt.Sprintf("the last beats of %s tasks took", grouped(int64(n))),
		Value: ms(last.Elapsed), Unit: "ms"})
	b.progress.step("waiting for them to be due")
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(timeout - last.Elapsed - lead):
	}
	meanwhile := b.beatMeanwhile(ctx, c, rate)
	err = b.awaitDead(ctx, &c.fixture, before, lead+60*time.Second)
	if err == nil {
		select {
		case <-ctx.Done():
		case <-time.After(lead / 2):
		}
	}
	run, res, bgErr := meanwhile.stop()
	s.Runs = append(s.Runs, run)
	if err := errors.Join(err, bgErr); err != nil {
		return err
	}
	verdicts, err := b.verdicts(ctx, &c.fixture, mass)
	if err != nil {
		return err
	}
	return b.tellDeaths(s, verdicts, meanwhile.began, run, res)
}

func (b *bench) tellDeaths(s *report.Scenario, verdicts []verdict, began time.Time, run report.Run, res load.Result) error {
	due := func(v verdict) time.Time { return v.at.Add(-v.lag) }
	firstDue := due(slices.MinFunc(verdicts, func(a, b verdict) int { return due(a).Compare(due(b)) }))
	lastAt := slices.MaxFunc(verdicts, func(a, b verdict) int { return a.at.Compare(b.at) }).at
	handled := lastAt.Sub(firstDue).Seconds()
	q := quantiles(lags(verdicts))
	b.give("mass-death", &handled)
	note := fmt.Sprintf("lag p99 %.0f ms, max %.0f ms", q.P99Ms, q.MaxMs)
	if len(verdicts) < 100_000 {
		note = fmt.Sprintf("%s deaths; %s", grouped(int64(len(verdicts))), note)
	}
	b.because("mass-death", note)
	s.Figures = append(s.Figures, report.Figure{Name: "handled", What: "from the first due to the last verdict", Value: handled, Unit: "s"})
	s.Distributions = append(s.Distributions, report.Distribution{
		Name: "mass-detection-lag", What: fmt.Sprintf("detection lag of %s simultaneous deaths", grouped(int64(len(verdicts)))), Quantiles: *q,
	})

	// One axis for beats and deaths: the windows of the load, counted from the first due.
	deaths := make([]float64, len(res.Windows))
	for _, v := range verdicts {
		if w := int(v.at.Sub(began) / window); w >= 0 && w < len(deaths) {
			deaths[w]++
		}
	}
	handledPerWindow := report.Series{Name: "deaths handled", Unit: "deaths"}
	for i := range deaths {
		handledPerWindow.Values = append(handledPerWindow.Values, &deaths[i])
	}
	s.Timelines = append(s.Timelines, report.Timeline{
		Name: "mass-death", Title: "p99 of beats while a mass of tasks dies", IntervalMs: ms(window), FromMs: -ms(firstDue.Sub(began)),
		Series: []report.Series{p99s("p99 of beats", res.Windows), handledPerWindow},
		Marks:  []report.Mark{{AtMs: 0, Label: "first due"}, {AtMs: handled * 1000, Label: "last verdict"}},
	})
	return nil
}
