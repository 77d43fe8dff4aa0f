package beats

import (
	"context"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/lubdub-io/lubdub/tracker/store"
)

// Shard time advances only while beats are stored, so a shard without beats needs empty ones. The replicas take turns: each learns from the
// replies which other replicas keep time, sorts the names, and takes every n-th slot of 100 ms. A replica that dies then costs a shard at
// most 200 ms between two steps, which shard time tolerates (it counts gaps up to 250 ms), and the load on Redis does not grow with the
// number of replicas.
const (
	slot         = 100 * time.Millisecond
	replicaLease = 2 * time.Second // and at least six turns: how long a silent replica keeps its place
	tickAtLeast  = time.Second     // between two empty beats of a shard with many other beats
)

// tick is one empty beat.
type tick struct {
	shard    int
	replicas []string // the replicas that keep the shard's time, from the reply
}

// timekeeper records what this replica has done for each shard's clock. Flushes write it and KeepTime reads it, each field independently.
type timekeeper struct {
	shards []shardTurn
	skew   atomic.Int64 // Redis's clock minus this process's, ms

	skewLoggedAt atomic.Int64 // when the last warning was logged, ns since the epoch

	window atomic.Int64 // ms after which a silent replica is forgotten
	gaps   func(time.Duration)
	cutOff *cutOff

	nodes map[*store.Node]*nodeTime // of the nodes in use; only KeepTime uses it
}

// nodeTime is the state that KeepTime has for one node. Nodes are independent: a frozen one must not stop the others' clocks.
type nodeTime struct {
	beating atomic.Bool // empty beats are being sent
	slowing atomic.Bool // its shards' time is being slowed down
	quiet   int         // slots without a stored beat of this replica; only KeepTime uses it
}

// of returns the state of a node. Only KeepTime may call it.
func (k *timekeeper) of(n *store.Node) *nodeTime {
	if k.nodes[n] == nil {
		k.nodes[n] = &nodeTime{}
	}
	return k.nodes[n]
}

type shardTurn struct {
	last    atomic.Int64 // when a flush of this replica last succeeded, by this process's clock, ms
	tick    atomic.Int64 // when an empty beat of this replica last succeeded, likewise
	seen    atomic.Int64 // latest shard time, ms; 0: none yet
	lost    atomic.Int64 // until when the store may have lost writes, in the time of cutOff.now
	results slotResults
	rank    atomic.Int64 // this replica's position among those that keep the shard's time, from 0
	turns   atomic.Int64 // how many replicas those are
}

func newTimekeeper(shards int, healthCheckPeriod time.Duration, gaps func(time.Duration)) *timekeeper {
	k := &timekeeper{
		shards: make([]shardTurn, shards), gaps: gaps, cutOff: newCutOff(shards, healthCheckPeriod), nodes: map[*store.Node]*nodeTime{},
	}
	for i := range k.shards {
		k.shards[i].turns.Store(1)
	}
	k.window.Store(replicaLease.Milliseconds())
	return k
}

// touched records that a flush of this replica has reached a shard.
func (k *timekeeper) touched(shard int, now time.Time) {
	s := &k.shards[shard]
	s.last.Store(now.UnixMilli())
	if !s.results.stored.Load() { // usually it is set already
		s.results.stored.Store(true)
	}
}

// recordSkew records the difference to Redis's clock.
func (k *timekeeper) recordSkew(at, now time.Time) { k.skew.Store(at.Sub(now).Milliseconds()) }

// recordGap records a gap in wall time that is longer than a step of shard time.
func (k *timekeeper) recordGap(gapMs int64) {
	k.gaps(time.Duration(gapMs-MaxStepMs) * time.Millisecond)
}

const (
	MaxStepMs = 250 // MAX_STEP_MS of lua/lib/clock.lua: the longest step of shard time
	noClock   = -1  // gap of a missing clock
)

