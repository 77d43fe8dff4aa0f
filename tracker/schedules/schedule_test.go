package schedules_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/lubdub-io/lubdub/tracker"
	"github.com/lubdub-io/lubdub/tracker/model"
	"github.com/lubdub-io/lubdub/tracker/schedules"
	"github.com/lubdub-io/lubdub/tracker/trackertest"
)

// A schedule fires when its time has come, and each fire creates one task from the schedule's definition.
func TestASchedulesFiresCreateTasks(t *testing.T) {
	t.Parallel()
	trackertest.Contract(t, func(h *trackertest.Harness) {
		h.Store.Clock.Set(begins)
		s := saved(h, func(d *schedules.Spec) { d.Task.Retry = &model.RetryPolicy{MaxAttempts: 7, Multiplier: 1.5} })
		if !s.Last.Equal(begins) || !s.Next.Equal(begins.Truncate(time.Minute).Add(time.Minute)) || s.Fires != 0 {
			h.Fatalf("created: %+v", s)
		}
		h.MustSweep()
		if n := len(queued(h)); n != 0 {
			h.Fatalf("%d tasks before the first fire", n)
		}
		h.Store.Clock.Advance(90 * time.Second)
		h.MustSweep()
		h.MustSweep()
		s = want(h, "s1", "01:00 schedule CREATED")
		tasks := queued(h)
		if len(tasks) != 1 || s.Recent[0].TaskID != tasks[0].ID || s.Recent[0].State != model.Queued || s.Fires != 1 {
			h.Fatalf("%+v; tasks %+v", s.Recent, tasks)
		}
		task := h.MustGet(tasks[0].ID)
		if string(task.Payload) != `{"n":1}` || string(task.Resources) != `{"cpu":2}` || task.Labels["a"] != "b" || task.Type != "x" ||
			task.Queue != "q" || task.Retry.MaxAttempts != 7 || task.Retry.Multiplier != 1.5 || task.CancelGrace != 30*time.Second {
			h.Errorf("the task is %+v", task)
		}
		if !s.Last.Equal(begins.Truncate(time.Minute).Add(time.Minute)) || !s.Next.Equal(s.Last.Add(time.Minute)) {
			h.Errorf("last %v, next %v", s.Last, s.Next)
		}
		if e := h.Events("s1"); e["schedule.created"] != 1 || e["schedule.fired"] != 1 {
			h.Errorf("events: %v", e)
		}
		if fires := firesInEvents(h, "s1"); !slices.Equal(fires, []string{s.Last.Format("2006-01-02T15:04:05.000Z")}) {
			h.Errorf("fires in events: %v", fires)
		}
	})
}

// The latest missed fires are caught up, within the limit; the others are counted and reported with the first of these.
func TestMissedFiresAreCaughtUp(t *testing.T) {
	t.Parallel()
	trackertest.Contract(t, func(h *trackertest.Harness) {
		h.Store.Clock.Set(begins)
		saved(h, func(d *schedules.Spec) { d.MaxCatchup = 3 })
		saved(h, func(d *schedules.Spec) { d.ID, d.MaxCatchup = "none", 0 })
		h.MustSweep()
		h.Store.Clock.Advance(time.Hour + 90*time.Second)
		h.MustSweep()
		s := want(h, "s1", "59:00 schedule CREATED, 00:00 schedule CREATED, 01:00 schedule CREATED")
		if s.Skipped != 58 || s.Fires != 3 || s.Waiting != 0 {
			h.Errorf("%d fires, %d skipped, %d wait; want 3, 58, 0", s.Fires, s.Skipped, s.Waiting)
		}
		if skipped := skippedInEvents(h, "s1"); skipped != "58 0 0" {
			h.Errorf("events report %s skipped fires, want 58 0 0", skipped)
		}
		if s := want(h, "none", ""); s.Skipped != 61 {
			h.Errorf("%d skipped by the one that catches up none, want 61", s.Skipped)
		}
		h.Store.Clock.Advance(30 * time.Second) // a fire that is on time was not missed
		h.MustSweep()
		want(h, "none", "02:00 schedule CREATED")
		if skipped := skippedInEvents(h, "none"); skipped != "61" {
			h.Errorf("events report %s skipped fires, want 61", skipped)
		}
	})
}

