package schedules_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/lubdub-io/lubdub/internal/redistest"
	"github.com/lubdub-io/lubdub/internal/testenv"
	"github.com/lubdub-io/lubdub/tracker"
	"github.com/lubdub-io/lubdub/tracker/model"
	"github.com/lubdub-io/lubdub/tracker/schedules"
	"github.com/lubdub-io/lubdub/tracker/sweep"
	"github.com/lubdub-io/lubdub/tracker/trackertest"
)

var floodScope = model.Scope{Tenant: "flood", Workspace: "w"}

// floods are ways in which one tenant's schedules can delay the fires of others.
var floods = map[string]struct {
	quota  int64 // of live tasks, which the tenant has used up
	missed time.Duration
	change func(d *schedules.Spec)
	each   func(h *trackertest.Harness, id string) // for every schedule in every step
}{
	"fires that a quota refuses":        {quota: 30},
	"more fires than a sweeper creates": {},
	"fires that are refused for good":   {change: func(d *schedules.Spec) { d.Task.WorkerID = "gone" }},
	"fires that overlap":                {change: func(d *schedules.Spec) { d.SkipOverlap = true }},
	"fires that find no worker":         {change: func(d *schedules.Spec) { d.Task.Placement = "leastLoaded" }},
	"missed fires":                      {change: func(d *schedules.Spec) { d.MaxCatchup = 1000 }, missed: time.Hour},
	"backfills": {
		change: func(d *schedules.Spec) { d.MaxCatchup = 200 },
		each: func(h *trackertest.Harness, id string) {
			from := begins.Add(-time.Hour)
			if _, err := h.Schedules.Backfill(h.Ctx, floodScope, id, from, from.Add(10*time.Minute)); err != nil {
				h.WantCode(err, model.Overloaded)
			}
		},
	},
	"fires by hand": {each: func(h *trackertest.Harness, id string) { _, _ = h.Schedules.Fire(h.Ctx, floodScope, id) }},
}

// Whatever one tenant's schedules do, the fires of others get their tasks in the same second.
func TestNoTenantDelaysTheFiresOfAnother(t *testing.T) {
	t.Parallel()
	for name, f := range floods {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := redistest.Real(t)
			s.Clock.Set(begins)
			h := trackertest.NewHarness(t, s, func(o *tracker.Options) { o.TenantTasks = f.quota })
			h.Sweeper = sweep.NewSweeper(h.Tracker.Sweeper, sweep.SweeperOptions{FiresPerSecond: 15})
			for range f.quota {
				h.MustCreate(trackertest.Queued, func(n *model.NewTask) { n.Scope = floodScope })
			}
			var flooding []string
			for i := range 30 {
				flooding = append(flooding, fmt.Sprint("s", i))
				saved(h, func(d *schedules.Spec) {
					d.Scope, d.ID, d.Cron = floodScope, flooding[i], "* * * * * *"
					if f.change != nil {
						f.change(d)
					}
				})
			}
			s.Clock.Advance(f.missed)
			others := []string{"a", "z"}
			for _, tenant := range others {
				saved(h, func(d *schedules.Spec) { d.Scope.Tenant, d.Cron = tenant, "*/2 * * * * *" })
			}
			for range 6 {
				s.Clock.Advance(time.Second)
				if f.each != nil {
					for _, id := range flooding {
						f.each(h, id)
					}
				}
				h.MustSweep()
				for _, tenant := range others {
					wantOnTime(h, tenant)
				}
			}
			page, err := h.Schedules.List(h.Ctx, schedules.Filter{Scope: floodScope, PageSize: 100})
			if err != nil || page.Total != len(flooding) {
				t.Fatal(page, err)
			}
			dealt := 0
			for _, of := range page.Schedules {
				dealt += len(of.Recent)
			}
			if waits := f.quota > 0 || name == "fires that find no worker"; waits != (dealt == 0) {
				t.Errorf("%d fires of the tenant itself were dealt with", dealt)
			}
		})
	}
}

