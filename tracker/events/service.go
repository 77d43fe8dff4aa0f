package events

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/lubdub-io/lubdub/tracker/store"
)

// Options configure a Service.
type Options struct {
	PerShard   int                   // events that sweepers keep of a shard
	MaxAge     time.Duration         // how long they keep them
	Registerer prometheus.Registerer // nil: metrics are not registered
}

// Service provides what has happened as events. Its methods may be called from any goroutine.
type Service struct {
	store   *store.Store
	opts    Options
	scripts *scripts
	hosts   hosts
	hub     *hub
	metrics *metrics
	pace    *pace
}

// New returns a service.
func New(s *store.Store, o Options) *Service {
	made := &Service{store: s, opts: o, scripts: newScripts(s.Scripts), hosts: newHosts(), metrics: newMetrics(o.Registerer),
		pace: newPace()}
	made.hub = newHub(made)
	return made
}

// Close ends the loops that read for listeners.
func (s *Service) Close() { s.hub.close() }
