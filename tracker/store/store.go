package store

import (
	"context"
	"crypto/tls"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/redis/go-redis/v9"

	"github.com/lubdub-io/lubdub/lua"
	"github.com/lubdub-io/lubdub/tracker/schema"
)

// Options configure a Store; all but those with a nil or zero of their own must be set.
type Options struct {
	URL        string        // as Options.RedisURL of package tracker
	TLS        *tls.Config   // nil: with the roots of the system
	Timeout    time.Duration // for one round trip
	Shards     int           // 0: what is stored, else 4, or 64 on Cluster
	MaxPending int           // calls that may wait in each lane of a node

	Durability      Durability
	DurableReplicas int // that must confirm, with Replicated

	ReplicaID      string // names this process
	Scripts        *lua.Set
	EventsPerShard int // that a shard's stream keeps, about; 0: lua.DefaultEventsPerShard
	Logger         *slog.Logger
	Registerer     prometheus.Registerer // nil: metrics are registered nowhere
}

// Store is Redis as the domain sees it: shards on nodes, and the scripts that run on them.
type Store struct {
	opts    Options
	Scripts *lua.Set // as this deployment runs them
	scripts scripts
	Keys    []*schema.ShardKeys

	embedded bool // a miniredis in this process

	single  *redis.Client        // one server, or Sentinel's choice of one; nil on Cluster
	cluster *redis.ClusterClient // nil otherwise

	sentinels *redis.FailoverOptions // nil without Sentinel

	onMap func(byShard []*Node) // is told of each new map before it is used, under mu

	guarantee guarantee // what durable transitions are answered by; nil with Memory
	metrics   *metrics

	mu      sync.Mutex
	nodes   map[string]*Node // by address; those that have shards
	closed  bool
	byShard atomic.Pointer[[]*Node]
	mapped  time.Time // when byShard was last drawn

	broken     *breakdown
	probes     sync.WaitGroup // of silent nodes
	retiring   sync.WaitGroup // nodes that are not in use any more
	background sync.WaitGroup // what goes on beside the callers

	founded  bool // by this process
	eviction evictionWatch
	stop     context.CancelFunc // ends the watches
	watching sync.WaitGroup     // what watches for eviction and for newer versions

	deployment atomic.Pointer[string] // its name, as it was last read

	unsettled []atomic.Int64 // by shard: when it was last found between two nodes, or without one, ms
}

// Open connects to Redis, checks that it is fit to hold tasks, and learns into how many shards it is cut. Begin before
// anything else is asked of it, and Close it.
func Open(ctx context.Context, o Options) (*Store, error) {
	s := &Store{opts: o, broken: newBreakdown(), Scripts: o.Scripts, nodes: map[string]*Node{}, metrics: newMetrics(o.Registerer)}
	if err := s.connect(); err != nil {
		return nil, err
	}
	if err := s.learn(ctx); err != nil {
		_ = s.Close()
		return nil, err
	}
	return s, nil
}

func (s *Store) learn(ctx context.Context) (err error) {
	if err := s.contact(ctx); err != nil {
		return err
	}
	if err := s.Await(ctx, "checking the server", s.check); err != nil {
		return err
	}
	var shards int
	var founded bool
	err = s.Await(ctx, "reading the shard count", func(ctx context.Context) (err error) {
		shards, founded, err = s.settleShards(ctx)
		return err
	})
	if err != nil {
		return err
	}
	for i := range shards {
		s.Keys = append(s.Keys, schema.NewShardKeys(i))
	}
	s.founded, s.unsettled = founded, make([]atomic.Int64, shards)
	if s.opts.EventsPerShard == 0 {
		s.opts.EventsPerShard = lua.DefaultEventsPerShard(shards)
	}
	s.Scripts = s.Scripts.For(lua.Deployment{Database: s.Database(), EventsPerShard: s.opts.EventsPerShard})
	s.scripts = newScripts(s.Scripts)
	return nil
}

// EventsPerShard is how many events a shard's stream keeps, about.
func (s *Store) EventsPerShard() int { return s.opts.EventsPerShard }

// OnMap has f told of each new map of shards before it is used, one at a time. Call it before Begin.
func (s *Store) OnMap(f func(byShard []*Node)) { s.onMap = f }

// Begin draws the map of shards, brings an older stored format forward, and begins to watch the servers.
func (s *Store) Begin(ctx context.Context) error {
	if err := s.Await(ctx, "drawing the map of shards", s.drawMap); err != nil {
		return err
	}
	settle := func(ctx context.Context) error { return s.settleSchema(ctx, schemaSteps) }
	if err := s.Await(ctx, "checking the version of the stored format", settle); err != nil {
		return err
	}
	if err := s.Await(ctx, "reading the name of the deployment", s.learnDeployment); err != nil {
		return err
	}
	s.eviction.at, s.eviction.byMap = time.Now(), s.byShard.Load()
	life, stop := context.WithCancel(context.Background())
	s.stop = stop
	s.watching.Go(s.Guard("watching for eviction", func() { s.watchEviction(life) }))
	s.watching.Go(s.Guard("watching the version of the stored format", func() { s.watchSchema(life) }))
	return nil
}

// Close flushes every lane, waits for what goes on beside the callers, and closes the connections.
func (s *Store) Close() error {
	if s.stop != nil {
		s.stop()
	}
	s.mu.Lock()
	nodes := s.nodes
	s.nodes, s.closed = map[string]*Node{}, true
	s.mu.Unlock()
	for _, n := range nodes {
		n.close()
	}
	s.retiring.Wait()
	s.mu.Lock() // from here on no probe begins
	for _, n := range nodes {
		n.end()
	}
	s.mu.Unlock()
	s.probes.Wait()
	s.background.Wait()
	s.watching.Wait()
	if s.cluster != nil {
		return s.cluster.Close()
	}
	return s.single.Close()
}

// Shards returns how many slices the keyspace is cut into.
func (s *Store) Shards() int { return len(s.Keys) }

// Founded reports whether this process was the first to use the store.
func (s *Store) Founded() bool { return s.founded }

// OnCluster reports whether the shards may lie on several nodes, and a script may touch one shard only.
func (s *Store) OnCluster() bool { return s.cluster != nil }

// Timeout is what one round trip to Redis may take.
func (s *Store) Timeout() time.Duration { return s.opts.Timeout }

// Database is the number of the deployment's own.
func (s *Store) Database() int {
	if s.single == nil {
		return 0
	}
	return s.single.Options().DB
}

// Ready returns what is wrong with Redis: it does not answer one read on every node, or a server of it may evict keys, which
// is an *EvictionError. nil: nothing is.
func (s *Store) Ready(ctx context.Context) error {
	ctx = s.Within(ctx, 0)
	var calls []*Call
	for _, shards := range s.ByNode() {
		calls = append(calls, s.FindCall(shards[0], Overdue{Set: s.Keys[shards[0]].Timers}))
	}
	s.DoAll(ctx, "ready", calls)
	if err := FirstError(calls); err != nil {
		return err
	}
	return s.evicting()
}

// AddHook has every command to the one server pass a hook, for tests; it is for stores that are no Cluster.
func (s *Store) AddHook(h redis.Hook) { s.single.AddHook(h) }

// AwaitBackground returns when nothing runs beside the callers any more, for tests.
func (s *Store) AwaitBackground() { s.background.Wait() }
