package brake

import (
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/lubdub-io/lubdub/tracker/beats"
	"github.com/lubdub-io/lubdub/tracker/model"
	"github.com/lubdub-io/lubdub/tracker/store"
	"github.com/lubdub-io/lubdub/tracker/workers"
)

// Options configure a Service.
type Options struct {
	Enabled       bool          // false: nothing is held
	WorkerTimeout time.Duration // how long a worker may be silent
	Logger        *slog.Logger
	Registerer    prometheus.Registerer // nil: metrics are not registered
}

// Service is the part of the mass-expiry brake that the sweepers of a process share. Its fields do not change, so its methods may
// be called from any goroutine.
type Service struct {
	store   *store.Store
	beats   *beats.Service
	workers *workers.Service
	scripts scripts
	opts    Options
	log     *slog.Logger
	metrics metrics
}

// New creates the service.
func New(s *store.Store, b *beats.Service, w *workers.Service, o Options) *Service {
	return &Service{
		store: s, beats: b, workers: w, scripts: newScripts(s.Scripts, s.Keys), opts: o, log: o.Logger, metrics: newMetrics(o.Registerer),
	}
}

// homeOf is the shard that records that the brake engages in a scope, and that writes the events about it.
func (s *Service) homeOf(scope model.Scope) int { return s.store.ShardOf(scope, "") }
