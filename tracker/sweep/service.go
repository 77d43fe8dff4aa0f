package sweep

import (
	"context"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/lubdub-io/lubdub/internal/logs"
	"github.com/lubdub-io/lubdub/tracker/beats"
	"github.com/lubdub-io/lubdub/tracker/brake"
	"github.com/lubdub-io/lubdub/tracker/events"
	"github.com/lubdub-io/lubdub/tracker/holdings"
	"github.com/lubdub-io/lubdub/tracker/reconcile"
	"github.com/lubdub-io/lubdub/tracker/schedules"
	"github.com/lubdub-io/lubdub/tracker/store"
	"github.com/lubdub-io/lubdub/tracker/tasks"
	"github.com/lubdub-io/lubdub/tracker/webhooks"
	"github.com/lubdub-io/lubdub/tracker/workers"
)

// Options configure a Service.
type Options struct {
	Retention  time.Duration                               // how long finished tasks and OFFLINE workers are kept
	Probe      func(ctx context.Context, url string) error // requests the URL of a late worker; nil: no worker is probed
	Logger     *slog.Logger
	Registerer prometheus.Registerer // nil: metrics are not registered
}

// Service is what the sweepers of a process share. Its fields do not change, so its methods may be called from any goroutine.
type Service struct {
	store     *store.Store
	events    *events.Service
	beats     *beats.Service
	holdings  *holdings.Service
	workers   *workers.Service
	tasks     *tasks.Service
	schedules *schedules.Service
	webhooks  *webhooks.Service
	brake     *brake.Service
	reconcile *reconcile.Service
	scripts   scripts
	opts      Options
	log       *slog.Logger
	metrics   *metrics

	logVerdicts *logs.Limiter // about tasks
	logProbes   *logs.Limiter
}

// New creates the service.
func New(
	s *store.Store, e *events.Service, b *beats.Service, h *holdings.Service, w *workers.Service, ta *tasks.Service,
	sc *schedules.Service, wh *webhooks.Service, br *brake.Service, re *reconcile.Service, o Options,
) *Service {
	return &Service{
		store: s, events: e, beats: b, holdings: h, workers: w, tasks: ta, schedules: sc, webhooks: wh, brake: br, reconcile: re,
		scripts: newScripts(s.Scripts, s.Keys), opts: o, log: o.Logger,
		metrics: newMetrics(o.Registerer), logVerdicts: &logs.Limiter{Lines: verdictLines}, logProbes: &logs.Limiter{Lines: probeLines},
	}
}

// exec runs calls on a node in one round trip and returns the first error.
func (s *Service) exec(ctx context.Context, n *store.Node, calls []*store.Call) error {
	s.store.Exec(ctx, n, calls)
	return store.FirstError(calls)
}
