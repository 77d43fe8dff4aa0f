package scenarios

import (
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/lubdub-io/lubdub/bench/report"
	"github.com/lubdub-io/lubdub/bench/testbed"
	v1 "github.com/lubdub-io/lubdub/sdk/go/v1"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestOptionsAreChecked(t *testing.T) {
	good := testbed.Options{Connections: 1, For: time.Second, Rounds: 1, Tracked: 10}
	if err := validate(&good); err != nil {
		t.Error(err)
	}
	for want, change := range map[string]func(*testbed.Options){
		"takes at least one":          func(o *testbed.Options) { o.Connections = 0 },
		"too short":                   func(o *testbed.Options) { o.For = time.Millisecond },
		"--rounds":                    func(o *testbed.Options) { o.Rounds = 0 },
		"--tracked":                   func(o *testbed.Options) { o.Connections = 11 },
		"negative":                    func(o *testbed.Options) { o.Rate = -1 },
		"does not go with --redis":    func(o *testbed.Options) { o.URL, o.Token, o.RedisURL = "http://x", "t", "redis://x" },
		"plain http:// only":          func(o *testbed.Options) { o.URL, o.Token = "https://x", "t" },
		"BENCH_TOKEN":                 func(o *testbed.Options) { o.URL = "http://x" },
		"--cores -1 is negative":      func(o *testbed.Options) { o.Cores = -1 },
		"--server-flag is for":        func(o *testbed.Options) { o.URL, o.Token, o.ServerFlags = "http://x", "t", []string{"--x"} },
		"--redis-pid":                 func(o *testbed.Options) { o.RedisPid = 1 },
		"there is no scenario \"x\"":  func(o *testbed.Options) { o.Scenarios = []string{"x"} },
		"does not go with --url":      func(o *testbed.Options) { o.URL, o.Token, o.Scenarios = "http://x", "t", []string{"lag"} },
		"growth needs a Redis of its": func(o *testbed.Options) { o.RedisURL, o.Scenarios = "redis://x", []string{"growth"} },
	} {
		o := good
		change(&o)
		if err := validate(&o); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
		}
	}
	remote := good
	remote.URL = "http://x"
	for _, s := range chosen(&remote) {
		if s.needs != aDeployment {
			t.Errorf("%s was chosen for a deployment elsewhere", s.Name)
		}
	}
	named := good
	named.Scenarios = []string{"overload", "flood"}
	if n := len(chosen(&named)); n != 2 {
		t.Errorf("%d of 2 scenarios that run when they are named", n)
	}
	if len(chosen(&good)) != len(All)-2 || len(chosen(&remote)) == 0 {
		t.Errorf("%d of %d scenarios", len(chosen(&good)), len(All))
	}
}

// A number that misses its bar is explained in a note.
func TestPacedNotes(t *testing.T) {
	run := func(program string, took, lateMs float64) report.Run {
		return report.Run{Program: program, TargetPerSecond: 10_000, BeatsPerSecond: took, OwnLateness: &report.Quantiles{P99Ms: lateMs}}
	}
	if cpu, p99 := pacedNotes(run(testbed.Lubdub, 9900, 0.1), run(testbed.Autopipeline, 9990, 99)); cpu != "" || p99 != "" {
		t.Errorf("%q %q", cpu, p99)
	}
	cpu, p99 := pacedNotes(run(testbed.Lubdub, 9999, 1.5), run(testbed.Autopipeline, 7000, 0.1))
	if cpu != "autopipeline took 7,000 of 10,000/s" || p99 != "the generator itself was late by 1.5 ms, p99" {
		t.Errorf("%q %q", cpu, p99)
	}
	if cpu, p99 = pacedNotes(report.Run{}, report.Run{}); cpu != "" || p99 != "" { // a baseline that is not there
		t.Errorf("%q %q", cpu, p99)
	}
}

// Who died is found in the history by its reason; a second death is counted.
func TestEnded(t *testing.T) {
	lost, other := "WORKER_LOST", "START_TIMEOUT"
	record := &v1.Task{History: []v1.HistoryEntry{{Attempt: 1, Reason: &lost}, {Attempt: 2}, {Attempt: 3, Reason: &other}}}
	if last, times := ended(record, lost); times != 1 || last.Attempt != 1 {
		t.Errorf("%+v, %d times", last, times)
	}
	record.History = append(record.History, v1.HistoryEntry{Attempt: 4, Reason: &lost})
	if last, times := ended(record, lost); times != 2 || last.Attempt != 4 {
		t.Errorf("%+v, %d times", last, times)
	}
	if last, times := ended(record, "HEARTBEAT_TIMEOUT"); times != 0 || last != nil {
		t.Errorf("%+v, %d times", last, times)
	}
}
