package queues

import (
	"time"

	lru "github.com/hashicorp/golang-lru/v2"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/lubdub-io/lubdub/tracker/holdings"
	"github.com/lubdub-io/lubdub/tracker/store"
	"github.com/lubdub-io/lubdub/tracker/tasks"
	"github.com/lubdub-io/lubdub/tracker/workers"
)

// Options configure a Service.
type Options struct {
	Registerer prometheus.Registerer // nil: metrics are not registered
}

// Service hands the waiting tasks of queues to the workers that claim them. Its methods may be called from any goroutine;
// waitlists, nudges and the cache have their own locks.
type Service struct {
	store      *store.Store
	holdings   *holdings.Service
	workers    *workers.Service
	tasks      *tasks.Service
	scripts    *scripts
	metrics    *metrics
	waitlists  waitlists
	nudges     nudges
	labelCache *lru.Cache[string, map[string]string] // labels by their hash
	able       *lru.Cache[string, *ability]          // by its hash too
	last       *lru.Cache[string, workers.Reserved]  // by worker, <scope>/<id>: its state when its last reservation here ended
	fullRetry  time.Duration                         // set by New and by tests
	safety     time.Duration                         // the same
}

// New creates the service.
func New(s *store.Store, h *holdings.Service, w *workers.Service, t *tasks.Service, o Options) *Service {
	made := &Service{
		store: s, holdings: h, workers: w, tasks: t, scripts: newScripts(s.Scripts), metrics: newMetrics(o.Registerer),
		labelCache: newLabelCache(), able: newAbleCache(), last: newLastCache(), fullRetry: fullRetry, safety: safetyPeriod,
	}
	s.OnWake(made.recheck, made.receive)
	return made
}
