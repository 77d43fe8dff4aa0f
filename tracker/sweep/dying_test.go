package sweep_test

import (
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/lubdub-io/lubdub/internal/redistest"
	"github.com/lubdub-io/lubdub/internal/testenv"
	"github.com/lubdub-io/lubdub/tracker"
	"github.com/lubdub-io/lubdub/tracker/model"
	"github.com/lubdub-io/lubdub/tracker/sweep"
	"github.com/lubdub-io/lubdub/tracker/trackertest"
)

// A sweeper that dies between any two of its calls to Redis leaves nothing that another one cannot finish: a dead worker's
// attempts are taken exactly once.
func TestASweeperDiesBetweenAnyTwoSteps(t *testing.T) {
	t.Parallel()
	every := testenv.Of(t, 6, 1)
	redistest.Each(t, func(t *testing.T, s *redistest.Store) {
		for calls := rand.IntN(every); !recoverAfterDeath(t, s, calls); calls += every {
			if calls > 500 {
				t.Fatal("a sweep takes more than 500 calls")
			}
		}
	})
}

// recoverAfterDeath stops one sweeper after a number of calls and lets another finish. It reports whether the first one completed
// its work.
func recoverAfterDeath(t *testing.T, s *redistest.Store, calls int) (survived bool) {
	t.Helper()
	if err := s.Client.FlushDB(t.Context()).Err(); err != nil {
		t.Fatal(err)
	}
	s.Clock.Set(s.Clock.Now()) // the flush reset the test's clock too
	c := trackertest.NewFleet(trackertest.NewHarness(t, s))
	c.Hire("w1")
	held := c.MustHolding("w1", 5)
	c.MustQueue("notified", "x", func(n *model.NewTask) { n.StartTimeout = time.Second }) // so that there is a notice to deliver, too
	c.MustClaim("w1", 1)
	c.Advance(time.Second)
	c.MustBeatWorker(c.IDs["w1"])
	c.Advance(30 * time.Second)

	mortal, err := tracker.Open(t.Context(), tracker.Options{RedisURL: s.URL, Scripts: s.Scripts, RedisTimeout: 10 * time.Second, Shards: 2,
		Logger: slog.New(slog.NewTextHandler(io.Discard, nil))})
	if err != nil {
		t.Fatal(err)
	}
	trackertest.DieAfter(mortal, calls)
	_, failed := sweep.NewSweeper(mortal.Sweeper, sweep.SweeperOptions{ID: "swp_mortal"}).RunOnce(t.Context())
	_ = mortal.Close(t.Context())

	c.MustSweep()
	c.MustSweep()
	for _, a := range held {
		task := c.MustGet(a.TaskID)
		if task.State != model.Queued || task.Losses != 1 || len(task.History) != 1 || task.History[0].Reason != model.WorkerLost {
			t.Fatalf("after %d calls: %s is %s with %d losses and %+v", calls, task.ID, task.State, task.Losses, task.History)
		}
	}
	if task := c.MustGet("notified"); task.State != model.Queued || task.Losses != 1 {
		t.Fatalf("after %d calls: %+v", calls, task)
	}
	c.WantWorker(c.IDs["w1"], model.Offline, model.WorkerStale)
	for shard := range 2 {
		for _, key := range []string{"held", "recoveries", "outbox"} {
			left := s.Client.ZRange(t.Context(), fmt.Sprintf("lubdub:{%d}:%s", shard, key), 0, -1).Val()
			if left = slices.DeleteFunc(left, func(m string) bool { return m == "!" }); len(left) > 0 {
				t.Fatalf("after %d calls: left in %s: %v", calls, key, left)
			}
		}
	}
	ends := 0
	for shard := range 2 {
		for _, e := range s.Client.XRange(t.Context(), fmt.Sprintf("lubdub:{%d}:events", shard), "-", "+").Val() {
			if e.Values["type"] == "worker.offline" {
				ends++
			}
		}
	}
	if ends != 1 {
		t.Fatalf("after %d calls: the worker went OFFLINE %d times", calls, ends)
	}
	return failed == nil
}
