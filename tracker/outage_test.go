package tracker_test

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/lubdub-io/lubdub/internal/redistest"
	"github.com/lubdub-io/lubdub/tracker"
)

var quiet = slog.New(slog.NewTextHandler(io.Discard, nil))

func open(t *testing.T, o tracker.Options) *tracker.Tracker {
	t.Helper()
	o.Logger = quiet
	tr, err := tracker.Open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = tr.Close(context.Background()) })
	return tr
}

func newTask(t *testing.T, tr *tracker.Tracker, id string) *tracker.Attempt {
	t.Helper()
	n := tracker.NewTask{Scope: scope, TaskID: id}
	if err := n.Validate(time.Now()); err != nil {
		t.Fatal(err)
	}
	c, err := tr.Create(t.Context(), n)
	if err != nil {
		t.Fatal(err)
	}
	return c.Envelope.Attempt
}

// A lost script cache (restart, failover, flush) is answered everywhere, in the middle of a pipeline too.
func TestNoScript(t *testing.T) {
	contract(t, func(h *harness) {
		a := h.running(func(n *tracker.NewTask) { n.TaskID = "t1" })
		for name, op := range map[string]func() error{
			"beat":     func() error { return h.beat(a, "").Err },
			"start":    func() error { _, err := h.Start(h.ctx, a, tracker.Report{}); return err },
			"get":      func() error { _, err := h.Get(h.ctx, scope, "t1"); return err },
			"list":     func() error { _, err := h.List(h.ctx, tracker.TaskFilter{Scope: scope}); return err },
			"tick":     h.Tick,
			"sweep":    func() error { _, err := h.sweeper.RunOnce(h.ctx); return err },
			"cancel":   func() error { _, err := h.Cancel(h.ctx, scope, "t1", ""); return err },
			"create":   func() error { h.create(); return nil },
			"ready":    func() error { return h.Ready(h.ctx) },
			"attempts": func() error { _, err := h.NextAttempt(h.ctx, scope, "t1", 9); return onlyUnavailable(err) },
		} {
			if err := h.store.Client.ScriptFlush(h.ctx).Err(); err != nil {
				h.Fatal(err)
			}
			if err := op(); err != nil {
				h.Errorf("%s after a script flush: %v", name, err)
			}
		}
	})
}

func onlyUnavailable(err error) error {
	if tracker.CodeOf(err) == tracker.Unavailable {
		return err
	}
	return nil
}

// With Redis away every answer is "unavailable" and never a verdict; once it is back all goes on by itself.
func TestRedisAway(t *testing.T) {
	s := redistest.StartServer(t, "--appendonly", "yes", "--appendfsync", "always")
	tr := open(t, tracker.Options{RedisURL: s.URL(), RedisTimeout: 200 * time.Millisecond})
	sweeper := tracker.NewSweeper(tr, tracker.SweeperOptions{})
	a := newTask(t, tr, "t1")
	ops := map[string]func() error{
		"beat":     func() error { b := &tracker.Beat{Attempt: a}; tr.Beat(b); return b.Err },
		"start":    func() error { _, err := tr.Start(t.Context(), a, tracker.Report{}); return err },
		"get":      func() error { _, err := tr.Get(t.Context(), scope, "t1"); return err },
		"get none": func() error { _, err := tr.Get(t.Context(), scope, "none"); return err },
		"list":     func() error { _, err := tr.List(t.Context(), tracker.TaskFilter{Scope: scope}); return err },
		"cancel":   func() error { _, err := tr.Cancel(t.Context(), scope, "none", ""); return err },
		"ready":    func() error { return tr.Ready(t.Context()) },
		"sweep":    func() error { _, err := sweeper.RunOnce(t.Context()); return err },
		"tick":     tr.Tick,
	}
	check := func(when string, away bool) {
		t.Helper()
		for name, op := range ops {
			err := op()
			code := tracker.CodeOf(err)
			if away != (code == tracker.Unavailable) {
				t.Errorf("%s, %s: %v", when, name, err)
			}
		}
	}
	check("before", false)
	if err := s.Freeze(); err != nil {
		t.Fatal(err)
	}
	check("frozen", true)
	if err := s.Thaw(); err != nil {
		t.Fatal(err)
	}
	backAgain(t, tr)
	check("thawed", false)
	s.Kill()
	check("killed", true)
	if err := s.Restart(); err != nil {
		t.Fatal(err)
	}
	backAgain(t, tr)
	check("restarted", false)
	if task, err := tr.Get(t.Context(), scope, "t1"); err != nil || task.State != tracker.Running {
		t.Fatalf("%+v %v", task, err)
	}
}

