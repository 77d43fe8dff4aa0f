package events

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/lubdub-io/lubdub/tracker/store"
)

// Options configure a Service.
type Options struct {
	Registerer prometheus.Registerer // nil: metrics are registered nowhere
}

// Service tells what has happened. Its methods may be called from any goroutine.
type Service struct {
	store   *store.Store
	scripts *scripts
	hosts   hosts
}

// New makes the service.
func New(s *store.Store, o Options) *Service {
	return &Service{store: s, scripts: newScripts(s.Scripts), hosts: newHosts()}
}
