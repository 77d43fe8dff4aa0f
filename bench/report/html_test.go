package report

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"
)

func ptr(v float64) *float64 { return &v }

// sample has something of everything that a page shows.
func sample() *Report {
	curve := func(scale float64) *Quantiles {
		q := &Quantiles{Count: 200_000, P50Ms: scale, P99Ms: 4 * scale, MaxMs: 22 * scale}
		for nines := 0.0; nines <= 5; nines += 0.05 {
			q.Curve = append(q.Curve, CurvePoint{Percent: 100 - 100*math.Pow(10, -nines), Ms: scale * (0.4 + 0.3*nines + math.Pow(nines/2.2, 3))})
		}
		q.Curve = append(q.Curve, CurvePoint{Percent: 100, Ms: q.MaxMs})
		return q
	}
	single := Scenario{Name: "single", Title: "One beat a request", About: "256 connections, each beat with progress."}
	for round := 1; round <= 3; round++ {
		for _, p := range []struct {
			program       string
			rate          float64
			server, redis *float64
		}{
			{"empty", 145000, ptr(7), nil}, {"lubdub", 93000, ptr(9.6), ptr(2.9)},
			{"naive", 31000, ptr(32), ptr(16.5)}, {"autopipeline", 56000, ptr(16), ptr(8.5)},
		} {
			single.Runs = append(single.Runs, Run{
				Program: p.program, Round: round, Loop: Closed, BeatsPerRequest: 1, BeatsPerSecond: p.rate + float64(round),
				ServerMicros: p.server, RedisMicros: p.redis, Tracked: 10000, Seconds: 5, Latency: curve(2),
			})
		}
		single.Runs = append(single.Runs,
			Run{Program: "lubdub", Round: round, Loop: Open, TargetPerSecond: 45000, BeatsPerSecond: 45000, Latency: curve(0.5),
				NotOK: map[string]int64{"503": 2, "429": 1}},
			Run{Program: "autopipeline", Round: round, Loop: Open, TargetPerSecond: 45000, BeatsPerSecond: 45000, Latency: curve(1.1)})
	}
	batch := Scenario{Name: "batch", Title: "Batches of 100", Runs: []Run{
		{Program: "lubdub", Round: 1, Loop: Closed, BeatsPerRequest: 100, BeatsPerSecond: 310000, ServerMicros: ptr(1.6), RedisMicros: ptr(3.1)},
		{Program: "zadd", Variant: "with progress", Round: 1, Loop: Closed, BeatsPerRequest: 100, BeatsPerSecond: 360000, RedisMicros: ptr(2.6)},
	}}
	storm := Scenario{
		Name: "storm", Title: "100,000 deaths at once", About: "Half of the fleet falls silent.", Failed: "Redis went away",
		Figures: []Figure{{Name: "handled", What: "all deaths handled after", Value: 2.13, Unit: "s"}},
		Distributions: []Distribution{
			{Name: "lag", What: "Detection lag", Quantiles: *curve(12)},
			{Name: "short", What: "Something without a curve", Quantiles: Quantiles{Count: 3, P50Ms: 1, P99Ms: 2, MaxMs: 3}},
		},
	}
	p99, deaths := make([]*float64, 60), make([]*float64, 60)
	for i := range p99 {
		deaths[i] = ptr(0)
		if i != 20 && i != 22 {
			p99[i] = ptr(1 + math.Abs(math.Sin(float64(i))))
		}
		if i > 24 && i < 46 {
			p99[i], deaths[i] = ptr(3+math.Sin(float64(i))), ptr(4800+300*math.Sin(float64(i)))
		}
	}
	storm.Timelines = []Timeline{{Name: "storm", Title: "Beats while deaths are handled", IntervalMs: 100, FromMs: -2500, Series: []Series{
		{Name: "p99 of the living's beats", Unit: "ms", Values: p99}, {Name: "deaths handled", Unit: "deaths", Values: deaths},
	}, Marks: []Mark{{AtMs: 0, Label: "timeout"}}}}
	memory := Scenario{Name: "memory", Title: "Memory", Figures: []Figure{
		{Name: "memory-per-task", What: "Redis memory of a running task", Value: 574, Unit: "bytes"},
		{Name: "beats", What: "beats", Value: 138, Unit: "bytes", Group: "memory-per-task"},
		{Name: "record", What: "record", Value: 282, Unit: "bytes", Group: "memory-per-task"},
		{Name: "progress", What: "progress", Value: 154, Unit: "bytes", Group: "memory-per-task"},
	}}
	return &Report{
		Version: Version, StartedAt: time.Date(2026, 1, 15, 10, 5, 0, 0, time.UTC), Seconds: 312, Complete: true,
		Machine: Machine{OS: "linux", Arch: "amd64", CPU: "a processor", Cores: 2, MemoryBytes: 8 << 30},
		Lubdub:  Lubdub{Version: "v0.1.0", Go: "go1.26"}, Redis: Redis{Version: "7.0.15", Private: true},
		Settings: Settings{Connections: 256, ForSeconds: 5, Rounds: 3, Tracked: 10000},
		Bars: []Bar{
			{Name: "a", What: "Server and Redis CPU per beat, against the naive way", Unit: "×", Bar: 0.28, Aim: ptr(0.2), Measured: ptr(0.258),
				Rounds: []float64{0.25, 0.26, 0.258}, Verdict: Met},
			{Name: "b", What: "Beats through the batch endpoint", Unit: "beats/s", AtLeast: true, Bar: 150000, Measured: ptr(310000),
				Verdict: AimReached},
			{Name: "c", What: "p99 of a beat at half of the top rate", Unit: "ms", Bar: 5, Measured: ptr(6.2), Verdict: Missed},
			{Name: "d", What: "Detection lag, p99", Unit: "ms", Bar: 100, Verdict: NotMeasured, Note: "not requested"},
		},
		Scenarios: []Scenario{single, batch, storm, memory},
	}
}

