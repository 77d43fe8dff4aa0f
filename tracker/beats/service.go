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
	MaxPending        int           // beats that may wait for a flush, per Redis node
	FinishedRetention time.Duration // how long finished tasks are kept
	HealthCheckPeriod time.Duration // as Options.HealthCheckPeriod of package tracker
	WorkerTimeout     time.Duration // of workers without overload
	ReplicaID         string        // names this process among those that keep shard time running
	Logger            *slog.Logger
	Registerer        prometheus.Registerer // nil: metrics are registered nowhere
}

// Service takes in the beats of attempts and their other callbacks. Its methods may be called from any goroutine.
type Service struct {
	// Made with the service and not changed.
	store *store.Store
	opts  Options
	log   *slog.Logger

	logOutages logs.Limiter // of shards

	metrics *metrics
	scripts scripts

	lanes  lanes       // redrawn with the store's map of shards
	keeper *timekeeper // of shard time
}

// New makes the service of a store that has not begun, whose lanes of beats come with its map of shards.
func New(st *store.Store, o Options) *Service {
	s := &Service{
		store: st, opts: o, log: o.Logger, metrics: newMetrics(o.Registerer), scripts: newScripts(st.Scripts),
	}
	s.keeper = newTimekeeper(st.Shards(), o.HealthCheckPeriod, s.stoodStill)
	if !st.Founded() {
		s.keeper.cutOff.begins()
	}
	st.OnMap(s.mapLanes)
	return s
}

// WorkerGap records how long a live worker was silent before a heartbeat, as a part of its timeout.
func (s *Service) WorkerGap(silent, timeout time.Duration) {
	s.metrics.workerGaps.Observe(float64(silent) / float64(timeout))
}

// stoodStill counts and writes down what an outage has kept shard time from running. All shards of a node have one together.
func (s *Service) stoodStill(lost time.Duration) {
	s.metrics.gaps.Add(lost.Seconds())
	if more, ok := s.logOutages.Allow(time.Now()); ok {
		s.log.Warn("outage over: heartbeats could not be stored; that time is excluded from timeouts",
			slog.Duration("lost", lost), "moreNotLogged", more)
	}
}

// lanes holds a lane of beats for each node, and which one each shard uses.
type lanes struct {
	byShard atomic.Pointer[[]*lane.Lane[*Beat]]
	byNode  map[*store.Node]*lane.Lane[*Beat] // of the nodes in use; mapLanes's own, under the lock of the store's map
}

func (l *lanes) of(shard int) *lane.Lane[*Beat] { return (*l.byShard.Load())[shard] }

// One flush after the other makes the largest batches. Where many beats wait all the same, as with batches of clients, a second one
// under way keeps Redis busy while this process makes commands of the next and reads the answers of the one before.
const (
	flushesAtOnce = 2
	besideFrom    = 256
)

// newFlush returns the flush of a node's lane, which may be called flushesAtOnce times at once. The second batcher works only beside
// the first, whose memory is warm.
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

// mapLanes is told of each new map of shards before it is used, one at a time. A node that is no longer in use closes its lane.
func (s *Service) mapLanes(nodes []*store.Node) {
	byShard := make([]*lane.Lane[*Beat], len(nodes))
	byNode := map[*store.Node]*lane.Lane[*Beat]{}
	for shard, n := range nodes {
		l := byNode[n]
		if l == nil {
			l = s.lanes.byNode[n]
		}
		if l == nil {
			l = lane.NewOverlapping(s.opts.MaxPending, runtime.GOMAXPROCS(0), flushesAtOnce, besideFrom, newFlush(s, n))
			n.BeforeClose(l.Close)
		}
		byNode[n], byShard[shard] = l, l
	}
	s.lanes.byNode = byNode
	s.lanes.byShard.Store(&byShard)
}
