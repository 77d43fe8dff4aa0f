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

// Node is one Redis server and the lanes to it. Workers' beats, reads for long answers, transitions that wait until they are
// safe and everything else have lanes of their own, as have the attempts' beats, so that a burst of creations delays no beat
// and no list; each node has its own, so that a frozen one holds up no other. What it is made with does not change.
type Node struct {
	client  *redis.Client
	vital   *lane.Lane[*Call] // workers' beats
	calls   *lane.Lane[*Call]
	bulk    *lane.Lane[*Call] // many reads for one answer
	durable *lane.Lane[*Call] // transitions that wait until they are safe
	life    context.Context   // ends when it is not in use any more
	end     context.CancelFunc

	silent atomic.Bool // it does not answer; one probe asks whether it does again (deadline.go)
	mark   mark        // where its flushes write
	last   []func()    // run when it closes, before its own lanes do; under topology.mu, until then
}

// topology is which node has which shard. The map is a snapshot, which is read without the mutex.
type topology struct {
	servers   *servers
	keyspace  *Keyspace
	deadlines deadlines
	breakdown *breakdown
	silentNow prometheus.Gauge // how many nodes are silent
	openLanes func(*Node)      // of a new node
	onMap     func([]*Node)    // is called with each new map before it is used, under mu
	unsettled []atomic.Int64   // by shard: when it was last found between two nodes, or without one, ms

	byShard  atomic.Pointer[[]*Node]
	mu       sync.Mutex
	nodes    map[string]*Node // by address; those that have shards
	closed   bool
	mapped   time.Time      // when byShard was last drawn
	probes   sync.WaitGroup // of silent nodes
	retiring sync.WaitGroup // nodes that are not in use any more
}

// OnMap has f called with each new map of shards before it is used, one at a time. Call it before Begin.
func (s *topology) OnMap(f func(byShard []*Node)) { s.onMap = f }

// Node returns the node that has a shard now.
func (s *topology) Node(shard int) *Node { return (*s.byShard.Load())[shard] }

// ByNode groups all shards by the node that holds them now.
func (s *topology) ByNode() map[*Node][]int {
	groups := map[*Node][]int{}
	for shard, n := range *s.byShard.Load() {
		groups[n] = append(groups[n], shard)
	}
	return groups
}

// Settled lists the shards of a node except those that were between two nodes a moment ago: the sweeper's rounds over all of
// them must not be cut short by one each time.
func (s *topology) Settled(n *Node) []int {
	moment := time.Now().Add(-500 * time.Millisecond).UnixMilli()
	return slices.DeleteFunc(s.ByNode()[n], func(shard int) bool { return s.unsettled[shard].Load() > moment })
}

func (s *topology) nodeAt(addr string) *Node {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.nodes[addr]
}

// drawMap finds the node of every shard.
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

// useMap has everyone use a map of shards from here on. The caller holds the mutex.
func (s *topology) useMap(byShard []*Node) {
	s.onMap(byShard)
	s.byShard.Store(&byShard)
}

// retire ends the lanes of a node that has no shards any more, or whose client was replaced. What waits there fails or goes
// through, and whoever comes too late for it finds the shard's new node.
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

// remap draws the map of shards anew after a shard was found elsewhere, at most ten times a second.
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
	_ = s.drawMap(ctx) // the old map stands and the next redirect tries again
}

// close closes all nodes, when their lanes are empty.
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

// Retired reports whether the node is not in use any more: it has no shards, or the store was closed.
func (n *Node) Retired() bool { return n.life.Err() != nil }

// BeforeClose has f, which closes a lane of another room, run before the node's own lanes close. It is for those who are told of
// a new map.
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
