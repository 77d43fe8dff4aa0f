package stats

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/lubdub-io/lubdub/tracker/events"
	"github.com/lubdub-io/lubdub/tracker/model"
	"github.com/lubdub-io/lubdub/tracker/queues"
	"github.com/lubdub-io/lubdub/tracker/store"
	"github.com/lubdub-io/lubdub/tracker/workers"
)

// Options configure a Service.
type Options struct {
	ReplicaID string
	Facts     Facts               // what this replica reports about itself
	Gatherer  prometheus.Gatherer // source of the counters that it reports; nil: it reports none
	// First returns which of the sweepers has rank 0 for a shard.
	First         func(shard int, sweepers []string) string
	BrakeShare    int // percent; 0: there is no brake
	ReconcileRate int // entries per second, for all sweepers together
	// Task reads a task with its history.
	Task func(ctx context.Context, scope model.Scope, id string) (*model.Task, error)
	// LabelsOf reads the labels of tasks, by their ids.
	LabelsOf   func(ctx context.Context, op string, scope model.Scope, ids []string) (map[string]map[string]string, error)
	Logger     *slog.Logger
	Registerer prometheus.Registerer // nil: metrics are not registered
}

// Service counts and collects statistics. Its methods may be called from any goroutine.
type Service struct {
	store   *store.Store
	events  *events.Service
	workers *workers.Service
	queues  *queues.Service
	opts    Options
	scripts *scripts

	series    series
	snapshots *snapshots
	reporter  reporter
	published *publishedCounts
}

// Facts are what a replica reports about itself.
type Facts struct {
	Version, Commit string
	Roles           []string
	Since           time.Time
	// Settings has a short digest of each setting that should be the same on all replicas, by name: two bytes, which show a
	// difference and no secret.
	Settings map[string]string
}

const maxSnapshots = 1024 // scopes and queries whose results are cached

// New creates the service.
func New(st *store.Store, e *events.Service, w *workers.Service, q *queues.Service, o Options) *Service {
	published := newPublishedCounts()
	if o.Registerer != nil {
		o.Registerer.MustRegister(published)
	}
	return &Service{
		store: st, events: e, workers: w, queues: q, opts: o, scripts: newScripts(st.Scripts), snapshots: newSnapshots(maxSnapshots),
		published: published, series: series{steps: map[int64]*Step{}}, reporter: reporter{before: map[string]int64{}},
	}
}

// series are the steps that this replica has read, under mu.
type series struct {
	mu    sync.Mutex
	steps map[int64]*Step // nil: no replica reported
}
