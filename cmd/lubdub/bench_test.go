package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/lubdub-io/lubdub/bench/report"
)

func TestBenchOptions(t *testing.T) {
	environ := []string{"BENCH_TOKEN=a token"}
	a := &app{environ: environ}
	full, err := (&benchCmd{Connections: 256}).options(a)
	if err != nil || full.For != 4*time.Second || full.Rounds != 3 || full.Tracked != 1_000_000 || full.Token != "" ||
		filepath.Base(full.Baselines) != "baselines" {
		t.Errorf("%+v %v", full, err)
	}
	quick, _ := (&benchCmd{Quick: true, Rounds: 2}).options(a)
	if quick.For != time.Second || quick.Rounds != 2 || quick.Tracked != 20_000 {
		t.Errorf("%+v", quick)
	}
	remote, _ := (&benchCmd{URL: "http://x", Tracked: 5}).options(a)
	if remote.Token != "a token" || remote.Tracked != 5 {
		t.Errorf("%+v", remote)
	}
}

func TestCount(t *testing.T) {
	for text, want := range map[string]count{"1": 1, "20000": 20_000, "200k": 200_000, "1M": 1_000_000, "1.5M": 1_500_000} {
		var c count
		if err := c.UnmarshalText([]byte(text)); err != nil || c != want {
			t.Errorf("%s: %d %v", text, c, err)
		}
	}
	for _, text := range []string{"", "k", "0", "-1", "1G", "51M", "1 M"} {
		var c count
		if err := c.UnmarshalText([]byte(text)); err == nil {
			t.Errorf("%q is %d", text, c)
		}
	}
}

func TestBenchMistakes(t *testing.T) {
	for want, args := range map[string][]string{
		"there is no scenario \"nonesuch\"": {"bench", "--scenario", "nonesuch"},
		"BENCH_TOKEN":                       {"bench", "--url", "http://127.0.0.1:1"},
		"not a count":                       {"bench", "--tracked", "lots"},
		"not a directory":                   {"bench", "--report", filepath.Join(os.Args[0], "x")},
	} {
		code, _, stderr := command(nil, args...)
		if code != exitMistake || !strings.Contains(stderr, want) {
			t.Errorf("%v: %d %s", args, code, stderr)
		}
	}
	if code, stdout, _ := command(nil, "bench", "--list"); code != exitOK || !strings.Contains(stdout, "detection lag") &&
		!strings.Contains(stdout, "lag") {
		t.Errorf("%d %s", code, stdout)
	}
}

// The whole benchmark with next to no load: every scenario comes to its end, every number that needs no baseline is
// there, and nothing was refused. On a busy machine a stretch may be over before anything came of it: then all is played again, longer.
func TestBenchRuns(t *testing.T) {
	prefix := filepath.Join(t.TempDir(), "bench")
	if err := os.WriteFile(prefix+".svg", []byte("of an earlier run"), 0o644); err != nil {
		t.Fatal(err)
	}
	length := 100 * time.Millisecond
	got := benched(t, prefix, length)
	if slices.ContainsFunc(got.Scenarios, func(s report.Scenario) bool {
		return slices.ContainsFunc(s.Runs, func(r report.Run) bool { return r.Beats == 0 && len(r.NotOK) == 0 })
	}) {
		length = time.Second
		got = benched(t, prefix, length)
	}
	if !got.Complete || got.Redis.Version == "" || !got.Redis.Private || len(got.Scenarios) < 10 {
		t.Errorf("complete %v, Redis %+v, %d scenarios", got.Complete, got.Redis, len(got.Scenarios))
	}
	for _, s := range got.Scenarios {
		for _, run := range s.Runs {
			if run.Beats == 0 || len(run.NotOK) > 0 {
				t.Errorf("%s: %d beats, not OK: %v", s.Name, run.Beats, run.NotOK)
			}
		}
	}
	for _, bar := range got.Bars {
		needsBaseline := strings.Contains(bar.Name, "-vs-") && bar.Name != "batch-rate-vs-single"
		if needsBaseline != (bar.Verdict == report.NotMeasured) {
			text, _ := json.Marshal(bar)
			t.Errorf("%s", text)
		}
	}
	if missing := strings.Join(got.Notes, "\n"); !strings.Contains(missing, "naive is missing") {
		t.Errorf("the notes do not tell of missing baselines: %s", missing)
	}
	if want := "lubdub bench --quick --for " + length.String(); !strings.HasPrefix(got.Command, want) {
		t.Errorf("the command is told as %q", got.Command)
	}
	if _, err := os.Stat(prefix + ".svg"); err == nil { // there were no baselines to draw beside
		t.Error("the picture of an earlier run was left beside this report")
	}
	if page, err := os.ReadFile(prefix + ".html"); err != nil || !strings.Contains(string(page), "</html>") {
		t.Errorf("no page: %v", err)
	}
}

