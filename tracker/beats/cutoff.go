package beats

import (
	"math"
	"sync/atomic"
	"time"
)

// cutOff judges whether balancers may have cut clients off from this replica.
//
// Balancers send no clients to a replica that they consider unhealthy, and learn of its recovery only at their next health
// check. Until then their clients' beats are lost before any replica could see them, while empty beats would keep shard time
// running. So with each empty beat a replica says whether it may be cut off from its clients, and a shard whose replicas all say
// so holds its time (lua/lib/cutoff.lua): one that serves is enough for the others' clients. No hold outlasts the longest
// timeout of those who live in the shard, so whoever is dead is found at most that much later.
//
// A replica may be cut off
//   - for a period after it has started, unless the deployment began with it: balancers may not know of it yet;
//   - while it drains, since it says that it is not ready;
//   - in a shard where the store did not confirm a beat, empty or not, until a period later: whoever asked was answered 503,
//     which balancers count;
//   - everywhere for as long, when clearly fewer of its clients' beats arrive than before: those of other shards are cut off
//     with them.
type cutOff struct {
	period time.Duration        // longest time that a balancer takes to send clients here again; 0: nobody is ever cut off
	now    func() time.Duration // since the process began; no step of the wall clock moves it

	draining atomic.Bool
	started  atomic.Int64   // until when balancers may not know of the replica; these are as now has them
	away     []atomic.Int64 // by shard: until when clients may be cut off since the store confirmed no beat
	trouble  atomic.Int64   // the latest of these, and of times at which a lane was full

	arrived atomic.Int64 // beats of clients since the last slot, whatever came of them
	unheard atomic.Bool  // far fewer arrive than before the trouble
	heard   time.Duration
	lately  float64 // beats a second, over the last second or so; in trouble no more than is normal
	normal  float64 // the same over a period or so, while there is no trouble
}

func newCutOff(shards int, period time.Duration) *cutOff {
	began := time.Now()
	return &cutOff{period: period, now: func() time.Duration { return time.Since(began) }, away: make([]atomic.Int64, shards)}
}

// SetDraining says that balancers are told from now on to send nobody here.
func (s *Service) SetDraining() { s.keeper.cutOff.draining.Store(true) }

// begins records that the replica starts in a deployment that was there before it.
func (c *cutOff) begins() { c.started.Store(int64(c.now() + c.period)) }

// unconfirmed records that the store did not confirm a beat, empty or not.
func (c *cutOff) unconfirmed(shard int) {
	if c.period > 0 {
		c.away[shard].Store(int64(c.now() + c.period))
		c.troubled()
	}
}

// troubled records that a client was answered 503.
func (c *cutOff) troubled() { c.trouble.Store(int64(c.now() + c.period)) }

// left returns for how much longer balancers may keep the clients of a shard from this replica, at most a period; 0: they do
// not.
func (c *cutOff) left(shard int) time.Duration {
	if c.period == 0 {
		return 0
	}
	now := c.now()
	if c.draining.Load() || int64(now) < c.trouble.Load() && c.unheard.Load() {
		return c.period
	}
	return max(0, time.Duration(max(c.started.Load(), c.away[shard].Load()))-now)
}

// listen compares how many beats arrive with how many did before the trouble; KeepTime asks in each slot.
func (c *cutOff) listen() {
	if c.period == 0 {
		return
	}
	now := c.now()
	passed := (now - c.heard).Seconds()
	if passed <= 0 {
		return
	}
	c.heard = now
	rate := float64(c.arrived.Swap(0)) / passed
	towards := func(mean *float64, over time.Duration) {
		*mean += (rate - *mean) * (1 - math.Exp(-passed/over.Seconds()))
	}
	before := c.lately
	towards(&c.lately, time.Second)
	if int64(now) < c.trouble.Load() {
		// There may not have been a period's time to learn what is normal, nor any at all.
		if c.normal = max(c.normal, before); c.normal == 0 {
			c.normal = c.lately
		}
		// What is more comes of those who were turned away and ask again, or to another replica before, and would hide for long that
		// they all have gone.
		c.lately = min(c.lately, c.normal)
		c.unheard.Store(c.lately < c.normal/2)
		return
	}
	c.unheard.Store(false)
	towards(&c.normal, c.period)
}
