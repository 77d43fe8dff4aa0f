package beats

import (
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/lubdub-io/lubdub/tracker/store"
)

// Options configure a Service.
type Options struct {
	MaxPending        int           // beats that may wait for a flush, per Redis node
	FinishedRetention time.Duration // how long finished tasks are kept
	HealthCheckPeriod time.Duration // as Options.HealthCheckPeriod of package tracker
	WorkerTimeout     time.Duration // of workers without overload
	ReplicaID         string        // names this process among those that keep shard time running
	Logger            *slog.Logger
	Registerer        prometheus.Registerer // nil: metrics are registered nowhere
}

// Service hears the beats of attempts, and what their callbacks say besides. Its methods may be called from any goroutine.
type Service struct {
	store   *store.Store
	opts    Options
	log     *slog.Logger
	metrics *metrics
	lanes   lanes       // redrawn with the store's map of shards
	keeper  *timekeeper // of shard time
}

// New makes the service of a store that has not begun, whose lanes of beats come with its map of shards.
func New(st *store.Store, o Options) *Service {
	s := &Service{store: st, opts: o, log: o.Logger, metrics: newMetrics(o.Registerer)}
	s.keeper = newTimekeeper(st.Shards(), o.HealthCheckPeriod, func(d time.Duration) { s.metrics.gaps.Add(d.Seconds()) })
	if !st.Founded() {
		s.keeper.cutOff.begins()
	}
	st.OnMap(s.mapLanes)
	return s
}
