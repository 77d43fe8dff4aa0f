package scenarios

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/lubdub-io/lubdub/bench/load"
	"github.com/lubdub-io/lubdub/bench/report"
	"github.com/lubdub-io/lubdub/bench/requests"
	"github.com/lubdub-io/lubdub/bench/testbed"
	"github.com/lubdub-io/lubdub/sdk/go/client"
	v1 "github.com/lubdub-io/lubdub/sdk/go/v1"
)

// meanwhile is beats for the tracked tasks while something else is measured.
type meanwhile struct {
	began time.Time // by the wall clock, like verdicts
	until chan struct{}
	done  chan error
	run   report.Run
	res   load.Result
}

// beatMeanwhile starts an open loop that continues until stop.
func beatMeanwhile(b *testbed.Bed, f *testbed.Fixture, round int, perSecond float64) *meanwhile {
	m := &meanwhile{began: time.Now(), until: make(chan struct{}), done: make(chan error, 1)}
	go func() {
		var err error
		m.run, m.res, err = b.Measure(&f.Target, report.Run{Round: round, Variant: "meanwhile"}, load.Load{Source: f.Tasks.Beats,
			PerSecond: perSecond, Poisson: b.Poisson, Until: m.until})
		m.done <- err
	}()
	return m
}

// stop ends the beats, once, and keeps the run.
func (m *meanwhile) stop(b *testbed.Bed) error {
	close(m.until)
	err := <-m.done
	b.Keep(m.run)
	return err
}

// running returns how many tasks run in the deployment's scope.
func running(b *testbed.Bed, f *testbed.Fixture) (int, error) {
	list, err := f.API.ListTasks(b.Ctx, client.TaskQuery{State: []v1.State{v1.Running}, PageSize: 1})
	if err == nil && list.TotalCount == nil {
		err = errors.New("running tasks were not counted")
	}
	if err != nil {
		return 0, err
	}
	return *list.TotalCount, nil
}

// ended returns the last entry of a task's history that ended for a reason, and how many did; nil: none.
func ended(record *v1.Task, reason string) (last *v1.HistoryEntry, times int) {
	for i, e := range record.History {
		if e.Reason != nil && *e.Reason == reason {
			last, times = &record.History[i], times+1
		}
	}
	return last, times
}

// awaitDead waits until no more tasks run than before the silent ones were created.
func awaitDead(b *testbed.Bed, f *testbed.Fixture, before int, patience time.Duration) {
	b.Step("waiting for the verdicts")
	b.Await(patience, 100*time.Millisecond, func() (bool, error) {
		now, err := running(b, f)
		return err == nil && now <= before, errors.Join(fmt.Errorf("%d silent tasks were not declared dead", now-before), err)
	})
}

// verdict is when an attempt was declared dead, and how long after it was due.
type verdict struct {
	at  time.Time
	lag time.Duration
}

func (v verdict) due() time.Time { return v.at.Add(-v.lag) }

// verdictsOn reads the evidence of every task, each of which must have died since a time, and their lags.
func verdictsOn(b *testbed.Bed, f *testbed.Fixture, t *requests.Tasks, since time.Time) (verdicts []verdict, lags load.Histogram) {
	lags = load.NewHistogram()
	since = since.Add(-time.Minute) // Redis's clock may differ
	b.ReadAll(f, t, client.TaskQuery{FinishedAfter: v1.At(since)}, true, func(record *v1.Task) string {
		e, _ := ended(record, "HEARTBEAT_TIMEOUT")
		if e == nil || e.Evidence == nil {
			return "state " + string(record.State)
		}
		v := verdict{e.Evidence.DetectedAt.Time, time.Duration(e.Evidence.DetectionLagMs) * time.Millisecond}
		verdicts = append(verdicts, v)
		lags.Record(v.lag)
		return ""
	})
	return verdicts, lags
}

// Silent tasks fall silent one after the other within lagSpread, and are due lagTimeout later.
const (
	lagTasks   = 5000
	lagTimeout = 2 * time.Second
	lagSpread  = 2 * time.Second
)