// wantOnTime checks that each due fire of a tenant's schedule s1 has its task, except for the last second.
func wantOnTime(h *trackertest.Harness, tenant string) {
	h.Helper()
	s, err := h.Schedules.Get(h.Ctx, model.Scope{Tenant: tenant, Workspace: trackertest.Scope.Workspace}, "s1")
	if err != nil {
		h.Fatal(err)
	}
	if now := h.Store.Clock.Now(); !s.Next.After(now) || s.Waiting > 0 || !now.Before(s.Last.Add(2*time.Second)) {
		h.Fatalf("%s: at %v the last fire is that of %v, the next %v, %d wait", tenant, now, s.Last, s.Next, s.Waiting)
	}
	for _, f := range s.Recent {
		if late := f.NotedAt.Sub(f.At); f.Outcome != schedules.Created || late > time.Second {
			h.Fatalf("%s: the fire of %v is %s, %v late", tenant, f.At, f.Outcome, late)
		}
	}
}

// A tenant with more due schedules than one listing reads does not hide those of others: later listings find them.
func TestSchedulesBehindAVeryLongQueueAreFound(t *testing.T) {
	testenv.OnlyAll(t)
	t.Parallel()
	s := redistest.Real(t)
	s.Clock.Set(begins)
	h := trackertest.NewHarness(t, s, func(o *tracker.Options) { o.Shards = 1 })
	h.Sweeper = sweep.NewSweeper(h.Tracker.Sweeper, sweep.SweeperOptions{FiresPerSecond: 20})
	for i := range 1200 {
		saved(h, func(d *schedules.Spec) { d.Scope, d.ID, d.Cron = floodScope, fmt.Sprint("s", i), "* * * * * *" })
	}
	s.Clock.Advance(time.Second)
	saved(h, func(d *schedules.Spec) { d.Scope.Tenant, d.Cron = "z", "30 * * * * *" })
	s.Clock.Advance(time.Minute)
	for sweeps := 1; ; sweeps++ {
		h.MustSweep()
		of, err := h.Schedules.Get(h.Ctx, model.Scope{Tenant: "z", Workspace: trackertest.Scope.Workspace}, "s1")
		if err != nil || sweeps > 2 {
			t.Fatalf("it has not fired after %d listings: %+v, %v", sweeps-1, of, err)
		}
		if of.Fires == 1 {
			return
		}
	}
}

// Tenants that could each use all of a sweeper's fires get the same number, no matter how many wait for one schedule.
func TestTenantsShareASweepersFires(t *testing.T) {
	t.Parallel()
	s := redistest.Real(t)
	s.Clock.Set(begins)
	h := trackertest.NewHarness(t, s)
	h.Sweeper = sweep.NewSweeper(h.Tracker.Sweeper, sweep.SweeperOptions{FiresPerSecond: 30})
	for i := range 40 {
		saved(h, func(d *schedules.Spec) {
			d.Scope.Tenant, d.ID, d.Cron, d.MaxCatchup, d.Task.RunID = "many", fmt.Sprint("s", i), "* * * * * *", 1000, "all"
		})
	}
	s.Clock.Advance(10 * time.Minute)
	for i := range 40 {
		saved(h, func(d *schedules.Spec) {
			d.Scope.Tenant, d.ID, d.Cron, d.MaxCatchup, d.Task.RunID = "few", fmt.Sprint("s", i), "* * * * * *", 1, "all"
		})
	}
	got := map[string]int{}
	for range 20 {
		s.Clock.Advance(time.Second)
		h.MustSweep()
	}
	for _, tenant := range []string{"many", "few"} {
		run, err := h.Tasks.Run(h.Ctx, model.Scope{Tenant: tenant, Workspace: trackertest.Scope.Workspace}, "all")
		if err != nil {
			t.Fatal(err)
		}
		got[tenant] = run.Total
	}
	if got["many"]+got["few"] != 600 || got["few"] < 240 || got["many"] < 240 {
		t.Errorf("of 600 fires the tenants got %v", got)
	}
}
