package sweep

import (
	"context"
	"time"

	"github.com/lubdub-io/lubdub/tracker/schema"
)

const (
	probeAtOnce  = 64              // probes in progress; further late workers wait for the next check
	probeTimeout = 2 * time.Second // well below the time between late and lost, which is at least half a second
)

// probes requests the URLs of late workers in the background to learn whether they are alive.
type probes struct {
	service    *Service
	background *background
	underWay   chan struct{} // one slot for each probe
}

func newProbes(s *Service, bg *background) *probes {
	return &probes{service: s, background: bg, underWay: make(chan struct{}, probeAtOnce)}
}

// start requests the URL of a late worker and records a response.
func (p *probes) start(r *schema.WorkerRef, url string) {
	select {
	case p.underWay <- struct{}{}:
	default:
		return // so many at once mean that the network is down, not the workers; their timeouts decide
	}
	p.background.run("probing workers", func() {
		defer func() { <-p.underWay }()
		ctx, cancel := context.WithTimeout(context.Background(), probeTimeout)
		defer cancel()
		s := p.service
		if err := s.opts.Probe(ctx, url); err != nil {
			s.metrics.probes.WithLabelValues("failed").Inc()
			s.logUnanswered(r, err)
			return
		}
		s.metrics.probes.WithLabelValues("answered").Inc()
		_, _ = s.store.Do(ctx, "probe", s.scripts.workerProbedCall(r, s.workers.Keys(r)))
	})
}
