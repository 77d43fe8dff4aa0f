package tasks_test

import (
	"slices"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lubdub-io/lubdub/tracker"
	"github.com/lubdub-io/lubdub/tracker/model"
	"github.com/lubdub-io/lubdub/tracker/trackertest"
)

func idsIn(h *trackertest.Harness, states ...model.State) (ids []string) {
	h.Helper()
	page, err := h.Tasks.List(h.Ctx, model.TaskFilter{Scope: trackertest.Scope, States: states, PageSize: 100})
	if err != nil {
		h.Fatal(err)
	}
	for _, task := range page.Tasks {
		ids = append(ids, task.ID)
	}
	if len(states) > 0 && page.Total != len(ids) {
		h.Errorf("%d are counted, %d listed", page.Total, len(ids))
	}
	return ids
}

// A task is SCHEDULED until its start time, by the clock of Redis, and then QUEUED, in every list and count.
func TestATaskIsScheduledUntilItsStartTime(t *testing.T) {
	t.Parallel()
	trackertest.Claims(t, func(c *trackertest.Fleet) {
		c.Hire("ann")
		begin := c.Store.Clock.Now()
		at := map[string]time.Time{"delayed": begin.Add(time.Minute), "timed": begin.Add(2 * time.Minute)}
		for id, change := range map[string]func(*model.NewTask){
			"delayed": func(n *model.NewTask) { n.Delay = time.Minute },
			"timed":   func(n *model.NewTask) { n.RunAt = at["timed"] },
			"late":    func(n *model.NewTask) { n.RunAt = begin.Add(-time.Minute) },
		} {
			c.MustQueue(id, "x", change, func(n *model.NewTask) { n.RunID = "r" })
		}
		check := func(scheduled, queued []string) {
			c.Helper()
			if got := idsIn(c.Harness, model.Scheduled); !slices.Equal(got, scheduled) {
				c.Errorf("SCHEDULED: %v, want %v", got, scheduled)
			}
			if got := idsIn(c.Harness, model.Queued); !slices.Equal(got, queued) {
				c.Errorf("QUEUED: %v, want %v", got, queued)
			}
			for _, id := range scheduled {
				if task := c.WantState(id, model.Scheduled, ""); !task.NextAttemptAt.Equal(at[id]) || !task.RunAt.Equal(at[id]) {
					c.Errorf("%s starts at %v, next at %v, want %v", id, task.RunAt, task.NextAttemptAt, at[id])
				}
			}
			run, err := c.Tasks.Run(c.Ctx, trackertest.Scope, "r")
			if err != nil || run.Counts[model.Scheduled] != len(scheduled) || run.Counts[model.Queued] != len(queued) {
				c.Errorf("the run: %+v %v", run, err)
			}
			stats, err := c.Replica().Stats.Get(c.Ctx, trackertest.Scope) // which has not cached them
			if err != nil || stats.Counts.Tasks[model.Scheduled] != len(scheduled) || stats.Counts.Tasks[model.Queued] != len(queued) {
				c.Errorf("counts: %+v %v", stats.Counts, err)
			}
			c.WantRepairs()
		}
		work := func(want string) {
			c.Helper()
			tasks := c.MustClaim("ann", 9)
			c.WantIDs(tasks, want)
			if _, err := c.Beats.Complete(c.Ctx, tasks[0].Attempt, model.Completion{Outcome: model.Succeeded}); err != nil {
				c.Error(err)
			}
		}
		check([]string{"delayed", "timed"}, []string{"late"})
		c.Pass(59 * time.Second)
		c.MustSweep()
		work("late")
		check([]string{"delayed", "timed"}, nil)
		c.Pass(time.Second)
		c.MustSweep()
		check([]string{"timed"}, []string{"delayed"})
		work("delayed")
		c.Pass(time.Minute)
		c.MustSweep()
		work("timed")
		check(nil, nil)
	})
}

// What ends another task ends a SCHEDULED one, and a request for its next attempt starts it early.
func TestAScheduledTaskEndsOrStartsEarly(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		act  func(*trackertest.Fleet) error
		want model.State
	}{
		"cancel": {func(c *trackertest.Fleet) error {
			_, err := c.Tasks.Cancel(c.Ctx, trackertest.Scope, "t1", model.CancelRequest{})
			return err
		}, model.Cancelled},
		"terminate": {func(c *trackertest.Fleet) error {
			_, err := c.Tasks.Cancel(c.Ctx, trackertest.Scope, "t1", model.CancelRequest{Now: true})
			return err
		}, model.Cancelled},
		"cancel of its run": {func(c *trackertest.Fleet) error {
			_, err := c.Tasks.CancelRun(c.Ctx, trackertest.Scope, "r", model.CancelRequest{})
			return err
		}, model.Cancelled},
		"cancel of many": {func(c *trackertest.Fleet) error {
			_, err := c.Tasks.CancelMany(c.Ctx, model.TaskFilter{Scope: trackertest.Scope, States: []model.State{model.Scheduled}},
				model.CancelRequest{}, false)
			return err
		}, model.Cancelled},
		"deadline": {func(c *trackertest.Fleet) error {
			c.Pass(time.Hour)
			c.MustSweep()
			return nil
		}, model.Failed},
		"next attempt": {func(c *trackertest.Fleet) error {
			_, err := c.Tasks.NextAttempt(c.Ctx, trackertest.Scope, "t1", 0)
			return err
		}, model.Queued},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			trackertest.Claims(t, func(c *trackertest.Fleet) {
				c.Hire("ann")
				c.MustQueue("t1", "x", func(n *model.NewTask) {
					n.RunID, n.RunAt, n.Deadline = "r", c.Store.Clock.Now().Add(59*time.Minute), c.Store.Clock.Now().Add(time.Hour)
					if name == "deadline" {
						n.RunAt, n.Type = n.RunAt.Add(59*time.Second), "y" // which is not claimed
					}
				})
				if err := test.act(c); err != nil {
					c.Fatal(err)
				}
				if got := c.MustGet("t1"); got.State != test.want || !got.NextAttemptAt.IsZero() {
					c.Errorf("%s, next attempt %v", got.State, got.NextAttemptAt)
				}
				if got := idsIn(c.Harness, test.want); len(got) != 1 || len(idsIn(c.Harness)) != 1 {
					c.Errorf("as %s: %v; in all: %v", test.want, got, idsIn(c.Harness))
				}
				c.WantRepairs()
				if test.want == model.Queued {
					c.WantIDs(c.MustClaim("ann", 1), "t1")
				}
			})
		})
	}
}

