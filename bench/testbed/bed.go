// Package testbed is what every scenario of the benchmark stands on: deployments of Lubdub and baselines that are started for it, tasks
// and workers to load them with, and measurements that go into the report. It knows no scenario.
package testbed

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/lubdub-io/lubdub/bench/load"
	"github.com/lubdub-io/lubdub/bench/report"
)

// Options of a run.
type Options struct {
	// Scenarios by name; none: all that the rest allows.
	Scenarios   []string
	Connections int
	// For is the length of one stretch of load, Rounds how often programs alternate.
	For     time.Duration
	Rounds  int
	Tracked int // tasks of the scenarios with many
	// Rate of open loops, beats per second; 0: half of the top rate.
	Rate    float64
	Poisson bool
	// Cores are those of the servers and of Redis; the generator gets the others. Where fewer than two are left for it, and
	// with 0, all share all.
	Cores int
	// ServerFlags are given to every Lubdub that is started.
	ServerFlags []string
	// RedisURL names a Redis to use instead of private ones, RedisPid its process when it runs on this host.
	RedisURL string
	RedisPid int
	// URL names a running deployment to load instead of starting one, Token a control token for it.
	URL, Token string
	// Baselines is the folder of the baseline programs.
	Baselines string
	// Quick means small counts.
	Quick bool

	// Program is the lubdub binary, Version its version, Commit what it was built from, Environ what it is started with
	// besides its own variables.
	Program, Version, Commit string
	Environ                  []string
	// Command is the command line, for the report.
	Command string
	// Progress gets a line for each step; nil: no output.
	Progress io.Writer
}

// Bed is one run of the benchmark. Its methods end the scenario under way when something fails (see Check), unless they return an error.
type Bed struct {
	Options
	Ctx      context.Context // of the run
	Report   *report.Report
	Scenario *report.Scenario // under way

	keys     string   // signing keys of every program that the run starts
	cleanups []func() // at the end of the scenario
	atEnd    []func() // and of the run

	few, many, workers shared
	topRates           []float64 // of single beats with few tasks, round by round

	// Filled is what it was like to make ManyTasks.
	Filled struct {
		Create, Start load.Result
		BytesPerTask  float64 // of Redis
	}
}

// New returns a Bed for a run whose report is r.
func New(ctx context.Context, o Options, r *report.Report) *Bed {
	var key [32]byte
	_, _ = rand.Read(key[:]) // it never fails
	if o.Progress == nil {
		o.Progress = io.Discard
	}
	return &Bed{Options: o, Ctx: ctx, Report: r, keys: "bench=" + base64.StdEncoding.EncodeToString(key[:])}
}

// Play runs a scenario and puts its result into the report.
func (b *Bed) Play(s report.Scenario, run func(*Bed)) error {
	fmt.Fprintln(b.Progress, s.Title)
	started := time.Now()
	s.StartedAt = started.UTC()
	b.Scenario = &s
	err := Try(func() { run(b) })
	b.cleanUp(&b.cleanups)
	s.Seconds = time.Since(started).Seconds()
	if err != nil && b.Ctx.Err() != nil {
		err = errors.New("interrupted")
	}
	if err != nil {
		s.Failed = err.Error()
		err = fmt.Errorf("scenario %s: %w", s.Name, err)
	}
	b.Report.Scenarios = append(b.Report.Scenarios, s)
	return err
}

// Cleanup calls f at the end of the scenario; the last one is called first.
func (b *Bed) Cleanup(f func()) { b.cleanups = append(b.cleanups, f) }

// End ends the run: nothing that it started is left.
func (b *Bed) End() { b.cleanUp(&b.atEnd) }

func (b *Bed) cleanUp(list *[]func()) {
	for _, f := range slices.Backward(*list) {
		f()
	}
	*list = nil
}

// shared is a deployment that scenarios share: made when first asked for, and not tried again when that failed.
type shared struct {
	f     *Fixture
	tried bool
	err   error
}

