package proc

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	switch os.Getenv("LUBDUB_TEST_PARENT") {
	case "dies": // see TestChildrenDieWithTheirParent
		parent()
		return
	case "split": // see TestSplitCores
		printCoreSplit()
		return
	}
	goleak.VerifyTestMain(m)
}

// burn uses CPU until the process's own counter shows that it was enough.
func burn(t *testing.T, atLeast time.Duration) (used time.Duration) {
	t.Helper()
	before, err := ReadCPU(os.Getpid())
	if errors.Is(err, ErrNoProc) {
		t.Skip(err)
	}
	for sum := 0; used < atLeast; sum++ {
		for i := range 1_000_000 {
			sum += i
		}
		after, err := ReadCPU(os.Getpid())
		if err != nil {
			t.Fatal(err)
		}
		if used = after.Since(before); used < 0 {
			t.Fatalf("it used %v", used)
		}
	}
	return used
}

func TestReadCPUOfThisProcess(t *testing.T) {
	start := time.Now()
	used := burn(t, 50*time.Millisecond)
	if most := time.Duration(runtime.NumCPU())*time.Since(start) + 2*tick; used > most {
		t.Errorf("%v of CPU in %v", used, time.Since(start))
	}
}

// The time of threads that end in between must not be lost.
func TestReadCPUCountsEndedThreads(t *testing.T) {
	before := CPU{total: 100 * time.Millisecond, threads: map[string]time.Duration{"1": 60 * time.Millisecond, "2": 40 * time.Millisecond}}
	for name, c := range map[string]struct {
		after CPU
		want  time.Duration
	}{
		"all are there: to the nanosecond": {CPU{total: 110 * time.Millisecond,
			threads: map[string]time.Duration{"1": 65_000_001, "2": 40_000_000}}, 5_000_001},
		"a new one counts whole": {CPU{total: 110 * time.Millisecond,
			threads: map[string]time.Duration{"1": 60_000_000, "2": 40_000_000, "3": 7_000_000}}, 7_000_000},
		"one ended after it had worked": {CPU{total: 300 * time.Millisecond, threads: map[string]time.Duration{"1": 60_000_001}},
			200 * time.Millisecond},
		"one came and ended": {CPU{total: 300 * time.Millisecond,
			threads: map[string]time.Duration{"1": 60_000_001, "2": 40_000_000}}, 200 * time.Millisecond},
		"the kernel reports nothing per task": {CPU{total: 130 * time.Millisecond}, 30 * time.Millisecond},
	} {
		if got := c.after.Since(before); got != c.want {
			t.Errorf("%s: %v, not %v", name, got, c.want)
		}
	}
}

func TestParseStat(t *testing.T) {
	got, err := parseStat("42 (a) b) (c) S 1 42 42 0 -1 4194560 1 0 0 0 12 34 0 0 20 0 1 0 1 1 1 1")
	if err != nil || got != 460*time.Millisecond {
		t.Error(got, err)
	}
	for _, bad := range []string{"", "42 (x) S 1 2", "42 (x) S 1 42 42 0 -1 4194560 1 0 0 0 a 34 0"} {
		if _, err := parseStat(bad); err == nil {
			t.Errorf("%q was read", bad)
		}
	}
}

func TestRSS(t *testing.T) {
	n, err := RSS(os.Getpid())
	if errors.Is(err, ErrNoProc) {
		t.Skip(err)
	}
	if err != nil || n < 1<<20 || n > 1<<33 {
		t.Error(n, err)
	}
	if _, err := RSS(0); err == nil {
		t.Error("process 0 has a memory size")
	}
}

func TestMachine(t *testing.T) {
	if m := Machine(); m.Cores < 1 || m.OS != runtime.GOOS {
		t.Errorf("%+v", m)
	}
}

func TestChildThatEndsEarlyReportsWhy(t *testing.T) {
	c, err := Start("sh", exec.Command("sh", "-c", "echo no such colour >&2; exit 3"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Line(t.Context(), time.Minute); err == nil || !strings.Contains(err.Error(), "no such colour") ||
		!strings.Contains(err.Error(), "exit status 3") {
		t.Error(err)
	}
	c.Stop()
	if _, err := Start("nothing", exec.Command("/no/such/program")); err == nil {
		t.Error("it started")
	}
}

func TestChildIsStopped(t *testing.T) {
	c, err := Start("sh", exec.Command("sh", "-c", "echo ready; exec sleep 1000"))
	if err != nil {
		t.Fatal(err)
	}
	if line, err := c.Line(t.Context(), time.Minute); err != nil || line != "ready" {
		t.Fatal(line, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := c.Wait(ctx); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	c.Stop()
}

// parent starts a child, prints its process id, and is killed.
func parent() {
	c, err := Start("sleep", exec.Command("sleep", "1000"))
	if err != nil {
		panic(err)
	}
	print(c.Pid, "\n") // on standard error, unbuffered
	select {}
}

// A benchmark that is killed must not leave a Redis behind.
func TestChildrenDieWithTheirParent(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("only Linux kills children with their parent")
	}
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "LUBDUB_TEST_PARENT=dies")
	errs, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var pid [32]byte
	n, err := errs.Read(pid[:])
	if err != nil {
		t.Fatal(err)
	}
	stat := "/proc/" + strings.TrimSpace(string(pid[:n])) + "/stat"
	if _, err := os.Stat(stat); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	for until := time.Now().Add(time.Minute); alive(stat); runtime.Gosched() { // the kernel kills it, and does not report when
		if time.Now().After(until) {
			t.Fatal("a minute after its parent was killed the child is alive")
		}
	}
}

// alive is false for a zombie too: there may be no parent to collect it.
func alive(stat string) bool {
	text, err := os.ReadFile(stat)
	return err == nil && !strings.Contains(string(text), ") Z ")
}

func TestStartRedis(t *testing.T) {
	r, err := StartRedis(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer r.Stop()
	if version, err := r.Version(t.Context()); err != nil || version == "" || !r.Private() {
		t.Error(version, err)
	}
	if n, err := r.UsedMemory(t.Context()); err != nil || n < 100_000 {
		t.Error(n, err)
	}
	if save := r.Client.ConfigGet(t.Context(), "save").Val()["save"]; save != "" {
		t.Errorf("it would save: %q", save)
	}
	other, err := UseRedis(t.Context(), r.URL, 0)
	if err != nil {
		t.Fatal(err)
	}
	other.Stop()
	if err := r.Client.Ping(t.Context()).Err(); err != nil {
		t.Errorf("a Redis that the test did not start was stopped: %v", err)
	}
	if _, err := UseRedis(t.Context(), "redis://127.0.0.1:1/0", 0); err == nil {
		t.Error("an unreachable Redis was accepted")
	}
}
