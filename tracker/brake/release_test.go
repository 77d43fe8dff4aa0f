package brake_test

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lubdub-io/lubdub/tracker"
	"github.com/lubdub-io/lubdub/tracker/brake"
	"github.com/lubdub-io/lubdub/tracker/model"
	"github.com/lubdub-io/lubdub/tracker/trackertest"
)

func TestOperatorsReleaseTheBrake(t *testing.T) {
	t.Parallel()
	trackertest.Contract(t, func(h *trackertest.Harness) {
		herd(h, 60)
		for i := range 60 {
			h.MustRegister(func(n *model.NewWorker) { n.MachineID = fmt.Sprintf("host-%d", i) })
		}
		elsewhere := model.Scope{Tenant: "other", Workspace: "prod"}
		herd(h, 60, func(n *model.NewTask) { n.Scope = elsewhere })
		h.Advance(brakeTimeout + justOver)
		wantHeld(h, 0)
		wantSweep(h, 120, 0)
		wantHeld(h, 120)
		h.Advance(4 * time.Second)
		herd(h, 50)
		h.Advance(brakeTimeout - 8*time.Second)
		r, err := h.Brake.Release(h.Ctx, trackertest.Scope, 40*time.Second)
		if err != nil || r.Tasks != 60 || r.Workers != 0 {
			h.Fatalf("%+v %v", r, err)
		}
		wantSweep(h, 0, 60) // those of the other scope are still held
		wantHeld(h, 60)     // the release itself does not count as held
		h.Advance(8*time.Second + justOver)
		wantSweep(h, 0, 110) // none of the released is held any more, and those of the other scope have had their time
		wantHeld(h, 0)
		h.Advance(7 * time.Second)
		if s := h.MustSweep(); s.StaleWorkers != 60 || s.MassExpiryHeld != 0 {
			h.Fatalf("%+v", s)
		}
		h.Advance(20 * time.Second)
		herd(h, 60)
		h.Advance(brakeTimeout + justOver)
		wantSweep(h, 60, 0) // it works as before
		for _, d := range []time.Duration{time.Millisecond, brake.MaxRelease + 1, -1} {
			_, err := h.Brake.Release(h.Ctx, trackertest.Scope, d)
			h.WantCode(err, model.Invalid)
		}
	}, trackertest.Braked)
}

// wantHeld fails unless the system view shows that the brake holds this many tasks and workers.
func wantHeld(h *trackertest.Harness, want int) {
	h.Helper()
	s, err := h.Replica().Stats.System(h.Ctx) // another replica, since a replica caches its result for a second
	if err != nil || s.Held != want {
		h.Fatalf("the brake holds %d, want %d (%v)", s.Held, want, err)
	}
	if (len(s.Braked) > 0) != (want > 0) || want == 120 && !slices.Contains(s.Braked, trackertest.Scope) {
		h.Fatalf("%d are held, in %v", want, s.Braked)
	}
}

// A release does not count as held where the brake holds nothing, or is off.
func TestAReleaseIsNoHold(t *testing.T) {
	t.Parallel()
	trackertest.Contract(t, func(h *trackertest.Harness) {
		if _, err := h.Brake.Release(h.Ctx, trackertest.Scope, time.Minute); err != nil {
			h.Fatal(err)
		}
		wantHeld(h, 0)
	})
}

// Holds of other members end while a release lists what is held.
func TestAReleaseOfVeryManyLosesNone(t *testing.T) {
	t.Parallel()
	trackertest.Contract(t, func(h *trackertest.Harness) {
		one := func(o *tracker.Options) { o.Shards = 1 }
		other := trackertest.NewHarness(t, h.Store, one)
		herd(h, 60)
		h.Advance(brakeTimeout + justOver)
		wantSweep(h, 60, 0)
		key := "lubdub:{0}:braked"
		held := h.Store.Client.ZRange(h.Ctx, key, 0, -1).Val()
		i := slices.IndexFunc(held, func(entry string) bool { return strings.HasPrefix(entry, "h:") })
		until := h.Store.Client.ZScore(h.Ctx, key, held[i]).Val()
		var others []redis.Z
		for i := range 1950 { // about a page before those and a page after them
			at := until + 5000
			switch {
			case i < 100:
				at = until - float64(brakeTimeout.Milliseconds()) + 1
			case i < 1000:
				at = until - 1000
			}
			others = append(others, redis.Z{Score: at, Member: fmt.Sprintf("h:10000:acme/other/t%04d#1.x", i)})
		}
		h.Store.Client.ZAdd(h.Ctx, key, others...)
		trackertest.After(h.Tracker, "braked", sync.OnceFunc(func() { other.Advance(250 * time.Millisecond) }))
		if r, err := h.Brake.Release(h.Ctx, trackertest.Scope, time.Minute); err != nil || r.Tasks != 60 {
			h.Fatalf("%+v %v", r, err)
		}
	}, trackertest.Braked, func(o *tracker.Options) { o.Shards = 1 })
}

// A sweeper that has just decided to hold does not know of the release; the shards do.
func TestAReleaseOvertakesTheCensus(t *testing.T) {
	t.Parallel()
	trackertest.Contract(t, func(h *trackertest.Harness) {
		herd(h, 60)
		h.Advance(500 * time.Millisecond)
		herd(h, 5)
		h.Advance(brakeTimeout - 450*time.Millisecond)
		wantSweep(h, 60, 0)
		if _, err := h.Brake.Release(h.Ctx, trackertest.Scope, time.Minute); err != nil {
			h.Fatal(err)
		}
		h.Advance(500 * time.Millisecond)
		wantSweep(h, 0, 65)
	}, trackertest.Braked)
}

func TestOperatorsReleaseHeldWorkers(t *testing.T) {
	t.Parallel()
	trackertest.Contract(t, func(h *trackertest.Harness) {
		for i := range 60 {
			h.MustRegister(func(n *model.NewWorker) { n.MachineID = fmt.Sprintf("host-%d", i) })
		}
		h.Advance(30 * time.Second)
		if r := h.MustSweep(); r.MassExpiryHeld != 60 {
			h.Fatalf("%+v", r)
		}
		if r, err := h.Brake.Release(h.Ctx, trackertest.Scope, time.Minute); err != nil || r.Workers != 60 {
			h.Fatalf("%+v %v", r, err)
		}
		if r := h.MustSweep(); r.StaleWorkers != 60 || r.MassExpiryHeld != 0 {
			h.Fatalf("%+v", r)
		}
	}, trackertest.Braked)
}
