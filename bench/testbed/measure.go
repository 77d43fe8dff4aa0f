package testbed

import (
	"math"
	"os"
	"time"

	"github.com/lubdub-io/lubdub/bench/load"
	"github.com/lubdub-io/lubdub/bench/proc"
	"github.com/lubdub-io/lubdub/bench/report"
)

// CPU is the CPU time of a target's processes at one moment; nil if it cannot be read.
type CPU struct{ server, redis, self *proc.CPU }

// ReadCPU reads the CPU time of a target's processes.
func (t *Target) ReadCPU() (c CPU) {
	if t.Redis != nil {
		c.redis = cpuOf(t.Redis.Pid)
	}
	if t.Server != nil {
		c.server = cpuOf(t.Server.Pid)
	}
	c.self = cpuOf(os.Getpid())
	return c
}

func cpuOf(pid int) *proc.CPU {
	if pid == 0 {
		return nil
	}
	c, err := proc.ReadCPU(pid)
	if err != nil {
		return nil
	}
	return &c
}

// Since returns the CPU time that server, Redis and the benchmark itself have used since before: µs for each of n; NaN if unknown.
func (c CPU) Since(before CPU, n int64) (server, redis, self float64) {
	each := func(after, before *proc.CPU) float64 {
		if after == nil || before == nil || n == 0 {
			return math.NaN()
		}
		return float64(after.Since(*before)) / float64(time.Microsecond) / float64(n)
	}
	return each(c.server, before.server), each(c.redis, before.redis), each(c.self, before.self)
}

// Busy returns how much of a core server and Redis use during d, in percent.
func (b *Bed) Busy(t *Target, d time.Duration) (server, redis float64) {
	before, start := t.ReadCPU(), time.Now()
	b.Sleep(d)
	server, redis, _ = t.ReadCPU().Since(before, time.Since(start).Microseconds()) // µs of CPU per µs
	return 100 * server, 100 * redis
}

// Measure runs a load on a target. like contains what the caller knows of the run.
func (b *Bed) Measure(t *Target, like report.Run, l load.Load) (report.Run, load.Result, error) {
	r := like
	r.Program, r.Loop, r.Connections = t.Program, report.Closed, t.Pool.Size()
	r.Tracked, r.BeatsPerRequest = max(r.Tracked, t.Tracked), max(r.BeatsPerRequest, 1)
	if l.PerSecond > 0 {
		r.Loop, r.TargetPerSecond = report.Open, l.PerSecond*float64(r.BeatsPerRequest)
	}
	b.Step("%s %s", r.Program, r.Variant)
	flushed, before := b.flushes(t), t.ReadCPU()
	res, err := t.Pool.Run(b.Ctx, l)
	server, redis, self := t.ReadCPU().Since(before, res.Beats)
	r.FlushBeats = Known(b.flushes(t).since(flushed))
	r.ServerMicros, r.RedisMicros, r.GeneratorMicros = Known(server), Known(redis), Known(self)
	r.Seconds = res.Elapsed.Seconds()
	r.Beats, r.Requests, r.NotOK = res.Beats, res.Requests, res.NotOK
	r.BeatsPerSecond = PerSecond(res.Beats, res.Elapsed)
	r.Latency = Quantiles(res.Latency)
	if r.Loop == report.Open {
		r.Lateness, r.OwnLateness = Quantiles(res.Lateness), Quantiles(res.OwnLateness)
	}
	return r, res, err
}

// Keep adds a run to the scenario's report.
func (b *Bed) Keep(r report.Run) { b.Scenario.Runs = append(b.Scenario.Runs, r) }

// Drive is Measure and Keep; a run without a round, such as a warm-up, is not kept.
func (b *Bed) Drive(t *Target, like report.Run, l load.Load) (report.Run, load.Result) {
	r, res, err := b.Measure(t, like, l)
	if r.Round > 0 {
		b.Keep(r)
	}
	Check(err)
	return r, res
}

// Way is a load of one program, to be compared with others.
type Way struct {
	On   *Target
	Like report.Run
	Load load.Load
}

// Warm runs ways briefly: token caches fill, and heaps reach their size.
func (b *Bed) Warm(ways ...Way) {
	for _, w := range ways {
		b.Drive(w.On, report.Run{Variant: "(warming up)"},
			load.Load{Source: w.Load.Source, For: min(1500*time.Millisecond, b.Short())})
	}
}

// Turns alternates ways: each round runs each of them once, and passes their runs to each.
func (b *Bed) Turns(ways []Way, each func(runs []report.Run)) {
	for round := range b.Rounds {
		each(b.Turn(round+1, ways...))
	}
}

// Turn runs each way once.
func (b *Bed) Turn(round int, ways ...Way) (runs []report.Run) {
	for _, w := range ways {
		w.Like.Round = round
		r, _ := b.Drive(w.On, w.Like, w.Load)
		runs = append(runs, r)
	}
	return runs
}

// HalfOfTop returns the rate of an open loop: the one in the options, else half of the top rate of single beats, which it measures if
// necessary.
func (b *Bed) HalfOfTop(f *Fixture) float64 {
	if b.Rate > 0 {
		return b.Rate
	}
	if len(b.topRates) == 0 {
		way := Way{On: &f.Target, Like: report.Run{Variant: "(top rate)"}, Load: load.Load{Source: f.Tasks.Beats, For: b.For}}
		b.Warm(way)
		b.AddTopRate(b.Turn(0, way)[0])
	}
	return report.Median(b.topRates) / 2
}

// AddTopRate adds the rate of a run for HalfOfTop.
func (b *Bed) AddTopRate(r report.Run) { b.topRates = append(b.topRates, r.BeatsPerSecond) }

// Both returns the CPU of server and Redis per beat.
func Both(r report.Run) float64 { return Of(r.ServerMicros) + Of(r.RedisMicros) }

// P99 returns the p99 of a run's latency in ms, or NaN if nothing was answered.
func P99(r report.Run) float64 {
	if r.Latency == nil {
		return math.NaN()
	}
	return r.Latency.P99Ms
}

// PerSecond returns a rate.
func PerSecond(n int64, d time.Duration) float64 { return float64(n) / d.Seconds() }

// Ms returns a duration in ms.
func Ms(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// Quantiles converts a histogram of µs to the report's form; nil if it is empty.
func Quantiles(h load.Histogram) *report.Quantiles {
	if h.TotalCount() == 0 {
		return nil
	}
	ms := func(us int64) float64 { return float64(us) / 1000 }
	at := func(percent float64) float64 { return ms(h.ValueAtPercentile(percent)) }
	q := &report.Quantiles{Count: h.TotalCount(), MeanMs: h.Mean() / 1000, MinMs: ms(h.Min()), MaxMs: ms(h.Max()),
		P50Ms: at(50), P90Ms: at(90), P99Ms: at(99), P999Ms: at(99.9)}
	return q
}

// Distribution adds a distribution to the scenario; it returns nil if it is empty.
func (b *Bed) Distribution(name, what string, h load.Histogram) *report.Quantiles {
	q := Quantiles(h)
	if q != nil {
		b.Scenario.Distributions = append(b.Scenario.Distributions, report.Distribution{Name: name, What: what, Quantiles: *q})
	}
	return q
}
