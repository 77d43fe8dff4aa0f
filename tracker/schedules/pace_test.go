package schedules_test

import (
	"bytes"
	"fmt"
	"testing"
	"time"

	"github.com/lubdub-io/lubdub/internal/redistest"
	"github.com/lubdub-io/lubdub/tracker"
	"github.com/lubdub-io/lubdub/tracker/model"
	"github.com/lubdub-io/lubdub/tracker/schedules"
	"github.com/lubdub-io/lubdub/tracker/trackertest"
)

// Fires count as calls and bytes of their tenant, whatever their kind: the share of one second may be used at once, and then the
// same amount each second.
func TestFiresKeepToWhatTheirTenantMayHave(t *testing.T) {
	t.Parallel()
	hour := begins.Add(-time.Hour)
	large := append(append([]byte{'"'}, bytes.Repeat([]byte{'x'}, 1_000_000)...), '"')
	for name, c := range map[string]struct {
		perSecond int // calls; 0: any number
		payload   []byte
		missed    time.Duration
		request   func(h *trackertest.Harness, id string)
		most      func(seconds int) int // tasks
	}{
		"calls of missed fires": {perSecond: 7, missed: time.Hour, most: func(s int) int { return 7 * (s + 1) }},
		"calls of a backfill": {perSecond: 7, most: func(s int) int { return 7 * (s + 1) }, request: func(h *trackertest.Harness, id string) {
			backfilled(h, id, hour)
		}},
		"bytes of missed fires": {payload: large, missed: time.Hour, most: fewLarge},
		"bytes of a backfill": {payload: large, most: fewLarge, request: func(h *trackertest.Harness, id string) {
			backfilled(h, id, hour)
		}},
		"bytes of fires by hand": {payload: large, most: fewLarge, request: func(h *trackertest.Harness, id string) {
			if _, err := h.Schedules.Fire(h.Ctx, trackertest.Scope, id); err != nil {
				h.Fatal(err)
			}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := redistest.Real(t)
			s.Clock.Set(begins)
			h := trackertest.NewHarness(t, s, func(o *tracker.Options) { o.TenantFires = c.perSecond })
			var ids []string
			for i := range 8 {
				ids = append(ids, fmt.Sprint("s", i))
				saved(h, func(d *schedules.Spec) {
					d.ID, d.Cron, d.MaxCatchup, d.Task.RunID = ids[i], "* * * * * *", 1000, "all"
				})
				if len(c.payload) > 0 {
					_, err := h.Schedules.Change(h.Ctx, trackertest.Scope, ids[i], func(d *schedules.Spec) error {
						d.Task.Payload = c.payload
						return nil
					})
					if err != nil {
						t.Fatal(err)
					}
				}
			}
			s.Clock.Advance(c.missed)
			for seconds := range 4 {
				if c.request != nil {
					for _, id := range ids {
						c.request(h, id)
					}
				}
				h.MustSweep()
				run, err := h.Tasks.Run(h.Ctx, trackertest.Scope, "all")
				if err != nil {
					t.Fatal(err)
				}
				if most := c.most(seconds); run.Total > most || run.Total < most/2 {
					t.Fatalf("%d tasks after %d s, want at most %d and no less than half", run.Total, seconds, most)
				}
				s.Clock.Advance(time.Second)
			}
		})
	}
}

// fewLarge is the number of tasks of a megabyte that 4 MiB per second allow.
func fewLarge(seconds int) int { return 4*(seconds+1) + seconds/4 + 1 }

// backfilled requests fires of an hour; up to the limit may already wait.
func backfilled(h *trackertest.Harness, id string, from time.Time) {
	h.Helper()
	result, err := h.Schedules.Backfill(h.Ctx, trackertest.Scope, id, from, from.Add(time.Hour-time.Minute))
	if err != nil {
		h.WantCode(err, model.Overloaded)
		return
	}
	if n := int64(len(result.Fires)); n+result.Skipped != 59*60 || n > 1000 {
		h.Errorf("%d fires and %d skipped, of an hour", n, result.Skipped)
	}
}

