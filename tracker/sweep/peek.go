package sweep

import (
	"context"
	"slices"
	"strconv"
	"time"

	"github.com/lubdub-io/lubdub/tracker/beats"
	"github.com/lubdub-io/lubdub/tracker/store"
)

const (
	peekLimit = 200         // beats sets that one script scans
	idleLife  = time.Minute // a timeout unused for this long is dropped; sooner, it would be dropped and created with each task
)

// set is a sorted set of a shard in which task deadlines are stored.
type set uint8

const (
	beatsSet set = iota // of one timeout: attempts that may be silent
	timersSet
	dueSet
)

// overdue names one set with overdue entries.
type overdue struct {
	shard   int
	set     set
	timeout string        // of a beats set, ms
	grace   time.Duration // left to sweepers with a better rank
}

// beatsOf names the beats set of one timeout in one shard.
type beatsOf struct {
	shard   int
	timeout string // ms
}

// peeked is the result of one scan of the shards of a node.
type peeked struct {
	t        *taskSweep
	r        *round
	todo     []overdue
	outboxes []outbox
	held     []int            // shards whose time may be slowed because of balancers
	idle     map[int][]string // by shard: timeouts that may be dropped
	next     time.Duration
	lag      time.Duration
}

// peek scans the shards of one node for overdue deadlines in one round trip. It learns the timeouts in use even if the scan of
// their sets fails: on Redis Cluster it fails for a set that was dropped while its slot moves.
func (t *taskSweep) peek(ctx context.Context, r *round) (*peeked, error) {
	st := t.service.store
	groups := st.Together(r.shards)
	var calls []*store.Call
	var sets [][]beatsOf // of the calls that follow those of the groups
	for _, group := range groups {
		calls = append(calls, t.service.scripts.peekCall(group, t.id, sweeperLease))
		sets = append(sets, t.knownSets(group)...)
	}
	for _, part := range sets {
		calls = append(calls, t.service.scripts.peekBeatsCall(part))
	}
	st.Exec(ctx, r.node, calls)
	p := &peeked{t: t, r: r, idle: map[int][]string{}, next: maxNap}
	scans := map[int]shardScan{}
	for i, group := range groups {
		if calls[i].Err != nil {
			continue
		}
		for j, dues := range readPeek(calls[i].Reply, len(group)) {
			scans[group[j]] = p.scan(group[j], dues)
		}
	}
	if err := store.FirstError(calls); err != nil {
		return nil, err
	}
	for i, part := range sets {
		first := readPeekBeats(calls[len(groups)+i].Reply)
		for j, of := range part {
			p.scanBeats(scans[of.shard], of.timeout, first[j])
		}
	}
	t.service.metrics.sweepLag.Set(p.lag.Seconds())
	return p, nil
}

// knownSets returns the known beats sets of some shards, one slice per call.
func (t *taskSweep) knownSets(shards []int) [][]beatsOf {
	var sets []beatsOf
	for _, shard := range shards {
		for _, timeout := range t.timeouts.Of(shard) {
			sets = append(sets, beatsOf{shard, timeout})
		}
	}
	return slices.Collect(slices.Chunk(sets, peekLimit))
}

// shardScan is when a shard was scanned and how long this sweeper leaves its findings to others.
type shardScan struct {
	shard     int
	now, time int64 // wall ms and shard time ms
	changed   int64 // shard time of the latest change of the primary, ms
	grace     time.Duration
}

func (p *peeked) scan(shard int, dues shardDues) shardScan {
	l := shardScan{shard: shard, now: dues.now, time: dues.time, changed: dues.changed, grace: p.r.grace(p.t.id, shard, dues.sweepers)}
	p.t.leads.set(shard, p.t.id.rank(shard, dues.sweepers) == 0)
	if dues.held && l.grace == 0 {
		p.held = append(p.held, shard)
	}
	if p.isOver(l, dues.timer-l.time) {
		p.todo = append(p.todo, overdue{shard: shard, set: timersSet, grace: l.grace})
	}
	if p.isOver(l, dues.due-l.now) {
		p.todo = append(p.todo, overdue{shard: shard, set: dueSet, grace: l.grace})
	}
	if p.isOver(l, dues.notice-l.now) {
		p.outboxes = append(p.outboxes, outbox{shard, l.grace})
	}
	if p.t.timeouts.Learn(shard, dues.timeouts) {
		p.next = 0 // a timeout that is new to this sweeper: scan again now
	}
	return l
}

// isOver reports whether this sweeper may take what is due in that many ms.
func (p *peeked) isOver(l shardScan, dueInMs int64) bool {
	late := time.Duration(-dueInMs) * time.Millisecond
	p.lag = max(p.lag, late)
	if late < l.grace {
		p.next = min(p.next, l.grace-late)
	}
	return late >= l.grace
}

// scanBeats evaluates the beats set of one timeout by its first beat; "": no attempt uses the timeout.
func (p *peeked) scanBeats(l shardScan, timeout, first string) {
	if first == "" {
		if p.t.timeouts.idleFor(l.shard, timeout, l.now) >= idleLife && l.grace == 0 {
			p.idle[l.shard] = append(p.idle[l.shard], timeout)
		}
		return
	}
	p.t.timeouts.lives(l.shard, timeout)
	if ms, _ := strconv.ParseInt(timeout, 10, 64); ms > 0 { // timeout 0: the heartbeats of the worker count
		at, _ := strconv.ParseInt(first, 10, 64)
		if p.isOver(l, silentSince(at, ms, l.changed)+ms+1-l.time) {
			p.todo = append(p.todo, overdue{l.shard, beatsSet, timeout, l.grace})
		}
	}
}

// silentSince matches the function of that name in lua/lib/primary.lua: a change of the primary counts as a heartbeat.
func silentSince(beat, timeout, changed int64) int64 {
	return max(beat, min(changed, beat+timeout+beats.MaxStepMs))
}

// dropIdle drops timeouts that no attempt uses, since each adds to the cost of every scan of its shard.
func (t *taskSweep) dropIdle(ctx context.Context, n *store.Node, idle map[int][]string) error {
	var calls []*store.Call
	for shard, timeouts := range idle {
		for part := range slices.Chunk(timeouts, peekLimit) {
			calls = append(calls, t.service.scripts.forgetTimeoutsCall(shard, part))
		}
	}
	if len(calls) == 0 {
		return nil
	}
	return t.service.exec(ctx, n, calls)
}
