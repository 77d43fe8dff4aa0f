package report

import (
	"bytes"
	"reflect"
	"strings"
	"testing"
	"time"
)

func full() *Report {
	v := func(f float64) *float64 { return &f }
	return &Report{
		Version: Version, StartedAt: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), Seconds: 12.5, Complete: true,
		Machine: Machine{OS: "linux", Arch: "amd64", CPU: "A CPU", Cores: 2, MemoryBytes: 1 << 34},
		Lubdub:  Lubdub{Version: "1.2.3", Go: "go1.26.0"}, Redis: Redis{Version: "7.0.15", Private: true, Settings: []string{"--save"}},
		Settings: Settings{Scenarios: []string{"single"}, Connections: 256, ForSeconds: 4, Rounds: 3, Tracked: 1_000_000,
			Baselines: []string{"naive"}},
		Bars: []Bar{
			{Name: "a", What: "what is small", Unit: "×", Bar: 0.5, Aim: v(0.4), Measured: v(0.3), Rounds: []float64{0.2, 0.3, 0.4},
				Verdict: AimReached},
			{Name: "b", What: "what is large", Unit: "beats/s", AtLeast: true, Bar: 150_000, Measured: v(100_000), Verdict: Missed,
				Note: "a slow day"},
			{Name: "c", What: "what was not measured", Unit: "s", Bar: 3, Verdict: NotMeasured},
		},
		Scenarios: []Scenario{{
			Name: "single", Title: "Single beats", About: "One by one.", StartedAt: time.Date(2026, 1, 2, 3, 4, 6, 0, time.UTC), Seconds: 9,
			Runs: []Run{
				{Program: "lubdub", Variant: "few", Round: 1, Loop: Closed, Connections: 256, BeatsPerRequest: 1, Tracked: 10_000, Seconds: 4,
					Beats: 400, BeatsPerSecond: 100,
					Requests: 403, NotOK: map[string]int64{"503": 3}, ServerMicros: v(8.25), RedisMicros: v(2.5), FlushBeats: v(99),
					Latency: &Quantiles{Count: 403, MeanMs: 1.5, P50Ms: 1.25, P99Ms: 4, MaxMs: 7}},
				{Program: "etcd", Round: 1, Loop: Closed, Seconds: 4, Beats: 10, BeatsPerSecond: 2.5},
			},
			Figures:       []Figure{{Name: "x", What: "a part", Value: 12, Unit: "bytes", Group: "whole"}},
			Distributions: []Distribution{{Name: "lag", What: "the lag", Quantiles: Quantiles{Count: 1, P99Ms: 12, MaxMs: 13}}},
			Failed:        "it fell over", Notes: []string{"a note of the scenario"},
		}},
		Notes: []string{"a note of the run"},
	}
}

func TestJSONRoundTrip(t *testing.T) {
	var b bytes.Buffer
	want := full()
	if err := want.WriteJSON(&b); err != nil {
		t.Fatal(err)
	}
	if text := b.String(); !strings.Contains(text, `"redisMicrosPerBeat":null`) {
		t.Error("what was not measured must be null")
	}
	got, err := ReadJSON(&b)
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%+v\n%+v", got, want)
	}
}

func TestReadJSONRefuses(t *testing.T) {
	for _, text := range []string{"", "[]", `{"version":0}`, `{"version":2}`} {
		if _, err := ReadJSON(strings.NewReader(text)); err == nil {
			t.Errorf("%q was read", text)
		}
	}
}

func TestMarkdown(t *testing.T) {
	r := full()
	r.Bars[2].What, r.Scenarios[0].Notes = "a | b\nand c", []string{"a note of the scenario"}
	var b bytes.Buffer
	if err := r.WriteMarkdown(&b); err != nil {
		t.Fatal(err)
	}
	text := b.String()
	flat := strings.Join(strings.Fields(text), " ") // columns are aligned with spaces
	for _, want := range []string{
		"# Benchmark of Lubdub, 2026-01-02", "Redis 7.0.15", "2 cores, linux/amd64, A CPU, 16 GiB",
		"## Single beats One by one. (single, 9 s)", "**It failed: it fell over**", "a note of the scenario", "a note of the run",
		"| what | bar | aim | measured | met? | | --- | --- | --- | --- | --- |",
		"| what is small | ≤ 0.5 × | ≤ 0.4 × | 0.3 × (0.2 to 0.4) | aim reached |",
		"| what is large | ≥ 150,000 beats/s | – | 100,000 beats/s | **missed** (a slow day) |",
		`| a \| b and c | ≤ 3 s | – | – | not measured |`,
		"| lubdub few | 1 | closed | 10000 | 100 | 8.25 | 2.50 | 99.00 | 1.25 | 4.00 | 7.00 | – | 3 × 503 |",
		"| etcd | 1 | closed | 0 | 2 | – | – | – | – | – | – | – | 0 |",
		"| the lag | p50 0, p90 0, p99 12, max 13 ms |", "| – a part | 12 bytes |",
	} {
		if !strings.Contains(flat, want) {
			t.Errorf("there is no %q", want)
		}
	}
	for _, never := range []string{"quick", "did not complete"} {
		if strings.Contains(text, never) {
			t.Errorf("%q of a whole run", never)
		}
	}
	if t.Failed() {
		t.Log(text)
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

func TestEvaluate(t *testing.T) {
	aim := 0.4
	list := []Bar{
		{Name: "aim", Bar: 0.5, Aim: &aim, Rounds: []float64{9, 0.4, 0.1}},
		{Name: "met", Bar: 0.5, Aim: &aim, Rounds: []float64{0.4, 0.6}},
		{Name: "missed", Bar: 0.5, Aim: &aim, Rounds: []float64{0.51}},
		{Name: "at least", Bar: 3, AtLeast: true, Rounds: []float64{3}},
		{Name: "too little", Bar: 3, AtLeast: true, Rounds: []float64{2.99}},
		{Name: "not measured", Bar: 3},
	}
	for i, want := range []Verdict{AimReached, Met, Missed, Met, Missed, NotMeasured} {
		if list[i].Evaluate(); list[i].Verdict != want {
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
