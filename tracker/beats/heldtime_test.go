package beats_test

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/lubdub-io/lubdub/internal/redistest"
	"github.com/lubdub-io/lubdub/internal/testenv"
	"github.com/lubdub-io/lubdub/tracker"
	"github.com/lubdub-io/lubdub/tracker/beats"
	"github.com/lubdub-io/lubdub/tracker/model"
	"github.com/lubdub-io/lubdub/tracker/trackertest"
)

var (
	heldSeed  = flag.Uint64("held-seed", 0, "seed of the outages in tests of health-check-period; 0: another one each time")
	heldPlays = flag.Int("held-plays", 1, "how many times outages are played in tests of health-check-period")
)

// heldTasks is a deployment with the default health-check-period whose Redis is repeatedly down for a short time.
type heldTasks struct {
	*trackertest.Harness
	rand    *rand.Rand
	members []*heldTask
	points  int         // points of decision between the clients and Lubdub, such as balancers; 0: none
	back    []time.Time // by point: when it sends clients here again
	late    []time.Duration
}

type heldTask struct {
	attempt *model.Attempt
	point   int
	next    time.Time
	up      time.Duration // how long it has been silent while Redis was up
	dead    bool          // it has stopped beating
	found   bool
}

const (
	heldTimeout  = 6 * time.Second
	heldInterval = heldTimeout / 3
	heldPeriod   = 15 * time.Second // the default
	heldMembers  = 150
)

func playHeld(t *testing.T, points int, outages func(h *heldTasks)) {
	t.Parallel()
	for range *heldPlays {
		seed := *heldSeed
		if seed == 0 {
			seed = rand.Uint64()
		}
		t.Logf("-held-seed %d", seed)
		s := redistest.Real(t) // miniredis takes ten times as long for so many steps; lua/cutoff_test.go uses both
		h := &heldTasks{rand: rand.New(rand.NewPCG(seed, 0)), points: points, back: make([]time.Time, points)}
		h.Harness = trackertest.NewHarness(t, s, func(o *tracker.Options) { o.HealthCheckPeriod = heldPeriod })
		from := s.Clock.Now()
		h.Beats.OnClock(func() time.Duration { return s.Clock.Now().Sub(from) })
		for i := range heldMembers {
			a := h.Running(func(n *model.NewTask) { n.HeartbeatInterval, n.HeartbeatTimeout = heldInterval, heldTimeout })
			h.members = append(h.members, &heldTask{attempt: a, point: i % max(points, 1), next: s.Clock.Now().Add(h.upTo(heldInterval))})
		}
		h.pass(heldInterval)
		outages(h)
		for _, m := range h.members {
			if m.found != m.dead {
				h.Errorf("%s: dead %v, declared dead %v", m.attempt.TaskID, m.dead, m.found)
			}
		}
	}
}

func (h *heldTasks) upTo(d time.Duration) time.Duration {
	return time.Duration(h.rand.Int64N(int64(d)))
}

// pass advances time while Redis is up.
func (h *heldTasks) pass(d time.Duration) {
	for ; d > 0; d -= 100 * time.Millisecond {
		h.Store.Clock.Advance(100 * time.Millisecond)
		h.beat(false)
		h.Beats.Listen()
		h.MustTick()
		if r := h.MustSweep(); r.Zombies > 0 {
			h.find()
		}
		for _, m := range h.members {
			m.up += 100 * time.Millisecond
		}
	}
}

// away is an outage, after which each point of decision takes a while to send clients here again.
func (h *heldTasks) away(d time.Duration) {
	mend := h.spoil()
	for ; d > 0; d -= 100 * time.Millisecond {
		h.Store.Clock.Advance(100 * time.Millisecond)
		h.beat(true)
		h.Beats.Listen()
		if h.Beats.Tick() == nil {
			h.Fatal("an empty beat was stored in an outage")
		}
	}
	mend()
	for i := range h.back {
		h.back[i] = h.Store.Clock.Now().Add(h.upTo(heldTimeout)) // no pause is longer than the longest timeout
	}
}

// spoil makes the store reject everything that needs a clock.
func (h *heldTasks) spoil() (mend func()) {
	var mends []func()
	for shard := range h.Tracker.Store.Shards() {
		key := fmt.Sprintf("lubdub:{%d}:clock", shard)
		h.Store.Client.Rename(h.Ctx, key, key+"-away")
		h.Store.Client.Set(h.Ctx, key, "of another type", 0)
		mends = append(mends, func() { h.Store.Client.Rename(h.Ctx, key+"-away", key) })
	}
	return func() {
		for _, mend := range mends {
			mend()
		}
	}
}

// beat sends the due beats that the balancers let through. One that is not stored is repeated after Retry-After.
func (h *heldTasks) beat(away bool) {
	now := h.Store.Clock.Now()
	var batch []*beats.Beat
	var by []*heldTask
	for _, m := range h.members {
		switch {
		case m.dead || m.next.After(now):
		case h.points > 0 && h.back[m.point].After(now):
			m.next = now.Add(time.Second + h.upTo(100*time.Millisecond))
		default:
			batch, by = append(batch, &beats.Beat{Attempt: m.attempt}), append(by, m)
		}
	}
	h.Beats.BeatMany(batch)
	for i, b := range batch {
		m := by[i]
		if (b.Err != nil) != away {
			h.Fatalf("%s in an outage %v: %v", m.attempt.TaskID, away, b.Err)
		}
		if m.next = now.Add(heldInterval); away {
			m.next = now.Add(time.Second + h.upTo(100*time.Millisecond))
		} else {
			m.up = 0
		}
	}
}

// find records which tasks have just been declared dead.
func (h *heldTasks) find() {
	for _, m := range h.members {
		if m.found || h.MustGet(m.attempt.TaskID).State == model.Running {
			continue
		}
		m.found = true
		if !m.dead {
			h.Fatalf("%s beats and was declared dead", m.attempt.TaskID)
		}
		h.late = append(h.late, m.up-heldTimeout)
	}
}

// Without a balancer the dead are found in time although Redis is repeatedly down for a few seconds: the pause that health-check-period
// gives balancers ends early when all but a few members beat.
func TestDeadTasksAreDetectedInTimeAfterShortOutages(t *testing.T) {
	testenv.OnlyAll(t)
	playHeld(t, 0, func(h *heldTasks) {
		for range 30 { // within about two minutes
			h.away(time.Second + h.upTo(3*time.Second).Truncate(100*time.Millisecond))
			h.pass(1200*time.Millisecond + h.upTo(time.Second).Truncate(100*time.Millisecond))
			if m := h.members[h.rand.IntN(len(h.members))]; h.rand.IntN(3) == 0 {
				m.dead = true
			}
		}
		h.pass(2*heldTimeout + heldPeriod)
		slices.Sort(h.late)
		h.Logf("%d found %v late", len(h.late), h.late)
		if len(h.late) > 0 && h.late[len(h.late)-1] > 3*time.Second {
			h.Errorf("a dead one was found %v late", h.late[len(h.late)-1])
		}
	})
}

// Behind any number of balancers that resume one by one, no member is declared dead.
func TestNoMemberDiesBehindBalancersThatReturnOneByOne(t *testing.T) {
	t.Parallel()
	for _, points := range []int{1, 3, heldMembers} {
		t.Run(fmt.Sprint(points), func(t *testing.T) {
			playHeld(t, points, func(h *heldTasks) {
				h.away(time.Second + h.upTo(4*time.Second).Truncate(100*time.Millisecond))
				h.pass(heldPeriod + heldTimeout)
			})
		})
	}
}
