package tracker_test

import (
	"time"

	"github.com/lubdub-io/lubdub/tracker/model"
	"github.com/lubdub-io/lubdub/tracker/schedules"
)

// largeSchedules creates schedules of the largest size, as many as one script reads; one of them has the most fires that may wait.
func (b *bounds) largeSchedules() {
	b.Helper()
	var ids []string
	for i := 0; len(ids) < larges; i++ {
		id := longest("schedule", i)
		if b.Tracker.Store.ShardOf(big, id) != 0 {
			continue
		}
		ids = append(ids, id)
		b.scheduled(id, func(d *schedules.Spec) {
			d.Cron, d.MaxCatchup = "0 0 0 1 1 *", 1000
			large(&d.Task)
			d.Scope, d.Task.Queue, d.Task.Type, d.Task.WorkerLabels = big, longest("queue", 0), longest("type", 0), d.Task.Labels
		})
	}
	b.sweeps()
	_, err := b.Schedules.List(b.Ctx, schedules.Filter{Scope: big, PageSize: 100})
	b.check("schedules", err)
	_, err = b.Schedules.Fire(b.Ctx, big, ids[0])
	b.check("fire", err)
	b.fillFires()
	for _, id := range ids {
		b.check("delete", b.Schedules.Delete(b.Ctx, big, id))
	}
	b.sweeps()
}

// fillFires makes as many fires of one schedule wait as possible.
func (b *bounds) fillFires() {
	b.Helper()
	id := longest("herd", 0)
	b.scheduled(id, func(d *schedules.Spec) { d.Scope, d.MaxCatchup = big, 1000 })
	day := storyBegins.Truncate(24 * time.Hour)
	for i := range 2 {
		from := day.Add(time.Duration(i) * time.Hour)
		_, err := b.Schedules.Backfill(b.Ctx, big, id, from, from.Add(1000*time.Second))
		b.check("backfill", err)
	}
	if _, err := b.Schedules.Backfill(b.Ctx, big, id, day.Add(3*time.Hour), day.Add(4*time.Hour)); model.CodeOf(err) != model.Overloaded {
		b.Fatalf("more fires wait than may: %v", err)
	}
	b.Store.Clock.Advance(2000 * time.Second)
	for range 4 {
		b.sweeps()
	}
	s, err := b.Schedules.Get(b.Ctx, big, id)
	b.check("schedule", err)
	if s.Waiting > 0 || s.Fires != 3000 {
		b.Fatalf("%d fires, and %d wait", s.Fires, s.Waiting)
	}
}
