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
	hub     *hub
	metrics *metrics
}

// New makes the service.
func New(s *store.Store, o Options) *Service {
	made := &Service{store: s, scripts: newScripts(s.Scripts), hosts: newHosts(), metrics: newMetrics(o.Registerer)}
	made.hub = newHub(made)
	return made
}

// Close ends what reads for listeners.
func (s *Service) Close() { s.hub.close() }