// skippedInEvents lists the skipped fires in the events about a schedule.
func skippedInEvents(h *trackertest.Harness, id string) string {
	h.Helper()
	var skipped []string
	stream := fmt.Sprintf("lubdub:{%d}:events", h.Tracker.Store.ShardOf(trackertest.Scope, id))
	for _, e := range h.Store.Client.XRange(h.Ctx, stream, "-", "+").Val() {
		data, _ := e.Values["data"].(string)
		if _, rest, ok := strings.Cut(data, `"skipped":`); ok && e.Values["subject"] == id && e.Values["type"] == "schedule.fired" {
			skipped = append(skipped, strings.TrimSuffix(rest, "}"))
		}
	}
	return strings.Join(skipped, " ")
}

// A paused schedule does not fire; when it is resumed it catches up.
func TestPauseAndResume(t *testing.T) {
	t.Parallel()
	trackertest.Contract(t, func(h *trackertest.Harness) {
		h.Store.Clock.Set(begins)
		saved(h)
		saved(h, func(d *schedules.Spec) { d.ID, d.MaxCatchup = "none", 0 })
		for _, id := range []string{"s1", "s1", "none"} { // pausing twice is the same as once
			s, err := h.Schedules.Pause(h.Ctx, trackertest.Scope, id)
			if err != nil || s.PausedAt.IsZero() || !s.Next.IsZero() {
				h.Fatalf("paused: %+v, %v", s, err)
			}
		}
		h.Store.Clock.Advance(2 * time.Minute)
		h.MustSweep()
		want(h, "s1", "")
		h.Store.Clock.Advance(35 * time.Second) // it is 02:05, some seconds after a fire
		for _, id := range []string{"s1", "s1", "none"} {
			if s, err := h.Schedules.Resume(h.Ctx, trackertest.Scope, id); err != nil || !s.PausedAt.IsZero() {
				h.Fatalf("resumed: %+v, %v", s, err)
			}
		}
		h.MustSweep()
		want(h, "s1", "01:00 schedule CREATED, 02:00 schedule CREATED")
		want(h, "none", "") // fires during the pause were missed, however recent
		if e := h.Events("s1"); e["schedule.paused"] != 1 || e["schedule.resumed"] != 1 {
			h.Errorf("events: %v", e)
		}
	})
}

// A change continues from the last fire.
func TestAChangeContinuesFromTheLastFire(t *testing.T) {
	t.Parallel()
	trackertest.Contract(t, func(h *trackertest.Harness) {
		h.Store.Clock.Set(begins)
		saved(h)
		h.Store.Clock.Advance(time.Minute)
		h.MustSweep()
		h.Store.Clock.Advance(50 * time.Second) // 01:50; the last fire was that of 01:00
		s, err := h.Schedules.Change(h.Ctx, trackertest.Scope, "s1", func(d *schedules.Spec) error {
			d.Cron, d.Task.Queue = "15,45 * * * * *", "other"
			return nil
		})
		if err != nil || s.Cron != "15,45 * * * * *" {
			h.Fatalf("%+v, %v", s, err)
		}
		h.MustSweep()
		want(h, "s1", "01:00 schedule CREATED, 01:15 schedule CREATED, 01:45 schedule CREATED")
		for i, queue := range []string{"q", "other", "other"} {
			if got := queued(h)[i].Queue; got != queue {
				h.Errorf("task %d went to %s, want %s", i, got, queue)
			}
		}
		_, err = h.Schedules.Change(h.Ctx, trackertest.Scope, "missing", func(*schedules.Spec) error { return nil })
		h.WantCode(err, schedules.NotFound)
	})
}

// While the task of the last fire is running, the fires of schedules that skip overlaps are skipped.
func TestOverlap(t *testing.T) {
	t.Parallel()
	trackertest.Contract(t, func(h *trackertest.Harness) {
		h.Store.Clock.Set(begins)
		saved(h, func(d *schedules.Spec) { d.SkipOverlap = true })
		saved(h, func(d *schedules.Spec) { d.ID = "allow" })
		h.Store.Clock.Advance(3 * time.Minute) // three fires together: the first finds none running
		h.MustSweep()
		s := want(h, "s1", "01:00 schedule CREATED, 02:00 schedule SKIPPED, 03:00 schedule SKIPPED")
		want(h, "allow", "01:00 schedule CREATED, 02:00 schedule CREATED, 03:00 schedule CREATED")
		first := s.Recent[2].TaskID
		if s.Skipped != 2 || s.Recent[0].TaskID != first || s.Recent[0].State != "" {
			h.Errorf("%d skipped, by %+v", s.Skipped, s.Recent)
		}
		if _, err := h.Schedules.Fire(h.Ctx, trackertest.Scope, "s1"); err != nil { // a manual fire runs nevertheless
			h.Fatal(err)
		}
		ends(h, first)
		h.Store.Clock.Advance(time.Minute)
		h.MustSweep()
		s = want(h, "s1", "01:00 schedule CREATED, 02:00 schedule SKIPPED, 03:00 schedule SKIPPED, 03:00 manual CREATED, "+
			"04:00 schedule SKIPPED")
		ends(h, s.Recent[1].TaskID)
		h.Store.Clock.Advance(time.Minute)
		h.MustSweep()
		s = want(h, "s1", "01:00 schedule CREATED, 02:00 schedule SKIPPED, 03:00 schedule SKIPPED, 03:00 manual CREATED, "+
			"04:00 schedule SKIPPED, 05:00 schedule CREATED")
		if s.Recent[5].State != model.Cancelled || s.Recent[0].State != model.Queued {
			h.Errorf("outcomes: %+v", s.Recent)
		}
		if e := h.Events("s1"); e["schedule.fired"] != 3 || e["schedule.skipped"] != 3 {
			h.Errorf("events: %v", e)
		}
	})
}