// runLag makes some of the tracked tasks fall silent while the others beat at half of the top rate.
func runLag(b *testbed.Bed) {
	f := b.ManyTasks()
	rate := b.HalfOfTop(f)
	for round := 1; round <= b.Rounds; round++ {
		silent := requests.New(min(lagTasks, b.Tracked/4), lagTimeout/2, lagTimeout)
		n := silent.Len()
		b.Send(f, "creating those that will fall silent", n, load.Load{Source: silent.Create(f.Control)})
		before := testbed.Must(running(b, f))
		others := beatMeanwhile(b, f, round, rate)
		err := testbed.Try(func() {
			const each = 10
			b.Send(f, "first and last beats", n, load.Load{Source: silent.Batches(each, true, true),
				PerSecond: float64(n) / each / lagSpread.Seconds()})
			awaitDead(b, f, before, lagTimeout+20*time.Second)
		})
		testbed.Check(errors.Join(err, others.stop(b)))
		_, lags := verdictsOn(b, f, silent, others.began)
		q := testbed.Quantiles(lags)
		b.AddRound("detection-lag-p99", q.P99Ms)
		if round < b.Rounds {
			continue
		}
		tracked := testbed.N(f.Tasks.Len())
		b.Explain("detection-lag-p99", "max %.0f ms, %s tracked", q.MaxMs, tracked)
		b.Distribution("detection-lag", fmt.Sprintf("detection lag of %s silent tasks among %s", testbed.N(n), tracked), lags)
	}
}

// lead is how long beats continue before the mass dies, for comparison.
const lead = 2 * time.Second

// runDeaths makes many tasks die at once, at rest and then while the tracked ones beat.
func runDeaths(b *testbed.Bed) {
	f := b.ManyTasks()
	rate := b.HalfOfTop(f)
	for round := 1; round <= b.Rounds; round++ {
		for _, d := range []massDeath{
			{bar: "mass-death-at-rest", what: "at rest", suffix: "-at-rest"}, {bar: "mass-death", what: "beside beats", rate: rate},
		} {
			if err := testbed.Try(func() { d.play(b, f, round) }); err != nil {
				testbed.Check(fmt.Errorf("%s: %w", d.what, err))
			}
		}
	}
}

// massDeath is one way for many tasks to die.
type massDeath struct {
	bar, what string
	suffix    string  // of the names of its figures
	rate      float64 // of concurrent beats; 0: none
}

func (d *massDeath) play(b *testbed.Bed, f *testbed.Fixture, round int) {
	n := min(100_000, max(100, b.Tracked/4))
	// They must live until all have started: that takes the longest, and filling the deployment showed how long.
	timeout := 2*time.Duration(float64(b.Filled.Start.Elapsed)*float64(n)/float64(f.Tasks.Len())) + lead + 2*time.Second
	timeout = timeout.Truncate(time.Second) + time.Second
	began, mass := time.Now(), requests.New(n, timeout/2, timeout)
	before := testbed.Must(running(b, f))
	b.Populate(f, mass)
	f.Tracked -= mass.Len() // they are about to die
	last := b.Send(f, "last beats", mass.Len(), load.Load{Source: mass.Batches(requests.BatchSize, true, true)})
	b.Step("waiting for them to be due")
	b.Sleep(timeout - last.Elapsed - lead)
	var others *meanwhile
	stop := func() error { return nil }
	if d.rate > 0 {
		others = beatMeanwhile(b, f, 1, d.rate)
		stop = func() error { return others.stop(b) }
	}
	err := testbed.Try(func() {
		awaitDead(b, f, before, lead+60*time.Second)
		if others != nil {
			b.Sleep(lead / 2)
		}
	})
	testbed.Check(errors.Join(err, stop()))
	verdicts, lags := verdictsOn(b, f, mass, began)
	firstDue := slices.MinFunc(verdicts, func(a, b verdict) int { return a.due().Compare(b.due()) }).due()
	handled := slices.MaxFunc(verdicts, func(a, b verdict) int { return a.at.Compare(b.at) }).at.Sub(firstDue)
	b.AddRound(d.bar, handled.Seconds())
	if round < b.Rounds {
		return
	}
	died, q := testbed.N(len(verdicts)), testbed.Quantiles(lags)
	note := fmt.Sprintf("lag p99 %.0f ms, max %.0f ms", q.P99Ms, q.MaxMs)
	if len(verdicts) < 100_000 {
		note = died + " deaths; " + note
	}
	b.Explain(d.bar, "%s", note)
	b.Figure("last-beats"+d.suffix, fmt.Sprintf("%s: the last beats of %s tasks took", d.what, died), testbed.Ms(last.Elapsed), "ms")
	b.Figure("handled"+d.suffix, d.what+": from the first due to the last verdict", handled.Seconds(), "s")
	b.Distribution("mass-detection-lag"+d.suffix, fmt.Sprintf("detection lag of %s simultaneous deaths, %s", died, d.what), lags)
}
