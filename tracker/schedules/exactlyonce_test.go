package schedules_test

import (
	"cmp"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"math/rand/v2"
	"strconv"
	"sync"
	"sync/atomic"
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

var deaths = flag.Int("deaths", 0,
	"how often a sweeper dies, or loses a reply, in TestEachFireCreatesItsTaskOnce; on miniredis a tenth of it")

// steps are the scripts that handle a fire.
var steps = []string{
	"schedules_due", "schedule_read", "schedule_record", "schedule_decide", "idempotency_key", "create", "states", "schedule_settle",
}

// Three sweepers fire the same schedules concurrently. Each repeatedly dies after a random number of calls to Redis, or loses the
// reply of a random step. In the end each fire has its task exactly once, and exactly one event.
func TestEachFireCreatesItsTaskOnce(t *testing.T) {
	t.Parallel()
	most := cmp.Or(*deaths, testenv.Of(t, 60, 300))
	redistest.Each(t, func(t *testing.T, s *redistest.Store) {
		lives := most
		if s.Kind == "miniredis" {
			lives = max(lives/10, 6)
		}
		s.Clock.Set(begins)
		h := trackertest.NewHarness(t, s)
		ids := []string{"all-0", "all-1", "all-2", "alone"}
		for _, id := range ids {
			saved(h, func(d *schedules.Spec) {
				d.ID, d.Cron, d.MaxCatchup, d.Task.RunID, d.SkipOverlap = id, "* * * * * *", 1000, id, id == "alone"
			})
		}
		var sweepers sync.WaitGroup
		var left, died atomic.Int64
		left.Store(int64(lives))
		for i := range 3 {
			sweepers.Go(func() {
				for left.Add(-1) >= 0 {
					s.Clock.Advance(time.Second)
					if live(t, s) {
						died.Add(1)
					}
					if i == 0 {
						endAlone(h)
					}
				}
			})
		}
		sweepers.Wait()
		s.Clock.Advance(2 * time.Second) // a fire that failed last waits for a second
		for range 1 + lives/10 {
			h.MustSweep()
		}
		for _, id := range ids {
			checkFires(h, id, lives+2)
		}
		t.Logf("%d lives, %d of which ended in the middle of a sweep", lives, died.Load())
	})
}

// live runs one sweeper until something fails, which it reports.
func live(t *testing.T, s *redistest.Store) (died bool) {
	ctx := context.Background()
	tr, err := tracker.Open(ctx, tracker.Options{
		RedisURL: s.URL, Scripts: s.Scripts, RedisTimeout: 10 * time.Second, Shards: 2, Logger: trackertest.Quiet,
	})
	if err != nil {
		t.Error(err)
		return true
	}
	defer func() { _ = tr.Close(ctx) }()
	if rand.IntN(2) == 0 {
		trackertest.DieAfter(tr, 1+rand.IntN(60))
	} else {
		nth := rand.IntN(3)
		trackertest.FailCalls(tr, steps[rand.IntN(len(steps))], true, func(n int) bool { return n == nth })
	}
	sweeper := sweep.NewSweeper(tr.Sweeper, sweep.SweeperOptions{ID: "swp_" + strconv.Itoa(rand.IntN(1000))})
	for range 3 {
		if _, err := sweeper.RunOnce(ctx); err != nil {
			return true
		}
	}
	return false
}

// endAlone occasionally finishes the running tasks of the schedule that skips overlaps.
func endAlone(h *trackertest.Harness) {
	page, err := h.Tasks.List(h.Ctx, model.TaskFilter{Scope: trackertest.Scope, RunID: "alone", PageSize: 100})
	if err != nil {
		h.Error(err)
		return
	}
	for _, task := range page.Tasks {
		if !task.State.Terminal() && rand.IntN(3) == 0 {
			_, _ = h.Tasks.Cancel(h.Ctx, trackertest.Scope, task.ID, model.CancelRequest{Reason: "done"})
		}
	}
}

// checkFires compares the seconds that have passed with the existing tasks and the events.
func checkFires(h *trackertest.Harness, id string, seconds int) {
	h.Helper()
	run, err := h.Tasks.Run(h.Ctx, trackertest.Scope, id)
	if err != nil {
		h.Fatal(err)
	}
	fired, skipped := map[string]string{}, map[string]bool{}
	stream := fmt.Sprintf("lubdub:{%d}:events", h.Tracker.Store.ShardOf(trackertest.Scope, id))
	for _, e := range h.Store.Client.XRange(h.Ctx, stream, "-", "+").Val() {
		var data struct{ FireAt, TaskID string }
		if e.Values["subject"] != id || json.Unmarshal([]byte(e.Values["data"].(string)), &data) != nil || data.FireAt == "" {
			continue
		}
		if fired[data.FireAt] != "" || skipped[data.FireAt] {
			h.Errorf("%s: the fire of %s has two events", id, data.FireAt)
		}
		if e.Values["type"] == "schedule.skipped" {
			skipped[data.FireAt] = true
			continue
		}
		fired[data.FireAt] = data.TaskID
		h.MustGet(data.TaskID)
	}
	s := got(h, id)
	if len(fired)+len(skipped) != seconds || run.Total != len(fired) || int(s.Fires) != len(fired) || int(s.Skipped) != len(skipped) ||
		s.Waiting != 0 {
		h.Errorf("%s: %d tasks of %d fires and %d skipped ones in %d s; it counts %d and %d, and %d wait", id, run.Total, len(fired),
			len(skipped), seconds, s.Fires, s.Skipped, s.Waiting)
	}
	if id != "alone" && len(skipped) > 0 || id == "alone" && seconds > 200 && (len(skipped) == 0 || len(fired) < 2) {
		h.Errorf("%s: %d fires, %d skipped", id, len(fired), len(skipped))
	}
}

// A sweeper read that the previous task is running, and records only later that it skips the next fire. Meanwhile another sweeper
// has created the task of that fire and died. The fire is not skipped.
func TestASkipFromStaleStateIsRejected(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, s *redistest.Store) {
		s.Clock.Set(begins)
		h := trackertest.NewHarness(t, s)
		saved(h, func(d *schedules.Spec) { d.SkipOverlap = true })
		s.Clock.Advance(time.Minute)
		h.MustSweep()
		first := want(h, "s1", "01:00 schedule CREATED").Recent[0].TaskID
		s.Clock.Advance(time.Minute)
		other := trackertest.NewHarness(t, s)
		trackertest.FailCalls(other.Tracker, "schedule_settle", false, func(int) bool { return true })
		slow := trackertest.NewHarness(t, s)
		trackertest.After(slow.Tracker, "states", sync.OnceFunc(func() { // it has read that the first task is running
			ends(h, first)
			if _, err := other.Sweeper.RunOnce(h.Ctx); err == nil {
				t.Error("the other sweeper did not die")
			}
		}))
		slow.MustSweep()
		s.Clock.Advance(2 * time.Second)
		h.MustSweep()
		want(h, "s1", "01:00 schedule CREATED, 02:00 schedule CREATED")
		if e := h.Events("s1"); e["schedule.fired"] != 2 || e["schedule.skipped"] != 0 || len(queued(h)) != 2 {
			t.Errorf("%d tasks, events %v", len(queued(h)), e)
		}
	})
}

