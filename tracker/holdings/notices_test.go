package holdings_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/lubdub-io/lubdub/tracker/holdings"
	"github.com/lubdub-io/lubdub/tracker/model"
	"github.com/lubdub-io/lubdub/tracker/schema"
	"github.com/lubdub-io/lubdub/tracker/trackertest"
	"github.com/lubdub-io/lubdub/tracker/workers"
)

// A worker's one beat keeps all its tasks alive; none of them sends beats.
func TestAWorkersBeatKeepsItsTasksAlive(t *testing.T) {
	t.Parallel()
	trackertest.Claims(t, func(c *trackertest.Fleet) {
		c.Hire("w1")
		held := c.MustHolding("w1", 20)
		c.Pass(5 * time.Minute)
		c.MustSweep()
		for _, a := range held {
			c.WantState(a.TaskID, model.Running, "")
		}
	})
}

// A task without its own timeout is as alive as its worker, also in lists.
func TestATaskIsAsAliveAsItsWorker(t *testing.T) {
	t.Parallel()
	trackertest.Claims(t, func(c *trackertest.Fleet) {
		c.Hire("w1")
		id := c.MustHolding("w1", 1)[0].TaskID
		want := func(l model.Liveness, silent time.Duration) {
			c.Helper()
			page, err := c.Tasks.List(c.Ctx, model.TaskFilter{Scope: trackertest.Scope, Liveness: l, PageSize: 10})
			if err != nil || len(page.Tasks) != 1 {
				c.Fatalf("%+v %v", page, err)
			}
			for _, task := range []*model.Task{c.MustGet(id), page.Tasks[0]} {
				if task.Liveness != l || c.Store.Clock.Now().Sub(task.LastHeartbeatAt) != silent {
					c.Fatalf("%s, last beat %v ago; want %s, %v", task.Liveness, c.Store.Clock.Now().Sub(task.LastHeartbeatAt), l, silent)
				}
			}
		}
		c.Pass(2 * time.Minute)
		c.MustBeatWorker(c.IDs["w1"])
		want(model.Fresh, 0)
		c.Advance(16 * time.Second)
		want(model.Late, 16*time.Second)
		c.Advance(14 * time.Second)
		want(model.Lost, 30*time.Second)
	})
}

// A task that also has its own timeout expires at the earlier of the two, and its worker is notified.
func TestATaskWithItsOwnTimeoutDiesByItToo(t *testing.T) {
	t.Parallel()
	trackertest.Claims(t, func(c *trackertest.Fleet) {
		c.Hire("w1")
		own := func(n *model.NewTask) { n.HeartbeatTimeout = 8 * time.Second }
		held := c.MustHolding("w1", 2, own)
		for range 3 {
			c.Pass(5 * time.Second)
			if err := c.MustBeat(held[0], "").Err; err != nil {
				c.Fatal(err)
			}
			c.MustSweep()
		}
		c.WantState(held[0].TaskID, model.Running, "")
		if task := c.WantState(held[1].TaskID, model.Queued, ""); task.History[0].Reason != model.HeartbeatTimeout {
			c.Fatalf("%+v", task)
		}
		response := c.MustBeatWorker(c.IDs["w1"])
		c.WantNotices(response.Lost, holdings.TaskNotice{TaskID: held[1].TaskID, Attempt: 1, Error: model.Expired})
		c.WantNotices(response.Cancels)
	})
}

// Each beat of the worker repeats a cancel until its delivery is recorded; only then its grace period begins.
func TestCancelsReachTheWorkerByItsBeat(t *testing.T) {
	t.Parallel()
	trackertest.Claims(t, func(c *trackertest.Fleet) {
		c.Hire("w1")
		held := c.MustHolding("w1", 2, func(n *model.NewTask) { n.CancelGrace = 2 * time.Second })
		if _, err := c.Tasks.Cancel(c.Ctx, trackertest.Scope, held[0].TaskID, model.CancelRequest{Reason: "no longer \"needed\""}); err != nil {
			c.Fatal(err)
		}
		want := holdings.TaskNotice{TaskID: held[0].TaskID, Attempt: 1, Reason: "no longer \"needed\""}
		c.WantNotices(c.MustBeatWorker(c.IDs["w1"]).Cancels, want) // the very next beat
		for range 2 {
			c.Pass(5 * time.Second)
			c.MustSweep()
			c.WantNotices(c.MustBeatWorker(c.IDs["w1"]).Cancels, want)
		}
		c.WantState(held[0].TaskID, model.Running, "")
		c.Holdings.Notified(c.MustBeatWorker(c.IDs["w1"]))
		trackertest.Eventually(c, "the delivery is recorded", func() bool { return len(c.MustBeatWorker(c.IDs["w1"]).Cancels) == 0 })
		c.Pass(2 * time.Second)
		c.MustSweep()
		c.WantState(held[0].TaskID, model.Failed, model.CancelTimeout)
		c.MustSweep() // delivers notices of the previous sweep
		c.WantNotices(c.MustBeatWorker(c.IDs["w1"]).Lost, holdings.TaskNotice{TaskID: held[0].TaskID, Attempt: 1, Error: model.Expired})
	})
}

