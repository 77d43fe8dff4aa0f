package beats

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/lubdub-io/lubdub/lua"
	"github.com/lubdub-io/lubdub/tracker/model"
	"github.com/lubdub-io/lubdub/tracker/schema"
	"github.com/lubdub-io/lubdub/tracker/store"
)

// maxBeatsPerCall and maxBeatBytes (of members and reports) limit how long one script blocks Redis and how large its reply is, since each
// beat may return a cancel. They also keep its arguments well below the 8,000 or so that Lua's unpack accepts.
const (
	maxBeatsPerCall = 500
	maxBeatBytes    = 256 << 10
)

// One flush in sampledFlushes asks how long its attempts were silent; the others read no score. sampleSilence is the flag for it that the
// header of beat.lua describes.
const (
	sampledFlushes = 64
	sampleSilence  = 1 << 30
)

// batcher turns the beats that a lane has collected into script calls in one round trip: as few as possible on one server, one for each
// shard on Cluster, where a script may not touch two. It belongs to one flush function of the lane and is reused, so that a flush
// allocates only what go-redis needs.
type batcher struct {
	s        *Service
	n        *store.Node
	script   *lua.Script
	oneShard bool        // a call may cover one shard only
	groups   []beatGroup // those in use come first
	used     int
	first    []int // by shard: its newest group, plus 1
	touched  []int // shards that have groups
	ticks    []*Beat
	calls    []*beatCall // those in use come first
	exec     []*store.Call
	until    time.Time // when the first caller of the flush must have its result
	flushed  int       // counts flushes with beats other than empty ones
	sampled  int       // each n-th of them asks for silences; 0: none
	settling bool      // the order of the beats is fixed
	settled  int       // how many have a result, in that order

	tickGroups [][]*Beat // by call
	tickCalls  []*store.Call
}

func newBatcher(s *Service, n *store.Node) *batcher {
	return &batcher{
		s: s, n: n, script: s.scripts.beat, oneShard: s.store.OnCluster(),
		first: make([]int, s.store.Shards()), sampled: sampledFlushes,
	}
}

// beatGroup is the beats of one shard and one set, by how their reports are stored.
type beatGroup struct {
	shard               int
	key                 *string // of the set
	full, partial, bare []*Beat
	sizes               int // of these lists, in the format of beat.lua
	bytes               int // total length of their members and reports
	next                int // the next group of the same shard, plus 1
}

func (g *beatGroup) size() int { return len(g.full) + len(g.partial) + len(g.bare) }

// beatCall is one call of beat.lua.
type beatCall struct {
	store.Call
	groups []*beatGroup
	order  []*Beat // in the order of their positions in the call
}

// flush sends a batch to Redis and sets the result of every beat.
func (b *batcher) flush(batch []*Beat) {
	start := time.Now()
	batch = b.inTime(batch, start)
	if len(batch) == 0 {
		return
	}
	defer func() {
		if p := recover(); p != nil {
			b.s.store.BreakDown("the lane of beats", p)
			b.abandon(batch)
		}
	}()
	for _, beat := range batch {
		b.add(beat)
	}
	b.pack()
	b.s.store.Exec(context.Background(), b.n, b.exec)
	b.settling = true
	now := time.Now()
	m := b.s.metrics
	m.flushes.Inc()
	m.batchSize.Observe(float64(len(batch)))
	m.flushTime.Observe(now.Sub(start).Seconds())
	for _, c := range b.calls[:len(b.exec)-len(b.tickCalls)] {
		c.settle(b, now)
	}
	for i, beats := range b.tickGroups {
		settleTicks(b, beats, b.tickCalls[i], now)
	}
	b.reset()
}

// inTime removes and refuses the beats that can no longer be applied in time, and sets `until` to the earliest deadline of the rest.
func (b *batcher) inTime(batch []*Beat, now time.Time) []*Beat {
	latest := now.Add(b.s.store.LeastTrip(nil))
	b.until = now.Add(b.s.store.Patience())
	remaining := batch[:0]
	for _, beat := range batch {
		switch {
		case beat.until.Before(latest):
			b.s.metrics.beatsOverloaded.Inc()
			b.s.turnAway(beat, b.s.store.TooLateError())
			continue
		case beat.until.Before(b.until):
			b.until = beat.until
		}
		remaining = append(remaining, beat)
	}
	return remaining
}

