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
	Facts     Facts               // what this replica says of itself
	Gatherer  prometheus.Gatherer // whose counters it leaves; nil: it leaves none
	// First returns who sweeps a shard first of those that sweep.
	First         func(shard int, sweepers []string) string
	BrakeShare    int // percent; 0: there is no brake
	ReconcileRate int // entries a second of all sweepers together
	// Task reads a task with its history.
	Task func(ctx context.Context, scope model.Scope, id string) (*model.Task, error)
	// LabelsOf reads the labels of tasks, by their ids.
	LabelsOf   func(ctx context.Context, op string, scope model.Scope, ids []string) (map[string]map[string]string, error)
	Logger     *slog.Logger
	Registerer prometheus.Registerer // nil: metrics are registered nowhere
}

// Service counts. Its methods may be called from any goroutine.
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
	told      *told
}

// Facts are what a replica says of itself.
type Facts struct {
	Version, Commit string
	Roles           []string
	Since           time.Time
	// Settings has a short digest of each setting that should be the same everywhere, by its name: two bytes, which tell a
	// difference and no secret.
	Settings map[string]string
}

const maxSnapshots = 1024 // scopes and questions whose answers are remembered

// New makes the service.
func New(st *store.Store, e *events.Service, w *workers.Service, q *queues.Service, o Options) *Service {
	told := newTold()
	if o.Registerer != nil {
		o.Registerer.MustRegister(told)
	}
	return &Service{
		store: st, events: e, workers: w, queues: q, opts: o, scripts: newScripts(st.Scripts), snapshots: newSnapshots(maxSnapshots),
		told: told, series: series{steps: map[int64]*Step{}}, reporter: reporter{before: map[string]int64{}},
	}
}

// series are the steps that this replica has read. mu guards it.
type series struct {
	mu    sync.Mutex
	steps map[int64]*Step // nil: nobody reported
}