// The size of the tasks of waiting fires is bounded, no matter how many are requested: the latest are taken, and the response
// states how many are not.
func TestABackfillIsBoundedInBytes(t *testing.T) {
	t.Parallel()
	s := redistest.Real(t)
	s.Clock.Set(begins)
	h := trackertest.NewHarness(t, s)
	saved(h, func(d *schedules.Spec) {
		d.Cron, d.MaxCatchup = "* * * * * *", 1000
		d.Task.Payload = append(append([]byte{'"'}, bytes.Repeat([]byte{'x'}, 1_000_000)...), '"')
	})
	to := begins.Add(-time.Minute).Truncate(time.Second)
	result, err := h.Schedules.Backfill(h.Ctx, trackertest.Scope, "s1", to.Add(-time.Hour), to)
	if err != nil || len(result.Fires) != 67 || result.Skipped != 3600-67 || !result.Fires[66].At.Equal(to) {
		t.Fatalf("%d fires, %d skipped, %v", len(result.Fires), result.Skipped, err)
	}
	for i := range 3 {
		to = to.Add(-time.Hour)
		_, err = h.Schedules.Backfill(h.Ctx, trackertest.Scope, "s1", to.Add(-time.Hour), to)
		if code := model.CodeOf(err); (code == model.Overloaded) != (i > 0) {
			t.Errorf("backfill %d: %v", i, err)
		}
	}
	if of := got(h, "s1"); of.Waiting != 2*67 {
		t.Errorf("%d fires wait", of.Waiting)
	}
}

// A fire that is refused for now is retried after a second, and then after twice as long each time, up to a minute. Waiting fires
// are not lost: their tasks are created when possible.
func TestRefusedFiresBackOff(t *testing.T) {
	t.Parallel()
	trackertest.Contract(t, func(h *trackertest.Harness) {
		h.Store.Clock.Set(begins)
		placed := func(d *schedules.Spec) { d.Cron, d.Task.Placement = "*/10 * * * * *", "leastLoaded" } // and there is no worker
		saved(h, placed)
		saved(h, placed, func(d *schedules.Spec) { d.ID, d.MaxCatchup = "none", 0 })
		tries := trackertest.RecordCalls(h.Tracker, "idempotency_key")
		var at []int
		seen := 0
		for second := range 310 {
			h.Store.Clock.Advance(time.Second)
			h.MustSweep()
			if n := len(tries()); n > seen {
				seen, at = n, append(at, second)
			}
		}
		if len(at) < 6 || len(at) > 24 {
			h.Errorf("refused fires of two schedules were tried again in %d seconds of 310: %v", len(at), at)
		}
		for second := range 61 {
			if second%5 == 0 {
				h.MustRegister(func(r *model.NewWorker) { r.Queue, r.Types = "q", []string{"x"} })
			}
			h.Store.Clock.Advance(time.Second)
			h.MustSweep()
		}
		if s := got(h, "s1"); s.Fires != 37 || s.Skipped != 0 || s.Waiting != 0 {
			h.Errorf("%d fires, %d skipped, %d wait; want 37 fires", s.Fires, s.Skipped, s.Waiting)
		}
		if s := got(h, "none"); s.Fires < 1 || s.Fires+s.Skipped != 37 || s.Waiting != 0 {
			h.Errorf("%d fires, %d skipped, %d wait; want 37, the last of them fires", s.Fires, s.Skipped, s.Waiting)
		}
	})
}

// While Redis has problems, the fires of all tenants fail together: they are retried each second, and none waits for a minute
// afterwards.
func TestFiresDoNotBackOffWhileRedisIsInTrouble(t *testing.T) {
	t.Parallel()
	s := redistest.Real(t)
	s.Clock.Set(begins)
	h := trackertest.NewHarness(t, s)
	saved(h)
	trackertest.FailCalls(h.Tracker, "create", false, func(n int) bool { return n < 20 })
	s.Clock.Advance(time.Minute)
	for range 21 {
		_, _ = h.Sweeper.RunOnce(h.Ctx)
		s.Clock.Advance(time.Second)
	}
	h.MustSweep()
	want(h, "s1", "01:00 schedule CREATED")
}
