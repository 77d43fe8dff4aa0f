package bench

import (
	"strings"
	"testing"
	"time"

	"github.com/lubdub-io/lubdub/bench/load"
	"github.com/lubdub-io/lubdub/bench/report"
)

func TestJudge(t *testing.T) {
	aim := 0.4
	list := []report.Bar{
		{Name: "aim", Bar: 0.5, Aim: &aim, Rounds: []float64{9, 0.4, 0.1}},
		{Name: "met", Bar: 0.5, Aim: &aim, Rounds: []float64{0.4, 0.6}},
		{Name: "missed", Bar: 0.5, Aim: &aim, Rounds: []float64{0.51}},
		{Name: "at least", Bar: 3, AtLeast: true, Rounds: []float64{3}},
		{Name: "too little", Bar: 3, AtLeast: true, Rounds: []float64{2.99}},
		{Name: "nobody looked", Bar: 3},
	}
	judge(list)
	for i, want := range []report.Verdict{report.AimReached, report.Met, report.Missed, report.Met, report.Missed, report.NotMeasured} {
		if list[i].Verdict != want {
			t.Errorf("%s: %s, not %s", list[i].Name, list[i].Verdict, want)
		}
	}
	if m := list[1].Measured; m == nil || *m != 0.5 {
		t.Error("the median of two is their mean")
	}
	if list[5].Measured != nil || list[5].Note == "" {
		t.Errorf("%+v", list[5])
	}
}

// What scenarios give must be on the list of bars: a misspelt name would be lost in silence.
func TestGiveAndBecause(t *testing.T) {
	b := &bench{report: &report.Report{Bars: bars()}}
	v := 2.0
	b.give("growth", &v)
	b.give("growth", nil)
	b.because("growth", "why")
	for _, bar := range b.report.Bars {
		if want := bar.Name == "growth"; want != (len(bar.Rounds) == 1) || want != (bar.Note == "why") {
			t.Errorf("%+v", bar)
		}
	}
	defer func() {
		if recover() == nil {
			t.Error("a bar that does not exist was given a value")
		}
	}()
	b.give("grwoth", &v)
}

func TestRatio(t *testing.T) {
	one, two, zero := 1.0, 2.0, 0.0
	if r := ratio(&one, &two); r == nil || *r != 0.5 {
		t.Error(r)
	}
	if ratio(nil, &two) != nil || ratio(&one, nil) != nil || ratio(&one, &zero) != nil || sum(&one, nil) != nil {
		t.Error("what is not known must stay unknown")
	}
}

func TestQuantiles(t *testing.T) {
	if quantiles(load.NewHistogram()) != nil {
		t.Error("nothing has no quantiles")
	}
	h := load.NewHistogram()
	for i := range 10_000 {
		h.Record(time.Duration(i+1) * 10 * time.Microsecond)
	}
	q := quantiles(h)
	near := func(got, want float64) bool { return got > want*0.998 && got < want*1.002 }
	if q.Count != 10_000 || !near(q.P50Ms, 50) || !near(q.P99Ms, 99) || !near(q.P999Ms, 99.9) || !near(q.MaxMs, 100) || !near(q.MeanMs, 50) {
		t.Errorf("%+v", q)
	}
	last := report.CurvePoint{Percent: -1}
	for _, p := range q.Curve {
		if p.Percent <= last.Percent || p.Ms < last.Ms || p.Percent > 100 {
			t.Errorf("%+v comes after %+v", p, last)
		}
		last = p
	}
	if last.Percent != 100 || len(q.Curve) < 30 || len(q.Curve) > 102 {
		t.Errorf("%d points, the last at %v", len(q.Curve), last.Percent)
	}
}

func TestOptionsAreChecked(t *testing.T) {
	good := Options{Connections: 1, For: time.Second, Rounds: 1, Tracked: 10}
	if err := good.validate(); err != nil {
		t.Error(err)
	}
	for want, change := range map[string]func(*Options){
		"takes at least one":          func(o *Options) { o.Connections = 0 },
		"too short":                   func(o *Options) { o.For = time.Millisecond },
		"--rounds":                    func(o *Options) { o.Rounds = 0 },
		"--tracked":                   func(o *Options) { o.Connections = 11 },
		"negative":                    func(o *Options) { o.Rate = -1 },
		"does not go with --redis":    func(o *Options) { o.URL, o.Token, o.RedisURL = "http://x", "t", "redis://x" },
		"plain http:// only":          func(o *Options) { o.URL, o.Token = "https://x", "t" },
		"BENCH_TOKEN":                 func(o *Options) { o.URL = "http://x" },
		"--cores -1 is negative":      func(o *Options) { o.Cores = -1 },
		"--server-flag is for":        func(o *Options) { o.URL, o.Token, o.ServerFlags = "http://x", "t", []string{"--x"} },
		"--redis-pid":                 func(o *Options) { o.RedisPid = 1 },
		"there is no scenario \"x\"":  func(o *Options) { o.Scenarios = []string{"x"} },
		"does not go with --url":      func(o *Options) { o.URL, o.Token, o.Scenarios = "http://x", "t", []string{"lag"} },
		"growth needs a Redis of its": func(o *Options) { o.RedisURL, o.Scenarios = "redis://x", []string{"growth"} },
	} {
		o := good
		change(&o)
		if err := o.validate(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
		}
	}
	remote := good
	remote.URL = "http://x"
	for _, s := range remote.chosen() {
		if s.needs != aDeployment {
			t.Errorf("%s was chosen for a deployment elsewhere", s.name)
		}
	}
	named := good
	named.Scenarios = []string{"overload", "flood"}
	if n := len(named.chosen()); n != 2 {
		t.Errorf("%d of 2 scenarios that run when they are named", n)
	}
	if len(good.chosen()) != len(Scenarios())-2 || len(remote.chosen()) == 0 {
		t.Errorf("%d of %d scenarios", len(good.chosen()), len(Scenarios()))
	}
}

func TestProgress(t *testing.T) {
	var b strings.Builder
	p := newProgress(&b, true)
	p.scenario("Single beats")
	tell := p.of("lubdub", "beats", 2000)
	tell(load.Progress{Elapsed: time.Second, Beats: 1234, Answers: 1})
	p.end()
	for _, want := range []string{"Single beats\n", "\r  lubdub   1.0 s  1,234 beats of 2,000  1,234/s"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("there is no %q in %q", want, b.String())
		}
	}
	b.Reset()
	p = newProgress(&b, false)
	if p.of("lubdub", "beats", 0) != nil || b.String() != "  lubdub\n" {
		t.Errorf("%q", b.String())
	}
}

// A number that is not what its bar says is told so.
func TestPacedNotes(t *testing.T) {
	run := func(program string, took, lateMs float64) report.Run {
		return report.Run{Program: program, TargetPerSecond: 10_000, BeatsPerSecond: took, OwnLateness: &report.Quantiles{P99Ms: lateMs}}
	}
	if cpu, p99 := pacedNotes(run(lubdub, 9900, 0.1), run(autopipeline, 9990, 99)); cpu != "" || p99 != "" {
		t.Errorf("%q %q", cpu, p99)
	}
	cpu, p99 := pacedNotes(run(lubdub, 9999, 1.5), run(autopipeline, 7000, 0.1))
	if cpu != "autopipeline took 7,000 of 10,000/s" || p99 != "the generator itself was late by 1.5 ms, p99" {
		t.Errorf("%q %q", cpu, p99)
	}
	if cpu, p99 = pacedNotes(report.Run{}, report.Run{}); cpu != "" || p99 != "" { // a baseline that is not there
		t.Errorf("%q %q", cpu, p99)
	}
}
