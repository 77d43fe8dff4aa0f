package tracker

import (
	"context"
	"fmt"

	"github.com/lubdub-io/lubdub/tracker/beats"
	"github.com/lubdub-io/lubdub/tracker/brake"
	"github.com/lubdub-io/lubdub/tracker/events"
	"github.com/lubdub-io/lubdub/tracker/holdings"
	"github.com/lubdub-io/lubdub/tracker/queues"
	"github.com/lubdub-io/lubdub/tracker/quotas"
	"github.com/lubdub-io/lubdub/tracker/reconcile"
	"github.com/lubdub-io/lubdub/tracker/revocations"
	"github.com/lubdub-io/lubdub/tracker/schedules"
	"github.com/lubdub-io/lubdub/tracker/stats"
	"github.com/lubdub-io/lubdub/tracker/store"
	"github.com/lubdub-io/lubdub/tracker/sweep"
	"github.com/lubdub-io/lubdub/tracker/tasks"
	"github.com/lubdub-io/lubdub/tracker/webhooks"
	"github.com/lubdub-io/lubdub/tracker/workers"
)

// Tracker is the services of one deployment: each manages one kind of thing in Redis, with the services below it that it needs. Their
// methods may be called from any goroutine; every error they return is a *model.Error.
type Tracker struct {
	Beats       *beats.Service
	Tasks       *tasks.Service
	Workers     *workers.Service
	Queues      *queues.Service
	Schedules   *schedules.Service
	Webhooks    *webhooks.Service
	Events      *events.Service
	Stats       *stats.Service
	Revocations *revocations.Service
	Sweeper     *sweep.Service
	Brake       *brake.Service
	Reconciler  *reconcile.Service
	Holdings    *holdings.Service
	Quotas      *quotas.Service
	Store       *store.Store
}

// Open connects to Redis, checks that it is fit for use, and starts the lanes. It returns an error when one of these fails. Close the
// tracker at the end.
func Open(ctx context.Context, o Options) (*Tracker, error) {
	if err := o.setDefaults(); err != nil {
		return nil, err
	}
	s, err := store.Open(ctx, o.ofStore())
	if err != nil {
		return nil, err
	}
	t := newTracker(s, &o)
	err = s.Begin(ctx)
	if err == nil {
		err = s.Await(ctx, "reading the revoked tokens", t.Revocations.Refresh) // before the first token is checked
	}
	if err != nil {
		_ = s.Close()
		return nil, err
	}
	return t, nil
}

// ofStore returns the options of the store.
func (o *Options) ofStore() store.Options {
	return store.Options{
		URL: o.RedisURL, TLS: o.RedisTLS, Timeout: o.RedisTimeout, Shards: o.Shards, MaxPending: o.MaxPendingCalls,
		Durability: o.Durability, DurableReplicas: o.DurableReplicas,
		ReplicaID: o.ReplicaID, Scripts: o.Scripts, EventsPerShard: o.EventsPerShard, Logger: o.Logger, Registerer: o.Registerer,
	}
}

// newTracker creates the services above the store, each from those below it that it needs.
func newTracker(s *store.Store, o *Options) *Tracker {
	e := events.New(s, events.Options{PerShard: s.EventsPerShard(), MaxAge: o.FinishedRetention, Registerer: o.Registerer})
	wh := webhooks.New(s, e, webhooks.Options{
		Poster: o.WebhookPoster, TenantBytes: o.TenantWebhookBytes, Logger: o.Logger, Registerer: o.Registerer,
	})
	b := beats.New(s, beats.Options{
		MaxPending: o.MaxPendingBeats, FinishedRetention: o.FinishedRetention, HealthCheckPeriod: o.HealthCheckPeriod,
		WorkerTimeout: o.workerTimeout(), ReplicaID: o.ReplicaID, Logger: o.Logger, Registerer: o.Registerer,
	})
	q := quotas.New(s, quotas.Options{
		TenantTasks: o.TenantTasks, TenantBytes: o.TenantBytes, TenantWorkers: o.TenantWorkers, Logger: o.Logger, Registerer: o.Registerer,
	})
	h := holdings.New(s, b, holdings.Options{FinishedRetention: o.FinishedRetention, Logger: o.Logger, Registerer: o.Registerer})
	w := workers.New(s, b, h, q, workers.Options{
		Interval: o.WorkerInterval, TimeoutMultiplier: o.WorkerTimeoutMultiplier, OfflineRetention: o.FinishedRetention, Logger: o.Logger,
	})
	ta := tasks.New(s, b, h, q, w, tasks.Options{FinishedRetention: o.FinishedRetention})
	qu := queues.New(s, h, w, ta, queues.Options{Registerer: o.Registerer})
	st := stats.New(s, e, w, qu, stats.Options{
		ReplicaID: o.ReplicaID, Facts: o.Replica, Gatherer: o.Gatherer, First: sweep.First,
		BrakeShare: o.brakeShare(), ReconcileRate: reconcile.Rate,
		Task: ta.Get, LabelsOf: ta.LabelsOf, Logger: o.Logger, Registerer: o.Registerer,
	})
	sc := schedules.New(s, ta, schedules.Options{
		MaxSchedules: o.MaxSchedules, FiresPerSecond: o.TenantFires, Logger: o.Logger, Registerer: o.Registerer,
	})
	br := brake.New(s, b, w, brake.Options{
		Enabled: o.Brake, WorkerTimeout: o.workerTimeout(), Logger: o.Logger, Registerer: o.Registerer,
	})
	rc := reconcile.New(s, w, ta, sc, wh, reconcile.Options{
		Retention: o.FinishedRetention, WorkerTimeout: o.workerTimeout(), Logger: o.Logger, Registerer: o.Registerer,
	})
	sw := sweep.New(s, e, b, h, w, ta, sc, wh, br, rc, sweep.Options{
		Retention: o.FinishedRetention, Probe: o.Probe, Logger: o.Logger, Registerer: o.Registerer,
	})
	re := revocations.New(s, revocations.Options{Logger: o.Logger, Registerer: o.Registerer})
	return &Tracker{
		Beats: b, Tasks: ta, Workers: w, Queues: qu, Schedules: sc, Webhooks: wh, Events: e, Stats: st, Revocations: re, Sweeper: sw,
		Brake: br, Reconciler: rc, Holdings: h, Quotas: q, Store: s,
	}
}

// Close refuses new work, finishes everything that waits, and closes the connections. It returns an error when ctx ends first.
func (t *Tracker) Close(ctx context.Context) error {
	closed := make(chan error, 1)
	go func() {
		t.Events.Close()
		closed <- t.Store.Close()
	}()
	select {
	case err := <-closed:
		return err
	case <-ctx.Done():
		return fmt.Errorf("flushing the batcher: %w", ctx.Err())
	}
}
