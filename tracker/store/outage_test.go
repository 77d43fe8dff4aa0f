package store_test

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/lubdub-io/lubdub/internal/redistest"
	"github.com/lubdub-io/lubdub/tracker"
	"github.com/lubdub-io/lubdub/tracker/trackertest"
)

// A lost script cache (restart, failover, flush) is answered everywhere, in the middle of a pipeline too.
func TestNoScript(t *testing.T) {
	trackertest.Contract(t, func(h *trackertest.Harness) {
		a := h.Running(func(n *tracker.NewTask) { n.TaskID = "t1" })
		for name, op := range map[string]func() error{
			"beat":     func() error { return h.MustBeat(a, "").Err },
			"start":    func() error { _, err := h.Start(h.Ctx, a, tracker.Report{}); return err },
			"get":      func() error { _, err := h.Get(h.Ctx, trackertest.Scope, "t1"); return err },
			"list":     func() error { _, err := h.List(h.Ctx, tracker.TaskFilter{Scope: trackertest.Scope}); return err },
			"tick":     h.Tick,
			"sweep":    func() error { _, err := h.Sweeper.RunOnce(h.Ctx); return err },
			"cancel":   func() error { _, err := h.Cancel(h.Ctx, trackertest.Scope, "t1", tracker.CancelRequest{}); return err },
			"create":   func() error { h.MustCreate(); return nil },
			"ready":    func() error { return h.Ready(h.Ctx) },
			"attempts": func() error { _, err := h.NextAttempt(h.Ctx, trackertest.Scope, "t1", 9); return onlyUnavailable(err) },
		} {
			if err := h.Store.Client.ScriptFlush(h.Ctx).Err(); err != nil {
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
	t.Parallel()
	s := redistest.StartServer(t, "--appendonly", "yes", "--appendfsync", "always")
	tr := trackertest.Open(t, tracker.Options{RedisURL: s.URL(), RedisTimeout: 500 * time.Millisecond})
	sweeper := tracker.NewSweeper(tr, tracker.SweeperOptions{})
	a := trackertest.NewTask(t, trackertest.Open(t, tracker.Options{RedisURL: s.URL(), RedisTimeout: 10 * time.Second}), "t1")
	ops := map[string]func() error{
		"beat":     func() error { b := &tracker.Beat{Attempt: a}; tr.Beat(b); return b.Err },
		"start":    func() error { _, err := tr.Start(t.Context(), a, tracker.Report{}); return err },
		"get":      func() error { _, err := tr.Get(t.Context(), trackertest.Scope, "t1"); return err },
		"get none": func() error { _, err := tr.Get(t.Context(), trackertest.Scope, "none"); return err },
		"list":     func() error { _, err := tr.List(t.Context(), tracker.TaskFilter{Scope: trackertest.Scope}); return err },
		"cancel": func() error {
			_, err := tr.Cancel(t.Context(), trackertest.Scope, "none", tracker.CancelRequest{})
			return err
		},
		"ready": func() error { return tr.Ready(t.Context()) },
		"sweep": func() error { _, err := sweeper.RunOnce(t.Context()); return err },
		"tick":  tr.Tick,
	}
	check := func(when string, away bool) {
		t.Helper()
		for name, op := range ops {
			err := op()
			for range 20 { // now and then a busy machine takes longer than the timeout of this tracker, too
				if away || tracker.CodeOf(err) != tracker.Unavailable {
					break
				}
				err = op()
			}
			code := tracker.CodeOf(err)
			if away != (code == tracker.Unavailable) {
				t.Errorf("%s, %s: %v", when, name, err)
			}
			var told *tracker.Error
			if away && errors.As(err, &told) && strings.Contains(told.Message, "task") { // it may be about a schedule, or a worker
				t.Errorf("%s, %s is told of a task: %v", when, name, err)
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
	if task, err := tr.Get(t.Context(), trackertest.Scope, "t1"); err != nil || task.State != tracker.Running {
		t.Fatalf("%+v %v", task, err)
	}
}

// backAgain waits until a tracker has noticed by itself that its server is back.
func backAgain(t *testing.T, tr *tracker.Tracker) {
	t.Helper()
	trackertest.Eventually(t, "the server is back", func() bool { return tr.Ready(t.Context()) == nil })
}

// A full lane answers at once and in words; nothing that was let in is lost.
func TestOverload(t *testing.T) {
	t.Parallel()
	s := redistest.StartServer(t)
	tr := trackertest.Open(t, tracker.Options{RedisURL: s.URL(), MaxPendingBeats: 8, RedisTimeout: 4 * time.Second})
	a := trackertest.NewTask(t, tr, "t1")
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
	trackertest.Open(t, tracker.Options{RedisURL: s.URL(), Shards: 4})
	if tr := trackertest.Open(t, tracker.Options{RedisURL: s.URL()}); tr.Shards() != 4 {
		t.Errorf("%d shards, want the stored 4", tr.Shards())
	}
	_, err := tracker.Open(t.Context(), tracker.Options{RedisURL: s.URL(), Shards: 8, Logger: trackertest.Quiet,
		RedisTimeout: trackertest.PatientRedis})
	if err == nil || !strings.Contains(err.Error(), "4 shards") {
		t.Errorf("another shard count: %v", err)
	}
	c := s.Client()
	defer func() { _ = c.Close() }()
	c.ConfigSet(t.Context(), "maxmemory-policy", "allkeys-lru")
	_, err = tracker.Open(t.Context(), tracker.Options{RedisURL: s.URL(), Logger: trackertest.Quiet, RedisTimeout: trackertest.PatientRedis})
	if err == nil || !strings.Contains(err.Error(), "noeviction") {
		t.Errorf("an evicting policy: %v", err)
	}
	s.Kill()
	_, err = tracker.Open(t.Context(), tracker.Options{RedisURL: s.URL(), Logger: trackertest.Quiet})
	if err == nil || !strings.Contains(err.Error(), "--redis embedded") {
		t.Errorf("no Redis: %v", err)
	}
	for _, url := range []string{"", "localhost:6379", "http://x", "redis+foo://x", "redis+sentinel://h:1"} {
		if _, err := tracker.Open(t.Context(), tracker.Options{RedisURL: url, Logger: trackertest.Quiet}); err == nil {
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
		a := trackertest.NewTask(t, tr, id)
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
	page, err := tr.List(t.Context(), tracker.TaskFilter{Scope: trackertest.Scope, States: []tracker.State{tracker.Succeeded}})
	if err != nil || page.Total != 8 {
		t.Fatalf("%+v %v", page, err)
	}
}
