package beats

import (
	"log/slog"
	"runtime"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/lubdub-io/lubdub/internal/logs"
	"github.com/lubdub-io/lubdub/tracker/lane"
	"github.com/lubdub-io/lubdub/tracker/store"
)

// Options configure a Service.
type Options struct {
	MaxPending        int           // limit of beats that wait for a flush, per Redis node
	FinishedRetention time.Duration // how long finished tasks are kept
	HealthCheckPeriod time.Duration // see Options.HealthCheckPeriod of package tracker
	WorkerTimeout     time.Duration // of workers that set none
	ReplicaID         string        // this process's name among the replicas that keep shard time running
	Logger            *slog.Logger
	Registerer        prometheus.Registerer // nil: metrics are not registered
}

// Service receives the beats of attempts and their other callbacks. Its methods may be called from any goroutine.
type Service struct {
	// These do not change.
	store *store.Store
	opts  Options
	log   *slog.Logger

	logOutages logs.Limiter // limits log lines about outages of shards

	metrics *metrics
	scripts scripts

	lanes  lanes       // updated with the store's map of shards
	keeper *timekeeper // drives shard time
}

// New returns the service of a store on which Begin was not called yet: its lanes of beats are opened with the map of shards.
func New(st *store.Store, o Options) *Service {
	s := &Service{
		store: st, opts: o, log: o.Logger, metrics: newMetrics(o.Registerer), scripts: newScripts(st.Scripts),
	}
	s.keeper = newTimekeeper(st.Shards(), o.HealthCheckPeriod, s.logOutage)
	if !st.Founded() {
		s.keeper.cutOff.begins()
	}
	st.OnMap(s.mapLanes)
	return s
}

// WorkerGap records how long a live worker was silent before a heartbeat, as a fraction of its timeout.
func (s *Service) WorkerGap(silent, timeout time.Duration) {
	s.metrics.workerGaps.Observe(float64(silent) / float64(timeout))
}

// logOutage counts and logs how long an outage has paused shard time. The shards of a node share their outages.
func (s *Service) logOutage(lost time.Duration) {
	s.metrics.gaps.Add(lost.Seconds())
	if more, ok := s.logOutages.Allow(time.Now()); ok {
		s.log.Warn("outage over: heartbeats could not be stored; that time is excluded from timeouts",
			slog.Duration("lost", lost), "moreNotLogged", more)
	}
}

// lanes holds one lane of beats for each node, and the lane of each shard.
type lanes struct {
	byShard atomic.Pointer[[]*lane.Lane[*Beat]]
	byNode  map[*store.Node]*lane.Lane[*Beat] // of the nodes in use; only mapLanes uses it, under the lock of the store's map
}

func (l *lanes) of(shard int) *lane.Lane[*Beat] { return (*l.byShard.Load())[shard] }

// Sequential flushes make the largest batches. When many beats wait anyway, as with clients that batch, a second concurrent flush keeps
// Redis busy while this process prepares the next commands and reads the last replies.
const (
	flushesAtOnce = 2
	overlapFrom   = 256
)

// newFlush returns the flush function of a node's lane, which flushesAtOnce goroutines may call concurrently. The second batcher is used
// only while the first one, whose memory is warm, is busy.
func newFlush(s *Service, n *store.Node) func([]*Beat) {
	first, second := newBatcher(s, n), newBatcher(s, n)
	var busy atomic.Bool
	return func(batch []*Beat) {
		if !busy.CompareAndSwap(false, true) {
			second.flush(batch)
			return
		}
		defer busy.Store(false)
		first.flush(batch)
	}
}

// mapLanes is called with each new map of shards before it is used, one call at a time. The lane of a retired node closes.
func (s *Service) mapLanes(nodes []*store.Node) {
	byShard := make([]*lane.Lane[*Beat], len(nodes))
	byNode := map[*store.Node]*lane.Lane[*Beat]{}
	for shard, n := range nodes {
		l := byNode[n]
		if l == nil {
			l = s.lanes.byNode[n]
		}
		if l == nil {
			l = lane.NewOverlapping(s.opts.MaxPending, runtime.GOMAXPROCS(0), flushesAtOnce, overlapFrom, newFlush(s, n))
			n.BeforeClose(l.Close)
		}
		byNode[n], byShard[shard] = l, l
	}
	s.lanes.byNode = byNode
	s.lanes.byShard.Store(&byShard)
}
