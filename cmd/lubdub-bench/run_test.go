package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/lubdub-io/lubdub/bench/report"
	"github.com/lubdub-io/lubdub/internal/capacity"
	"github.com/lubdub-io/lubdub/internal/testenv"
)

// command runs one command inside the test.
func command(args ...string) (code int, stdout, stderr string) {
	var out, errs bytes.Buffer
	code = (&app{stdout: &out, stderr: &errs}).run(args)
	return code, out.String(), errs.String()
}

func TestBenchOptions(t *testing.T) {
	program := testenv.Program(t, "lubdub")
	environ := []string{"BENCH_TOKEN=a token"}
	a := &app{environ: environ}
	full, err := (&runCmd{Connections: 256, Lubdub: program}).options(a)
	if err != nil || full.For != 4*time.Second || full.Rounds != 3 || full.Tracked != 1_000_000 || full.Token != "" ||
		filepath.Base(full.Baselines) != "baselines" || full.Version == "" || full.Program != program {
		t.Errorf("%+v %v", full, err)
	}
	quick, _ := (&runCmd{Quick: true, Rounds: 2, Lubdub: program}).options(a)
	if quick.For != time.Second || quick.Rounds != 2 || quick.Tracked != 20_000 {
		t.Errorf("%+v", quick)
	}
	remote, _ := (&runCmd{URL: "http://x", Tracked: 5, Lubdub: program}).options(a)
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

func TestMistakes(t *testing.T) {
	program := testenv.Program(t, "lubdub")
	for want, args := range map[string][]string{
		"there is no scenario \"nonesuch\"": {"--lubdub", program, "--scenario", "nonesuch"},
		"BENCH_TOKEN":                       {"--lubdub", program, "--url", "http://127.0.0.1:1"},
		"not a count":                       {"--tracked", "lots"},
		"not a directory":                   {"--lubdub", program, "--report", filepath.Join(os.Args[0], "x")},
		"build it with 'make build'":        {"--lubdub", "/nowhere/lubdub"},
		"is not lubdub":                     {"--lubdub", "echo"},
		"no such file":                      {"costs", "/nowhere.json"},
	} {
		if code, _, stderr := command(args...); code != exitMistake || !strings.Contains(stderr, want) {
			t.Errorf("%v: %d %s", args, code, stderr)
		}
	}
	if code, stdout, _ := command("--list"); code != 0 || !strings.Contains(stdout, "\ndeaths ") {
		t.Errorf("%d %s", code, stdout)
	}
}

// The costs that are printed are those that 'lubdub plan' reads.
func TestCostsOfTheResult(t *testing.T) {
	results, err := filepath.Glob("../../bench/results/*.json")
	if err != nil || len(results) != 1 {
		t.Fatalf("%v %v", results, err)
	}
	code, stdout, stderr := command("costs", results[0])
	if code != 0 {
		t.Fatalf("%d %s", code, stderr)
	}
	if _, err := capacity.Parse([]byte(stdout)); err != nil {
		t.Error(err)
	}
}

// The whole benchmark with next to no load: every scenario comes to its end, every number that needs no baseline is
// there, and nothing was refused. On a busy machine a stretch may be over before anything came of it, or a worker's timeout before its
// heartbeat was sent: then all is played again, longer.
func TestBenchRuns(t *testing.T) {
	testenv.OnlyAll(t)
	prefix := filepath.Join(t.TempDir(), "bench")
	length := 100 * time.Millisecond
	got, err := benched(t, prefix, length)
	if err != nil || slices.ContainsFunc(got.Scenarios, func(s report.Scenario) bool {
		return slices.ContainsFunc(s.Runs, func(r report.Run) bool { return r.Beats == 0 && len(r.NotOK) == 0 })
	}) {
		t.Logf("played again, longer: %v", err)
		length = time.Second
		got, err = benched(t, prefix, length)
	}
	if err != nil {
		t.Fatal(err)
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
		needsBaseline := strings.Contains(bar.Name, "-vs-") && bar.Name != "batch-rate-vs-single" || strings.HasPrefix(bar.Name, "life-")
		if needsBaseline != (bar.Verdict == report.NotMeasured) {
			text, _ := json.Marshal(bar)
			t.Errorf("%s", text)
		}
	}
	if missing := strings.Join(got.Notes, "\n"); !strings.Contains(missing, "naive is missing") {
		t.Errorf("the notes do not mention the missing baselines: %s", missing)
	}
	if want := "lubdub-bench --quick --for " + length.String(); !strings.HasPrefix(got.Command, want) {
		t.Errorf("the reported command is %q", got.Command)
	}
	if page, err := os.ReadFile(prefix + ".md"); err != nil || strings.Count(string(page), "\n## ") != len(got.Scenarios) {
		t.Errorf("no page: %v", err)
	}
}

// benched runs it with stretches of some length. Its error has the last output of the program, which explains the failure.
func benched(t *testing.T, prefix string, length time.Duration) (*report.Report, error) {
	t.Helper()
	out, err := exec.Command(testenv.Program(t, "lubdub-bench"), "--quick", "--for", length.String(), "--tracked", "400", "--connections", "4",
		"--baselines", t.TempDir(), "--report", prefix).CombinedOutput()
	if err != nil {
		return nil, fmt.Errorf("%w: %s", err, out[max(0, len(out)-1000):])
	}
	return report.ReadFile(prefix + ".json")
}

func TestCommandsAreReportedWithoutSecrets(t *testing.T) {
	for text, want := range map[string]string{
		"--redis redis://me:secret@host/0": "--redis redis://…@host/0",
		"--redis=redis://:s@host --quick":  "--redis=redis://…@host --quick",
		"--url http://host/a@b":            "--url http://host/a@b",
	} {
		if got := withoutSecrets(text); got != want {
			t.Errorf("%q", got)
		}
	}
}

// An interrupt ends the run at once, with what was measured so far, and leaves no process behind.
func TestBenchIsInterrupted(t *testing.T) {
	testenv.OnlyAll(t)
	prefix := filepath.Join(t.TempDir(), "bench")
	bench := exec.Command(testenv.Program(t, "lubdub-bench"), "--for", "1h", "--tracked", "400", "--connections", "4",
		"--baselines", t.TempDir(), "--report", prefix)
	stderr, err := bench.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := bench.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = bench.Process.Kill() }()
	var log strings.Builder
	lines := bufio.NewScanner(io.TeeReader(stderr, &log))
	for lines.Scan() && !strings.Contains(lines.Text(), "warming up") {
	}
	children := childrenOf(t, bench.Process.Pid)
	if len(children) < 2 {
		t.Fatalf("a server and a Redis should run, and there are %v: %s", children, &log)
	}
	_ = bench.Process.Signal(syscall.SIGINT)
	for lines.Scan() {
	}
	if _ = bench.Wait(); bench.ProcessState.ExitCode() != exitFailed || !strings.Contains(log.String(), "interrupted") {
		t.Errorf("%v %s", bench.ProcessState, &log)
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
