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
	"github.com/lubdub-io/lubdub/tracker/events"
	"github.com/lubdub-io/lubdub/tracker/model"
	"github.com/lubdub-io/lubdub/tracker/queues"
	"github.com/lubdub-io/lubdub/tracker/stats"
	"github.com/lubdub-io/lubdub/tracker/trackertest"
	"github.com/lubdub-io/lubdub/tracker/workers"
)

// Prints the cost of the requests of dashboards and autoscalers with very many tasks and workers; it checks no limits.
func TestCostOfDashboardRequests(t *testing.T) {
	const tasks, fleet, queues, batch = 100_000, 10_000, 20, 100
	s := redistest.Real(t, redistest.WallClock)
	tr, err := tracker.Open(t.Context(), tracker.Options{RedisURL: s.URL, Scripts: s.Scripts, Shards: 16, RedisTimeout: 10 * time.Second,
		WorkerInterval: time.Hour, Logger: slog.New(slog.NewTextHandler(io.Discard, nil))})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = tr.Close(t.Context()) })
	if err := tr.Beats.Tick(); err != nil {
		t.Fatal(err)
	}
	queue := func(i int) string { return fmt.Sprintf("queue-%02d", i%queues) }
	hired := make([]string, fleet)
	each(fleet, func(i int) error {
		w, err := tr.Workers.Register(t.Context(), model.NewWorker{Scope: trackertest.Scope, Queue: queue(i), Types: []string{"x"},
			MachineID: fmt.Sprintf("host-%04d", i/10), Version: fmt.Sprint("1.", i%7), MaxConcurrent: 100,
			Labels: map[string]string{"region": []string{"eu", "us", "ap", "sa"}[i%4], "team": "core"}})
		if err == nil {
			hired[i] = w.WorkerID
		}
		return err
	}, t)
	each(tasks/batch, func(i int) error {
		news := make([]model.NewTask, batch)
		for j := range news {
			news[j] = model.NewTask{Scope: trackertest.Scope, Queue: queue(j), Type: "x"}
			if err := news[j].Validate(time.Now()); err != nil {
				return err
			}
		}
		for _, r := range tr.Tasks.CreateBatch(t.Context(), news) {
			if r.Err != nil {
				return r.Err
			}
		}
		return nil
	}, t)
	ctx, scope := t.Context(), trackertest.Scope
	ended(t, tr, hired)
	for _, query := range []struct {
		name string
		do   func() error
	}{
		{"GET /v1/stats", func() error { _, err := tr.Stats.Get(ctx, scope); return err }},
		{"GET /v1/system", func() error { _, err := tr.Stats.System(ctx); return err }},
		{"GET /v1/scopes", func() error { _, err := tr.Stats.Scopes(ctx, stats.ScopeFilter{PageSize: 100}); return err }},
		{"GET /v1/queues/{queue}", func() error { _, err := tr.Queues.Get(ctx, scope, queue(0)); return err }},
		{"GET /v1/queues", func() error { _, err := tr.Queues.List(ctx, scope); return err }},
		{"tasks, newest first", func() error {
			_, err := tr.Tasks.List(ctx, model.TaskFilter{Scope: scope, Descending: true, PageSize: 100})
			return err
		}},
		{"tasks of a type that none has", func() error { _, err := tr.Tasks.List(ctx, model.TaskFilter{Scope: scope, Type: "y"}); return err }},
		{"tasks by their ends", func() error {
			_, err := tr.Tasks.List(ctx, model.TaskFilter{Scope: scope, FinishedBefore: time.Now(), Descending: true, PageSize: 100})
			return err
		}},
		{"workers", func() error {
			_, err := tr.Workers.List(ctx, workers.WorkerFilter{Scope: scope, PageSize: 100})
			return err
		}},
		{"workers of a version", func() error {
			_, err := tr.Workers.List(ctx, workers.WorkerFilter{Scope: scope, Version: "1.3", PageSize: 100})
			return err
		}},
		{"workers of a queue", func() error {
			_, err := tr.Workers.List(ctx, workers.WorkerFilter{Scope: scope, Queue: queue(0), PageSize: 100})
			return err
		}},
		{"workers with a label", func() error {
			_, err := tr.Workers.List(ctx, workers.WorkerFilter{Scope: scope, Labels: map[string]string{"region": "us"}, PageSize: 100})
			return err
		}},
		{"workers by liveness", func() error {
			_, err := tr.Workers.List(ctx, workers.WorkerFilter{Scope: scope, Liveness: model.Fresh, PageSize: 100})
			return err
		}},
		{"a worker's events", func() error {
			of := events.Filter{Tenant: scope.Tenant, Workspace: scope.Workspace, Subject: hired[0]}
			_, err := tr.Events.List(ctx, events.Query{Filter: of, Back: true, Size: 50})
			return err
		}},
		{"workers by last heartbeat", func() error {
			_, err := tr.Workers.List(ctx, workers.WorkerFilter{Scope: scope, Sort: workers.ByLastHeartbeat, PageSize: 100})
			return err
		}},
		{"machines that are OFFLINE", func() error {
			_, err := tr.Workers.Machines(ctx, workers.MachineFilter{Scope: scope, Status: model.Offline, PageSize: 100})
			return err
		}},
		{"machines", func() error {
			_, err := tr.Workers.Machines(ctx, workers.MachineFilter{Scope: scope, PageSize: 100})
			return err
		}},
	} {
		var took []time.Duration
		for range 15 {
			tr.Stats.ForgetSnapshots()
			began := time.Now()
			if err := query.do(); err != nil {
				t.Fatalf("%s: %v", query.name, err)
			}
			took = append(took, time.Since(began))
		}
		slices.Sort(took)
		t.Logf("%-32s median %7.1f ms, best %7.1f ms", query.name, float64(took[7].Microseconds())/1000, float64(took[0].Microseconds())/1000)
	}
}

// ended has every tenth worker claim and end tasks, and ends some machines, so that no list is empty.
func ended(t *testing.T, tr *tracker.Tracker, hired []string) {
	t.Helper()
	each(len(hired)/10, func(i int) error {
		tasks, err := tr.Queues.Claim(t.Context(), queues.ClaimRequest{Scope: trackertest.Scope, WorkerID: hired[10*i],
			Queue: fmt.Sprintf("queue-%02d", 10*i%20), Max: 10})
		for _, e := range tasks {
			if err == nil {
				_, err = tr.Beats.Complete(t.Context(), e.Attempt, model.Completion{Outcome: model.Succeeded})
			}
		}
		if err == nil && i < len(hired)/100 {
			for n := range 10 {
				if _, err = tr.Workers.Retire(t.Context(), trackertest.Scope, hired[10*i+n], model.WorkerForced, ""); err != nil {
					return err
				}
			}
		}
		return err
	}, t)
}

// each runs a function n times, 32 at once.
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