// A request gets a fire now, once a second, or the fires of a past time; the last fire does not change.
func TestRequestedFires(t *testing.T) {
	t.Parallel()
	trackertest.Contract(t, func(h *trackertest.Harness) {
		h.Store.Clock.Set(begins)
		last := saved(h, func(d *schedules.Spec) { d.MaxCatchup = 3 }).Last
		h.MustSweep()
		if _, err := h.Schedules.Pause(h.Ctx, trackertest.Scope, "s1"); err != nil {
			h.Fatal(err)
		}
		first, err := h.Schedules.Fire(h.Ctx, trackertest.Scope, "s1")
		if err != nil || !first.At.Equal(begins.Truncate(time.Second)) || h.MustGet(first.TaskID).State != model.Queued {
			h.Fatalf("%+v, %v", first, err)
		}
		if again, err := h.Schedules.Fire(h.Ctx, trackertest.Scope, "s1"); err != nil || again.TaskID != first.TaskID {
			h.Fatalf("%+v, %v", again, err)
		}
		day := begins.Truncate(24 * time.Hour)
		filled, err := h.Schedules.Backfill(h.Ctx, trackertest.Scope, "s1", day, day.Add(5*time.Minute))
		if err != nil || len(filled.Fires) != 3 || filled.Skipped != 2 || !filled.Fires[2].At.Equal(day.Add(5*time.Minute)) {
			h.Fatalf("%+v, %v", filled, err)
		}
		h.MustSweep()
		s := want(h, "s1", "00:00 manual CREATED, 03:00 backfill CREATED, 04:00 backfill CREATED, 05:00 backfill CREATED")
		if !s.Last.Equal(last) || len(queued(h)) != 4 || s.Recent[0].TaskID != filled.Fires[2].TaskID || s.Skipped != 0 {
			h.Errorf("last %v, %d tasks, %+v, %d skipped", s.Last, len(queued(h)), s.Recent, s.Skipped)
		}
		for _, c := range []struct {
			from, to time.Time
			message  string
		}{
			{day, day, "to is not after from"}, {day.Add(time.Second), day, "to is not after from"},
			{day, begins.Add(time.Hour), "to is in the future"},
		} {
			if _, err := h.Schedules.Backfill(h.Ctx, trackertest.Scope, "s1", c.from, c.to); err == nil || !strings.Contains(err.Error(),
				c.message) {
				h.Errorf("from %v to %v: %v, want %q", c.from, c.to, err, c.message)
			}
		}
		if none, err := h.Schedules.Backfill(h.Ctx, trackertest.Scope, "s1", day, day.Add(time.Second)); err != nil || len(none.Fires) != 0 {
			h.Errorf("%+v, %v", none, err)
		}
	})
}

// A repeated backfill fires what has no task yet and counts nothing twice, no matter how many fires it has.
func TestARepeatedBackfillCountsNothingTwice(t *testing.T) {
	t.Parallel()
	trackertest.Contract(t, func(h *trackertest.Harness) {
		h.Store.Clock.Set(begins)
		saved(h, func(d *schedules.Spec) { d.MaxCatchup = 100 })
		if _, err := h.Schedules.Pause(h.Ctx, trackertest.Scope, "s1"); err != nil {
			h.Fatal(err)
		}
		day := begins.Truncate(24 * time.Hour)
		for i, minutes := range []int{15, 15, 20} {
			filled, err := h.Schedules.Backfill(h.Ctx, trackertest.Scope, "s1", day, day.Add(time.Duration(minutes)*time.Minute))
			if err != nil || len(filled.Fires) != minutes {
				h.Fatalf("%+v, %v", filled, err)
			}
			for range 3 {
				h.MustSweep()
			}
			s := got(h, "s1")
			if n := int64(minutes); s.Fires != n || len(queued(h)) != minutes || h.Events("s1")["schedule.fired"] != minutes {
				h.Errorf("%d: %d fires, %d tasks, %d events, want %d", i, s.Fires, len(queued(h)), h.Events("s1")["schedule.fired"], minutes)
			}
		}
	})
}

