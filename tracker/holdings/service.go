package holdings

import (
	"cmp"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/lubdub-io/lubdub/tracker/beats"
	"github.com/lubdub-io/lubdub/tracker/store"
)

// Options configure a Service.
type Options struct {
	FinishedRetention time.Duration         // how long finished tasks are kept
	Logger            *slog.Logger          // nil: slog.Default()
	Registerer        prometheus.Registerer // nil: metrics are not registered
}

// Service manages what workers hold. Its methods may be called from any goroutine. Its fields do not change after New.
type Service struct {
	store   *store.Store
	beats   *beats.Service
	opts    Options
	log     *slog.Logger
	metrics *metrics
	scripts scripts
	ownedBy ownedCache
}

// New returns a service.
func New(st *store.Store, b *beats.Service, o Options) *Service {
	return &Service{
		store: st, beats: b, opts: o, log: cmp.Or(o.Logger, slog.Default()), metrics: newMetrics(o.Registerer),
		scripts: newScripts(st.Scripts), ownedBy: newOwnedCache(),
	}
}
