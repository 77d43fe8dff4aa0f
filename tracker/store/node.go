package store

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/redis/go-redis/v9"

	"github.com/lubdub-io/lubdub/tracker/lane"
)

// Node is one Redis server and the lanes to it. Workers' beats, reads for long answers, durable transitions and everything else have
// separate lanes, as have the attempts' beats, so that a burst of creations delays neither beats nor lists. Each node has its own lanes,
// so that a frozen node delays no other. The lanes of a node never change.
type Node struct {
	client  *redis.Client
	vital   *lane.Lane[*Call] // workers' beats
	calls   *lane.Lane[*Call]
	bulk    *lane.Turns[*Call] // many reads for one answer
	durable *lane.Lane[*Call]  // transitions that wait for confirmation
	life    context.Context    // ends when the node is retired
	end     context.CancelFunc

	trips  atomic.Int64 // round trips begun so far
	silent atomic.Bool  // it does not respond; one probe checks for recovery (silent.go)
	mark   mark         // the shard to which its flushes write
	last   []func()     // run when it closes, before its own lanes do; guarded by topology.mu until then
}

// topology is which node has which shard. The map is a snapshot, read without the mutex.
type topology struct {
	servers   *servers
	keyspace  *Keyspace
	deadlines deadlines
	breakdown *breakdown
	silentNow prometheus.Gauge // how many nodes are silent
	openLanes func(*Node)      // for a new node
	onMap     func([]*Node)    // called with each new map before it is used, under mu
	unsettled []atomic.Int64   // by shard: when it was last found without a node or between two, in ms

	byShard  atomic.Pointer[[]*Node]
	mu       sync.Mutex
	nodes    map[string]*Node // by address; those that have shards
	closed   bool
	mapped   time.Time      // when byShard was last updated
	probes   sync.WaitGroup // of silent nodes
	retiring sync.WaitGroup // nodes that are being closed
}

// OnMap registers f, which is called with each new map of shards before it is used, one call at a time. Call it before Begin.
func (s *topology) OnMap(f func(byShard []*Node)) { s.onMap = f }

// Node returns the node that has a shard now.
func (s *topology) Node(shard int) *Node { return (*s.byShard.Load())[shard] }

// ByNode groups all shards by their current node.
func (s *topology) ByNode() map[*Node][]int {
	groups := map[*Node][]int{}
	for shard, n := range *s.byShard.Load() {
		groups[n] = append(groups[n], shard)
	}
	return groups
}

// Settled returns the shards of a node without those that were moving a moment ago. A moving shard would cut short each of the sweeper's
// rounds over all shards.
func (s *topology) Settled(n *Node) []int {
	moment := time.Now().Add(-500 * time.Millisecond).UnixMilli()
	return slices.DeleteFunc(s.ByNode()[n], func(shard int) bool { return s.unsettled[shard].Load() > moment })
}

func (s *topology) nodeAt(addr string) *Node {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.nodes[addr]
}

// drawMap finds the node of every shard, and retires nodes without shards.
func (s *topology) drawMap(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return errClosed
	}
	byShard := make([]*Node, len(s.keyspace.Keys))
	for i, k := range s.keyspace.Keys {
		client := s.servers.single
		if s.servers.cluster != nil {
			var err error
			if client, err = s.servers.cluster.MasterForKey(ctx, k.Clock); err != nil {
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

// useMap publishes a map of shards. The caller holds the mutex.
func (s *topology) useMap(byShard []*Node) {
	s.onMap(byShard)
	s.byShard.Store(&byShard)
}

// retire closes the lanes of a node that has no shards left, or whose client was replaced. Calls that wait there fail or succeed; later
// callers find the shard's new node.
func (s *topology) retire(n *Node) {
	n.end()
	s.retiring.Go(n.close)
}

func (s *topology) nodeOf(client *redis.Client) *Node {
	addr := client.Options().Addr
	n := s.nodes[addr]
	if n == nil || n.client != client {
		n = &Node{client: client}
		n.life, n.end = context.WithCancel(context.Background())
		s.openLanes(n)
		if old := s.nodes[addr]; old != nil {
			s.retire(old) // the cluster client has replaced its client
		}
		s.nodes[addr] = n
	}
	return n
}

// remap updates the map of shards after a shard was found elsewhere, at most ten times a second.
func (s *topology) remap() {
	s.mu.Lock()
	recent := time.Since(s.mapped) < 100*time.Millisecond
	if !recent {
		s.mapped = time.Now()
	}
	s.mu.Unlock()
	if recent {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), s.deadlines.timeout)
	defer cancel()
	s.servers.cluster.ReloadState(ctx)
	_ = s.drawMap(ctx) // the old map stays, and the next redirect tries again
}

// close closes all nodes once their lanes are empty.
func (s *topology) close() {
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
}

// Retired reports whether the node is out of use: it has no shards, or the store was closed.
func (n *Node) Retired() bool { return n.life.Err() != nil }

// BeforeClose registers f, which closes a lane of another package, to run before the node's own lanes close. Call it from a function
// registered with OnMap.
func (n *Node) BeforeClose(f func()) { n.last = append(n.last, f) }

func (n *Node) close() {
	for _, last := range n.last {
		last()
	}
	n.vital.Close()
	n.calls.Close()
	n.bulk.Close()
	n.durable.Close()
}