// Two sweepers have read the same schedule. The second one records nothing: missed fires are counted once.
func TestOfTwoSweepersOneRecords(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, s *redistest.Store) {
		s.Clock.Set(begins)
		h := trackertest.NewHarness(t, s)
		saved(h, func(d *schedules.Spec) { d.MaxCatchup = 1 })
		s.Clock.Advance(5 * time.Minute)
		slow := trackertest.NewHarness(t, s)
		trackertest.After(slow.Tracker, "schedule_read", sync.OnceFunc(func() { h.MustSweep() }))
		slow.MustSweep()
		if of := want(h, "s1", "05:00 schedule CREATED"); of.Skipped != 4 || of.Fires != 1 {
			t.Errorf("%d fires were skipped and %d made, of five", of.Skipped, of.Fires)
		}
	})
}

// Schedules that become due together are handled at a limited rate, all of them in turn.
func TestSchedulesDueTogetherAreRateLimited(t *testing.T) {
	testenv.OnlyAll(t)
	t.Parallel()
	redistest.Each(t, func(t *testing.T, s *redistest.Store) {
		many, missed := 1000, 20
		if s.Kind == "miniredis" {
			many = 100
		}
		s.Clock.Set(begins)
		h := trackertest.NewHarness(t, s, func(o *tracker.Options) { o.Shards = 8 })
		h.Sweeper = sweep.NewSweeper(h.Tracker.Sweeper, sweep.SweeperOptions{FiresPerSecond: many})
		for i := range many {
			saved(h, func(d *schedules.Spec) { d.ID, d.Task.RunID = fmt.Sprintf("s%04d", i), "all" })
		}
		h.MustSweep()
		s.Clock.Advance(time.Duration(missed) * time.Minute)
		calls := trackertest.RecordCalls(h.Tracker, "create")
		for tick := range 3 {
			h.MustSweep()
			if n := len(calls()); n != (tick+1)*many {
				t.Fatalf("%d tasks after tick %d, want %d", n, tick+1, (tick+1)*many)
			}
		}
		most := 0
		for i := range many {
			most = max(most, int(got(h, fmt.Sprintf("s%04d", i)).Fires))
		}
		if most > 10 {
			t.Errorf("one schedule has had %d fires, of which others wait for their first", most)
		}
	})
}
