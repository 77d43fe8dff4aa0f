package reconcile

import (
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/lubdub-io/lubdub/tracker/schedules"
	"github.com/lubdub-io/lubdub/tracker/store"
	"github.com/lubdub-io/lubdub/tracker/tasks"
	"github.com/lubdub-io/lubdub/tracker/webhooks"
	"github.com/lubdub-io/lubdub/tracker/workers"
)

// Options configure a Service.
type Options struct {
	Retention     time.Duration // how long finished tasks and OFFLINE workers are kept
	WorkerTimeout time.Duration // how long a worker may be silent
	Logger        *slog.Logger
	Registerer    prometheus.Registerer // nil: metrics are not registered
}

// Service is what the reconcilers of a process share. Its fields do not change, so its methods may be called from any goroutine.
type Service struct {
	store     *store.Store
	workers   *workers.Service
	tasks     *tasks.Service
	schedules *schedules.Service
	webhooks  *webhooks.Service
	scripts   scripts
	opts      Options
	log       *slog.Logger

	repairs *prometheus.CounterVec // by what was repaired
	entries prometheus.Counter     // compared with their records
}

// New creates the service.
func New(
	s *store.Store, w *workers.Service, ta *tasks.Service, sc *schedules.Service, wh *webhooks.Service, o Options,
) *Service {
	service := &Service{
		store: s, workers: w, tasks: ta, schedules: sc, webhooks: wh, scripts: newScripts(s.Scripts, s.Keys), opts: o, log: o.Logger,
		repairs: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "lubdub_repairs_total",
			Help: "What the reconciler repaired, by what it was. Anything but 0 means that the store lost writes, " +
				"that something else wrote to it, or a bug.",
		}, []string{"what"}),
		entries: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "lubdub_reconciled_entries_total", Help: "Entries that the reconciler held against their records.",
		}),
	}
	if o.Registerer != nil {
		o.Registerer.MustRegister(service.repairs, service.entries)
	}
	return service
}
