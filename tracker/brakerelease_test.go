package tracker_test

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lubdub-io/lubdub/tracker"
)

func TestOperatorsReleaseTheBrake(t *testing.T) {
	t.Parallel()
	contract(t, func(h *harness) {
		h.herd(60)
		for i := range 60 {
			h.register(func(n *tracker.NewWorker) { n.MachineID = fmt.Sprintf("host-%d", i) })
		}
		elsewhere := tracker.Scope{Tenant: "other", Workspace: "prod"}
		h.herd(60, func(n *tracker.NewTask) { n.Scope = elsewhere })
		h.advance(brakeTimeout + justOver)
		h.wantSweep(120, 0)
		h.advance(4 * time.Second)
		h.herd(50)
		h.advance(brakeTimeout - 8*time.Second)
		r, err := h.Release(h.ctx, scope, 40*time.Second)
		if err != nil || r.Tasks != 60 || r.Workers != 0 {
			h.Fatalf("%+v %v", r, err)
		}
		h.wantSweep(0, 60) // those of the other scope are held on
		h.advance(8*time.Second + justOver)
		h.wantSweep(0, 110) // of the released none is held any more, of the other all have had their time
		h.advance(7 * time.Second)
		if s := h.sweep(); s.StaleWorkers != 60 || s.Held != 0 {
			h.Fatalf("%+v", s)
		}
		h.advance(20 * time.Second)
		h.herd(60)
		h.advance(brakeTimeout + justOver)
		h.wantSweep(60, 0) // it is itself again
		for _, d := range []time.Duration{time.Millisecond, tracker.MaxRelease + 1, -1} {
			_, err := h.Release(h.ctx, scope, d)
			h.wantCode(err, tracker.Invalid)
		}
	}, braked)
}

// While a release lists what is held, holds of others end.
func TestAReleaseOfVeryManyLosesNone(t *testing.T) {
	t.Parallel()
	contract(t, func(h *harness) {
		one := func(o *tracker.Options) { o.Shards = 1 }
		other := newHarness(t, h.store, one)
		h.herd(60)
		h.advance(brakeTimeout + justOver)
		h.wantSweep(60, 0)
		key := "lubdub:{0}:braked"
		held := h.store.Client.ZRange(h.ctx, key, 0, -1).Val()
		i := slices.IndexFunc(held, func(entry string) bool { return strings.HasPrefix(entry, "h:") })
		until := h.store.Client.ZScore(h.ctx, key, held[i]).Val()
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
		h.store.Client.ZAdd(h.ctx, key, others...)
		h.After("braked", sync.OnceFunc(func() { other.advance(250 * time.Millisecond) }))
		if r, err := h.Release(h.ctx, scope, time.Minute); err != nil || r.Tasks != 60 {
			h.Fatalf("%+v %v", r, err)
		}
	}, braked, func(o *tracker.Options) { o.Shards = 1 })
}

// A sweeper that has just found that it is to hold does not know of the release; the shards do.
func TestAReleaseOvertakesTheCensus(t *testing.T) {
	t.Parallel()
	contract(t, func(h *harness) {
		h.herd(60)
		h.advance(500 * time.Millisecond)
		h.herd(5)
		h.advance(brakeTimeout - 450*time.Millisecond)
		h.wantSweep(60, 0)
		if _, err := h.Release(h.ctx, scope, time.Minute); err != nil {
			h.Fatal(err)
		}
		h.advance(500 * time.Millisecond)
		h.wantSweep(0, 65)
	}, braked)
}

func TestOperatorsReleaseHeldWorkers(t *testing.T) {
	t.Parallel()
	contract(t, func(h *harness) {
		for i := range 60 {
			h.register(func(n *tracker.NewWorker) { n.MachineID = fmt.Sprintf("host-%d", i) })
		}
		h.advance(30 * time.Second)
		if r := h.sweep(); r.Held != 60 {
			h.Fatalf("%+v", r)
		}
		if r, err := h.Release(h.ctx, scope, time.Minute); err != nil || r.Workers != 60 {
			h.Fatalf("%+v %v", r, err)
		}
		if r := h.sweep(); r.StaleWorkers != 60 || r.Held != 0 {
			h.Fatalf("%+v", r)
		}
	}, braked)
}