// benched runs it with stretches of some length.
func benched(t *testing.T, prefix string, length time.Duration) *report.Report {
	t.Helper()
	r := launch(t, nil, "bench", "--quick", "--for", length.String(), "--tracked", "400", "--connections", "4", "--baselines", t.TempDir(),
		"--report", prefix)
	<-r.exited
	if r.code != 0 {
		t.Fatalf("it ended with %d", r.code)
	}
	f, err := os.Open(prefix + ".json")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	got, err := report.ReadJSON(f)
	if err != nil {
		t.Fatal(err)
	}
	return got
}

func TestBenchWritesItsPicture(t *testing.T) {
	one, two := 1.0, 2.0
	r := &report.Report{Version: report.Version, Scenarios: []report.Scenario{{Name: "single", Runs: []report.Run{
		{Program: "lubdub", Loop: report.Closed, ServerMicros: &one}, {Program: "naive", Loop: report.Closed, ServerMicros: &two},
	}}}}
	f, err := reportFiles(filepath.Join(t.TempDir(), "r"))
	if err != nil {
		t.Fatal(err)
	}
	var said strings.Builder
	if err := f.write(&app{stdout: &said}, r); err != nil {
		t.Fatal(err)
	}
	if text, err := os.ReadFile(f.svg); err != nil || !strings.HasPrefix(string(text), "<svg") || !strings.Contains(said.String(), f.svg) {
		t.Errorf("%v %q", err, said.String())
	}
}

func TestCommandsAreToldWithoutSecrets(t *testing.T) {
	for text, want := range map[string]string{
		"bench --redis redis://me:secret@host/0": "bench --redis redis://…@host/0",
		"bench --redis=redis://:s@host --quick":  "bench --redis=redis://…@host --quick",
		"bench --url http://host/a@b":            "bench --url http://host/a@b",
	} {
		if got := withoutSecrets(text); got != want {
			t.Errorf("%q", got)
		}
	}
}

// An interrupt ends the run at once, with what was measured so far, and leaves no process behind.
func TestBenchIsInterrupted(t *testing.T) {
	prefix := filepath.Join(t.TempDir(), "bench")
	r := launch(t, nil, "bench", "--for", "1h", "--tracked", "400", "--connections", "4", "--baselines", t.TempDir(), "--report", prefix)
	r.said("warming up")
	children := childrenOf(t, r.cmd.Process.Pid)
	if len(children) < 2 {
		t.Fatalf("a server and a Redis should run, and there are %v", children)
	}
	_ = r.cmd.Process.Signal(syscall.SIGINT)
	if r.wait(); r.code != exitFailed || !strings.Contains(r.errs.String(), "interrupted") {
		t.Errorf("%d %s", r.code, r.errs)
	}
	for _, pid := range children {
		if _, err := os.Stat("/proc/" + pid); err == nil {
			t.Errorf("process %s is left", pid)
		}
	}
	if _, err := os.Stat(prefix + ".json"); err != nil {
		t.Error(err)
	}
}

// childrenOf lists the processes that a process has started.
func childrenOf(t *testing.T, pid int) (children []string) {
	t.Helper()
	files, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil || len(files) == 0 {
		t.Skip("there is no /proc")
	}
	for _, name := range files {
		text, err := os.ReadFile(name)
		if err != nil {
			continue // it has ended
		}
		fields := strings.Fields(string(text[strings.LastIndexByte(string(text), ')')+1:]))
		if fields[1] == strconv.Itoa(pid) {
			children = append(children, filepath.Base(filepath.Dir(name)))
		}
	}
	return children
}