// A worker is also notified of attempts that an operator takes from it.
func TestLossesReachTheWorkerByItsBeat(t *testing.T) {
	t.Parallel()
	trackertest.Claims(t, func(c *trackertest.Fleet) {
		c.Hire("w1")
		held := c.MustHolding("w1", 2)
		c.MustQueue("unstarted", "x")
		c.MustClaim("w1", 1)
		if _, err := c.Tasks.NextAttempt(c.Ctx, trackertest.Scope, held[0].TaskID, 1); err != nil {
			c.Fatal(err)
		}
		if _, err := c.Tasks.Cancel(c.Ctx, trackertest.Scope, "unstarted", model.CancelRequest{}); err != nil {
			c.Fatal(err)
		}
		c.MustSweep()
		response := c.MustBeatWorker(c.IDs["w1"])
		lost := response.Lost
		slices.SortFunc(lost, func(a, b holdings.TaskNotice) int { return len(a.TaskID) - len(b.TaskID) })
		c.WantNotices(lost, holdings.TaskNotice{TaskID: held[0].TaskID, Attempt: 1, Error: model.AttemptMismatch},
			holdings.TaskNotice{TaskID: "unstarted", Attempt: 1, Error: model.AlreadyTerminal})
		c.Holdings.Notified(response)
		trackertest.Eventually(c, "the delivery is recorded", func() bool { return len(c.MustBeatWorker(c.IDs["w1"]).Lost) == 0 })
		if _, err := c.Beats.Complete(c.Ctx, held[1], model.Completion{Outcome: model.Succeeded}); err != nil {
			c.Fatal(err)
		}
		c.MustSweep()
		c.WantNotices(c.MustBeatWorker(c.IDs["w1"]).Lost) // attempts that it ended itself are not reported
	})
}

// An inventory lists what runs and returns what is lost, and attempts that two consecutive beats miss are taken from the worker.
func TestInventory(t *testing.T) {
	t.Parallel()
	trackertest.Claims(t, func(c *trackertest.Fleet) {
		c.Hire("w1")
		c.Hire("w2")
		w1 := c.IDs["w1"]
		held := c.MustHolding("w1", 3)
		c.MustQueue("claimed", "x")
		claimed := c.MustClaim("w1", 1)[0].Attempt
		foreign := c.MustHolding("w2", 1)[0]
		if _, err := c.Beats.Complete(c.Ctx, held[2], model.Completion{Outcome: model.Succeeded}); err != nil {
			c.Fatal(err)
		}
		if _, err := c.Tasks.Cancel(c.Ctx, trackertest.Scope, held[1].TaskID, model.CancelRequest{Reason: "stop"}); err != nil {
			c.Fatal(err)
		}
		report := string(schema.AppendReport(nil, 0, nil, []byte("40"), []byte(`"on it"`)))
		beat := func(b *workers.WorkerBeat) {
			trackertest.Listing(trackertest.NameOf(claimed), trackertest.NameOf(held[1]), trackertest.NameOf(held[2]), trackertest.NameOf(foreign),
				holdings.OwnedAttempt{TaskID: "unknown", Number: 1})(b)
			b.Inventory[0].Report = report
		}
		response := c.MustBeatWorker(w1, beat)
		c.WantNotices(response.Cancels, holdings.TaskNotice{TaskID: held[1].TaskID, Attempt: 1, Reason: "stop"})
		c.WantNotices(response.Lost, holdings.TaskNotice{TaskID: foreign.TaskID, Attempt: 1, Error: model.AttemptMismatch},
			holdings.TaskNotice{TaskID: held[2].TaskID, Attempt: 1, Error: model.AlreadyTerminal})
		if task := c.WantState("claimed", model.Running, ""); task.Progress.Pct != "40" || task.Progress.Message != `"on it"` {
			c.Fatalf("%+v", task)
		}
		c.WantState(foreign.TaskID, model.Running, "")

		c.WantState(held[0].TaskID, model.Running, "")
		c.MustBeatWorker(w1) // a beat without an inventory has no effect on it
		c.WantState(held[0].TaskID, model.Running, "")
		response = c.MustBeatWorker(w1, beat)
		if want := (holdings.TaskNotice{TaskID: held[0].TaskID, Attempt: 1, Error: model.Expired}); !slices.Contains(response.Lost, want) {
			c.Fatalf("notices %+v, want %+v among them", response.Lost, want)
		}
		task := c.WantState(held[0].TaskID, model.Queued, "")
		if task.Losses != 1 || task.History[0].Reason != model.WorkerLost {
			c.Fatalf("%+v", task)
		}
		c.WantState("claimed", model.Running, "")
		c.WantState(held[1].TaskID, model.Running, "")
	})
}

