package bench

import (
	"context"
	"os"
	"time"

	"github.com/lubdub-io/lubdub/bench/load"
	"github.com/lubdub-io/lubdub/bench/proc"
	"github.com/lubdub-io/lubdub/bench/report"
)

// meter is what the processes of a target had used at one moment; nil where that cannot be read.
type meter struct {
	server, redis, self *proc.CPU
}

func (t *target) read() (m meter) {
	if t.redis != nil {
		m.redis = cpuOf(t.redis.Pid)
	}
	if t.server != nil {
		m.server = cpuOf(t.server.Pid)
	}
	m.self = cpuOf(os.Getpid())
	return m
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

// micros is CPU per beat.
func micros(after, before *proc.CPU, beats int64) *float64 {
	if after == nil || before == nil || beats == 0 {
		return nil
	}
	v := float64(after.Since(*before)) / float64(time.Microsecond) / float64(beats)
	return &v
}

// drive puts a load on a target and measures it. like carries what the caller knows of the run.
func (b *bench) drive(ctx context.Context, t *target, like report.Run, l load.Load) (report.Run, load.Result, error) {
	r := like
	r.Program, r.Loop, r.Connections = t.program, report.Closed, t.pool.Size()
	r.Tracked = max(r.Tracked, t.tracked)
	r.BeatsPerRequest = max(r.BeatsPerRequest, 1)
	if l.PerSecond > 0 {
		r.Loop, r.TargetPerSecond = report.Open, l.PerSecond*float64(r.BeatsPerRequest)
	}
	if l.Progress == nil {
		l.Progress = b.progress.of(describe(r), "beats", 0)
	}
	flushesBefore := readFlushes(ctx, t.server)
	before := t.read()
	res, err := t.pool.Run(ctx, l)
	after := t.read()
	r.FlushBeats = readFlushes(ctx, t.server).mean(flushesBefore)
	r.Seconds = res.Elapsed.Seconds()
	r.Beats, r.Requests, r.NotOK = res.Beats, res.Requests, res.NotOK
	r.BeatsPerSecond = perSecond(res.Beats, res.Elapsed)
	r.ServerMicros = micros(after.server, before.server, res.Beats)
	r.RedisMicros = micros(after.redis, before.redis, res.Beats)
	r.GeneratorMicros = micros(after.self, before.self, res.Beats)
	r.Latency = quantiles(res.Latency)
	if r.Loop == report.Open {
		r.Lateness, r.OwnLateness = quantiles(res.Lateness), quantiles(res.OwnLateness)
	}
	return r, res, err
}

func describe(r report.Run) string {
	text := r.Program
	if r.Variant != "" {
		text += " " + r.Variant
	}
	return text
}

// quantiles turns a histogram of µs into the report's form; nil when nothing was recorded.
func quantiles(h load.Histogram) *report.Quantiles {
	if h.TotalCount() == 0 {
		return nil
	}
	ms := func(us int64) float64 { return float64(us) / 1000 }
	q := &report.Quantiles{
		Count: h.TotalCount(), MeanMs: h.Mean() / 1000, MinMs: ms(h.Min()), MaxMs: ms(h.Max()),
		P50Ms: ms(h.ValueAtPercentile(50)), P90Ms: ms(h.ValueAtPercentile(90)), P99Ms: ms(h.ValueAtPercentile(99)),
		P999Ms: ms(h.ValueAtPercentile(99.9)),
	}
	for p, step := 0.0, 5.0; len(q.Curve) < 100; p += step {
		q.Curve = append(q.Curve, report.CurvePoint{Percent: p, Ms: ms(h.ValueAtPercentile(p))})
		if rest := 100 - p - step; rest < 5*step { // halve the steps as the end comes near
			step /= 2
		}
		if float64(h.TotalCount())*(100-p)/100 < 1 {
			break
		}
	}
	q.Curve = append(q.Curve, report.CurvePoint{Percent: 100, Ms: q.MaxMs})
	return q
}
