package schedules_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/lubdub-io/lubdub/tracker/model"
	"github.com/lubdub-io/lubdub/tracker/schedules"
	"github.com/lubdub-io/lubdub/tracker/trackertest"
)

// backfilledTask requests the fire of one minute and returns the ID of its task, which is not created yet.
func backfilledTask(h *trackertest.Harness, at time.Time) string {
	h.Helper()
	result, err := h.Schedules.Backfill(h.Ctx, trackertest.Scope, "s1", at.Add(-time.Second), at)
	if err != nil || len(result.Fires) != 1 {
		h.Fatalf("%+v, %v", result, err)
	}
	return result.Fires[0].TaskID
}

// planted creates a task like a release that reserves no names; no request of this release can do that.
func planted(h *trackertest.Harness, change ...func(*model.NewTask)) {
	h.Helper()
	n := model.NewTask{Scope: trackertest.Scope, Queue: "q", Type: "x"}
	if err := n.Validate(h.Store.Clock.Now()); err != nil {
		h.Fatal(err)
	}
	for _, f := range change {
		f(&n)
	}
	if _, err := h.Tasks.Create(h.Ctx, n); err != nil {
		h.Fatal(err)
	}
}

// A task with a fire's ID, or one under its idempotency key, is not taken for the fire's task unless the fire has created it. The
// fire is refused with the reason, and the task is left unchanged.
func TestAFireTakesNoOtherTaskForItsOwn(t *testing.T) {
	t.Parallel()
	trackertest.Contract(t, func(h *trackertest.Harness) {
		h.Store.Clock.Set(begins)
		saved(h)
		at := begins.Truncate(time.Minute).Add(-time.Hour)
		for _, c := range []struct {
			code    string
			planted func(id string) func(*model.NewTask)
		}{
			{string(model.Exists), func(id string) func(*model.NewTask) {
				return func(n *model.NewTask) { n.TaskID, n.Key = id, "mine" }
			}},
			{string(model.Exists), func(id string) func(*model.NewTask) { // a fire of another schedule
				return func(n *model.NewTask) { n.TaskID, n.Key, n.ScheduleID = id, "mine", "another" }
			}},
			{string(model.IdempotencyMismatch), func(id string) func(*model.NewTask) {
				return func(n *model.NewTask) {
					n.TaskID, n.Key, n.IdempotencyKey, n.IdempotencyHash = "mine", "mine", "schedule:s1:"+at.Format(time.RFC3339), "h"
				}
			}},
		} {
			at = at.Add(time.Minute)
			id := backfilledTask(h, at)
			planted(h, c.planted(id))
			h.MustSweep()
			fire := got(h, "s1").Recent[0]
			if !fire.At.Equal(at) || fire.Outcome != schedules.Refused || fire.Error != c.code {
				h.Fatalf("%+v, want it refused: %s", fire, c.code)
			}
		}
		if e := h.Events("s1"); e["schedule.skipped"] != 3 || e["schedule.fired"] != 0 {
			h.Errorf("events: %v", e)
		}
		for _, task := range queued(h) {
			if task.Key != "mine" || task.State != model.Queued {
				h.Errorf("%+v", task)
			}
		}
	})
}

// A fire that has created its task does not create another, even when its idempotency key is gone: neither after a repeat of its
// backfill, nor if a token has restored a task that the store had lost.
func TestAFireFindsItsOwnTask(t *testing.T) {
	t.Parallel()
	trackertest.Contract(t, func(h *trackertest.Harness) {
		h.Store.Clock.Set(begins)
		saved(h)
		at := begins.Truncate(time.Minute)
		id := backfilledTask(h, at)
		h.MustSweep()
		forgetsFired(h)
		if again := backfilledTask(h, at); again != id {
			h.Fatalf("%s, want %s", again, id)
		}
		h.MustSweep()
		wantFire(h, at, id)
		if n := len(tasksWith(h, id)); n != 1 {
			h.Errorf("%d tasks", n)
		}

		h.Store.Clock.Set(begins.Add(26 * time.Hour))
		at = at.Add(time.Minute)
		id = backfilledTask(h, at)
		a := h.Beats.Attempt(model.Attempt{
			Scope: trackertest.Scope, TaskID: id, RunID: "r1", Number: 1, Fence: "lost", Timeout: time.Minute, Interval: time.Second,
			IssuedAt: h.Store.Clock.Now(),
		})
		if b := h.MustBeat(a, ""); b.Err != nil {
			h.Fatal(b.Err)
		}
		h.MustSweep()
		wantFire(h, at, id)
	})
}

func keyOf(h *trackertest.Harness, what string) string {
	return fmt.Sprintf("lubdub:{%d}:%s:%s/s1", h.Tracker.Store.ShardOf(trackertest.Scope, "s1"), what, trackertest.Scope)
}

// forgetsFired lets a day and an hour pass, since idempotency keys are kept for a day. The schedule is paused and drops its last
// handled fires, by which they would be known too.
func forgetsFired(h *trackertest.Harness) {
	h.Helper()
	if _, err := h.Schedules.Pause(h.Ctx, trackertest.Scope, "s1"); err != nil {
		h.Fatal(err)
	}
	h.Store.Clock.Advance(25 * time.Hour)
	h.MustTick()
	h.Store.Client.Del(h.Ctx, keyOf(h, "fired"))
}

// wantFire checks that the last handled fire of s1 is that of a time, and has a task.
func wantFire(h *trackertest.Harness, at time.Time, task string) {
	h.Helper()
	for _, f := range got(h, "s1").Recent { // newest first
		if f.At.Equal(at) {
			if f.Outcome != schedules.Created || f.TaskID != task {
				h.Fatalf("%+v, want the task %s", f, task)
			}
			return
		}
	}
	h.Fatalf("there is no fire of %v", at)
}

func tasksWith(h *trackertest.Harness, id string) (all []*model.Task) {
	for _, task := range queued(h) {
		if task.ID == id || task.ID == olderName(id) {
			all = append(all, task)
		}
	}
	return all
}

// olderName is the ID that earlier releases gave to a fire's task.
func olderName(id string) string { return strings.Replace(id, "fire_", "task_", 1) }

// Fires of an older release stay fired, although it named tasks differently: while the idempotency key is kept, and after it.
func TestFiresOfAnOlderReleaseRemainFired(t *testing.T) {
	t.Parallel()
	trackertest.Contract(t, func(h *trackertest.Harness) {
		h.Store.Clock.Set(begins)
		saved(h)
		h.Store.Client.HDel(h.Ctx, keyOf(h, "schedule"), "ns") // it was saved by that release
		at := begins.Truncate(time.Minute)
		older := olderName(backfilledTask(h, at))
		planted(h, func(n *model.NewTask) {
			n.TaskID, n.IdempotencyKey, n.IdempotencyHash = older, "schedule:s1:"+at.Format(time.RFC3339), "schedule"
		})
		h.MustSweep()
		wantFire(h, at, older)

		forgetsFired(h)
		backfilledTask(h, at)
		h.MustSweep()
		wantFire(h, at, older)
		if n := len(tasksWith(h, older)); n != 1 {
			h.Errorf("%d tasks", n)
		}

		// A time at which no older release ran: no task with such a name belongs to the fire.
		h.Store.Clock.Advance(48 * time.Hour)
		at = h.Store.Clock.Now().Add(-26 * time.Hour).Truncate(time.Minute)
		id := backfilledTask(h, at)
		planted(h, func(n *model.NewTask) { n.TaskID = olderName(id) })
		for range 3 {
			h.MustSweep()
		}
		wantFire(h, at, id)
	})
}