// An attempt that an inventory misses once and lists again is not lost.
func TestInventoryMissesOnceOnly(t *testing.T) {
	t.Parallel()
	trackertest.Claims(t, func(c *trackertest.Fleet) {
		c.Hire("w1")
		a := c.MustHolding("w1", 1)[0]
		for i := range 6 {
			if i%2 == 0 {
				c.MustBeatWorker(c.IDs["w1"], trackertest.Listing())
			} else {
				c.MustBeatWorker(c.IDs["w1"], trackertest.Listing(trackertest.NameOf(a)))
			}
			c.Pass(10 * time.Second)
		}
		c.WantState(a.TaskID, model.Running, "")
	})
}

// Only attempts that were dispatched to a worker are its own, including earlier ones.
func TestOwned(t *testing.T) {
	t.Parallel()
	trackertest.Claims(t, func(c *trackertest.Fleet) {
		c.Hire("w1")
		c.Hire("w2")
		mine, foreign := c.MustHolding("w1", 2), c.MustHolding("w2", 1)
		pushed := c.Running(func(n *model.NewTask) { n.TaskID = "pushed" }) // claims to run on w1
		if _, err := c.Beats.Complete(c.Ctx, mine[1], model.Completion{Outcome: model.Succeeded}); err != nil {
			c.Fatal(err)
		}
		for range 2 { // the second time from the cache
			got, err := c.Holdings.Owned(c.Ctx, trackertest.Scope, c.IDs["w1"], []holdings.OwnedAttempt{
				trackertest.NameOf(mine[0]), trackertest.NameOf(foreign[0]), trackertest.NameOf(mine[1]), trackertest.NameOf(pushed), {TaskID: "none",
					Number: 1}, {TaskID: mine[0].TaskID, Number: 2}})
			if err != nil {
				c.Fatal(err)
			}
			if got[0] == nil || got[0].Fence != mine[0].Fence || got[2] == nil || got[2].Fence != mine[1].Fence {
				c.Fatalf("%+v", got)
			}
			for _, i := range []int{1, 3, 4, 5} {
				if got[i] != nil {
					c.Fatalf("%d: %+v", i, got[i])
				}
			}
			if err := c.MustBeat(got[0], "").Err; err != nil {
				c.Fatal(err)
			}
			c.WantCode(c.MustBeat(got[2], "").Err, model.AlreadyTerminal)
		}
	})
}

// A claimed attempt that the store lost is adopted from its token, with its worker: it is recovered with that worker.
func TestAClaimedAttemptIsAdoptedWithItsWorker(t *testing.T) {
	t.Parallel()
	trackertest.Claims(t, func(c *trackertest.Fleet) {
		c.Hire("w1")
		a := c.MustHolding("w1", 1)[0]
		for _, key := range []string{"task", "doc", "history"} {
			c.Store.Client.Del(c.Ctx, fmt.Sprintf("lubdub:{%d}:%s:%s/%s", c.Tracker.Store.ShardOf(trackertest.Scope, a.TaskID), key,
				trackertest.Scope, a.TaskID))
		}
		c.Store.Client.ZRem(c.Ctx, fmt.Sprintf("lubdub:{%d}:held", c.Tracker.Store.ShardOf(trackertest.Scope, a.TaskID)), c.Holdings.Holding(a))
		if _, err := c.Beats.Start(c.Ctx, a, model.Report{}); err != nil {
			c.Fatal(err)
		}
		if task := c.WantState(a.TaskID, model.Running, ""); task.WorkerID != c.IDs["w1"] {
			c.Fatalf("%+v", task)
		}
		c.Advance(31 * time.Second)
		c.MustSweep()
		c.WantState(a.TaskID, model.Failed, model.WorkerLost) // without its record its queue is unknown
	})
}