// KeepTime keeps shard time running with empty beats until the context ends. Run it in every process that could store beats of clients:
// shard time means exactly that.
func (s *Service) KeepTime(ctx context.Context) error {
	var running sync.WaitGroup
	defer running.Wait()
	defer s.store.Contain("shard time")
	for {
		next := slot - time.Duration(s.RedisNow().UnixMilli()%slot.Milliseconds())*time.Millisecond
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(next):
		}
		s.slowDown()
		s.keeper.cutOff.compareRate()
		maps.DeleteFunc(s.keeper.nodes, func(n *store.Node, _ *nodeTime) bool { return n.Retired() })
		byNode := map[*store.Node][]int{}
		for _, shard := range s.keeper.due(time.Now()) {
			n := s.store.Node(shard)
			byNode[n] = append(byNode[n], shard)
		}
		for n, shards := range byNode {
			if node := s.keeper.of(n); node.beating.CompareAndSwap(false, true) {
				running.Go(s.store.Guard("shard time", func() {
					defer node.beating.Store(false)
					_ = s.tickShards(shards) // the next turn tries again
				}))
			}
		}
	}
}

// due returns the shards that have their turn in this slot and that no flush of this replica has just reached. A busy shard still gets an
// empty beat now and then, for what only its reply reports, and one in each turn while its clients may be cut off from this replica,
// since that report is valid for a moment only.
func (k *timekeeper) due(now time.Time) []int {
	turn := k.redisClock(now).UnixMilli() / slot.Milliseconds()
	var shards []int
	for i := range k.shards {
		s := &k.shards[i]
		if turn%s.turns.Load() != s.rank.Load() {
			continue
		}
		sinceBeat, sinceTick := now.UnixMilli()-s.last.Load(), now.UnixMilli()-s.tick.Load()
		if k.cutOff.left(i) > 0 || sinceBeat >= slot.Milliseconds()/2 || sinceTick >= tickAtLeast.Milliseconds() {
			shards = append(shards, i)
		}
	}
	return shards
}

// Tick sends one empty beat to every shard, and returns the first error.
func (s *Service) Tick() error {
	shards := make([]int, s.store.Shards())
	for i := range shards {
		shards[i] = i
	}
	return s.tickShards(shards)
}

func (s *Service) tickShards(shards []int) error {
	if len(shards) == 0 {
		return nil
	}
	ticks := make([]*Beat, len(shards))
	for i, shard := range shards {
		ticks[i] = &Beat{tick: &tick{shard: shard}}
	}
	s.BeatMany(ticks)
	var first error
	for _, b := range ticks {
		if b.Err != nil {
			if first == nil {
				first = b.Err
			}
			continue
		}
		s.keeper.learn(b.tick, s.opts.ReplicaID)
	}
	s.logSkew(time.Now())
	return first
}

// settleTicks sets the results of the empty beats of one call.
func settleTicks(b *batcher, beats []*Beat, c *store.Call, now time.Time) {
	s, k := b.s, b.s.keeper
	if c.Err == nil {
		k.recordSkew(tickedAt(c.Reply), now)
	}
	for i, beat := range beats {
		shard := beat.tick.shard
		if c.Err != nil {
			beat.Err = store.AsUnavailable("beat", c.Err)
			k.cutOff.unconfirmed(shard)
			b.done(beat)
			continue
		}
		r := readTick(c.Reply, i)
		if r.gap > MaxStepMs {
			k.recordGap(r.gap)
		}
		if k.regress(shard, r.shardTime, r.gap) {
			s.log.Warn("the store has lost writes: a shard's clock fell behind what it was; what lives is adopted", "shard", shard)
		}
		k.touched(shard, now)
		k.shards[shard].tick.Store(now.UnixMilli())
		beat.tick.replicas = r.replicas
		b.done(beat)
	}
}

// learn updates this replica's position among those that keep a shard's time.
func (k *timekeeper) learn(tick *tick, self string) {
	if len(tick.replicas) == 0 {
		return
	}
	slices.Sort(tick.replicas)
	s := &k.shards[tick.shard]
	s.turns.Store(int64(len(tick.replicas)))
	s.rank.Store(int64(max(0, slices.Index(tick.replicas, self))))
	lease := max(replicaLease, 6*slot*time.Duration(len(tick.replicas)))
	k.window.Store(lease.Milliseconds())
}
