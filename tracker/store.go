package tracker

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/redis/go-redis/v9"

	"github.com/lubdub-io/lubdub/lua"
)

// store is Redis as the domain sees it: shards on nodes, and the scripts that run on them. What a request uses is a
// view of it, which knows when the request must have its answer.
type store struct {
	*storage
	until time.Time // zero: each call counts from when it is made
}

// storage is what all views of a store share.
type storage struct {
	opts    Options
	scripts *lua.Set
	keys    []*shardKeys

	embedded bool // a miniredis in this process

	single  *redis.Client        // one server, or Sentinel's choice of one; nil on Cluster
	cluster *redis.ClusterClient // nil otherwise

	newFlush func(*node) func([]*Beat) // the flush of a new node's lane of beats

	guarantee   guarantee // what durable transitions are answered by; nil with Memory
	unconfirmed prometheus.Counter

	mu      sync.Mutex
	nodes   map[string]*node // by address; those that have shards
	closed  bool
	byShard atomic.Pointer[[]*node]
	mapped  time.Time // when byShard was last drawn

	broken   *breakdown
	probes   sync.WaitGroup // of silent nodes
	retiring sync.WaitGroup // nodes that are not in use any more

	unsettled []atomic.Int64 // by shard: when it was last found between two nodes, or without one, ms
}

// node is one Redis server and the lanes to it. Beats and everything else have lanes of their own, so that a
// burst of creations delays no beat, a worker's included, nor a list either; each node has its own, so that a frozen
// one holds up no other.
type node struct {
	client *redis.Client
	beats  *lane[*Beat]
	vital  *lane[*call] // workers' beats
	calls  *lane[*call]
	bulk   *lane[*call] // many reads for one answer

	silent atomic.Bool     // it does not answer; one probe asks whether it does again (deadline.go)
	life   context.Context // ends when it is not in use any more
	end    context.CancelFunc

	holding atomic.Bool  // its shards' time is being held back just now
	quiet   int          // slots in which no beat of this replica landed; KeepTime's own
	durable *lane[*call] // transitions that wait until they are safe
	mark    mark         // where its flushes write
}

func (s *store) shards() int { return len(s.keys) }

func (s *store) node(shard int) *node { return (*s.byShard.Load())[shard] }

func (s *store) shardOf(scope Scope, id string) int { return shardOf(len(s.keys), scope, id) }

// drawMap finds the node of every shard.
func (s *store) drawMap(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return errClosed
	}
	byShard := make([]*node, len(s.keys))
	for i, k := range s.keys {
		client := s.single
		if s.cluster != nil {
			var err error
			if client, err = s.cluster.MasterForKey(ctx, k.clock); err != nil {
				return err
			}
		}
		byShard[i] = s.nodeOf(client)
	}
	s.byShard.Store(&byShard)
	s.mapped = time.Now()
	for addr, n := range s.nodes {
		if !slices.Contains(byShard, n) {
			delete(s.nodes, addr)
			s.retire(n)
		}
	}
	return nil
}

var errClosed = errors.New("the tracker is closed")

// retire ends the lanes of a node that has no shards any more, or whose client was replaced. What waits there fails or goes
// through, and who comes too late for it finds the shard's new node.
func (s *store) retire(n *node) {
	n.end()
	s.retiring.Go(n.close)
}

func (s *store) nodeOf(client *redis.Client) *node {
	addr := client.Options().Addr
	n := s.nodes[addr]
	if n == nil || n.client != client {
		n = &node{client: client}
		n.life, n.end = context.WithCancel(context.Background())
		n.beats = newLane(s.opts.MaxPendingBeats, runtime.GOMAXPROCS(0), 1, s.newFlush(n))
		n.vital = newLane(s.opts.MaxPendingCalls, 1, 1, func(c []*call) { s.flushCalls(n, c, perRoundTrip, nil) })
		n.calls = newLane(s.opts.MaxPendingCalls, 1, 2, func(c []*call) { s.flushCalls(n, c, perRoundTrip, nil) })
		n.bulk = newLane(s.opts.MaxPendingCalls, 1, 1, func(c []*call) { s.flushCalls(n, c, bulkPerRoundTrip, nil) })
		n.durable = newLane(s.opts.MaxPendingCalls, 1, 2, func(c []*call) { s.flushCalls(n, c, perRoundTrip, s.guarantee) })
		if old := s.nodes[addr]; old != nil {
			s.retire(old) // the cluster client has replaced its client
		}
		s.nodes[addr] = n
	}
	return n
}

// remap draws the map of shards anew after a shard was found elsewhere, at most ten times a second.
func (s *store) remap() {
	s.mu.Lock()
	recent := time.Since(s.mapped) < 100*time.Millisecond
	if !recent {
		s.mapped = time.Now()
	}
	s.mu.Unlock()
	if recent {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), s.opts.RedisTimeout)
	defer cancel()
	s.cluster.ReloadState(ctx)
	_ = s.drawMap(ctx) // the old map stands and the next redirect tries again
}

// byNode groups all shards by the node that holds them now.
func (s *store) byNode() map[*node][]int {
	groups := map[*node][]int{}
	for shard, n := range *s.byShard.Load() {
		groups[n] = append(groups[n], shard)
	}
	return groups
}

func (n *node) close() {
	n.beats.close()
	n.vital.close()
	n.calls.close()
	n.bulk.close()
	n.durable.close()
}

// close flushes every lane and closes the connections.
func (s *store) close() error {
	s.mu.Lock()
	nodes := s.nodes
	s.nodes, s.closed = map[string]*node{}, true
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
	if s.cluster != nil {
		return s.cluster.Close()
	}
	return s.single.Close()
}
