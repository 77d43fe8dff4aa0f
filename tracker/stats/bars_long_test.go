//go:build long

package stats_test

import (
	"fmt"
	"io"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/lubdub-io/lubdub/internal/redistest"
	"github.com/lubdub-io/lubdub/tracker"
	"github.com/lubdub-io/lubdub/tracker/trackertest"
)

// What dashboards and autoscalers ask takes, with very many tasks and workers. It prints figures; it judges none.
func TestWhatDashboardsAskAmongMany(t *testing.T) {
	const tasks, crew, queues, batch = 100_000, 10_000, 20, 100
	s := redistest.Real(t, redistest.WallClock)
	tr, err := tracker.Open(t.Context(), tracker.Options{RedisURL: s.URL, Scripts: s.Scripts, Shards: 16, RedisTimeout: 10 * time.Second,
		WorkerInterval: time.Hour, Logger: slog.New(slog.NewTextHandler(io.Discard, nil))})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = tr.Close(t.Context()) })
	if err := tr.Tick(); err != nil {
		t.Fatal(err)
	}
	queue := func(i int) string { return fmt.Sprintf("queue-%02d", i%queues) }
	hired := make([]string, crew)
	each(crew, func(i int) error {
		w, err := tr.Register(t.Context(), tracker.NewWorker{Scope: trackertest.Scope, Queue: queue(i), Types: []string{"x"},
			MachineID: fmt.Sprintf("host-%04d", i/10), Version: fmt.Sprint("1.", i%7), MaxConcurrent: 100,
			Labels: map[string]string{"region": []string{"eu", "us", "ap", "sa"}[i%4], "team": "core"}})
		if err == nil {
			hired[i] = w.WorkerID
		}
		return err
	}, t)
	each(tasks/batch, func(i int) error {
		news := make([]tracker.NewTask, batch)
		for j := range news {
			news[j] = tracker.NewTask{Scope: trackertest.Scope, Queue: queue(j), Type: "x"}
			if err := news[j].Validate(time.Now()); err != nil {
				return err
			}
		}
		for _, r := range tr.CreateBatch(t.Context(), news) {
			if r.Err != nil {
				return r.Err
			}
		}
		return nil
	}, t)
	ctx, scope := t.Context(), trackertest.Scope
	ended(t, tr, hired)
	for _, ask := range []struct {
		name string
		do   func() error
	}{
		{"GET /v1/stats", func() error { _, err := tr.Stats(ctx, scope); return err }},
		{"GET /v1/system", func() error { _, err := tr.System(ctx); return err }},
		{"GET /v1/scopes", func() error { _, err := tr.Scopes(ctx, tracker.ScopeFilter{PageSize: 100}); return err }},
		{"GET /v1/queues/{queue}", func() error { _, err := tr.Queue(ctx, scope, queue(0)); return err }},
		{"GET /v1/queues", func() error { _, err := tr.Queues(ctx, scope); return err }},
		{"tasks, newest first", func() error {
			_, err := tr.List(ctx, tracker.TaskFilter{Scope: scope, Descending: true, PageSize: 100})
			return err
		}},
		{"tasks of a type that none has", func() error { _, err := tr.List(ctx, tracker.TaskFilter{Scope: scope, Type: "y"}); return err }},
		{"tasks by their ends", func() error {
			_, err := tr.List(ctx, tracker.TaskFilter{Scope: scope, FinishedBefore: time.Now(), Descending: true, PageSize: 100})
			return err
		}},
		{"workers", func() error { _, err := tr.Workers(ctx, tracker.WorkerFilter{Scope: scope, PageSize: 100}); return err }},
		{"workers of a version", func() error {
			_, err := tr.Workers(ctx, tracker.WorkerFilter{Scope: scope, Version: "1.3", PageSize: 100})
			return err
		}},
		{"workers of a queue", func() error {
			_, err := tr.Workers(ctx, tracker.WorkerFilter{Scope: scope, Queue: queue(0), PageSize: 100})
			return err
		}},
		{"workers with a label", func() error {
			_, err := tr.Workers(ctx, tracker.WorkerFilter{Scope: scope, Labels: map[string]string{"region": "us"}, PageSize: 100})
			return err
		}},
		{"workers by liveness", func() error {
			_, err := tr.Workers(ctx, tracker.WorkerFilter{Scope: scope, Liveness: tracker.Fresh, PageSize: 100})
			return err
		}},
		{"a worker's events", func() error {
			of := tracker.EventFilter{Tenant: scope.Tenant, Workspace: scope.Workspace, Subject: hired[0]}
			_, err := tr.Events(ctx, tracker.EventQuery{Filter: of, Back: true, Size: 50})
			return err
		}},
		{"workers by last heartbeat", func() error {
			_, err := tr.Workers(ctx, tracker.WorkerFilter{Scope: scope, Sort: tracker.ByLastHeartbeat, PageSize: 100})
			return err
		}},
		{"machines that are OFFLINE", func() error {
			_, err := tr.Machines(ctx, tracker.MachineFilter{Scope: scope, Status: tracker.Offline, PageSize: 100})
			return err
		}},
		{"machines", func() error {
			_, err := tr.Machines(ctx, tracker.MachineFilter{Scope: scope, PageSize: 100})
			return err
		}},
	} {
		var took []time.Duration
		for range 15 {
			tr.ForgetSnapshots()
			began := time.Now()
			if err := ask.do(); err != nil {
				t.Fatalf("%s: %v", ask.name, err)
			}
			took = append(took, time.Since(began))
		}
		slices.Sort(took)
		t.Logf("%-32s median %7.1f ms, best %7.1f ms", ask.name, float64(took[7].Microseconds())/1000, float64(took[0].Microseconds())/1000)
	}
}

// ended has every tenth worker claim and end tasks, and ends some machines, so that no list is empty.
func ended(t *testing.T, tr *tracker.Tracker, hired []string) {
	t.Helper()
	each(len(hired)/10, func(i int) error {
		tasks, err := tr.Claim(t.Context(), tracker.ClaimRequest{Scope: trackertest.Scope, WorkerID: hired[10*i],
			Queue: fmt.Sprintf("queue-%02d", 10*i%20), Max: 10})
		for _, e := range tasks {
			if err == nil {
				_, err = tr.Complete(t.Context(), e.Attempt, tracker.Completion{Outcome: tracker.Succeeded})
			}
		}
		if err == nil && i < len(hired)/100 {
			for n := range 10 {
				if _, err = tr.RetireWorker(t.Context(), trackertest.Scope, hired[10*i+n], tracker.WorkerForced, ""); err != nil {
					return err
				}
			}
		}
		return err
	}, t)
}

// each does something so many times, 32 at once.
func each(n int, do func(i int) error, t *testing.T) {
	t.Helper()
	var wg sync.WaitGroup
	for w := range 32 {
		wg.Add(1)
		go func() {
			defer wg.Done()
			for i := w; i < n; i += 32 {
				if err := do(i); err != nil {
					t.Error(err)
					return
				}
			}
		}()
	}
	if wg.Wait(); t.Failed() {
		t.FailNow()
	}
}