// abandon fails the beats of a flush that panicked and have no result yet, and resets the batcher.
func (b *batcher) abandon(batch []*Beat) {
	if b.settling { // results are set in this order
		var order []*Beat
		for _, c := range b.calls[:len(b.exec)-len(b.tickCalls)] {
			order = append(order, c.order...)
		}
		for _, beats := range b.tickGroups {
			order = append(order, beats...)
		}
		batch = order[b.settled:]
	}
	for _, beat := range batch {
		b.s.turnAway(beat, b.s.store.Bug())
	}
	*b = *newBatcher(b.s, b.n)
}

// add adds a beat to its group.
func (b *batcher) add(beat *Beat) {
	if beat.tick != nil {
		b.ticks = append(b.ticks, beat)
		return
	}
	g := b.group(beat.Attempt)
	g.bytes += len(beat.Attempt.Member) + len(beat.Report)
	switch {
	case beat.Report == "":
		g.bare = append(g.bare, beat)
	case reportIsFull(beat.Report):
		g.full = append(g.full, beat)
	default:
		g.partial = append(g.partial, beat)
	}
}

func (b *batcher) group(a *model.Attempt) *beatGroup {
	newest := b.first[a.Shard]
	for i := newest; i != 0; i = b.groups[i-1].next {
		if g := &b.groups[i-1]; *g.key == a.BeatsKey && g.size() < maxBeatsPerCall && g.bytes < maxBeatBytes {
			return g
		}
	}
	if newest == 0 {
		b.touched = append(b.touched, a.Shard)
	}
	if b.used == len(b.groups) {
		b.groups = append(b.groups, beatGroup{})
	}
	g := &b.groups[b.used]
	b.used++
	g.shard, g.key, g.next = a.Shard, &a.BeatsKey, newest
	b.first[a.Shard] = b.used
	return g
}

// pack distributes the groups over calls, those of one shard together.
func (b *batcher) pack() {
	var c *beatCall
	size, bytes := 0, 0
	for _, shard := range b.touched {
		if b.oneShard {
			c = nil
		}
		for i := b.first[shard]; i != 0; i = b.groups[i-1].next {
			g := &b.groups[i-1]
			if c == nil || size+g.size() > maxBeatsPerCall || bytes+g.bytes > maxBeatBytes {
				c, size, bytes = b.nextCall(shard), 0, 0
			}
			c.groups = append(c.groups, g)
			size, bytes = size+g.size(), bytes+g.bytes
		}
	}
	for _, c := range b.calls[:len(b.exec)] {
		c.build(b)
	}
	for beats := range slices.Chunk(b.ticks, b.s.store.AtOnce()) {
		tick := b.s.tickCall(beats)
		tick.Until = b.until
		b.tickGroups, b.tickCalls = append(b.tickGroups, beats), append(b.tickCalls, tick)
		b.exec = append(b.exec, tick)
	}
}

func (b *batcher) nextCall(shard int) *beatCall {
	used := len(b.exec)
	if used == len(b.calls) {
		b.calls = append(b.calls, &beatCall{})
	}
	c := b.calls[used]
	c.Shard, c.Script, c.Until = shard, b.script, b.until
	b.exec = append(b.exec, &c.Call)
	return c
}