// backAgain waits until a tracker has noticed by itself that its server is back.
func backAgain(t *testing.T, tr *tracker.Tracker) {
	t.Helper()
	eventually(t, "the server is back", func() bool { return tr.Ready(t.Context()) == nil })
}

// A full lane answers at once and in words; nothing that was let in is lost.
func TestOverload(t *testing.T) {
	t.Parallel()
	s := redistest.StartServer(t)
	tr := open(t, tracker.Options{RedisURL: s.URL(), MaxPendingBeats: 8})
	a := newTask(t, tr, "t1")
	if b := (&tracker.Beat{Attempt: a}); true {
		tr.Beat(b)
		if b.Err != nil {
			t.Fatal(b.Err)
		}
	}
	if err := s.Freeze(); err != nil {
		t.Fatal(err)
	}
	beats := make([]*tracker.Beat, 100)
	var wg sync.WaitGroup
	for i := range beats {
		beats[i] = &tracker.Beat{Attempt: a}
	}
	wg.Go(func() { tr.Beats(beats) })
	wg.Wait()
	_ = s.Thaw()
	overloaded := 0
	for _, b := range beats {
		if tracker.CodeOf(b.Err) == tracker.Overloaded {
			overloaded++
			if e := b.Err.(*tracker.Error); e.RetryAfter <= 0 || !strings.Contains(e.Message, "8 beats") {
				t.Fatalf("%+v", e)
			}
		}
	}
	if overloaded == 0 || overloaded == len(beats) {
		t.Fatalf("%d of %d overloaded", overloaded, len(beats))
	}
}

func TestStartUpChecks(t *testing.T) {
	t.Parallel()
	s := redistest.StartServer(t)
	open(t, tracker.Options{RedisURL: s.URL(), Shards: 4})
	if tr := open(t, tracker.Options{RedisURL: s.URL()}); tr.Shards() != 4 {
		t.Errorf("%d shards, want the stored 4", tr.Shards())
	}
	_, err := tracker.Open(t.Context(), tracker.Options{RedisURL: s.URL(), Shards: 8, Logger: quiet})
	if err == nil || !strings.Contains(err.Error(), "4 shards") {
		t.Errorf("another shard count: %v", err)
	}
	c := s.Client()
	defer func() { _ = c.Close() }()
	c.ConfigSet(t.Context(), "maxmemory-policy", "allkeys-lru")
	_, err = tracker.Open(t.Context(), tracker.Options{RedisURL: s.URL(), Logger: quiet})
	if err == nil || !strings.Contains(err.Error(), "noeviction") {
		t.Errorf("an evicting policy: %v", err)
	}
	s.Kill()
	_, err = tracker.Open(t.Context(), tracker.Options{RedisURL: s.URL(), Logger: quiet})
	if err == nil || !strings.Contains(err.Error(), "--redis embedded") {
		t.Errorf("no Redis: %v", err)
	}
	for _, url := range []string{"", "localhost:6379", "http://x", "redis+foo://x", "redis+sentinel://h:1"} {
		if _, err := tracker.Open(t.Context(), tracker.Options{RedisURL: url, Logger: quiet}); err == nil {
			t.Errorf("%q was taken", url)
		}
	}
	if _, err := tracker.Open(t.Context(), tracker.Options{RedisURL: "redis://x", FinishedRetention: time.Minute}); err == nil {
		t.Error("a retention shorter than a token's life was taken")
	}
}

// life drives a task from creation to its end through whatever the URL stands for.
func life(t *testing.T, tr *tracker.Tracker) {
	t.Helper()
	for i := range 8 {
		id := fmt.Sprintf("t%d", i)
		a := newTask(t, tr, id)
		b := &tracker.Beat{Attempt: a, Report: "\tw\t1\t\"m\""}
		tr.Beat(b)
		tr.Beat(b)
		if b.Err != nil {
			t.Fatal(b.Err)
		}
		if _, err := tr.Complete(t.Context(), a, tracker.Completion{Outcome: tracker.Succeeded}); err != nil {
			t.Fatal(err)
		}
	}
	if err := tr.Tick(); err != nil {
		t.Fatal(err)
	}
	if _, err := tracker.NewSweeper(tr, tracker.SweeperOptions{}).RunOnce(t.Context()); err != nil {
		t.Fatal(err)
	}
	page, err := tr.List(t.Context(), tracker.TaskFilter{Scope: scope, State: tracker.Succeeded})
	if err != nil || page.Total != 8 {
		t.Fatalf("%+v %v", page, err)
	}
}
