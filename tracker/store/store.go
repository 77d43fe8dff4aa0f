package store

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lubdub-io/lubdub/lua"
	"github.com/lubdub-io/lubdub/tracker/lane"
	"github.com/lubdub-io/lubdub/tracker/model"
	"github.com/lubdub-io/lubdub/tracker/schema"
)

// Store is Redis as the domain sees it: shards on nodes, and the scripts that run on them.
type Store struct {
	opts    Options
	Scripts *lua.Set // as this deployment runs them
	scripts scripts
	Keys    []*schema.ShardKeys

	embedded bool // a miniredis in this process

	single  *redis.Client        // one server, or Sentinel's choice of one; nil on Cluster
	cluster *redis.ClusterClient // nil otherwise

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
	Background sync.WaitGroup // what goes on beside the callers

	founded  bool // by this process
	eviction evictionWatch
	stop     context.CancelFunc // ends the watches
	watching sync.WaitGroup     // what watches for eviction and for newer versions

	unsettled []atomic.Int64 // by shard: when it was last found between two nodes, or without one, ms
}

// Node is one Redis server and the lanes to it. Workers' beats, reads for long answers and everything else have lanes of
// their own, as have the attempts' beats, so that a burst of creations delays no beat and no list; each node has its own, so that a frozen
// one holds up no other.
type Node struct {
	client *redis.Client
	vital  *lane.Lane[*Call] // workers' beats
	Calls  *lane.Lane[*Call]
	bulk   *lane.Lane[*Call] // many reads for one answer

	silent atomic.Bool     // it does not answer; one probe asks whether it does again (deadline.go)
	Life   context.Context // ends when it is not in use any more
	end    context.CancelFunc

	Holding atomic.Bool       // its shards' time is being held back just now
	Quiet   int               // slots in which no beat of this replica landed; KeepTime's own
	durable *lane.Lane[*Call] // transitions that wait until they are safe
	mark    mark              // where its flushes write
	last    []func()          // run when it closes, before its own lanes do; under the mutex of the map
}

// Shards returns into how many slices the keyspace is cut.
func (s *Store) Shards() int { return len(s.Keys) }

// Founded reports whether this process was the first to use the store.
func (s *Store) Founded() bool { return s.founded }

// OnCluster reports whether the shards may lie on several nodes, and a script may touch one shard only.
func (s *Store) OnCluster() bool { return s.cluster != nil }

// Timeout is what one round trip to Redis may take.
func (s *Store) Timeout() time.Duration { return s.opts.Timeout }

func (s *Store) Node(shard int) *Node { return (*s.byShard.Load())[shard] }

func (s *Store) ShardOf(scope model.Scope, id string) int {
	return schema.ShardOf(len(s.Keys), scope, id)
}

// drawMap finds the node of every shard.
func (s *Store) drawMap(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return errClosed
	}
	byShard := make([]*Node, len(s.Keys))
	for i, k := range s.Keys {
		client := s.single
		if s.cluster != nil {
			var err error
			if client, err = s.cluster.MasterForKey(ctx, k.Clock); err != nil {
				return err
			}
		}
		byShard[i] = s.nodeOf(client)
	}
	s.useMap(byShard)
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

// useMap has everyone use a map of shards from here on. The caller holds the mutex.
func (s *Store) useMap(byShard []*Node) {
	s.onMap(byShard)
	s.byShard.Store(&byShard)
}

// retire ends the lanes of a node that has no shards any more, or whose client was replaced. What waits there fails or goes
// through, and who comes too late for it finds the shard's new node.
func (s *Store) retire(n *Node) {
	n.end()
	s.retiring.Go(n.close)
}

func (s *Store) nodeOf(client *redis.Client) *Node {
	addr := client.Options().Addr
	n := s.nodes[addr]
	if n == nil || n.client != client {
		n = &Node{client: client}
		n.Life, n.end = context.WithCancel(context.Background())
		n.vital = lane.New(s.opts.MaxPending, 1, 1, func(c []*Call) { s.flushCalls(n, c, perRoundTrip, nil) })
		n.Calls = lane.New(s.opts.MaxPending, 1, 2, func(c []*Call) { s.flushCalls(n, c, perRoundTrip, nil) })
		n.bulk = lane.New(s.opts.MaxPending, 1, 1, func(c []*Call) { s.flushCalls(n, c, bulkPerRoundTrip, nil) })
		n.durable = lane.New(s.opts.MaxPending, 1, 2, func(c []*Call) { s.flushCalls(n, c, perRoundTrip, s.guarantee) })
		if old := s.nodes[addr]; old != nil {
			s.retire(old) // the cluster client has replaced its client
		}
		s.nodes[addr] = n
	}
	return n
}

// remap draws the map of shards anew after a shard was found elsewhere, at most ten times a second.
func (s *Store) remap() {
	s.mu.Lock()
	recent := time.Since(s.mapped) < 100*time.Millisecond
	if !recent {
		s.mapped = time.Now()
	}
	s.mu.Unlock()
	if recent {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), s.opts.Timeout)
	defer cancel()
	s.cluster.ReloadState(ctx)
	_ = s.drawMap(ctx) // the old map stands and the next redirect tries again
}

// ByNode groups all shards by the node that holds them now.
func (s *Store) ByNode() map[*Node][]int {
	groups := map[*Node][]int{}
	for shard, n := range *s.byShard.Load() {
		groups[n] = append(groups[n], shard)
	}
	return groups
}

// BeforeClose has a lane of another room's close with the node's own. It is for those who are told of a new map.
func (n *Node) BeforeClose(f func()) { n.last = append(n.last, f) }

func (n *Node) close() {
	for _, last := range n.last {
		last()
	}
	n.vital.Close()
	n.Calls.Close()
	n.bulk.Close()
	n.durable.Close()
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
	s.Background.Wait()
	s.watching.Wait()
	if s.cluster != nil {
		return s.cluster.Close()
	}
	return s.single.Close()
}
