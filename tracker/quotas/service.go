package quotas

import (
	"context"
	"log/slog"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/lubdub-io/lubdub/tracker/store"
)

// Options configure a Service with the limits of one tenant, over all its workspaces. 0: no limit.
type Options struct {
	TenantTasks   int64 // tasks that are not finished
	TenantBytes   int64 // bytes of its tasks, finished ones included
	TenantWorkers int64 // workers that are not OFFLINE
	Logger        *slog.Logger
	Registerer    prometheus.Registerer // nil: metrics are not registered
}

// Service enforces tenants' limits. Its methods may be called from any goroutine: its fields do not change after New, and the quotas have
// their locks.
type Service struct {
	store   *store.Store
	opts    Options
	log     *slog.Logger
	metrics *metrics
	scripts scripts
	tasks   *quota // nil: no limits
	workers *quota // nil: no limits
}

// New returns a service.
func New(st *store.Store, o Options) *Service {
	s := &Service{store: st, opts: o, log: o.Logger, metrics: newMetrics(o.Registerer), scripts: newScripts(st.Scripts)}
	s.setQuotas()
	return s
}

// BoundsTasks reports whether tenants' tasks are limited.
func (s *Service) BoundsTasks() bool { return s.tasks != nil }

// AdmitTask admits one more task of a tenant, with its size in bytes, or returns an Overloaded error with TooMany. Settle the returned
// usage, with 1 and the bytes, once the task is stored or never will be.
func (s *Service) AdmitTask(ctx context.Context, tenant string, bytes int64) (*Usage, error) {
	return s.tasks.take(ctx, s.CountTasks, tenant, 1, bytes)
}

// AdmitWorker admits one more worker of a tenant, or returns an error as AdmitTask does. Settle the returned usage with 1.
func (s *Service) AdmitWorker(ctx context.Context, tenant string) (*Usage, error) {
	return s.workers.take(ctx, s.countWorkers, tenant, 1)
}
