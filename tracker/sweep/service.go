package sweep

import (
	"context"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/lubdub-io/lubdub/tracker/beats"
	"github.com/lubdub-io/lubdub/tracker/holdings"
	"github.com/lubdub-io/lubdub/tracker/store"
	"github.com/lubdub-io/lubdub/tracker/tasks"
	"github.com/lubdub-io/lubdub/tracker/workers"
)

// Options configure a Service.
type Options struct {
	BrakeShare              int                                         // as Options.BrakeShare of package tracker
	FinishedRetention       time.Duration                               // how long finished tasks are kept
	OfflineRetention        time.Duration                               // how long OFFLINE workers are kept
	WorkerInterval          time.Duration                               // between workers' beats
	WorkerTimeoutMultiplier int                                         // a worker's timeout is this many intervals
	Probe                   func(ctx context.Context, url string) error // asks a late worker whether it is alive; nil: none is asked
	Logger                  *slog.Logger
	Registerer              prometheus.Registerer // nil: metrics are registered nowhere
}

// Service is what the sweepers of a process share. Its methods may be called from any goroutine.
type Service struct {
	store        *store.Store
	beats        *beats.Service
	holdings     *holdings.Service
	workers      *workers.Service
	tasks        *tasks.Service
	opts         Options
	log          *slog.Logger
	metrics      *metrics
	brakeMetrics *brakeMetrics
}

// New makes the service.
func New(s *store.Store, b *beats.Service, h *holdings.Service, w *workers.Service, ta *tasks.Service, o Options) *Service {
	return &Service{
		store: s, beats: b, holdings: h, workers: w, tasks: ta, opts: o, log: o.Logger,
		metrics: newMetrics(o.Registerer), brakeMetrics: newBrakeMetrics(o.Registerer),
	}
}
