package schedules

import (
	"log/slog"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/lubdub-io/lubdub/tracker/store"
	"github.com/lubdub-io/lubdub/tracker/tasks"
)

// Options configure a Service; all but the Registerer must be set.
type Options struct {
	MaxSchedules   int // for one tenant, in all its workspaces
	FiresPerSecond int // fires of one tenant whose tasks this process creates per second; 0: unlimited
	Logger         *slog.Logger
	Registerer     prometheus.Registerer // nil: metrics are not registered
}

// Service stores schedules and fires them. Its methods may be called from any goroutine: the paces have a lock, and the other
// fields do not change.
type Service struct {
	store   *store.Store
	tasks   *tasks.Service
	scripts *scripts
	opts    Options
	log     *slog.Logger
	metrics *metrics
	paces   *paces
}

// New creates the service.
func New(s *store.Store, t *tasks.Service, o Options) *Service {
	return &Service{
		store: s, tasks: t, scripts: newScripts(s.Scripts), opts: o, log: o.Logger, metrics: newMetrics(o.Registerer),
		paces: newPaces(o.FiresPerSecond),
	}
}
