package sweep

import (
	"context"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/lubdub-io/lubdub/tracker/model"
	"github.com/lubdub-io/lubdub/tracker/store"
)

const (
	peekLimit = 200         // beats sets that one script looks at
	idleLife  = time.Minute // a timeout by which nobody has lived for so long is dropped; sooner it would come and go with each task
)

// peeked is what one look at the shards of a node tells.
type peeked struct {
	s      *Sweeper
	ranked bool
	todo   []overdue
	idle   map[int][]string // by shard: timeouts that may be dropped
	next   time.Duration
	lag    time.Duration
}

// heads is one call that looks at beats sets, and whose they are.
type heads struct {
	*store.Call
	of []overdue
}

// peek looks at what may be due in the shards of one node, in one round trip. Which timeouts are in use it learns also
// where looking at their sets fails: on Cluster that fails for one that has been dropped while its slot moves.
func (s *Sweeper) peek(ctx context.Context, n *store.Node, shards []int, ranked bool) (*peeked, error) {
	groups := s.t.store.Together(shards)
	var calls []*store.Call
	var beats []heads
	for _, group := range groups {
		var keys []string
		for _, shard := range group {
			k := s.t.store.Keys[shard]
			keys = append(keys, k.Clock, k.Timers, k.Due, k.Timeouts, k.Sweepers, k.Outbox)
		}
		calls = append(calls, store.NewCall(group[0], s.t.store.Scripts.Get("peek"), keys, s.id, model.Millis(sweeperLease)))
		beats = append(beats, s.headCalls(group)...)
	}
	for _, h := range beats {
		calls = append(calls, h.Call)
	}
	s.t.store.Exec(ctx, n, calls)
	p := &peeked{s: s, ranked: ranked, idle: map[int][]string{}, next: maxNap}
	looks := map[int]shardLook{}
	for i, group := range groups {
		for j, shard := range group {
			if c := calls[i]; c.Err == nil {
				looks[shard] = p.look(shard, c.Reply.Int(0), c.Reply.List(1+j))
			}
		}
	}
	for _, c := range calls {
		if c.Err != nil {
			return nil, c.Err
		}
	}
	for _, h := range beats {
		for i, of := range h.of {
			p.considerBeats(looks[of.shard], of.timeout, h.Reply.Str(i))
		}
	}
	s.t.metrics.sweepLag.Set(p.lag.Seconds())
	return p, nil
}

// headCalls asks for the first beats of every timeout that is known of some shards.
func (s *Sweeper) headCalls(group []int) (calls []heads) {
	var sets []overdue
	for _, shard := range group {
		for _, timeout := range s.known(shard) {
			sets = append(sets, overdue{shard: shard, timeout: timeout})
		}
	}
	for part := range slices.Chunk(sets, peekLimit) {
		keys := make([]string, len(part))
		for i, of := range part {
			keys[i] = s.t.store.Keys[of.shard].Beats(of.timeout)
		}
		calls = append(calls, heads{store.NewCall(group[0], s.t.store.Scripts.Get("peek_beats"), keys), part})
	}
	return calls
}

// shardLook is when one shard was looked at, and how long this sweeper leaves what it finds to others.
type shardLook struct {
	shard     int
	now, time int64 // wall ms and shard time ms
	grace     time.Duration
}

func (p *peeked) look(shard int, now int64, r store.Reply) shardLook {
	l := shardLook{shard: shard, now: now, time: r.Int(0)}
	if p.ranked {
		l.grace = rankDelay * time.Duration(p.s.rank(shard, r.List(4).Strings()))
	}
	p.consider(l, "timers", "0", r.Int(1)-l.time)
	p.consider(l, "due", "0", r.Int(2)-now)
	p.consider(l, "outbox", "0", r.Int(3)-now)
	if p.s.learn(shard, r.List(5).Strings()) {
		p.next = 0 // a timeout that this sweeper did not know: look again now
	}
	return l
}

func (p *peeked) consider(l shardLook, kind, timeout string, dueIn int64) {
	late := time.Duration(-dueIn) * time.Millisecond
	p.lag = max(p.lag, late)
	if late >= l.grace {
		p.todo = append(p.todo, overdue{l.shard, kind, timeout, l.grace})
	} else {
		p.next = min(p.next, l.grace-late)
	}
}

// considerBeats judges the set of one timeout by its first beat; "": nobody lives by it.
func (p *peeked) considerBeats(l shardLook, timeout, first string) {
	if first == "" {
		if p.s.idleFor(l, timeout) >= idleLife && l.grace == 0 {
			p.idle[l.shard] = append(p.idle[l.shard], timeout)
		}
		return
	}
	p.s.inUse(l.shard, timeout)
	if t, _ := strconv.ParseInt(timeout, 10, 64); t > 0 { // those of 0 live by their workers
		at, _ := strconv.ParseInt(first, 10, 64)
		p.consider(l, "expire", timeout, at+t+1-l.time)
	}
}

func (s *Sweeper) known(shard int) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.timeouts[shard]
}

// learn keeps the timeouts that are in use; it tells whether there are new ones.
func (s *Sweeper) learn(shard int, inUse []string) (more bool) {
	inUse = slices.DeleteFunc(inUse, func(t string) bool { return t == "!" }) // the sentinel
	slices.Sort(inUse)
	s.mu.Lock()
	defer s.mu.Unlock()
	known := s.timeouts[shard]
	if slices.Equal(known, inUse) {
		return false
	}
	s.timeouts[shard] = inUse
	maps.DeleteFunc(s.idle[shard], func(t string, _ int64) bool { _, in := slices.BinarySearch(inUse, t); return !in })
	return slices.ContainsFunc(inUse, func(t string) bool { _, in := slices.BinarySearch(known, t); return !in })
}

// idleFor tells for how long this sweeper has seen nobody live by a timeout.
func (s *Sweeper) idleFor(l shardLook, timeout string) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.idle[l.shard] == nil {
		s.idle[l.shard] = map[string]int64{}
	}
	since, seen := s.idle[l.shard][timeout]
	if !seen || since > l.now { // the clock was put back
		since = l.now
		s.idle[l.shard][timeout] = since
	}
	return time.Duration(l.now-since) * time.Millisecond
}

func (s *Sweeper) inUse(shard int, timeout string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.idle[shard], timeout)
}

// dropIdle drops timeouts by which nobody lives: each costs every look at its shard.
func (s *Sweeper) dropIdle(ctx context.Context, n *store.Node, idle map[int][]string) error {
	var calls []*store.Call
	for shard, timeouts := range idle {
		k := s.t.store.Keys[shard]
		for part := range slices.Chunk(timeouts, peekLimit) {
			keys, args := []string{k.Timeouts}, []any{}
			for _, timeout := range part {
				keys, args = append(keys, k.Beats(timeout)), append(args, timeout)
			}
			calls = append(calls, store.NewCall(shard, s.t.store.Scripts.Get("forget_timeouts"), keys, args...))
		}
	}
	if len(calls) == 0 {
		return nil
	}
	s.t.store.Exec(ctx, n, calls)
	for _, c := range calls {
		if c.Err != nil {
			return c.Err
		}
	}
	return nil
}
