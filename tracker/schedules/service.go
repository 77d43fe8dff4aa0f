package schedules

import (
	"log/slog"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/lubdub-io/lubdub/tracker/store"
	"github.com/lubdub-io/lubdub/tracker/tasks"
)

// Options configure a Service; all but the Registerer must be set.
type Options struct {
	MaxSchedules   int // of one tenant, over all its workspaces
	FiresPerSecond int // whose tasks this process creates for one tenant; 0: any number
	Logger         *slog.Logger
	Registerer     prometheus.Registerer // nil: metrics are registered nowhere
}

// Service keeps schedules and fires them. Its methods may be called from any goroutine: the paces have a lock, and all else is set
// when it is made.
type Service struct {
	store   *store.Store
	tasks   *tasks.Service
	scripts *scripts
	opts    Options
	log     *slog.Logger
	metrics *metrics
	paces   *paces
}

// New makes the service.
func New(s *store.Store, t *tasks.Service, o Options) *Service {
	return &Service{
		store: s, tasks: t, scripts: newScripts(s.Scripts), opts: o, log: o.Logger, metrics: newMetrics(o.Registerer),
		paces: newPaces(o.FiresPerSecond),
	}
}
