package beats

import (
	"math"
	"sync/atomic"
	"time"
)

// cutOff estimates whether load balancers may have cut clients off from this replica.
//
// Balancers send no clients to a replica that they consider unhealthy, and notice its recovery only at their next health check. Until
// then their clients' beats are lost before they reach any replica, while empty beats would keep shard time running. So with each empty
// beat a replica reports whether it may be cut off from its clients, and a shard whose replicas all report it pauses its time
// (lua/lib/cutoff.lua): one replica that serves is enough for the others' clients. No pause is longer than the longest timeout in the
// shard, so a dead attempt or worker is found at most that much later.
//
// A replica may be cut off
//   - for a period after its start, unless the deployment started with it: balancers may not know it yet;
//   - while it drains, since it reports that it is not ready;
//   - in a shard where the store did not confirm a beat, empty or not, until a period later: its client got a 503,
//     which balancers count;
//   - in all shards for the same time, when clearly fewer beats of its clients arrive than before: clients of other
//     shards are cut off with them.
type cutOff struct {
	period time.Duration        // longest time until a balancer sends clients here again; 0: clients are never cut off
	now    func() time.Duration // time since the process started, unaffected by steps of the wall clock

	draining atomic.Bool
	started  atomic.Int64   // until when balancers may not know the replica; like the next ones in the time of `now`
	away     []atomic.Int64 // by shard: until when clients may be cut off because the store did not confirm a beat
	trouble  atomic.Int64   // the latest of these, and of the times when a lane was full

	arrived     atomic.Int64 // clients' beats since the last slot, whatever their result
	tooFewBeats atomic.Bool  // far fewer beats arrive than before the trouble
	sampledAt   time.Duration
	lately      float64 // beats a second over about the last second; in trouble at most `normal`
	normal      float64 // beats a second over about a period, without trouble
}

func newCutOff(shards int, period time.Duration) *cutOff {
	began := time.Now()
	return &cutOff{period: period, now: func() time.Duration { return time.Since(began) }, away: make([]atomic.Int64, shards)}
}

// SetDraining records that balancers now see this replica as not ready.
func (s *Service) SetDraining() { s.keeper.cutOff.draining.Store(true) }

// begins records that the replica starts in an existing deployment.
func (c *cutOff) begins() { c.started.Store(int64(c.now() + c.period)) }

// unconfirmed records that the store did not confirm a beat, empty or not.
func (c *cutOff) unconfirmed(shard int) {
	if c.period > 0 {
		c.away[shard].Store(int64(c.now() + c.period))
		c.troubled()
	}
}

// troubled records that a client got a 503.
func (c *cutOff) troubled() { c.trouble.Store(int64(c.now() + c.period)) }

// left returns for how much longer balancers may keep the clients of a shard from this replica, at most a period; 0: they do not.
func (c *cutOff) left(shard int) time.Duration {
	if c.period == 0 {
		return 0
	}
	now := c.now()
	if c.draining.Load() || int64(now) < c.trouble.Load() && c.tooFewBeats.Load() {
		return c.period
	}
	return max(0, time.Duration(max(c.started.Load(), c.away[shard].Load()))-now)
}

// compareRate compares the rate of arriving beats with that before the trouble. KeepTime calls it in each slot.
func (c *cutOff) compareRate() {
	if c.period == 0 {
		return
	}
	now := c.now()
	passed := (now - c.sampledAt).Seconds()
	if passed <= 0 {
		return
	}
	c.sampledAt = now
	rate := float64(c.arrived.Swap(0)) / passed
	towards := func(mean *float64, over time.Duration) {
		*mean += (rate - *mean) * (1 - math.Exp(-passed/over.Seconds()))
	}
	before := c.lately
	towards(&c.lately, time.Second)
	if int64(now) < c.trouble.Load() {
		// There may have been less than a period to measure the normal rate, or no time at all.
		if c.normal = max(c.normal, before); c.normal == 0 {
			c.normal = c.lately
		}
		// A higher rate comes from clients that retry after a 503, here or elsewhere, and would long hide that they have all gone.
		c.lately = min(c.lately, c.normal)
		c.tooFewBeats.Store(c.lately < c.normal/2)
		return
	}
	c.tooFewBeats.Store(false)
	towards(&c.normal, c.period)
}
