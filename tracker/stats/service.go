package stats

import (
	"context"
	"log/slog"
	"sync"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"
	"github.com/prometheus/client_golang/prometheus"

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
	Task       func(ctx context.Context, scope model.Scope, id string) (*model.Task, error)
	Logger     *slog.Logger
	Registerer prometheus.Registerer // nil: metrics are registered nowhere
}

// Service counts. Its methods may be called from any goroutine.
type Service struct {
	store   *store.Store
	workers *workers.Service
	queues  *queues.Service
	opts    Options
	scripts *scripts

	series    series
	snapshots *snapshots
	hosts     *lru.Cache[string, host] // machines and versions of workers, which never change
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

const (
	maxSnapshots = 1024   // scopes and questions whose answers are remembered
	maxHosts     = 20_000 // workers whose machine and version are
)

// New makes the service.
func New(st *store.Store, w *workers.Service, q *queues.Service, o Options) *Service {
	hosts, _ := lru.New[string, host](maxHosts) // fails for a size of 0 only
	told := newTold()
	if o.Registerer != nil {
		o.Registerer.MustRegister(told)
	}
	return &Service{
		store: st, workers: w, queues: q, opts: o, scripts: newScripts(st.Scripts), snapshots: newSnapshots(maxSnapshots),
		hosts: hosts, told: told,
		series: series{steps: map[int64]*Step{}}, reporter: reporter{before: map[string]int64{}},
	}
}

// series are the steps that this replica has read. mu guards it.
type series struct {
	mu    sync.Mutex
	steps map[int64]*Step // nil: nobody reported
}
