package store

import (
	"context"
	"crypto/tls"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/lubdub-io/lubdub/lua"
	"github.com/lubdub-io/lubdub/tracker/schema"
)

// Options configure a Store. Fields whose comment gives no meaning of nil or zero must be set.
type Options struct {
	URL        string        // see Options.RedisURL of package tracker
	TLS        *tls.Config   // nil: the system's root certificates
	Timeout    time.Duration // for one round trip
	Shards     int           // 0: the stored count, else 4, or 64 on Cluster
	MaxPending int           // limit of calls that wait in each lane of a node

	Durability      Durability
	DurableReplicas int // how many must confirm, with Replicated

	ReplicaID      string // names this process
	Scripts        *lua.Set
	EventsPerShard int // about how many a shard's stream keeps; 0: lua.DefaultEventsPerShard
	Logger         *slog.Logger
	Registerer     prometheus.Registerer // nil: metrics are not registered
}

// Store is Redis as the domain sees it: shards on nodes, and the scripts that run on them. Each of its parts owns its state.
type Store struct {
	*servers   // the connections
	*Keyspace  // the shards, and what is in which
	*topology  // the nodes, and which has which shard
	*runner    // runs calls
	*format    // the version of the stored format
	*scripts   // of this package
	*breakdown // ends the work after a bug
	deadlines  // of requests and round trips

	durability *durability
	eviction   *evictionWatch
	opts       Options
	Scripts    *lua.Set // for this deployment

	stop     context.CancelFunc // ends the watches
	watching sync.WaitGroup     // the watches for eviction and newer versions
	wakes    wakes
}

// newStore connects the parts of a store. It has no shards yet.
func newStore(o Options) *Store {
	m := newMetrics(o.Registerer)
	s := &Store{
		servers: &servers{opts: o}, Keyspace: &Keyspace{}, breakdown: newBreakdown(o.Logger), deadlines: deadlines{o.Timeout},
		opts: o, Scripts: o.Scripts,
	}
	s.topology = &topology{
		servers: s.servers, keyspace: s.Keyspace, deadlines: s.deadlines, breakdown: s.breakdown, silentNow: m.silent, nodes: map[string]*Node{},
	}
	s.durability = &durability{servers: s.servers, deadlines: s.deadlines, opts: o, unconfirmed: m.unconfirmed}
	s.runner = &runner{
		servers: s.servers, keyspace: s.Keyspace, topology: s.topology, deadlines: s.deadlines, breakdown: s.breakdown,
		durability: s.durability, metrics: m, maxPending: o.MaxPending,
	}
	s.topology.openLanes = s.runner.openLanes
	s.format = &format{servers: s.servers, keyspace: s.Keyspace, runner: s.runner, breakdown: s.breakdown, log: o.Logger}
	s.eviction = &evictionWatch{servers: s.servers, topology: s.topology, evicts: m.evicts, log: o.Logger}
	return s
}

// Open connects to Redis, checks that it is fit for use, and reads the shard count. It returns an error when one of these fails. Call
// Begin before anything else, and Close at the end.
func Open(ctx context.Context, o Options) (*Store, error) {
	s := newStore(o)
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
	if err := s.servers.contact(ctx); err != nil {
		return err
	}
	if err := s.Await(ctx, "checking the server", s.check); err != nil {
		return err
	}
	var shards int
	var founded bool
	err = s.Await(ctx, "reading the shard count", func(ctx context.Context) (err error) {
		shards, founded, err = s.servers.settleShards(ctx)
		return err
	})
	if err != nil {
		return err
	}
	for i := range shards {
		s.Keys = append(s.Keys, schema.NewShardKeys(i))
	}
	s.format.founded, s.topology.unsettled = founded, make([]atomic.Int64, shards)
	if s.opts.EventsPerShard == 0 {
		s.opts.EventsPerShard = lua.DefaultEventsPerShard(shards)
	}
	s.Scripts = s.Scripts.For(lua.Deployment{Database: s.Database(), EventsPerShard: s.opts.EventsPerShard})
	s.scripts = newScripts(s.Scripts, s.Keyspace)
	s.format.scripts = s.scripts
	return nil
}

// EventsPerShard returns about how many events a shard's stream keeps.
func (s *Store) EventsPerShard() int { return s.opts.EventsPerShard }

// Begin finds the nodes of all shards, upgrades an older stored format, and starts the watches. It returns the first error.
func (s *Store) Begin(ctx context.Context) error {
	if err := s.Await(ctx, "drawing the map of shards", s.topology.drawMap); err != nil {
		return err
	}
	settle := func(ctx context.Context) error { return s.format.settleSchema(ctx, schemaSteps) }
	if err := s.Await(ctx, "checking the version of the stored format", settle); err != nil {
		return err
	}
	if err := s.Await(ctx, "reading the name of the deployment", s.format.learnDeployment); err != nil {
		return err
	}
	s.eviction.at, s.eviction.byMap = time.Now(), s.topology.byShard.Load()
	life, stop := context.WithCancel(context.Background())
	s.stop = stop
	s.watching.Go(s.Guard("watching for eviction", func() { s.eviction.run(life) }))
	s.watching.Go(s.Guard("watching the version of the stored format", func() { s.format.watchSchema(life) }))
	return nil
}

// Close flushes every lane, waits for background work, and closes the connections.
func (s *Store) Close() error {
	if s.stop != nil {
		s.stop()
	}
	s.wakes.close()
	s.topology.close()
	s.breakdown.background.Wait()
	s.watching.Wait()
	return s.servers.close()
}

// Ready returns an error when a node does not answer a read, or an *EvictionError when a server may evict keys; else nil.
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
	return s.eviction.evicting()
}
