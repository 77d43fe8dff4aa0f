package events_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lubdub-io/lubdub/internal/redistest"
	"github.com/lubdub-io/lubdub/tracker"
	"github.com/lubdub-io/lubdub/tracker/events"
	"github.com/lubdub-io/lubdub/tracker/model"
	"github.com/lubdub-io/lubdub/tracker/sweep"
	"github.com/lubdub-io/lubdub/tracker/trackertest"
)

// Sweepers keep as many events as the setting states, at most a hundred more, and always the newest.
func TestSweepersTrimEvents(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, s *redistest.Store) {
		const retained = 150
		h := trackertest.NewHarness(t, s, func(o *tracker.Options) { o.Shards, o.EventsPerShard = 1, retained })
		h.FillQueue(550, func(int, *model.NewTask) {})
		before := storedIDs(t, s.Client, 1)[0]
		if len(before) < 550 {
			t.Fatalf("%d events before any sweep", len(before))
		}
		h.MustSweep()
		after := storedIDs(t, s.Client, 1)[0]
		if n := len(after); n < retained || n > retained+100 || after[n-1] != before[len(before)-1] {
			t.Errorf("%d events are left, up to %s, want about %d, up to %s", n, after[n-1], retained, before[len(before)-1])
		}
	})
}

// Events that are too old are dropped, but not a shard's newest one, where readers continue.
func TestOldEventsAreTrimmed(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, s *redistest.Store) {
		h := trackertest.NewHarness(t, s, func(o *tracker.Options) { o.Shards, o.FinishedRetention = 2, model.MinFinishedRetention })
		s.Clock.Set(time.Now()) // streams use the server's own clock
		h.FillQueue(50, func(int, *model.NewTask) {})
		h.MustSweep()
		young := storedIDs(t, s.Client, 2)
		if len(young[0])+len(young[1]) < 50 {
			t.Fatalf("events that are not old are gone: %d and %d are left", len(young[0]), len(young[1]))
		}
		_, _, next := pages(t, h.Tracker, events.Query{Size: 100})
		s.Clock.Advance(2 * model.MinFinishedRetention)
		h.MustSweep()
		for shard, ids := range storedIDs(t, s.Client, 2) {
			if len(ids) != 1 || ids[0] != young[shard][len(young[shard])-1] {
				t.Errorf("of shard %d %v are left, want the newest", shard, ids)
			}
		}
		if all, gaps, _ := pages(t, h.Tracker, events.Query{Size: 100, After: next}); len(all) > 0 || len(gaps) > 0 {
			t.Errorf("a reader that is up to date receives %v and gaps %v", idsOf(all), gaps)
		}
	})
}

// Events that webhooks have not taken yet stay, however many and however old they are.
func TestWhatIsNotTakenStays(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, s *redistest.Store) {
		const retained = 100
		h := trackertest.NewHarness(t, s, func(o *tracker.Options) {
			o.Shards, o.EventsPerShard, o.FinishedRetention = 1, retained, model.MinFinishedRetention
		})
		far := time.Now().Add(time.Hour).UnixMilli()
		for i := range 380 {
			if err := s.Client.XAdd(h.Ctx, &redis.XAddArgs{Stream: stream(0), ID: fmt.Sprintf("%d-0", far+int64(i)),
				Values: []any{"type", "task.created", "time", "1", "subject", fmt.Sprint(i)}}).Err(); err != nil {
				t.Fatal(err)
			}
		}
		ids := storedIDs(t, s.Client, 1)[0]
		entries := s.Client.XRange(h.Ctx, stream(0), "-", "+").Val()
		for _, taken := range []int{1, 150, 200, 250, len(entries) - 3, len(entries) - 1} {
			if err := s.Client.HSet(h.Ctx, "lubdub:{0}:eventmarks", "taken", entries[taken].ID).Err(); err != nil {
				t.Fatal(err)
			}
			for range 3 {
				h.MustSweep()
			}
			left := storedIDs(t, s.Client, 1)[0]
			first := min(taken, len(ids)-retained)
			if n := len(ids) - first; len(left) < n || len(left) > n+100 || left[len(left)-1] != ids[len(ids)-1] {
				t.Errorf("taken up to the %dth: %d of %d events are left, want about %d", taken, len(left), len(ids), n)
			}
		}
		s.Clock.Set(time.Now().Add(10 * time.Hour))
		if err := s.Client.HSet(h.Ctx, "lubdub:{0}:eventmarks", "taken", entries[len(entries)-50].ID).Err(); err != nil {
			t.Fatal(err)
		}
		h.MustSweep()
		if left := storedIDs(t, s.Client, 1)[0]; len(left) < 50 || left[0] != ids[len(ids)-50] {
			t.Errorf("of old events %d are left, want those behind what was taken, 50", len(left))
		}
	})
}

// Running sweepers trim automatically, and share the shards.
func TestRunningSweepersTrim(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, s *redistest.Store) {
		h := trackertest.NewHarness(t, s, func(o *tracker.Options) { o.Shards, o.EventsPerShard = 4, 100 })
		h.FillQueue(1500, func(int, *model.NewTask) {})
		run(t, h, sweep.NewSweeper(h.Tracker.Sweeper, sweep.SweeperOptions{ID: "swp_1"}))
		run(t, h, sweep.NewSweeper(h.Tracker.Sweeper, sweep.SweeperOptions{ID: "swp_2"}))
		trackertest.Until(t, func() bool {
			for _, ids := range storedIDs(t, s.Client, 4) {
				if len(ids) > 200 {
					return false
				}
			}
			return true
		})
	})
}
