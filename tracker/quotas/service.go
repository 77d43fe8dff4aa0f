package quotas

import (
	"context"
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

// Service holds tenants to what they may have. Its methods may be called from any goroutine: none of its fields is changed once
// New has returned, and the quotas have locks of their own.
type Service struct {
	store   *store.Store
	opts    Options
	log     *slog.Logger
	metrics *metrics
	scripts scripts
	tasks   *quota // nil: nothing is bounded
	workers *quota // the same
}

// New makes the service.
func New(st *store.Store, o Options) *Service {
	s := &Service{store: st, opts: o, log: o.Logger, metrics: newMetrics(o.Registerer), scripts: newScripts(st.Scripts)}
	s.setQuotas()
	return s
}

// BoundsTasks reports whether tenants' tasks are bounded at all.
func (s *Service) BoundsTasks() bool { return s.tasks != nil }

// AdmitTask admits one more task of a tenant, which takes up so many bytes, or refuses it: Overloaded, with TooMany. Settle what
// it returns, with 1 and the bytes, once the task stands in the store or never will.
func (s *Service) AdmitTask(ctx context.Context, tenant string, bytes int64) (*Usage, error) {
	return s.tasks.take(ctx, s.countTasks, tenant, 1, bytes)
}

// AdmitWorker admits one more worker of a tenant, or refuses it as AdmitTask does. Settle what it returns with 1.
func (s *Service) AdmitWorker(ctx context.Context, tenant string) (*Usage, error) {
	return s.workers.take(ctx, s.countWorkers, tenant, 1)
}