func render(t *testing.T, r *Report) string {
	t.Helper()
	var b bytes.Buffer
	if err := WriteHTML(&b, r); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// wellFormed reads text as XML and gives all of its character data, and fails on anything that reaches outside.
func wellFormed(t *testing.T, text string) (words string, elements map[string]int) {
	t.Helper()
	var all strings.Builder
	elements = map[string]int{}
	for dec := xml.NewDecoder(strings.NewReader(text)); ; {
		token, err := dec.Token()
		if errors.Is(err, io.EOF) {
			return all.String(), elements
		}
		if err != nil {
			t.Fatalf("not well-formed: %v", err)
		}
		switch token := token.(type) {
		case xml.CharData:
			all.Write(token)
		case xml.StartElement:
			elements[token.Name.Local]++
			for _, a := range token.Attr {
				switch a.Name.Local {
				case "src", "srcset", "data", "action", "style", "onload", "onclick":
					t.Errorf("<%s %s=%q>", token.Name.Local, a.Name.Local, a.Value)
				case "href":
					if !strings.HasPrefix(a.Value, "#") {
						t.Errorf("link to %q", a.Value)
					}
				}
				if strings.Contains(a.Value, "NaN") || strings.Contains(a.Value, "Inf") {
					t.Errorf("<%s %s=%q>", token.Name.Local, a.Name.Local, a.Value)
				}
			}
		}
	}
}

func TestHTMLIsSelfContained(t *testing.T) {
	text := render(t, sample())
	words, elements := wellFormed(t, text)
	for _, never := range []string{"script", "link", "iframe", "img", "object", "embed", "use", "image"} {
		if elements[never] > 0 {
			t.Errorf("the page has a <%s>", never)
		}
	}
	if regexp.MustCompile(`@import|url\(`).MatchString(text) {
		t.Error("the style reaches outside")
	}
	for _, want := range []string{
		"4 promises: 1 aim reached, 1 met, 1 missed, 1 not measured.", "✓ met", "★ aim reached", "✗ missed", "– not measured",
		"≤ 0.28 ×", "≥ 150,000 beats/s", "0.25 to 0.26", "not requested",
		"CPU per beat", "9.6 + 2.9 = 12.5 µs", "naive way", "go-redis AutoPipeline", "Lubdub, 100 beats a request",
		"Beats per second", "93,002", "Latency by percentile", "Lubdub at 45,000/s", "99.9 %", "1 × 429, 2 × 503",
		"Beats while deaths are handled", "deaths handled (deaths)", "timeout", "Detection lag", "p50 1 ms, p99 2 ms, longest 3 ms",
		"Redis memory of a running task: 574 bytes", "282 bytes", "bulk ZADD, with progress, 100 members a command", "2.13 s",
		"This scenario did not come to its end: Redis went away", "8 GiB",
	} {
		if !strings.Contains(words, want) {
			t.Errorf("the page does not contain %q", want)
		}
	}
	// CPU, rate; latencies, storm, lag, memory; and a bullet for each bar that was measured.
	if n := elements["svg"]; n != 6+3 {
		t.Errorf("%d drawings", n)
	}
}

func TestHTMLEscapes(t *testing.T) {
	hostile := `</svg></style><script>alert("x")</script><img src=x onerror='1'>&amp;{{.}}`
	r := sample()
	r.Notes, r.Lubdub.Version, r.Machine.CPU = []string{hostile}, hostile, hostile
	r.Bars[0].What, r.Bars[0].Unit, r.Bars[0].Note, r.Bars[0].Verdict = hostile, hostile, hostile, Verdict(hostile)
	s := &r.Scenarios[0]
	s.Name, s.Title, s.About, s.Failed, s.Notes = hostile, hostile, hostile, hostile, []string{hostile}
	for i := range s.Runs {
		s.Runs[i].Program, s.Runs[i].Variant, s.Runs[i].NotOK = hostile, hostile, map[string]int64{hostile: 1}
	}
	storm := &r.Scenarios[2]
	storm.Timelines[0].Title, storm.Timelines[0].Marks[0].Label = hostile, hostile
	storm.Timelines[0].Series[0].Name, storm.Timelines[0].Series[0].Unit = hostile, hostile
	storm.Distributions[0].Name, storm.Distributions[0].What = hostile, hostile
	f := &r.Scenarios[3].Figures[1]
	f.What, f.Unit, f.Group = hostile, hostile, hostile
	words, elements := wellFormed(t, render(t, r))
	if elements["script"]+elements["img"] > 0 {
		t.Error("a text of the report became an element")
	}
	if n := strings.Count(words, hostile); n < 20 {
		t.Errorf("%d hostile texts are shown as they are", n)
	}
}

func TestHTMLOfLittle(t *testing.T) {
	for name, r := range map[string]*Report{
		"nothing":   {},
		"cut short": {Scenarios: []Scenario{{Name: "single", Runs: []Run{{Program: "lubdub", Loop: Closed}}, Timelines: []Timeline{{}}}}},
		"zeros": {Bars: []Bar{{Measured: ptr(0)}}, Scenarios: []Scenario{{
			Runs:          []Run{{Program: "lubdub", Loop: Open, Latency: &Quantiles{Curve: []CurvePoint{{}}}}},
			Distributions: []Distribution{{Quantiles: Quantiles{Curve: []CurvePoint{{Percent: 100}}}}},
			Timelines:     []Timeline{{IntervalMs: 10, Series: []Series{{Values: []*float64{nil, ptr(0)}}}}},
			Figures:       []Figure{{Group: "g"}},
		}}},
	} {
		t.Run(name, func(t *testing.T) {
			words, _ := wellFormed(t, render(t, r))
			if !strings.Contains(words, "This run did not come to its end") {
				t.Error("the page hides that the run is incomplete")
			}
		})
	}
}

func TestSVG(t *testing.T) {
	var b bytes.Buffer
	if err := WriteSVG(&b, sample()); err != nil {
		t.Fatal(err)
	}
	words, elements := wellFormed(t, b.String())
	for _, want := range []string{"CPU per beat", "Lubdub", "naive way", "32 + 16.5 = 48.5 µs", "prefers-color-scheme", "--surface"} {
		if !strings.Contains(words, want) {
			t.Errorf("the picture does not contain %q", want)
		}
	}
	if elements["svg"] != 1 || !strings.HasPrefix(b.String(), "<svg xmlns=") {
		t.Errorf("%v", elements)
	}
	if err := WriteSVG(io.Discard, &Report{Scenarios: []Scenario{{Runs: []Run{{Program: "lubdub", Loop: Closed,
		ServerMicros: ptr(1)}}}}}); err == nil {
		t.Error("a picture of one program alone")
	}
	keep(t, "svg", b.Bytes())
	keep(t, "html", []byte(render(t, sample())))
}

// keep writes what was drawn to the folder that LUBDUB_KEEP_REPORT names, for a reader.
func keep(t *testing.T, ext string, text []byte) {
	t.Helper()
	if path := os.Getenv("LUBDUB_KEEP_REPORT"); path != "" {
		if err := os.WriteFile(path+"."+ext, text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

func TestMedianOfRounds(t *testing.T) {
	s := Scenario{Runs: []Run{
		{Program: "naive", Loop: Closed, BeatsPerSecond: 5}, {Program: "lubdub", Loop: Closed, BeatsPerSecond: 1, RedisMicros: ptr(4)},
		{Program: "lubdub", Loop: Closed, BeatsPerSecond: 9, RedisMicros: ptr(2)}, {Program: "lubdub", Loop: Closed, BeatsPerSecond: 2},
		{Program: "lubdub", Loop: Open, BeatsPerSecond: 100},
	}}
	ways := waysOf(&s)
	if len(ways) != 2 || ways[0].label != "Lubdub" || *ways[0].beatsPerSecond != 2 || *ways[0].redis != 3 || ways[0].server != nil ||
		ways[1].ours {
		t.Errorf("%+v", ways)
	}
}

func TestTicks(t *testing.T) {
	for most, want := range map[float64]string{48.5: "[0 10 20 30 40 50]", 0: "[0 0.2 0.4 0.6000000000000001 0.8 1]",
		310000: "[0 100000 200000 300000 400000]"} {
		if got := strings.TrimSpace(fmt.Sprint(ticks(most, 5))); got != want {
			t.Errorf("%g: %s", most, got)
		}
	}
	if got := fmt.Sprint(logTicks(0.3, 11)); got != "[0.2 0.5 1 2 5 10 20]" {
		t.Error(got)
	}
}

func TestNumber(t *testing.T) {
	for v, want := range map[float64]string{
		0: "0", 88000: "88,000", 1234567.8: "1,234,568", 145: "145", 11.24: "11.2", 3.812: "3.81", 0.28: "0.28", 0.041: "0.041", -1234: "-1,234",
		9.6: "9.6", 2.5: "2.5",
	} {
		if got := Number(v); got != want {
			t.Errorf("%g: %s, want %s", v, got, want)
		}
	}
}
