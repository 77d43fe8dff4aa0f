package events

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/lubdub-io/lubdub/tracker/store"
)

// Options configure a Service.
type Options struct {
	PerShard   int                   // events that sweepers leave of a shard
	MaxAge     time.Duration         // for how long they leave them; 0: for as long as there are not more
	Registerer prometheus.Registerer // nil: metrics are registered nowhere
}

// Service tells what has happened. Its methods may be called from any goroutine.
type Service struct {
	store   *store.Store
	opts    Options
	scripts *scripts
	hosts   hosts
	hub     *hub
	metrics *metrics
	pace    *pace
}

// New makes the service.
func New(s *store.Store, o Options) *Service {
	made := &Service{store: s, opts: o, scripts: newScripts(s.Scripts), hosts: newHosts(), metrics: newMetrics(o.Registerer),
		pace: newPace()}
	made.hub = newHub(made)
	return made
}

// Close ends what reads for listeners.
func (s *Service) Close() { s.hub.close() }