// A manual fire in the same second as a scheduled one is the same fire.
func TestAManualFireEqualsAScheduledOneInTheSameSecond(t *testing.T) {
	t.Parallel()
	trackertest.Contract(t, func(h *trackertest.Harness) {
		h.Store.Clock.Set(begins)
		saved(h)
		h.MustSweep()
		h.Store.Clock.Advance(59*time.Second + 600*time.Millisecond) // 01:00.1
		if _, err := h.Schedules.Fire(h.Ctx, trackertest.Scope, "s1"); err != nil {
			h.Fatal(err)
		}
		h.MustSweep()
		s := want(h, "s1", "01:00 manual CREATED")
		if len(queued(h)) != 1 || s.Fires != 1 || !s.Last.Equal(s.Recent[0].At) {
			h.Errorf("%d tasks, %d fires, last %v", len(queued(h)), s.Fires, s.Last)
		}
		h.Store.Clock.Advance(time.Minute)
		h.MustSweep()
		want(h, "s1", "01:00 manual CREATED, 02:00 schedule CREATED")
	})
}

// A schedule that has fired for the last time is not examined any more unless it is changed.
func TestTheLastFire(t *testing.T) {
	t.Parallel()
	trackertest.Contract(t, func(h *trackertest.Harness) {
		h.Store.Clock.Set(begins)
		saved(h, func(d *schedules.Spec) { d.Cron = "0 1 10 15 1 ? 2026" })
		h.Store.Clock.Advance(time.Minute)
		h.MustSweep()
		if s := want(h, "s1", "01:00 schedule CREATED"); !s.Next.IsZero() {
			h.Errorf("next %v", s.Next)
		}
		if found, err := h.Sweeper.Reconcile(h.Ctx); err != nil || len(found) > 0 {
			h.Errorf("the reconciler finds %v, %v", found, err)
		}
		due := fmt.Sprintf("lubdub:{%d}:scheduledue", h.Tracker.Store.ShardOf(trackertest.Scope, "s1"))
		if n := h.Store.Client.ZCard(h.Ctx, due).Val(); n != 1 {
			h.Errorf("%d entries are due, want the sentinel", n)
		}
		if _, err := h.Schedules.Change(h.Ctx, trackertest.Scope, "s1", func(d *schedules.Spec) error {
			d.Cron = "0 2 10 15 1 ? 2026"
			return nil
		}); err != nil {
			h.Fatal(err)
		}
		h.Store.Clock.Advance(time.Minute)
		h.MustSweep()
		want(h, "s1", "01:00 schedule CREATED, 02:00 schedule CREATED")
	})
}

// An invalid definition is refused with a message about what is valid.
func TestWhatIsRefused(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		change         func(*schedules.Spec)
		field, message string
	}{
		{func(d *schedules.Spec) { d.Cron = "0 0 25 * * *" }, "cron",
			`cron has "25" as hours, its 3rd field: 25 is not within 0–23; for example "9-17"`},
		{func(d *schedules.Spec) { d.Cron = "0 0 0 30 2 *" }, "cron", "never fires: no date is all that it says"},
		{func(d *schedules.Spec) { d.Cron = "0 0 0 * * * 2020" }, "cron",
			"never fires again: its last time has passed (it is 2026-01-15T10:00:00Z here)"},
		{func(d *schedules.Spec) { d.MaxCatchup = -1 }, "maxCatchup", "is -1; use 0 to 1000"},
		{func(d *schedules.Spec) { d.MaxCatchup = 1001 }, "maxCatchup", "is 1001; use 0 to 1000"},
		{func(d *schedules.Spec) { d.ID = "a/b" }, "scheduleId", "scheduleId is not a valid id"},
		{func(d *schedules.Spec) { d.Task.Queue = "" }, "task.queue", "is missing"},
		{func(d *schedules.Spec) { d.Task.Queue = "a b" }, "task.queue", "task.queue is not a valid id"},
		{func(d *schedules.Spec) { d.Task.TaskID = "t" }, "task.taskId", "would be the same for each task"},
		{func(d *schedules.Spec) { d.Task.Deadline = begins.Add(time.Hour) }, "task.deadline", "would be the same"},
		{func(d *schedules.Spec) { d.Task.RunAt = begins.Add(time.Hour) }, "task.runAt", "would be the same"},
		{func(d *schedules.Spec) { d.Task.Payload = []byte("{") }, "task.payload", "task.payload is not valid JSON"},
		{func(d *schedules.Spec) { d.Task.Retry = &model.RetryPolicy{} }, "task.retry.maxAttempts", "task.retry.maxAttempts is 0"},
	} {
		d := spec(c.change)
		err := d.Validate(begins)
		var e *model.Error
		var field *model.FieldError
		if !errors.As(err, &e) || !errors.As(e.Cause, &field) || field.Field != c.field || !strings.Contains(e.Message, c.message) {
			t.Errorf("%+v: %v, want %q about %s", d, err, c.message, c.field)
		}
	}
}

