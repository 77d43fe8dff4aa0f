package queues

import (
	"log/slog"
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
	Logger     *slog.Logger
	Registerer prometheus.Registerer // nil: metrics are registered nowhere
}

// Service hands the tasks that wait in queues to the workers that claim them. Its methods may be called from any goroutine.
type Service struct {
	store     *store.Store
	holdings  *holdings.Service
	workers   *workers.Service
	tasks     *tasks.Service
	log       *slog.Logger
	metrics   *metrics
	waitlists waitlists
	listener  listener
	nudges    nudges
	fullRetry time.Duration
	asked     *lru.Cache[string, map[string]string] // labels by their hash
}

// New makes the service. Close it.
func New(s *store.Store, h *holdings.Service, w *workers.Service, ta *tasks.Service, o Options) *Service {
	t := &Service{store: s, holdings: h, workers: w, tasks: ta, log: o.Logger, metrics: newMetrics(o.Registerer), fullRetry: fullRetry, asked: newAskedCache()}
	t.listener.queues = t
	return t
}

// Close ends what hears that tasks become ready.
func (s *Service) Close() { s.listener.close() }
