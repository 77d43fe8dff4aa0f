package schedules_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/lubdub-io/lubdub/tracker/model"
	"github.com/lubdub-io/lubdub/tracker/schedules"
	"github.com/lubdub-io/lubdub/tracker/trackertest"
)

// A task that a schedule created names the schedule: when it is read, in lists, in its envelope and in each of its events. Other
// tasks do not.
func TestAScheduledTaskNamesItsSchedule(t *testing.T) {
	t.Parallel()
	trackertest.Claims(t, func(c *trackertest.Fleet) {
		c.Store.Clock.Set(begins)
		saved(c.Harness)
		saved(c.Harness, func(d *schedules.Spec) { d.ID = "s2" })
		c.Hire("w1")
		c.Store.Clock.Advance(90 * time.Second)
		c.MustSweep()
		c.MustQueue("t1", "x")

		of := model.TaskFilter{Scope: trackertest.Scope, ScheduleID: "s1", PageSize: 10}
		page, err := c.Tasks.List(c.Ctx, of)
		if err != nil || len(page.Tasks) != 1 || page.Tasks[0].ScheduleID != "s1" || page.Next != "" {
			c.Fatalf("the tasks of s1: %+v, %v", page, err)
		}
		id := page.Tasks[0].ID
		if fire := got(c.Harness, "s1").Recent[0].TaskID; id != fire {
			c.Fatalf("listed is %s, the schedule's task is %s", id, fire)
		}
		for _, e := range c.MustClaim("w1", 3) {
			if e.Task.ScheduleID != c.MustGet(e.Task.ID).ScheduleID || (e.Task.ScheduleID == "") != (e.Task.ID == "t1") {
				c.Errorf("the envelope of %s is of the schedule %q", e.Task.ID, e.Task.ScheduleID)
			}
			if _, err := c.Beats.Start(c.Ctx, e.Attempt, model.Report{}); err != nil {
				c.Fatal(err)
			}
			end := model.Completion{Outcome: model.Failed, Retryable: true,
				Error: []byte(`{"category":"USER_CODE","message":"x","retryable":true}`)}
			if _, err := c.Beats.Complete(c.Ctx, e.Attempt, end); err != nil {
				c.Fatal(err)
			}
		}
		if _, err := c.Tasks.CancelMany(c.Ctx, of, model.CancelRequest{Reason: "wrong"}, false); err != nil {
			c.Fatal(err)
		}
		c.WantState(id, model.Cancelled, "")
		c.WantState("t1", model.Queued, "")
		want := []string{"task.created", "task.dispatched", "task.started", "task.retrying", "task.cancel_requested", "task.cancelled"}
		if named := eventsOf(c, "s1"); !slices.Equal(named[id], want) || len(named) != 1 {
			c.Errorf("events that name s1: %v, want %v of %s", named, want, id)
		}
	})
}

// eventsOf lists the types of the events about tasks that name a schedule, by task.
func eventsOf(c *trackertest.Fleet, schedule string) map[string][]string {
	named := map[string][]string{}
	for _, e := range trackertest.StoredEvents(c, c.Store.Client, c.Tracker.Store.Shards()) {
		if strings.HasPrefix(e.Type, "task.") && e.Data.ScheduleID == schedule {
			named[e.Subject] = append(named[e.Subject], e.Type)
		}
	}
	return named
}
