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
	Interval          time.Duration // between workers' heartbeats
	TimeoutMultiplier int           // a worker's timeout is this many intervals
	OfflineRetention  time.Duration // how long OFFLINE workers are kept
	Logger            *slog.Logger
}

// Service is the registry of workers and machines. It combines its parts, none of which changes after New, so its methods may be
// called from any goroutine.
type Service struct {
	*scripts    // calls that other packages send along with their own
	*reader     // the index and the records
	*loads      // what workers hold
	*views      // what is shown of workers
	*registrar  // registrations and heartbeats
	*operations // drains, cordons, ends
	*machines
	*placement // selection and reservations
}

// New creates the service.
func New(s *store.Store, b *beats.Service, h *holdings.Service, q *quotas.Service, o Options) *Service {
	sc := newScripts(s, o)
	rd := &reader{store: s, scripts: sc}
	lo := &loads{store: s, scripts: sc}
	li := &views{store: s, scripts: sc, reader: rd, loads: lo}
	op := &operations{store: s, holdings: h, scripts: sc, reader: rd, loads: lo, views: li}
	return &Service{
		scripts: sc, reader: rd, loads: lo, views: li, operations: op,
		registrar: &registrar{store: s, beats: b, holdings: h, quotas: q, scripts: sc, reader: rd, opts: o, log: o.Logger},
		machines:  &machines{store: s, scripts: sc, reader: rd, operations: op},
		placement: &placement{store: s, holdings: h, scripts: sc, reader: rd, loads: lo, views: li},
	}
}
