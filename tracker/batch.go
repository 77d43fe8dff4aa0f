package tracker

import (
	"time"

	"github.com/lubdub-io/lubdub/lua"
)

// maxBeatsPerCall keeps a script's arguments well under the 8,000 or so that Lua's unpack can take.
const maxBeatsPerCall = 1000

// batcher turns what a lane of beats has collected into one script call for each shard, all in one round trip.
// It belongs to the lane's one flusher and is reused from flush to flush, so that a flush allocates nothing
// but what go-redis needs.
type batcher struct {
	t      *Tracker
	n      *node
	script *lua.Script
	calls  []*beatCall // those in use come first
	used   int
	open   []*beatCall // by shard: the call that still takes beats
	exec   []*call
}

func newBatcher(t *Tracker, n *node) *batcher {
	return &batcher{t: t, n: n, script: t.store.scripts.Get("beat"), open: make([]*beatCall, t.store.shards())}
}

// beatCall is one call of beat.lua: the beats of one shard, grouped by the set that they are in.
type beatCall struct {
	call
	groups []beatGroup
	live   int     // groups in use; the rest keep their slices for later flushes
	order  []*Beat // as their members stand in ARGV
	ticks  []*Beat
	size   int
}

type beatGroup struct {
	key   *string
	beats []*Beat
}

// flush lands a batch and gives every beat its fate.
func (b *batcher) flush(batch []*Beat) {
	start := time.Now()
	for _, beat := range batch {
		b.callFor(beat.shard()).add(beat)
	}
	b.exec = b.exec[:0]
	for _, c := range b.calls[:b.used] {
		c.build(b)
		b.exec = append(b.exec, &c.call)
	}
	b.t.store.exec(b.n, b.exec)
	m := b.t.metrics
	m.flushes.Inc()
	m.batchSize.Observe(float64(len(batch)))
	m.flushTime.Observe(time.Since(start).Seconds())
	for _, c := range b.calls[:b.used] {
		c.settle(b.t)
		c.reset()
		b.open[c.shard] = nil
	}
	b.used = 0
}

// callFor gives the call that takes the next beat of a shard.
func (b *batcher) callFor(shard int) *beatCall {
	c := b.open[shard]
	if c != nil && c.size < maxBeatsPerCall {
		return c
	}
	if b.used == len(b.calls) {
		b.calls = append(b.calls, &beatCall{})
	}
	c = b.calls[b.used]
	b.used++
	c.shard, c.script = shard, b.script
	b.open[shard] = c
	return c
}

func (c *beatCall) add(beat *Beat) {
	if beat.tick != nil {
		c.ticks = append(c.ticks, beat)
		return
	}
	c.size++
	key := &beat.Attempt.beatsKey
	for i := range c.groups[:c.live] {
		if g := &c.groups[i]; g.key == key || *g.key == *key {
			g.beats = append(g.beats, beat)
			return
		}
	}
	if c.live == len(c.groups) {
		c.groups = append(c.groups, beatGroup{})
	}
	g := &c.groups[c.live]
	c.live++
	g.key, g.beats = key, append(g.beats[:0], beat)
}

// build writes the arguments as the header of beat.lua gives them. Strings go by pointer: go-redis writes what
// it points to, and a pointer needs no allocation to become an interface value.
func (c *beatCall) build(b *batcher) {
	k := b.t.store.keys[c.shard]
	argv := append(c.argv[:0], "evalsha", &b.script.SHA)
	if c.live == 0 {
		argv = append(argv, 11, &k.clock, &k.outages, &k.progress, &k.cancels, &k.replicas,
			&k.timeouts, &k.timers, &k.due, &k.ix, &k.events, &k.sweepers)
		c.argv = append(argv, &b.t.opts.ReplicaID, b.t.keeper.windowMs(), 0, 0, 0)
		return
	}
	argv = append(argv, 5+c.live, &k.clock, &k.outages, &k.progress, &k.cancels, &k.replicas)
	for i := range c.groups[:c.live] {
		argv = append(argv, c.groups[i].key)
	}
	argv = append(argv, "", 0, nil, nil, c.live)
	counts := len(argv) - 3
	for i := range c.groups[:c.live] {
		argv = append(argv, len(c.groups[i].beats))
	}
	for i := range c.groups[:c.live] {
		for _, beat := range c.groups[i].beats {
			c.order = append(c.order, beat)
			argv = append(argv, &beat.Attempt.member)
		}
	}
	full, partial := 0, 0
	for _, beat := range c.order {
		if reportIsFull(beat.Report) {
			argv = append(argv, &beat.Attempt.member, &beat.Report)
			full++
		} else if beat.Report != "" {
			partial++
		}
	}
	if partial > 0 {
		for _, beat := range c.order {
			if beat.Report != "" && !reportIsFull(beat.Report) {
				argv = append(argv, &beat.Attempt.member, &beat.Report)
			}
		}
	}
	argv[counts], argv[counts+1] = full, partial
	c.argv = argv
}

// settle reads the reply and gives every beat of the call its fate.
func (c *beatCall) settle(t *Tracker) {
	if c.err != nil {
		err := asUnavailable("beat", c.err)
		t.metrics.beatsUnavailable.Add(float64(len(c.order)))
		for _, beat := range c.order {
			beat.Err = err
			beat.wait.done()
		}
		for _, beat := range c.ticks {
			beat.Err = err
			beat.wait.done()
		}
		return
	}
	at := c.reply.time(0)
	t.keeper.touched(c.shard, at, c.reply.int(2))
	for _, beat := range c.order {
		beat.At = at
	}
	dead := c.reply.list(3)
	for i := range dead {
		c.order[dead.int(i)-1].slow = true
	}
	cancels := c.reply.list(4)
	for i := 0; i+1 < len(cancels); i += 2 {
		c.order[cancels.int(i)-1].Cancel = parseCancel(cancels.str(i + 1))
	}
	t.metrics.beatsApplied.Add(float64(len(c.order) - len(dead)))
	t.metrics.beatsSlow.Add(float64(len(dead)))
	for _, beat := range c.order {
		beat.wait.done() // the caller may reuse the beat from here on
	}
	for _, beat := range c.ticks {
		beat.tick.replicas = c.reply.list(5).strings()
		beat.wait.done()
	}
}

// reset lets go of everything that belongs to callers and keeps the slices.
func (c *beatCall) reset() {
	for i := range c.groups[:c.live] {
		clear(c.groups[i].beats)
		c.groups[i].key = nil
	}
	clear(c.order)
	clear(c.ticks)
	clear(c.argv)
	c.order, c.ticks, c.argv = c.order[:0], c.ticks[:0], c.argv[:0]
	c.live, c.size, c.reply, c.err = 0, 0, nil, nil
}
