package beats_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/lubdub-io/lubdub/internal/redistest"
	"github.com/lubdub-io/lubdub/tracker"
	"github.com/lubdub-io/lubdub/tracker/model"
	"github.com/lubdub-io/lubdub/tracker/trackertest"
)

const checkPeriod = 1500 * time.Millisecond // of load balancers

// behindBalancers makes the replica expect load balancers, on the test's clock.
func behindBalancers(h *trackertest.Harness) {
	from := h.Store.Clock.Now()
	h.Beats.OnClock(func() time.Duration { return h.Store.Clock.Now().Sub(from) })
}

func withBalancers(t *testing.T, test func(h *trackertest.Harness)) {
	redistest.Each(t, func(t *testing.T, s *redistest.Store) {
		h := trackertest.NewHarness(t, s, func(o *tracker.Options) { o.HealthCheckPeriod = checkPeriod })
		behindBalancers(h)
		test(h)
	})
}

// keepAll advances the clock while replicas keep shard time, and calls `between` once in each slot. Errors of Redis are ignored.
func keepAll(h *trackertest.Harness, d time.Duration, replicas []*tracker.Tracker, between func()) {
	h.Helper()
	for ; d > 0; d -= 100 * time.Millisecond {
		between()
		h.Store.Clock.Advance(100 * time.Millisecond)
		for _, r := range replicas {
			r.Beats.Listen()
			_ = r.Beats.Tick()
		}
	}
}

// spoil makes the store reject every command that needs a key of a task's shard, and returns a function that repairs it.
func spoil(h *trackertest.Harness, id, name string) (mend func()) {
	key := fmt.Sprintf("lubdub:{%d}:%s", h.Tracker.Store.ShardOf(trackertest.Scope, id), name)
	h.Store.Client.Rename(h.Ctx, key, key+"-away")
	h.Store.Client.Set(h.Ctx, key, "of another type", 0)
	return func() { h.Store.Client.Rename(h.Ctx, key+"-away", key) }
}

// Load balancers that got 503s in an outage keep clients away for a while after it. No attempt expires because of that while; one that
// was silent before is found after it.
func TestTimeIsHeldUntilBalancersAreBack(t *testing.T) {
	t.Parallel()
	withBalancers(t, func(h *trackertest.Harness) {
		a := h.Running(func(n *model.NewTask) { n.TaskID = "t1" })
		dead := "dead"
		for i := 0; h.Tracker.Store.ShardOf(trackertest.Scope, dead) != h.Tracker.Store.ShardOf(trackertest.Scope, "t1"); i++ {
			dead = fmt.Sprintf("dead-%d", i)
		}
		h.Running(func(n *model.NewTask) { n.TaskID = dead })
		trackers := []*tracker.Tracker{h.Tracker}
		keepAll(h, time.Second, trackers, func() {})
		h.MustBeat(a, "")
		start := shardTime(h, "t1")
		mend := spoil(h, "t1", "clock")
		keepAll(h, 5*time.Second, trackers, func() {})
		mend()
		keepAll(h, checkPeriod-200*time.Millisecond, trackers, func() {}) // the balancer has not checked yet
		if moved := shardTime(h, "t1") - start; moved > 500 {
			h.Errorf("time ran %d ms while no beat could arrive", moved)
		}
		h.MustSweep()
		h.WantState("t1", model.Running, "")
		keepAll(h, 2*time.Second, trackers, func() { h.MustBeat(a, "") })
		h.MustSweep()
		h.WantState("t1", model.Running, "")
		h.WantState(dead, model.Failed, model.HeartbeatTimeout)
	})
}

// A replica that drains pauses no time while another one serves, and all time when it is the last; a deployment that starts again pauses
// its time until load balancers can have noticed.
func TestTimeIsHeldWhileEveryReplicaIsNotReady(t *testing.T) {
	t.Parallel()
	withBalancers(t, func(h *trackertest.Harness) {
		h.Running(func(n *model.NewTask) { n.TaskID = "t1" })
		other := trackertest.NewHarness(h.TB, h.Store, func(o *tracker.Options) { o.HealthCheckPeriod = checkPeriod })
		behindBalancers(other)
		both := []*tracker.Tracker{h.Tracker, other.Tracker}
		ran := func(least, most, wall time.Duration, replicas []*tracker.Tracker, when string) {
			h.Helper()
			start := shardTime(h, "t1")
			keepAll(h, wall, replicas, func() {})
			if moved := time.Duration(shardTime(h, "t1")-start) * time.Millisecond; moved < least || moved > most {
				h.Errorf("%s: time ran %v in %v, want %v to %v", when, moved, wall, least, most)
			}
		}
		ran(time.Second, time.Second, time.Second, both, "both serve")
		h.Beats.SetDraining()
		ran(time.Second, time.Second, time.Second, both, "one drains")
		other.Beats.SetDraining()
		ran(0, 300*time.Millisecond, 2*time.Second, both, "both drain")
		h.Store.Clock.Advance(time.Minute) // no replica runs
		again := trackertest.NewHarness(h.TB, h.Store, func(o *tracker.Options) { o.HealthCheckPeriod = checkPeriod })
		behindBalancers(again)
		again.Beats.BalancersKnowNothing()
		trackers := []*tracker.Tracker{again.Tracker}
		ran(0, 400*time.Millisecond, checkPeriod-200*time.Millisecond, trackers, "started again")
		ran(time.Second, 2*time.Second, 2*time.Second, trackers, "a period later")
		ran(time.Second, time.Second, time.Second, trackers, "then")
	})
}

