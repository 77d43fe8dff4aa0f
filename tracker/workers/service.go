package workers

import (
	"log/slog"
	"time"

	"github.com/lubdub-io/lubdub/tracker/beats"
	"github.com/lubdub-io/lubdub/tracker/holdings"
	"github.com/lubdub-io/lubdub/tracker/quotas"
	"github.com/lubdub-io/lubdub/tracker/store"
)

// Options configure a Service.
type Options struct {
	Interval          time.Duration // between workers' beats
	TimeoutMultiplier int           // a worker's timeout is this many intervals
	OfflineRetention  time.Duration // how long OFFLINE workers are kept
	FlappingThreshold int           // a worker or machine that went stale so often within a day flaps
	Logger            *slog.Logger
}

// Service keeps the registry of workers and machines. Its methods may be called from any goroutine: none of its fields is
// written after New.
type Service struct {
	store    *store.Store
	beats    *beats.Service
	holdings *holdings.Service
	quotas   *quotas.Service
	scripts  *scripts
	opts     Options
	log      *slog.Logger
}

// New makes the service.
func New(s *store.Store, b *beats.Service, h *holdings.Service, q *quotas.Service, o Options) *Service {
	return &Service{
		store: s, beats: b, holdings: h, quotas: q, scripts: newScripts(s.Scripts), opts: o, log: o.Logger,
	}
}
