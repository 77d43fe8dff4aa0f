package tracker_test

import (
	"fmt"
	"time"

	"github.com/lubdub-io/lubdub/tracker/model"
	"github.com/lubdub-io/lubdub/tracker/schedules"
	"github.com/lubdub-io/lubdub/tracker/trackertest"
)

// scheduled saves a schedule that fires each second. A repeat after a lost response finds it saved.
func (c *story) scheduled(id string, change ...func(*schedules.Spec)) {
	c.Helper()
	d := schedules.Spec{
		Scope: trackertest.Scope, ID: id, Cron: "* * * * * *", MaxCatchup: 2, Task: model.NewTask{Queue: "sq", Type: "x"},
	}
	for _, f := range change {
		f(&d)
	}
	c.check("validate", d.Validate(c.Store.Clock.Now()))
	c.sure("create "+id, func() error {
		_, err := c.Schedules.Create(c.Ctx, d)
		if model.CodeOf(err) == schedules.Exists {
			return nil
		}
		return err
	})
}

// schedules fire by time, by hand and for a time in the past; one skips overlapping fires, and one is deleted.
func (c *story) schedules() {
	scope := trackertest.Scope
	c.scheduled("ticks")
	c.scheduled("alone", func(d *schedules.Spec) { d.SkipOverlap = true })
	c.scheduled("goes", func(d *schedules.Spec) { d.Cron = "0 0 0 1 1 *" })
	c.sweeps()
	c.goOn(5 * time.Second)
	c.sweeps()
	c.sure("pause", func() error { _, err := c.Schedules.Pause(c.Ctx, scope, "ticks"); return err })
	c.sure("fire", func() error { _, err := c.Schedules.Fire(c.Ctx, scope, "alone"); return err })
	day := storyBegins.Truncate(24 * time.Hour)
	c.sure("backfill", func() error {
		_, err := c.Schedules.Backfill(c.Ctx, scope, "ticks", day, day.Add(time.Minute))
		return err
	})
	c.sure("change", func() error {
		_, err := c.Schedules.Change(c.Ctx, scope, "alone", func(d *schedules.Spec) error { d.MaxCatchup = 1; return nil })
		return err
	})
	c.goOn(time.Second)
	c.sweeps()
	c.sure("resume", func() error { _, err := c.Schedules.Resume(c.Ctx, scope, "ticks"); return err })
	c.sweeps()
	c.sure("pause", func() error { _, err := c.Schedules.Pause(c.Ctx, scope, "ticks"); return err })
	c.sure("pause", func() error { _, err := c.Schedules.Pause(c.Ctx, scope, "alone"); return err })
	c.sure("delete", func() error {
		err := c.Schedules.Delete(c.Ctx, scope, "goes")
		if model.CodeOf(err) == schedules.NotFound {
			return nil // it was deleted, and that response was lost
		}
		return err
	})
	c.Plant(c.Key("ghost", "schedules"), scope.String()+"/ghost")
	c.sure("next", func() error { _, err := c.Schedules.NextFires(c.Ctx, scope, "ticks", 5); return err })
	c.sure("reconcile", func() error { _, err := c.Sweeper.Reconcile(c.Ctx); return err })
}

// observeSchedules adds the result of every fire, and checks that each has its task once.
func (c *story) observeSchedules(end map[string]string, events map[string]map[string]int) {
	c.Helper()
	var page *schedules.Page
	c.sure("schedules", func() (err error) {
		page, err = c.Schedules.List(c.Ctx, schedules.Filter{Scope: trackertest.Scope, PageSize: 100})
		return err
	})
	for _, s := range page.Schedules {
		var fires []string
		for _, f := range s.Recent {
			fires = append(fires, fmt.Sprintf("%s %s %s of %s %s", f.At.Format("04:05"), f.Kind, f.Outcome, f.TaskID, f.State))
		}
		end["schedule "+s.ID] = fmt.Sprintf("last %s, %d fires, %d skipped, %d wait, %v", s.Last.Format("04:05"), s.Fires, s.Skipped,
			s.Waiting, fires)
		end["events of "+s.ID] = fmt.Sprint(events[s.ID])
	}
	var tasks *model.TaskPage
	c.sure("list", func() (err error) {
		tasks, err = c.Tasks.List(c.Ctx, model.TaskFilter{
			Scope: trackertest.Scope, States: []model.State{model.Queued}, Queue: "sq", PageSize: 100,
		})
		return err
	})
	for _, task := range tasks.Tasks {
		end["task "+task.ID] = string(task.State)
	}
}
