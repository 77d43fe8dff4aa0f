//go:build long

package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/lubdub-io/lubdub/internal/faultproxy"
	"github.com/lubdub-io/lubdub/internal/sdkrunner"
)

// sdkWorker is a process that works with an SDK.
type sdkWorker struct {
	t      *testing.T
	name   string
	group  sdkGroup
	cmd    *exec.Cmd
	stdin  io.Closer
	way    *faultproxy.Proxy // to the front end
	errs   lockedBuffer
	out    lockedBuffer
	exited chan struct{}
}

// sdkTasks are what the tasks of a run are.
type sdkTasks struct {
	short, medium, long time.Duration // how long they take
	concurrency         int
}

// sdkGroup is a group of workers with the same settings and their own queue.
type sdkGroup struct {
	sdkrunner.Runner
	lease string
}

// name is the group's, and that of its queue.
func (c sdkGroup) name() string { return "sdk-" + c.SDK + "-" + c.lease }

// strict reports whether its workers may stop work that no beat was accepted for.
func (c sdkGroup) strict() bool { return c.lease == "strict" }

func startWorker(t *testing.T, of sdkGroup, name, front, token string, tasks sdkTasks) *sdkWorker {
	t.Helper()
	w := &sdkWorker{t: t, name: name, group: of, way: faultproxy.Start(t, front), exited: make(chan struct{})}
	w.cmd = exec.Command(of.Command)
	w.cmd.Dir = filepath.Dir(of.Command)
	w.cmd.Stdout, w.cmd.Stderr = &w.out, &w.errs
	in, err := w.cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	w.stdin = in
	if err := w.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	step := "sleep"
	if of.strict() {
		step = "work"
	}
	steps := func(d time.Duration) []map[string]any {
		return []map[string]any{{"progress": []any{50, "half"}}, {step: d.Milliseconds()}, {"return": map[string]any{"by": name}}}
	}
	order, err := json.Marshal(map[string]any{
		"mode": "worker", "urls": []string{"http://" + w.way.Addr}, "token": token, "lease": of.lease, "queue": of.name(), "name": name,
		"types": []string{"short", "medium", "long"}, "concurrency": tasks.concurrency,
		"handlers": map[string]any{"type:short": steps(tasks.short), "type:medium": steps(tasks.medium), "type:long": steps(tasks.long)},
		"break":    *sdkBreak,
	})
	if err == nil {
		_, err = in.Write(append(order, '\n'))
	}
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		_ = w.cmd.Wait() // its code is judged
		close(w.exited)
	}()
	t.Cleanup(func() {
		_, _ = w.cmd.Process.Signal(syscall.SIGCONT), w.cmd.Process.Kill()
		<-w.exited
		if t.Failed() {
			errs := w.errs.String()
			t.Logf("the end of the standard error of %s:\n%s", name, errs[max(0, len(errs)-2000):])
		}
	})
	return w
}

func (w *sdkWorker) signal(s syscall.Signal) {
	w.t.Helper()
	if err := w.cmd.Process.Signal(s); err != nil {
		w.t.Fatalf("%s: %v", w.name, err)
	}
}

// leave tells the worker to stop, which it does with nothing unfinished.
func (w *sdkWorker) leave() error {
	w.signal(syscall.SIGTERM)
	select {
	case <-w.exited:
	case <-time.After(long):
		return fmt.Errorf("%s does not end", w.name)
	}
	if code := w.cmd.ProcessState.ExitCode(); code != 0 || strings.Contains(w.out.String(), `"event":"error"`) {
		return fmt.Errorf("%s ended with %d: %s", w.name, code, w.errs.String())
	}
	return nil
}
