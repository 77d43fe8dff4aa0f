package reconcile_test

import (
	"testing"
	"time"

	"github.com/lubdub-io/lubdub/tracker/model"
	"github.com/lubdub-io/lubdub/tracker/schedules"
	"github.com/lubdub-io/lubdub/tracker/trackertest"
)

// A schedule that is missing in a list, or that no sweeper would examine, is restored; entries without a schedule are removed.
func TestReconcilerRepairsSchedules(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]func(c *trackertest.Fleet, key func(string) string){
		"entries without a record": func(c *trackertest.Fleet, key func(string) string) {
			c.Plant(c.Key("ghost", "schedules"), "acme/prod/ghost")
			c.Plant(c.Key("ghost", "scheduledue"), "acme/prod/ghost")
			c.Plant(c.Key("ghost", "pending:acme/prod/ghost"), "1768471200000/s")
			c.WantRepairs("stray_schedule", "stray_look", "stray_fires")
		},
		"a lost record": func(c *trackertest.Fleet, key func(string) string) {
			c.Store.Client.Del(c.Ctx, key("schedule:acme/prod/s1"))
			c.WantRepairs("stray_schedule", "stray_look", "stray_fires")
		},
		"a schedule that is looked at no more": func(c *trackertest.Fleet, key func(string) string) {
			c.Remove(key("scheduledue"), "acme/prod/s1")
			c.Advance(time.Minute)
			c.MustSweep()
			c.WantRepairs("missing_look")
			c.MustSweep()
			if s, err := c.Schedules.Get(c.Ctx, trackertest.Scope, "s1"); err != nil || s.Fires != 1 {
				c.Fatalf("%+v, %v", s, err)
			}
		},
		"a schedule that no list has": func(c *trackertest.Fleet, key func(string) string) {
			c.Remove(key("schedules"), "acme/prod/s1")
			c.WantRepairs("missing_schedule")
		},
		"one that is paused, and has nothing to look at": func(c *trackertest.Fleet, key func(string) string) {
			if _, err := c.Schedules.Pause(c.Ctx, trackertest.Scope, "s1"); err != nil {
				c.Fatal(err)
			}
			c.WantRepairs()
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			trackertest.Contract(t, func(h *trackertest.Harness) {
				c := trackertest.NewFleet(h)
				d := schedules.Spec{
					Scope: trackertest.Scope, ID: "s1", Cron: "0 * * * * *", MaxCatchup: 1, Task: model.NewTask{Queue: "q"},
				}
				if err := d.Validate(h.Store.Clock.Now()); err != nil {
					t.Fatal(err)
				}
				if _, err := h.Schedules.Create(h.Ctx, d); err != nil {
					t.Fatal(err)
				}
				h.MustSweep()
				test(c, func(set string) string { return c.Key("s1", set) })
			})
		})
	}
}
