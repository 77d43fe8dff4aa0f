package beats

import (
	"context"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/lubdub-io/lubdub/tracker/model"
	"github.com/lubdub-io/lubdub/tracker/schema"
	"github.com/lubdub-io/lubdub/tracker/store"
)

// Shard time runs only while beats land, so a shard that nobody beats needs empty beats. The replicas share
// them out: each learns from the replies who else keeps time, sorts the names, and takes every n-th slot of
// 100 ms. One replica that dies then costs a shard at most 200 ms between two steps, which shard time forgives
// (it counts gaps up to 250 ms), and the load on Redis does not grow with the number of replicas.
const (
	slot         = 100 * time.Millisecond
	replicaLease = 2 * time.Second // and six turns: how long a silent replica keeps its place
	tickAtLeast  = time.Second     // between two empty beats of a shard that beats keep running
)

// tick is one empty beat.
type tick struct {
	shard    int
	replicas []string // who keeps the shard's time
}

// timekeeper knows what this replica has done for each shard's clock.
type timekeeper struct {
	shards []shardTurn
	skew   atomic.Int64 // Redis's clock minus this process's, ms

	skewSaid atomic.Int64 // when it was last warned of, ns since the epoch

	window atomic.Int64 // ms after which a silent replica is forgotten
	gaps   func(time.Duration)
	cutOff *cutOff

	nodes map[*store.Node]*nodeTime // of those in use; KeepTime's own
}

// nodeTime is what KeepTime knows of one node, whose shards go by themselves: a frozen one must not stop the others' clocks.
type nodeTime struct {
	beating atomic.Bool // empty beats are on their way
	holding atomic.Bool // its shards' time is being held back just now
	quiet   int         // slots in which no beat of this replica landed; KeepTime's own
}

// of returns what is known of a node. It is for KeepTime.
func (k *timekeeper) of(n *store.Node) *nodeTime {
	if k.nodes[n] == nil {
		k.nodes[n] = &nodeTime{}
	}
	return k.nodes[n]
}

type shardTurn struct {
	last  atomic.Int64 // when a flush of this replica last landed, by this process's clock, ms
	tick  atomic.Int64 // when an empty beat of this replica last landed, the same
	seen  atomic.Int64 // latest shard time, ms; 0: none yet
	lost  atomic.Int64 // until when answers reckon with writes that the store has lost, as cutOff.now gives it
	fate  fate
	rank  atomic.Int64 // this replica's place among those that keep the shard's time, from 0
	turns atomic.Int64 // how many those are
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

func (k *timekeeper) windowMs() int64 { return k.window.Load() }

// touched is told of every shard that a flush of this replica has reached.
func (k *timekeeper) touched(shard int, now time.Time) {
	s := &k.shards[shard]
	s.last.Store(now.UnixMilli())
	if !s.fate.landed.Load() { // most of the time it is known
		s.fate.landed.Store(true)
	}
}

// landed is told of Redis's clock whenever it is known.
func (k *timekeeper) landed(at, now time.Time) { k.skew.Store(at.Sub(now).Milliseconds()) }

// stoodStill is told of a gap in the wall's time that shard time could not follow.
func (k *timekeeper) stoodStill(gapMs int64) {
	k.gaps(time.Duration(gapMs-maxStepMs) * time.Millisecond)
}

const (
	maxStepMs = 250 // MAX_STEP_MS of lua/lib/clock.lua
	noClock   = -1  // gap of a clock that was not there
)

// KeepTime keeps shard time running with empty beats until the context ends. Run it in every process whose
// beats would land if its clients sent any: that is what shard time stands for.
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
		s.holdTime()
		s.keeper.cutOff.listen()
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
					_ = s.tickShards(shards) // a tick that failed is tried again in the next turn
				}))
			}
		}
	}
}

// due lists the shards whose turn it is in this slot and that no flush of ours has just touched. A shard that is always
// touched gets an empty beat now and then, which tells what there is to tell, and one in each turn while its clients may be
// cut off from this replica: that holds for a moment only.
func (k *timekeeper) due(now time.Time) []int {
	turn := k.redisClock(now).UnixMilli() / slot.Milliseconds()
	var shards []int
	for i := range k.shards {
		s := &k.shards[i]
		if turn%s.turns.Load() == s.rank.Load() &&
			(k.cutOff.left(i) > 0 || now.UnixMilli()-s.last.Load() >= slot.Milliseconds()/2 || now.UnixMilli()-s.tick.Load() >= tickAtLeast.Milliseconds()) {
			shards = append(shards, i)
		}
	}
	return shards
}

// Tick sends one empty beat to every shard.
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
	s.Beats(ticks)
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
	s.tellSkew(time.Now())
	return first
}

// newTick is one call of tick.lua for empty beats that one call may take.
func (s *Service) newTick(beats []*Beat) *store.Call {
	var keys []string
	meta := false
	for _, beat := range beats {
		meta = meta || beat.tick.shard == 0
		k := s.store.Keys[beat.tick.shard]
		keys = append(keys, k.Clock, k.Outages, k.Progress, k.Cancels, k.Replicas, k.Timeouts, k.Timers, k.Due, k.Index,
			k.Events, k.Sweepers, k.Ready, k.Held, k.Outbox, k.Fences, k.Pauses,
			k.Workers, k.WorkerBeats, k.WorkerDue, k.Recoveries, k.Braked)
	}
	if meta {
		keys = append(keys, schema.MetaKey)
	}
	args := []any{s.opts.ReplicaID, s.keeper.windowMs(), s.store.Shards(), model.Millis(s.keeper.cutOff.period), model.Millis(s.opts.WorkerTimeout)}
	for _, beat := range beats {
		args = append(args, model.Millis(s.keeper.cutOff.left(beat.tick.shard)))
	}
	return store.NewCall(beats[0].tick.shard, s.store.Scripts.Get("tick"), keys, args...)
}

// settleTicks gives the empty beats of one call their fate.
func settleTicks(b *batcher, beats []*Beat, c *store.Call, now time.Time) {
	s := b.s
	if c.Err == nil {
		s.keeper.landed(c.Reply.Time(0), now)
	}
	for i, beat := range beats {
		if c.Err != nil {
			beat.Err = store.AsUnavailable("beat", c.Err)
			s.keeper.cutOff.unconfirmed(beat.tick.shard)
		} else {
			of := c.Reply.List(1 + i)
			if gap := of.Int(1); gap > maxStepMs {
				s.keeper.stoodStill(gap)
			}
			if s.keeper.regress(beat.tick.shard, of.Int(0), of.Int(1)) {
				s.log.Warn("the store has lost writes: a shard's clock fell behind what it was; what lives is adopted", "shard", beat.tick.shard)
			}
			s.keeper.touched(beat.tick.shard, now)
			s.keeper.shards[beat.tick.shard].tick.Store(now.UnixMilli())
			beat.tick.replicas = of.List(2).Strings()
		}
		b.done(beat)
	}
}

// learn takes this replica's place among those that keep a shard's time.
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
