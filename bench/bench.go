package bench

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/lubdub-io/lubdub/bench/proc"
	"github.com/lubdub-io/lubdub/bench/report"
)

// bench is one run.
type bench struct {
	Options
	report   *report.Report
	progress *progress
	keys     string // signing keys of every program that the run starts
	stops    []func()

	// Deployments with few tasks and with many: made when first asked for, and not tried again when that failed.
	few     *fixture
	fewErr  error
	many    *crowd
	manyErr error
	site    *workerSite // for workers
	siteErr error

	topRates []float64 // of single beats with few tasks, round by round
}

// Run runs the scenarios. The report is as complete as the error lets it be; every process that was started has
// ended when it returns.
func Run(ctx context.Context, o Options) (*report.Report, error) {
	if err := o.validate(); err != nil {
		return nil, err
	}
	proc.RaiseFileLimit()
	var servers, own []int
	if o.URL == "" {
		var err error
		if servers, own, err = proc.KeepApart(o.Cores); err != nil {
			return nil, err
		}
	}
	started := time.Now()
	b := &bench{Options: o, progress: newProgress(o.Progress, o.Terminal), keys: newKeys()}
	b.report = &report.Report{
		Version: report.Version, Command: o.Command, StartedAt: started.UTC(), Quick: o.Quick, Machine: proc.Machine(),
		Lubdub: report.Lubdub{Version: o.Version, Commit: o.Commit, Go: runtime.Version(), URL: o.URL},
		Settings: report.Settings{Connections: o.Connections, ForSeconds: o.For.Seconds(), Rounds: o.Rounds, Tracked: o.Tracked,
			RatePerSecond: o.Rate, ServerCores: servers, GeneratorCores: own},
	}
	if servers != nil {
		b.note("servers and Redis ran on the cores %v, the generator on %v", servers, own)
	}
	if o.Commit != "" {
		b.report.Name = started.UTC().Format(time.DateOnly) + "-" + o.Commit
	}
	defer b.stopAll()
	b.report.Bars = bars()
	err := b.all(ctx)
	judge(b.report.Bars)
	b.report.Complete = err == nil
	b.report.Seconds = time.Since(started).Seconds()
	b.progress.end()
	return b.report, err
}

func (b *bench) all(ctx context.Context) error {
	if err := b.look(ctx); err != nil {
		return err
	}
	var errs []error
	for _, s := range b.chosen() {
		b.report.Settings.Scenarios = append(b.report.Settings.Scenarios, s.name)
	}
	for _, s := range b.chosen() {
		started := time.Now()
		rs := report.Scenario{Name: s.name, Title: s.title, About: s.about, StartedAt: started.UTC()}
		b.progress.scenario(s.title)
		err := s.run(ctx, b, &rs)
		rs.Seconds = time.Since(started).Seconds()
		if err != nil && ctx.Err() != nil {
			err = errors.New("interrupted")
		}
		if err != nil {
			rs.Failed = err.Error()
			errs = append(errs, fmt.Errorf("scenario %s: %w", s.name, err))
		}
		b.report.Scenarios = append(b.report.Scenarios, rs)
		if ctx.Err() != nil {
			break
		}
	}
	return errors.Join(errs...)
}

// look finds out what there is to work with.
func (b *bench) look(ctx context.Context) error {
	if _, err := proc.ReadCPU(0); errors.Is(err, proc.ErrNoProc) {
		b.note("%v: CPU and memory are left out", err)
	}
	if b.URL != "" {
		b.note("the deployment at %s was not started by this run: CPU, memory and Redis are left out", b.URL)
		return nil
	}
	r, err := b.newRedis(ctx)
	if err != nil {
		return err
	}
	version, err := r.Version(ctx)
	if err != nil {
		return err
	}
	b.report.Redis = report.Redis{Version: version, Private: r.Private()}
	if r.Private() {
		b.report.Redis.Settings = slices.DeleteFunc(slices.Clone(proc.RedisArgs), func(s string) bool { return s == "" })
	} else if b.RedisPid == 0 {
		b.note("the process of the Redis of --redis is not known, so its CPU is left out; --redis-pid names it")
	}
	r.Stop()
	return nil
}

func (b *bench) note(format string, args ...any) {
	if text := fmt.Sprintf(format, args...); !slices.Contains(b.report.Notes, text) {
		b.report.Notes = append(b.report.Notes, text)
	}
}

// atEnd adds what must be stopped when the run is over, the last first.
func (b *bench) atEnd(stop func()) { b.stops = append(b.stops, stop) }

func (b *bench) stopAll() {
	for _, stop := range slices.Backward(b.stops) {
		stop()
	}
	b.stops = nil
}

// environ is that of a program: the benchmark's own without Lubdub's settings, which would change what is measured.
func (b *bench) environ() []string {
	env := slices.DeleteFunc(slices.Clone(b.Environ), func(v string) bool { return strings.HasPrefix(v, "LUBDUB_") })
	return append(env, "LUBDUB_SIGNING_KEYS="+b.keys)
}
