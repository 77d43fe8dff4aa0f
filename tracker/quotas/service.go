package quotas

import (
	"log/slog"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/lubdub-io/lubdub/tracker/store"
)

// Options configure a Service: what one tenant may have, over all its workspaces. 0: no limit.
type Options struct {
	TenantTasks   int64 // that are not finished
	TenantBytes   int64 // that its tasks take, finished ones included
	TenantWorkers int64 // that are not OFFLINE
	Logger        *slog.Logger
	Registerer    prometheus.Registerer // nil: metrics are registered nowhere
}

// Service holds tenants to what they may have. Its methods may be called from any goroutine.
type Service struct {
	store   *store.Store
	opts    Options
	log     *slog.Logger
	metrics *metrics
	Quotas  quotas
}

// New makes the service.
func New(s *store.Store, o Options) *Service {
	t := &Service{store: s, opts: o, log: o.Logger, metrics: newMetrics(o.Registerer)}
	t.setQuotas()
	return t
}
