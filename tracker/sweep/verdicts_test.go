package sweep_test

import (
	"strings"
	"testing"
	"time"

	"github.com/lubdub-io/lubdub/tracker/model"
	"github.com/lubdub-io/lubdub/tracker/sweep"
	"github.com/lubdub-io/lubdub/tracker/trackertest"
)

// The evidence of a lost worker reports the silence that counted, and an outage separately.
func TestALostWorkersEvidenceLeavesOutagesOut(t *testing.T) {
	t.Parallel()
	trackertest.Claims(t, func(c *trackertest.Fleet) {
		c.Hire("w")
		a := c.MustHolding("w", 1)[0]
		last := c.Store.Clock.Now()
		c.Store.Clock.Advance(time.Minute) // no heartbeat can be stored
		c.Advance(30 * time.Second)
		c.MustSweep()
		e := c.Newest(a.TaskID).Evidence
		if e == nil || e.Silent < 30*time.Second || e.Silent > 31*time.Second || e.Silent+e.OutageCredit != 90*time.Second ||
			!e.LastHeartbeatAt.Equal(last) ||
			e.DetectionLag != e.Silent-e.Timeout {
			c.Fatalf("%+v", e)
		}
	})
}

// A process has one name in all that it reports, whichever part of it does so.
func TestAProcessHasOneName(t *testing.T) {
	t.Parallel()
	trackertest.Claims(t, func(c *trackertest.Fleet) {
		a := c.Running()
		c.Advance(2500 * time.Millisecond)
		if r, err := c.Tracker.Sweeper.Sweep(c.Ctx); err != nil || r.Zombies != 1 {
			c.Fatalf("%+v %v", r, err)
		}
		name := c.Newest(a.TaskID).Evidence.Sweeper
		if !strings.HasPrefix(name, "swp_") {
			c.Fatalf("it is %q", name)
		}
		for worker, end := range map[string]func(id string){
			"silent": func(string) {
				c.Advance(30 * time.Second)
				if _, err := sweep.NewSweeper(c.Tracker.Sweeper, sweep.SweeperOptions{}).RunOnce(c.Ctx); err != nil {
					c.Fatal(err)
				}
			},
			"forced": func(id string) {
				if _, err := c.Workers.Retire(c.Ctx, trackertest.Scope, id, model.WorkerForced, ""); err != nil {
					c.Fatal(err)
				}
			},
			"forgets": func(id string) {
				for range 3 {
					c.MustBeatWorker(id, trackertest.Listing())
				}
			},
		} {
			c.IDs = map[string]string{}
			c.Hire(worker)
			held := c.MustHolding(worker, 1)[0]
			end(c.IDs[worker])
			if e := c.Newest(held.TaskID).Evidence; e == nil || e.Sweeper != name {
				c.Errorf("%s: %+v, want %s", worker, e, name)
			}
		}
	})
}

// Views, repeats and ownership checks can read a history that an earlier version wrote.
func TestHistoriesOfTheVersionBefore(t *testing.T) {
	t.Parallel()
	trackertest.Claims(t, func(c *trackertest.Fleet) {
		c.Hire("w")
		c.MustQueue("t", "x")
		a := c.MustClaim("w", 1)[0].Attempt
		if _, err := c.Beats.Complete(c.Ctx, a, model.Completion{Outcome: model.Failed, Retryable: true,
			Error: []byte(`{"category":"USER_CODE"}`)}); err != nil {
			c.Fatal(err)
		}
		key := strings.Replace(trackertest.TaskRecord(c.Tracker, trackertest.Scope, "t"), ":task:", ":history:", 1)
		now, err := c.Store.Client.LIndex(c.Ctx, key, 0).Result()
		if err != nil {
			c.Fatal(err)
		}
		before := strings.Join(strings.Split(now, "\t")[:18], "\t")
		if before == now {
			c.Fatalf("nothing is new in %q", now)
		}
		c.Store.Client.LSet(c.Ctx, key, 0, before)
		if h := c.Newest("t"); h.Outcome != "FAILED" || string(h.Error) != `{"category":"USER_CODE"}` || !h.WillRetry ||
			!h.LastHeartbeatAt.IsZero() || h.Metrics != nil {
			c.Fatalf("%+v", h)
		}
		if again, err := c.Beats.Complete(c.Ctx, a, model.Completion{Outcome: model.Failed, Retryable: true}); err != nil || !again.WillRetry {
			c.Fatalf("%+v %v", again, err)
		}
	})
}