// A schedule ID is unique, and the number of a tenant's schedules is limited.
func TestHowManySchedules(t *testing.T) {
	t.Parallel()
	trackertest.Contract(t, func(h *trackertest.Harness) {
		h.Store.Clock.Set(begins)
		saved(h)
		d := spec()
		_, err := h.Schedules.Create(h.Ctx, d)
		h.WantCode(err, schedules.Exists)
		d.ID = ""
		made, err := h.Schedules.Create(h.Ctx, d)
		if err != nil || !strings.HasPrefix(made.ID, "sch_") {
			h.Fatalf("%+v, %v", made, err)
		}
		d.Scope.Workspace = "another" // of the same tenant
		_, err = h.Schedules.Create(h.Ctx, d)
		h.WantCode(err, model.Overloaded)
		d.Scope.Tenant = "another"
		if _, err = h.Schedules.Create(h.Ctx, d); err != nil {
			h.Fatal(err)
		}
		if err := h.Schedules.Delete(h.Ctx, trackertest.Scope, "s1"); err != nil {
			h.Fatal(err)
		}
		h.WantCode(h.Schedules.Delete(h.Ctx, trackertest.Scope, "s1"), schedules.NotFound)
		_, err = h.Schedules.Get(h.Ctx, trackertest.Scope, "s1")
		h.WantCode(err, schedules.NotFound)
		_, err = h.Schedules.Fire(h.Ctx, trackertest.Scope, "s1")
		h.WantCode(err, schedules.NotFound)
		h.Store.Clock.Advance(time.Minute)
		h.MustSweep()
		if n := len(queued(h)); n != 1 {
			h.Errorf("%d tasks, want that of the one schedule that is left", n)
		}
	}, func(o *tracker.Options) { o.MaxSchedules = 2 })
}

// Lists come in pages, in both orders.
func TestSchedulesAreListed(t *testing.T) {
	t.Parallel()
	trackertest.Contract(t, func(h *trackertest.Harness) {
		h.Store.Clock.Set(begins)
		for i := range 7 {
			saved(h, func(d *schedules.Spec) { d.ID = fmt.Sprint("s", i) })
		}
		saved(h, func(d *schedules.Spec) { d.Scope.Workspace = "prod-2" })
		for descending, all := range map[bool]string{false: "s0 s1 s2|s3 s4 s5|s6", true: "s6 s5 s4|s3 s2 s1|s0"} {
			var pages []string
			for after := ""; ; {
				page, err := h.Schedules.List(h.Ctx, schedules.Filter{Scope: trackertest.Scope, PageSize: 3, After: after, Descending: descending})
				if err != nil || page.Total != 7 {
					h.Fatalf("%+v, %v", page, err)
				}
				var ids []string
				for _, s := range page.Schedules {
					if ids = append(ids, s.ID); s.Task.Queue != "q" || s.Task.Payload != nil || s.Next.IsZero() {
						h.Errorf("listed as %+v", s)
					}
				}
				pages = append(pages, strings.Join(ids, " "))
				if after = page.Next; after == "" {
					break
				}
			}
			if got := strings.Join(pages, "|"); got != all {
				h.Errorf("descending %v: %s, want %s", descending, got, all)
			}
		}
		next, err := h.Schedules.NextFires(h.Ctx, trackertest.Scope, "s0", 3)
		if err != nil || len(next) != 3 || !next[2].Equal(begins.Truncate(time.Minute).Add(3*time.Minute)) {
			h.Errorf("%v, %v", next, err)
		}
	})
}
