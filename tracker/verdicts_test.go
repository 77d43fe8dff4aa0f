package tracker_test

import (
	"strings"
	"testing"
	"time"

	"github.com/lubdub-io/lubdub/tracker"
)

// newest gives the last entry of a task's history.
func (h *harness) newest(id string) tracker.HistoryEntry {
	h.Helper()
	task := h.get(id)
	if len(task.History) == 0 {
		h.Fatalf("task %s has no history", id)
	}
	return task.History[len(task.History)-1]
}

// A verdict that falls after the mass expiry brake has held its attempt, or its worker, says so; any other does not.
func TestVerdictsNameTheBrake(t *testing.T) {
	t.Parallel()
	contract(t, func(h *harness) {
		tasks := h.herd(60)
		h.advance(brakeTimeout + justOver)
		h.wantSweep(60, 0)
		h.advance(time.Second)
		h.beat(tasks[0], "")
		h.pass(brakeTimeout+justOver, tasks[1:40]...)
		h.wantSweep(0, 21)
		if e := h.newest(tasks[50].TaskID).Evidence; e == nil || !e.MassExpiryHeld || e.Silent < 2*brakeTimeout {
			h.Errorf("after its hold: %+v", e)
		}
		if e := h.newest(tasks[0].TaskID).Evidence; e == nil || e.MassExpiryHeld {
			h.Errorf("of one that has beaten since: %+v", e)
		}
	}, braked, spread)
}

// The silence of a lost worker is what counted: an outage is told beside it.
func TestALostWorkersEvidenceLeavesOutagesOut(t *testing.T) {
	t.Parallel()
	claims(t, func(c *crew) {
		c.hire("w")
		a := c.holding("w", 1)[0]
		last := c.store.Clock.Now()
		c.store.Clock.Advance(time.Minute) // nothing lands
		c.advance(30 * time.Second)
		c.sweep()
		e := c.newest(a.TaskID).Evidence
		if e == nil || e.Silent < 30*time.Second || e.Silent > 31*time.Second || e.Silent+e.OutageCredit != 90*time.Second || !e.LastHeartbeatAt.Equal(last) ||
			e.DetectionLag != e.Silent-e.Timeout {
			c.Fatalf("%+v", e)
		}
	})
}

// Whichever part of a process finds what is to be told, it has one name.
func TestAProcessHasOneName(t *testing.T) {
	t.Parallel()
	claims(t, func(c *crew) {
		a := c.running()
		c.advance(2500 * time.Millisecond)
		if r, err := c.Sweep(c.ctx); err != nil || r.Zombies != 1 {
			c.Fatalf("%+v %v", r, err)
		}
		name := c.newest(a.TaskID).Evidence.Sweeper
		if !strings.HasPrefix(name, "swp_") {
			c.Fatalf("it is %q", name)
		}
		for worker, end := range map[string]func(id string){
			"silent": func(string) {
				c.advance(30 * time.Second)
				if _, err := tracker.NewSweeper(c.Tracker, tracker.SweeperOptions{}).RunOnce(c.ctx); err != nil {
					c.Fatal(err)
				}
			},
			"forced": func(id string) {
				if _, err := c.RetireWorker(c.ctx, scope, id, tracker.WorkerForced, ""); err != nil {
					c.Fatal(err)
				}
			},
			"forgets": func(id string) {
				for range 3 {
					c.beatWorker(id, listing())
				}
			},
		} {
			c.ids = map[string]string{}
			c.hire(worker)
			held := c.holding(worker, 1)[0]
			end(c.ids[worker])
			if e := c.newest(held.TaskID).Evidence; e == nil || e.Sweeper != name {
				c.Errorf("%s: %+v, want %s", worker, e, name)
			}
		}
	})
}

// A history that a version before has written is read, by views, by repeats and by who asks whose an attempt was.
func TestHistoriesOfTheVersionBefore(t *testing.T) {
	t.Parallel()
	claims(t, func(c *crew) {
		c.hire("w")
		c.queue("t", "x")
		a := c.claim("w", 1)[0].Attempt
		if _, err := c.Complete(c.ctx, a, tracker.Completion{Outcome: tracker.Failed, Retryable: true, Error: []byte(`{"category":"USER_CODE"}`)}); err != nil {
			c.Fatal(err)
		}
		key := strings.Replace(c.TaskKey(scope, "t"), ":task:", ":history:", 1)
		now, err := c.store.Client.LIndex(c.ctx, key, 0).Result()
		if err != nil {
			c.Fatal(err)
		}
		before := strings.Join(strings.Split(now, "\t")[:18], "\t")
		if before == now {
			c.Fatalf("nothing is new in %q", now)
		}
		c.store.Client.LSet(c.ctx, key, 0, before)
		if h := c.newest("t"); h.Outcome != "FAILED" || string(h.Error) != `{"category":"USER_CODE"}` || !h.WillRetry || !h.LastHeartbeatAt.IsZero() || h.Metrics != nil {
			c.Fatalf("%+v", h)
		}
		if again, err := c.Complete(c.ctx, a, tracker.Completion{Outcome: tracker.Failed, Retryable: true}); err != nil || !again.WillRetry {
			c.Fatalf("%+v %v", again, err)
		}
	})
}