// build writes the arguments in the format of beat.lua's header. Strings are passed by pointer: go-redis writes what it points to, and
// converting a pointer to an interface value does not allocate.
func (c *beatCall) build(b *batcher) {
	argv := append(c.Argv[:0], "evalsha", &b.script.SHA, 5*len(c.groups))
	for _, g := range c.groups {
		k := b.s.store.Keys[g.shard]
		argv = append(argv, &k.Clock, &k.Outages, &k.Progress, &k.Cancels, g.key)
	}
	for _, g := range c.groups {
		g.sizes = len(g.full) + len(g.partial)<<10 + len(g.bare)<<20
		if b.sampled > 0 && b.flushed%b.sampled == 0 {
			g.sizes += sampleSilence
		}
		argv = append(argv, &g.sizes)
	}
	for _, g := range c.groups {
		for _, beat := range g.full {
			argv = append(argv, &beat.Attempt.Member, &beat.Report)
		}
		for _, beat := range g.partial {
			argv = append(argv, &beat.Attempt.Member, &beat.Report)
		}
		for _, beat := range g.bare {
			argv = append(argv, &beat.Attempt.Member)
		}
		c.order = append(append(append(c.order, g.full...), g.partial...), g.bare...)
	}
	c.Argv = argv
}

// settle reads the reply and sets the result of every beat of the call.
func (c *beatCall) settle(b *batcher, now time.Time) {
	s := b.s
	if c.Err != nil {
		err := store.AsUnavailable("beat", c.Err)
		s.metrics.beatsUnavailable.Add(float64(len(c.order)))
		s.RecordResult(c.Shard, len(c.order), err)
		for _, beat := range c.order {
			beat.Err = err
			b.done(beat)
		}
		return
	}
	at := c.Reply.Time(0)
	dead := c.Reply.List(1)
	for i := range dead {
		c.order[dead.Int(i)-1].slow = true
	}
	cancels := c.Reply.List(2)
	for i := 0; i+1 < len(cancels); i += 2 {
		c.order[cancels.Int(i)-1].Cancel = parseCancel(cancels.Str(i + 1))
	}
	gaps := c.Reply.List(3)
	for i := 0; i+1 < len(gaps); i += 2 {
		s.keeper.recordGap(gaps.Int(i + 1))
	}
	s.keeper.recordSkew(at, now)
	s.RecordResult(c.Shard, len(c.order), nil)
	for _, g := range c.groups {
		s.keeper.touched(g.shard, now)
	}
	s.metrics.beatsApplied.Add(float64(len(c.order) - len(dead)))
	s.metrics.beatsSlow.Add(float64(len(dead)))
	silences := c.Reply.List(4)
	for i := range silences {
		if ms := silences.Int(i); ms >= 0 {
			s.metrics.taskGaps.Observe(float64(ms) / float64(model.Millis(c.order[i].Attempt.Timeout)))
		}
	}
	for _, beat := range c.order {
		beat.At = at
		b.done(beat)
	}
}

// done signals a beat's caller, which may reuse the beat from here on.
func (b *batcher) done(beat *Beat) {
	b.settled++
	beat.waiter.Done()
}

// reset drops all references to callers' data and keeps the slices.
func (b *batcher) reset() {
	for _, c := range b.calls[:len(b.exec)-len(b.tickCalls)] {
		clear(c.order)
		clear(c.Argv)
		c.groups, c.order, c.Argv = c.groups[:0], c.order[:0], c.Argv[:0]
		c.Reply, c.Err = nil, nil
	}
	for i := range b.groups[:b.used] {
		g := &b.groups[i]
		clear(g.full)
		clear(g.partial)
		clear(g.bare)
		g.key, g.bytes, g.full, g.partial, g.bare = nil, 0, g.full[:0], g.partial[:0], g.bare[:0]
	}
	for _, shard := range b.touched {
		b.first[shard] = 0
	}
	clear(b.exec)
	clear(b.ticks)
	clear(b.tickCalls)
	if b.used > 0 {
		b.flushed++
	}
	b.settling, b.settled = false, 0
	b.used, b.touched, b.ticks, b.exec = 0, b.touched[:0], b.ticks[:0], b.exec[:0]
	b.tickGroups, b.tickCalls = b.tickGroups[:0], b.tickCalls[:0]
}

// reportIsFull reports whether a packed report has every field that the previous one may have had, so that it can be written without
// reading that. The message, a JSON string, is its last part, and the percentage the one before.
func reportIsFull(report string) bool {
	pct := strings.LastIndexByte(report, schema.PackSep[0]) - 1
	return report[len(report)-1] == '"' && report[pct] != schema.PackSep[0]
}