// The first start of a deployment pauses nothing: no client can have been cut off.
func TestADeploymentBeginsWithItsTimeRunning(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, s *redistest.Store) {
		for _, founds := range []bool{true, false} {
			h := trackertest.NewHarness(t, s, func(o *tracker.Options) { o.HealthCheckPeriod = checkPeriod })
			if founds {
				h.Running(func(n *model.NewTask) { n.TaskID = "t1" })
			}
			start := shardTime(h, "t1")
			h.Advance(time.Second)
			if moved := shardTime(h, "t1") - start; (moved > 500) != founds {
				t.Errorf("founded %v: time ran %d ms", founds, moved)
			}
			s.Clock.Advance(10 * time.Second) // until the replica is forgotten
		}
	})
}

// crowd is ten running tasks, some of them in shard 0.
type crowd struct {
	*trackertest.Harness
	attempts     []*model.Attempt
	one          *model.Attempt // in another shard
	healthy, ill string         // a task in shard 0 and one outside it
}

func newCrowd(h *trackertest.Harness) *crowd {
	c := &crowd{Harness: h}
	for i := 0; c.healthy == "" || c.ill == "" || i < 10; i++ {
		id := fmt.Sprintf("t%d", i)
		c.attempts = append(c.attempts, h.Running(func(n *model.NewTask) { n.TaskID = id }))
		if h.Tracker.Store.ShardOf(trackertest.Scope, id) == 0 {
			c.healthy = id
		} else {
			c.ill, c.one = id, c.attempts[i]
		}
	}
	return c
}

func (c *crowd) everyone() {
	for _, a := range c.attempts {
		c.MustBeat(a, "")
	}
}

// away is a balancer that rarely lets a client through, which then gets an error.
func (c *crowd) away() { c.MustBeat(c.one, "") }

func (c *crowd) ran(least, most, wall time.Duration, between func(), when string) {
	c.Helper()
	start := shardTime(c.Harness, c.healthy)
	keepAll(c.Harness, wall, []*tracker.Tracker{c.Tracker}, between)
	if moved := time.Duration(shardTime(c.Harness, c.healthy)-start) * time.Millisecond; moved < least || moved > most {
		c.Errorf("%s: time ran %v in %v, want %v to %v", when, moved, wall, least, most)
	}
}

// One part of the store is down. Load balancers that count its 503s keep clients from the healthy part too: its time is paused while, and
// only while, clearly fewer beats of its clients arrive than before.
func TestHealthyShardsAreHeldWhileTheirClientsStayAway(t *testing.T) {
	t.Parallel()
	withBalancers(t, func(h *trackertest.Harness) {
		c := newCrowd(h)
		c.ran(2*checkPeriod, 2*checkPeriod, 2*checkPeriod, c.everyone, "all is well")
		mend := spoil(h, c.ill, "beats:2000")
		c.ran(3*time.Second, 3*time.Second, 3*time.Second, c.everyone, "beats arrive")
		c.ran(0, 1500*time.Millisecond, 3*time.Second, c.away, "they are not") // this takes a moment to notice
		c.ran(0, 200*time.Millisecond, 2*time.Second, c.away, "they still are not")
		mend()
		c.ran(0, 150*time.Millisecond, checkPeriod-200*time.Millisecond, func() {}, "until balancers are back")
		c.ran(time.Second, 2*time.Second, 2*time.Second, c.everyone, "beats arrive again")
	})
}

// The same when the trouble comes before a replica has received beats or soon after, and when many more beats arrive just before clients
// stay away: those of a replica that is already cut off, and those of clients that retry after a 503.
func TestHealthyShardsArePausedDespiteMoreBeatsJustBefore(t *testing.T) {
	t.Parallel()
	for _, before := range []time.Duration{0, 500 * time.Millisecond, 10 * time.Second} {
		withBalancers(t, func(h *trackertest.Harness) {
			c := newCrowd(h)
			c.ran(before, before, before, c.everyone, "all is well")
			spoil(h, c.ill, "beats:2000")
			c.ran(2*time.Second, 2*time.Second, 2*time.Second, func() {
				for range 4 {
					c.everyone()
				}
			}, fmt.Sprintf("many beats arrive after %v", before))
			c.ran(0, 1600*time.Millisecond, 4*time.Second, c.away, fmt.Sprintf("they stay away after %v", before))
		})
	}
}

// A beat in the middle of a pause gets credit for the rest of the pause, and no more.
func TestEvidenceOfABeatInAHold(t *testing.T) {
	t.Parallel()
	withBalancers(t, func(h *trackertest.Harness) {
		a := h.Running(func(n *model.NewTask) { n.TaskID = "t1" })
		h.Beats.SetDraining()
		trackers := []*tracker.Tracker{h.Tracker}
		keepAll(h, 1300*time.Millisecond, trackers, func() {})
		b := h.MustBeat(a, "")
		if b.Err != nil {
			h.Fatal(b.Err)
		}
		keepAll(h, 11*time.Second, trackers, func() {})
		h.MustSweep()
		e := h.WantState("t1", model.Failed, model.HeartbeatTimeout).History[0].Evidence
		if off := e.LastHeartbeatAt.Sub(b.At).Abs(); off > 20*time.Millisecond {
			h.Errorf("the reported time of its last beat is off by %v: %+v", off, e)
		}
	})
}
