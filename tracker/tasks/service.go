package tasks

import (
	"time"

	"github.com/lubdub-io/lubdub/tracker/beats"
	"github.com/lubdub-io/lubdub/tracker/holdings"
	"github.com/lubdub-io/lubdub/tracker/quotas"
	"github.com/lubdub-io/lubdub/tracker/store"
	"github.com/lubdub-io/lubdub/tracker/workers"
)

// Options configure a Service.
type Options struct {
	FinishedRetention time.Duration // how long finished tasks are kept
}

// Service creates, reads, lists and cancels tasks and makes their attempts. Its methods may be called from any goroutine.
type Service struct {
	store    *store.Store
	beats    *beats.Service
	holdings *holdings.Service
	quotas   *quotas.Service
	workers  *workers.Service
	scripts  *scripts
	opts     Options
	awaiting awaiting
}

// New makes the service.
func New(s *store.Store, b *beats.Service, h *holdings.Service, q *quotas.Service, w *workers.Service, o Options) *Service {
	made := &Service{
		store: s, beats: b, holdings: h, quotas: q, workers: w, scripts: newScripts(s.Scripts), opts: o,
		awaiting: awaiting{of: map[string][]awaited{}},
	}
	s.OnWake(made.awaiting.recheck, made.awaiting.receive)
	return made
}
