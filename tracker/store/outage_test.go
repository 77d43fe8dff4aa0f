package store_test

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/lubdub-io/lubdub/internal/redistest"
	"github.com/lubdub-io/lubdub/internal/testenv"
	"github.com/lubdub-io/lubdub/tracker"
	"github.com/lubdub-io/lubdub/tracker/beats"
	"github.com/lubdub-io/lubdub/tracker/model"
	"github.com/lubdub-io/lubdub/tracker/sweep"
	"github.com/lubdub-io/lubdub/tracker/trackertest"
)

// A lost script cache (restart, failover, flush) is reloaded on every path, also in the middle of a pipeline.
func TestNoScript(t *testing.T) {
	trackertest.Contract(t, func(h *trackertest.Harness) {
		a := h.Running(func(n *model.NewTask) { n.TaskID = "t1" })
		for name, op := range map[string]func() error{
			"beat":  func() error { return h.MustBeat(a, "").Err },
			"start": func() error { _, err := h.Beats.Start(h.Ctx, a, model.Report{}); return err },
			"get":   func() error { _, err := h.Tasks.Get(h.Ctx, trackertest.Scope, "t1"); return err },
			"list":  func() error { _, err := h.Tasks.List(h.Ctx, model.TaskFilter{Scope: trackertest.Scope}); return err },
			"tick":  h.Beats.Tick,
			"sweep": func() error { _, err := h.Sweeper.RunOnce(h.Ctx); return err },
			"cancel": func() error {
				_, err := h.Tasks.Cancel(h.Ctx, trackertest.Scope, "t1", model.CancelRequest{})
				return err
			},
			"create": func() error { h.MustCreate(); return nil },
			"ready":  func() error { return h.Tracker.Store.Ready(h.Ctx) },
			"attempts": func() error {
				_, err := h.Tasks.NextAttempt(h.Ctx, trackertest.Scope, "t1", 9)
				return onlyUnavailable(err)
			},
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
	if model.CodeOf(err) == model.Unavailable {
		return err
	}
	return nil
}

// While Redis is down every response is "unavailable" and never a verdict; once it is back, everything recovers automatically.
func TestRedisAway(t *testing.T) {
	t.Parallel()
	s := redistest.StartServer(t, "--appendonly", "yes", "--appendfsync", "always")
	tr := trackertest.Open(t, tracker.Options{RedisURL: s.URL(), RedisTimeout: 500 * time.Millisecond})
	sweeper := sweep.NewSweeper(tr.Sweeper, sweep.SweeperOptions{})
	a := trackertest.NewTask(t, trackertest.Open(t, tracker.Options{RedisURL: s.URL(), RedisTimeout: 10 * time.Second}), "t1")
	ops := map[string]func() error{
		"beat":     func() error { b := &beats.Beat{Attempt: a}; tr.Beats.Beat(b); return b.Err },
		"start":    func() error { _, err := tr.Beats.Start(t.Context(), a, model.Report{}); return err },
		"get":      func() error { _, err := tr.Tasks.Get(t.Context(), trackertest.Scope, "t1"); return err },
		"get none": func() error { _, err := tr.Tasks.Get(t.Context(), trackertest.Scope, "none"); return err },
		"list": func() error {
			_, err := tr.Tasks.List(t.Context(), model.TaskFilter{Scope: trackertest.Scope})
			return err
		},
		"cancel": func() error {
			_, err := tr.Tasks.Cancel(t.Context(), trackertest.Scope, "none", model.CancelRequest{})
			return err
		},
		"ready": func() error { return tr.Store.Ready(t.Context()) },
		"sweep": func() error { _, err := sweeper.RunOnce(t.Context()); return err },
		"tick":  tr.Beats.Tick,
	}
	check := func(when string, away bool) {
		t.Helper()
		for name, op := range ops {
			err := op()
			for range 20 { // a busy host may exceed this tracker's timeout
				if away || model.CodeOf(err) != model.Unavailable {
					break
				}
				err = op()
			}
			code := model.CodeOf(err)
			if away != (code == model.Unavailable) {
				t.Errorf("%s, %s: %v", when, name, err)
			}
			var refusal *model.Error
			if away && errors.As(err, &refusal) && strings.Contains(refusal.Message, "task") { // it may be about a schedule or a worker
				t.Errorf("%s, %s gets a verdict about a task: %v", when, name, err)
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
	if task, err := tr.Tasks.Get(t.Context(), trackertest.Scope, "t1"); err != nil || task.State != model.Running {
		t.Fatalf("%+v %v", task, err)
	}
}

// backAgain waits until a tracker has noticed that its server is back.
func backAgain(t *testing.T, tr *tracker.Tracker) {
	t.Helper()
	trackertest.Eventually(t, "the server is back", func() bool { return tr.Store.Ready(t.Context()) == nil })
}

// A full lane refuses at once with a message; no accepted call is lost.
func TestOverload(t *testing.T) {
	testenv.OnlyAll(t)
	t.Parallel()
	s := redistest.StartServer(t)
	tr := trackertest.Open(t, tracker.Options{RedisURL: s.URL(), MaxPendingBeats: 8, RedisTimeout: 4 * time.Second})
	a := trackertest.NewTask(t, tr, "t1")
	if b := (&beats.Beat{Attempt: a}); true {
		tr.Beats.Beat(b)
		if b.Err != nil {
			t.Fatal(b.Err)
		}
	}
	if err := s.Freeze(); err != nil {
		t.Fatal(err)
	}
	batch := make([]*beats.Beat, 100)
	var wg sync.WaitGroup
	for i := range batch {
		batch[i] = &beats.Beat{Attempt: a}
	}
	wg.Go(func() { tr.Beats.BeatMany(batch) })
	wg.Wait()
	_ = s.Thaw()
	overloaded := 0
	for _, b := range batch {
		if model.CodeOf(b.Err) == model.Overloaded {
			overloaded++
			if e := b.Err.(*model.Error); e.RetryAfter <= 0 || !strings.Contains(e.Message, "8 beats") {
				t.Fatalf("%+v", e)
			}
		}
	}
	if overloaded == 0 || overloaded == len(batch) {
		t.Fatalf("%d of %d overloaded", overloaded, len(batch))
	}
}

func TestStartUpChecks(t *testing.T) {
	t.Parallel()
	s := redistest.StartServer(t)
	trackertest.Open(t, tracker.Options{RedisURL: s.URL(), Shards: 4})
	if tr := trackertest.Open(t, tracker.Options{RedisURL: s.URL()}); tr.Store.Shards() != 4 {
		t.Errorf("%d shards, want the stored 4", tr.Store.Shards())
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

// life drives a task from creation to its end on the store at the URL.
func life(t *testing.T, tr *tracker.Tracker) {
	t.Helper()
	for i := range 8 {
		id := fmt.Sprintf("t%d", i)
		a := trackertest.NewTask(t, tr, id)
		b := &beats.Beat{Attempt: a, Report: "\tw\t1\t\"m\""}
		tr.Beats.Beat(b)
		tr.Beats.Beat(b)
		if b.Err != nil {
			t.Fatal(b.Err)
		}
		if _, err := tr.Beats.Complete(t.Context(), a, model.Completion{Outcome: model.Succeeded}); err != nil {
			t.Fatal(err)
		}
	}
	if err := tr.Beats.Tick(); err != nil {
		t.Fatal(err)
	}
	if _, err := sweep.NewSweeper(tr.Sweeper, sweep.SweeperOptions{}).RunOnce(t.Context()); err != nil {
		t.Fatal(err)
	}
	page, err := tr.Tasks.List(t.Context(), model.TaskFilter{Scope: trackertest.Scope, States: []model.State{model.Succeeded}})
	if err != nil || page.Total != 8 {
		t.Fatalf("%+v %v", page, err)
	}
}