func (s *shared) get(b *Bed, fill func() *Fixture) *Fixture {
	if !s.tried {
		ofScenario := b.cleanups
		b.cleanups = nil
		s.tried, s.err = true, Try(func() { s.f = fill() })
		b.atEnd, b.cleanups = append(b.atEnd, b.cleanups...), ofScenario
	}
	Check(s.err)
	return s.f
}

// Step shows what comes next.
func (b *Bed) Step(format string, args ...any) { fmt.Fprintf(b.Progress, "  "+format+"\n", args...) }

// Note adds a note on the whole run to the report, once.
func (b *Bed) Note(format string, args ...any) {
	if text := fmt.Sprintf(format, args...); !slices.Contains(b.Report.Notes, text) {
		b.Report.Notes = append(b.Report.Notes, text)
	}
}

// Remark adds a note on the scenario.
func (b *Bed) Remark(format string, args ...any) {
	b.Scenario.Notes = append(b.Scenario.Notes, fmt.Sprintf(format, args...))
}

// Figure adds a figure to the scenario, unless it is NaN or infinite, as what is computed from something unknown.
func (b *Bed) Figure(name, what string, value float64, unit string) {
	if v := Known(value); v != nil {
		b.Scenario.Figures = append(b.Scenario.Figures, report.Figure{Name: name, What: what, Value: *v, Unit: unit})
	}
}

// Give adds a round's value to a bar, unless it is not known.
func (b *Bed) Give(name string, value float64) {
	if bar, v := b.bar(name), Known(value); v != nil {
		bar.Rounds = append(bar.Rounds, *v)
	}
}

// Explain notes on a bar what to know about its number.
func (b *Bed) Explain(name, format string, args ...any) {
	b.bar(name).Note = fmt.Sprintf(format, args...)
}

func (b *Bed) bar(name string) *report.Bar {
	i := slices.IndexFunc(b.Report.Bars, func(bar report.Bar) bool { return bar.Name == name })
	if i < 0 {
		panic("there is no bar " + name)
	}
	return &b.Report.Bars[i]
}

// Of is a number of a report; NaN where it is not known.
func Of(v *float64) float64 {
	if v == nil {
		return math.NaN()
	}
	return *v
}

// Known is a number for a report; nil where it is not known.
func Known(v float64) *float64 {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return nil
	}
	return &v
}

// N writes a count: 1,234,567.
func N(n int) string { return report.Number(float64(n)) }

// Sleep waits, and ends the scenario when the run is interrupted.
func (b *Bed) Sleep(d time.Duration) {
	select {
	case <-b.Ctx.Done():
		Check(b.Ctx.Err())
	case <-time.After(d):
	}
}

// Await waits until done, which it asks again and again, each time after a pause. What is still missing is part of the error when patience
// ends.
func (b *Bed) Await(patience, pause time.Duration, done func() (ok bool, missing error)) {
	for limit := time.Now().Add(patience); ; b.Sleep(pause) {
		ok, missing := done()
		if ok {
			return
		}
		if time.Now().After(limit) {
			Check(fmt.Errorf("after %v: %w", patience, missing))
		}
	}
}

// Short is a stretch of load of scenarios that need no more: the time of a run is limited.
func (b *Bed) Short() time.Duration { return max(b.For/2, 100*time.Millisecond) }

// WorkerCount is how many workers a scenario has where there should be many.
func (b *Bed) WorkerCount() int { return min(1000, max(20, b.Tracked/4)) }

// HeldByOne is how many tasks a worker holds where it should be many.
func (b *Bed) HeldByOne() int { return min(10_000, max(100, b.Tracked/4)) }

// environ is that of a program: the benchmark's own without Lubdub's settings, which would change what is measured.
func (b *Bed) environ() []string {
	env := slices.DeleteFunc(slices.Clone(b.Environ), func(v string) bool { return strings.HasPrefix(v, "LUBDUB_") })
	return append(env, "LUBDUB_SIGNING_KEYS="+b.keys)
}
