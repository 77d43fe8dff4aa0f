// Package testbed is the common base of the benchmark's scenarios: it starts deployments of Lubdub and baselines, creates tasks and workers
// to load them with, and adds measurements to the report. It knows no scenario.
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

// Options configure a run.
type Options struct {
	// Scenarios by name; none: all that the other options allow.
	Scenarios   []string
	Connections int
	// For is the length of one stretch of load, Rounds how often programs alternate.
	For     time.Duration
	Rounds  int
	Tracked int // tasks of the scenarios with many
	// Rate of open loops, beats per second; 0: half of the top rate.
	Rate    float64
	Poisson bool
	// Cores is the number of cores for the servers and Redis; the generator gets the others. With 0, or if fewer than two are left for the
	// generator, all share all.
	Cores int
	// ServerFlags are given to every Lubdub that is started.
	ServerFlags []string
	// RedisURL is a Redis to use instead of private ones, RedisPid its process if it runs on this host.
	RedisURL string
	RedisPid int
	// URL is a running deployment to load instead of starting one, Token a control token for it.
	URL, Token string
	// Baselines is the folder of the baseline programs.
	Baselines string
	// Quick selects small counts.
	Quick bool

	// Program is the lubdub binary, Version its version, Commit the commit that it was built from, Environ its environment in addition to
	// its own variables.
	Program, Version, Commit string
	Environ                  []string
	// Command is the command line, for the report.
	Command string
	// Progress gets a line for each step; nil: no output.
	Progress io.Writer
}

// Bed is one run of the benchmark. Its methods end the current scenario if something fails (see Check), unless they return an error.
type Bed struct {
	Options
	Ctx      context.Context // of the run
	Report   *report.Report
	Scenario *report.Scenario // the current one

	keys     string   // signing keys of every program that the run starts
	cleanups []func() // at the end of the scenario
	atEnd    []func() // and of the run

	few, many, workers shared
	topRates           []float64 // of single beats with few tasks, by round

	// Filled is the measurements of the creation of ManyTasks.
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

// Play runs a scenario and adds its result to the report.
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

// End ends the run, and all processes that it started.
func (b *Bed) End() { b.cleanUp(&b.atEnd) }

func (b *Bed) cleanUp(list *[]func()) {
	for _, f := range slices.Backward(*list) {
		f()
	}
	*list = nil
}

// shared is a deployment that scenarios share: created on first use, and not retried if that failed.
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

// Step prints the next step.
func (b *Bed) Step(format string, args ...any) { fmt.Fprintf(b.Progress, "  "+format+"\n", args...) }

// Note adds a note about the whole run to the report, once.
func (b *Bed) Note(format string, args ...any) {
	if text := fmt.Sprintf(format, args...); !slices.Contains(b.Report.Notes, text) {
		b.Report.Notes = append(b.Report.Notes, text)
	}
}

// Remark adds a note about the scenario.
func (b *Bed) Remark(format string, args ...any) {
	b.Scenario.Notes = append(b.Scenario.Notes, fmt.Sprintf(format, args...))
}

// Figure adds a figure to the scenario, unless it is NaN or infinite because an input is unknown.
func (b *Bed) Figure(name, what string, value float64, unit string) {
	if v := Known(value); v != nil {
		b.Scenario.Figures = append(b.Scenario.Figures, report.Figure{Name: name, What: what, Value: *v, Unit: unit})
	}
}

// AddRound adds a round's value to a bar, unless it is unknown.
func (b *Bed) AddRound(name string, value float64) {
	if bar, v := b.bar(name), Known(value); v != nil {
		bar.Rounds = append(bar.Rounds, *v)
	}
}

// Explain adds a note about its number to a bar.
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

// Of returns a number of a report, or NaN if it is unknown.
func Of(v *float64) float64 {
	if v == nil {
		return math.NaN()
	}
	return *v
}

// Known returns a number for a report, or nil if it is unknown.
func Known(v float64) *float64 {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return nil
	}
	return &v
}

// N formats a count: 1,234,567.
func N(n int) string { return report.Number(float64(n)) }

// Sleep waits, and ends the scenario if the run is interrupted.
func (b *Bed) Sleep(d time.Duration) {
	select {
	case <-b.Ctx.Done():
		Check(b.Ctx.Err())
	case <-time.After(d):
	}
}

// Await calls done until it returns true, with a pause before each further call. When patience ends, the error includes what is still
// missing.
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

// Short is the length of a stretch of load for scenarios that need no more: the time of a run is limited.
func (b *Bed) Short() time.Duration { return max(b.For/2, 100*time.Millisecond) }

// WorkerCount is how many workers a scenario with many workers has.
func (b *Bed) WorkerCount() int { return min(1000, max(20, b.Tracked/4)) }

// HeldByOne is how many tasks a worker holds in a scenario with many tasks per worker.
func (b *Bed) HeldByOne() int { return min(10_000, max(100, b.Tracked/4)) }

// environ returns the environment of a program: the benchmark's own without Lubdub's settings, which would change the measurement.
func (b *Bed) environ() []string {
	env := slices.DeleteFunc(slices.Clone(b.Environ), func(v string) bool { return strings.HasPrefix(v, "LUBDUB_") })
	return append(env, "LUBDUB_SIGNING_KEYS="+b.keys)
}