// SCHEDULED tasks count against the quota of their tenant.
func TestScheduledTasksCountForTheQuota(t *testing.T) {
	t.Parallel()
	trackertest.Contract(t, func(h *trackertest.Harness) {
		later := func(n *model.NewTask) { n.Queue, n.Delay = "q", time.Hour }
		h.MustCreate(later)
		h.MustCreate(later)
		n := model.NewTask{Scope: trackertest.Scope, Queue: "q"}
		if err := n.Validate(h.Store.Clock.Now()); err != nil {
			h.Fatal(err)
		}
		other := h.Replica(func(o *tracker.Options) { o.TenantTasks = 2 }) // which counts what is stored
		_, err := other.Tasks.Create(h.Ctx, n)
		h.WantCode(err, model.Overloaded)
	})
}

// A repeat with the same idempotency key gets the first start time, whenever it comes.
func TestARepeatedCreationKeepsItsStartTime(t *testing.T) {
	t.Parallel()
	trackertest.Contract(t, func(h *trackertest.Harness) {
		for _, id := range []string{"", "named"} {
			create := func() *model.Task {
				return h.MustCreate(func(n *model.NewTask) {
					n.TaskID, n.Queue, n.Delay, n.IdempotencyKey, n.IdempotencyHash = id, "q", time.Minute, "key-"+id, "h"
				}).Task
			}
			first := create()
			h.Advance(time.Second)
			if again := create(); again.ID != first.ID || !again.RunAt.Equal(first.RunAt) || again.State != model.Scheduled {
				h.Errorf("%+v, first %+v", again, first)
			}
			if is := h.MustGet(first.ID); !is.RunAt.Equal(first.RunAt) || !is.NextAttemptAt.Equal(first.NextAttemptAt) {
				h.Errorf("%v is stored, %v was answered", is.RunAt, first.RunAt)
			}
		}
	})
}

// A release without SCHEDULED, which runs concurrently, lists such a task as QUEUED, moves it and leaves what it does not know. Whatever
// it has done, afterwards the task is in one list and in one state of its run, and no repair is reported.
func TestAReleaseWithoutScheduledActsConcurrently(t *testing.T) {
	t.Parallel()
	relists := func(c *trackertest.Fleet, letter string) {
		for key, prefix := range map[string]string{c.Key("t1", "ix"): "acme/prod/", c.Key("t1", "run:") + "acme/prod/r": ""} {
			c.Store.Client.ZAdd(c.Ctx, key, redis.Z{Member: prefix + letter + "/t1"})
		}
	}
	reconciled := func(c *trackertest.Fleet) { c.Reconcile() }
	for name, test := range map[string]struct{ old, act func(*trackertest.Fleet) }{
		"it repairs, then the task is due": {func(c *trackertest.Fleet) {
			c.Remove(c.Key("t1", "ix"), "acme/prod/W/t1")
			relists(c, "Q")
		}, func(c *trackertest.Fleet) {
			c.Pass(time.Minute)
			c.MustSweep()
		}},
		"it repairs, then the task is cancelled": {func(c *trackertest.Fleet) { relists(c, "Q") }, func(c *trackertest.Fleet) {
			if _, err := c.Tasks.Cancel(c.Ctx, trackertest.Scope, "t1", model.CancelRequest{}); err != nil {
				c.Fatal(err)
			}
		}},
		"it repairs": {func(c *trackertest.Fleet) {
			c.Remove(c.Key("t1", "ix"), "acme/prod/W/t1")
			relists(c, "Q")
		}, reconciled},
		"it cancels": {func(c *trackertest.Fleet) {
			record := trackertest.TaskRecord(c.Tracker, trackertest.Scope, "t1")
			c.Store.Client.HSet(c.Ctx, record, "s", "C", "e", c.Store.Clock.Now().UnixMilli())
			c.Store.Client.HDel(c.Ctx, record, "n")
			c.Remove(c.Key("t1", "due"), "b:acme/prod/t1")
			relists(c, "C")
		}, reconciled},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			trackertest.Claims(t, func(c *trackertest.Fleet) {
				c.Hire("ann")
				c.MustQueue("t1", "x", func(n *model.NewTask) { n.RunID, n.Delay = "r", time.Minute })
				test.old(c)
				test.act(c)
				is := c.MustGet("t1").State
				for _, s := range model.States {
					got := len(idsIn(c.Harness, s))
					of, err := c.Tasks.Run(c.Ctx, trackertest.Scope, "r")
					if err != nil || (got == 1) != (s == is) || of.Counts[s] != got {
						c.Errorf("it is %s, and %d are listed as %s, %d in its run: %v", is, got, s, of.Counts[s], err)
					}
				}
				if got := c.Events("")["system.repaired"]; got > 0 && name != "it cancels" { // whose retention the test has left out
					c.Errorf("%d repairs are reported", got)
				}
			})
		})
	}
}
