package tracker_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/lubdub-io/lubdub/tracker"
)

// listing makes a worker's beat carry its inventory.
func listing(tasks ...tracker.OwnedAttempt) func(*tracker.WorkerBeat) {
	return func(b *tracker.WorkerBeat) {
		b.Inventory = []tracker.InventoryItem{}
		for _, n := range tasks {
			b.Inventory = append(b.Inventory, tracker.InventoryItem{OwnedAttempt: n})
		}
	}
}

func nameOf(a *tracker.Attempt) tracker.OwnedAttempt {
	return tracker.OwnedAttempt{TaskID: a.TaskID, Number: a.Number}
}

func (c *crew) wantNotices(got []tracker.TaskNotice, want ...tracker.TaskNotice) {
	c.Helper()
	if !slices.Equal(got, want) {
		c.Fatalf("told %+v, want %+v", got, want)
	}
}

// A worker's one beat keeps all its tasks alive; none of them beats by itself.
func TestAWorkersBeatKeepsItsTasksAlive(t *testing.T) {
	t.Parallel()
	claims(t, func(c *crew) {
		c.hire("w1")
		held := c.holding("w1", 20)
		c.pass(5 * time.Minute)
		c.sweep()
		for _, a := range held {
			c.wantState(a.TaskID, tracker.Running, "")
		}
	})
}

// A task without a timeout of its own is as alive as its worker, also in lists.
func TestATaskIsAsAliveAsItsWorker(t *testing.T) {
	t.Parallel()
	claims(t, func(c *crew) {
		c.hire("w1")
		id := c.holding("w1", 1)[0].TaskID
		want := func(l tracker.Liveness, silent time.Duration) {
			c.Helper()
			page, err := c.List(c.ctx, tracker.TaskFilter{Scope: scope, Liveness: l, PageSize: 10})
			if err != nil || len(page.Tasks) != 1 {
				c.Fatalf("%+v %v", page, err)
			}
			for _, task := range []*tracker.Task{c.get(id), page.Tasks[0]} {
				if task.Liveness != l || c.store.Clock.Now().Sub(task.LastHeartbeatAt) != silent {
					c.Fatalf("%s, last beat %v ago; want %s, %v", task.Liveness, c.store.Clock.Now().Sub(task.LastHeartbeatAt), l, silent)
				}
			}
		}
		c.pass(2 * time.Minute)
		c.beatWorker(c.ids["w1"])
		want(tracker.Fresh, 0)
		c.advance(16 * time.Second)
		want(tracker.Late, 16*time.Second)
		c.advance(14 * time.Second)
		want(tracker.Lost, 30*time.Second)
	})
}

// A task with a timeout of its own as well dies at the earlier of the two, and its worker is told.
func TestATaskWithItsOwnTimeoutDiesByItToo(t *testing.T) {
	t.Parallel()
	claims(t, func(c *crew) {
		c.hire("w1")
		own := func(n *tracker.NewTask) { n.HeartbeatTimeout = 8 * time.Second }
		held := c.holding("w1", 2, own)
		for range 3 {
			c.pass(5 * time.Second)
			if err := c.beat(held[0], "").Err; err != nil {
				c.Fatal(err)
			}
			c.sweep()
		}
		c.wantState(held[0].TaskID, tracker.Running, "")
		if task := c.wantState(held[1].TaskID, tracker.Queued, ""); task.History[0].Reason != tracker.HeartbeatTimeout {
			c.Fatalf("%+v", task)
		}
		heard := c.beatWorker(c.ids["w1"])
		c.wantNotices(heard.Lost, tracker.TaskNotice{TaskID: held[1].TaskID, Attempt: 1, Error: tracker.Expired})
		c.wantNotices(heard.Cancels)
	})
}

// A cancel is repeated by each beat of the worker until its delivery is recorded; only then its grace begins.
func TestCancelsReachTheWorkerByItsBeat(t *testing.T) {
	t.Parallel()
	claims(t, func(c *crew) {
		c.hire("w1")
		held := c.holding("w1", 2, func(n *tracker.NewTask) { n.CancelGrace = 2 * time.Second })
		if _, err := c.Cancel(c.ctx, scope, held[0].TaskID, "no longer \"needed\""); err != nil {
			c.Fatal(err)
		}
		want := tracker.TaskNotice{TaskID: held[0].TaskID, Attempt: 1, Reason: "no longer \"needed\""}
		c.wantNotices(c.beatWorker(c.ids["w1"]).Cancels, want) // by the very next beat
		for range 2 {
			c.pass(5 * time.Second)
			c.sweep()
			c.wantNotices(c.beatWorker(c.ids["w1"]).Cancels, want)
		}
		c.wantState(held[0].TaskID, tracker.Running, "")
		c.Notified(c.beatWorker(c.ids["w1"]))
		for len(c.beatWorker(c.ids["w1"]).Cancels) > 0 { // recorded in the background
		}
		c.pass(2 * time.Second)
		c.sweep()
		c.wantState(held[0].TaskID, tracker.Failed, tracker.CancelTimeout)
		c.sweep() // carries word of what the sweep before did
		c.wantNotices(c.beatWorker(c.ids["w1"]).Lost, tracker.TaskNotice{TaskID: held[0].TaskID, Attempt: 1, Error: tracker.Expired})
	})
}

// What an operator takes from a worker is told to it too.
func TestLossesReachTheWorkerByItsBeat(t *testing.T) {
	t.Parallel()
	claims(t, func(c *crew) {
		c.hire("w1")
		held := c.holding("w1", 2)
		c.queue("unstarted", "x")
		c.claim("w1", 1)
		if _, err := c.NextAttempt(c.ctx, scope, held[0].TaskID, 1); err != nil {
			c.Fatal(err)
		}
		if _, err := c.Cancel(c.ctx, scope, "unstarted", ""); err != nil {
			c.Fatal(err)
		}
		c.sweep()
		heard := c.beatWorker(c.ids["w1"])
		lost := heard.Lost
		slices.SortFunc(lost, func(a, b tracker.TaskNotice) int { return len(a.TaskID) - len(b.TaskID) })
		c.wantNotices(lost, tracker.TaskNotice{TaskID: held[0].TaskID, Attempt: 1, Error: tracker.AttemptMismatch},
			tracker.TaskNotice{TaskID: "unstarted", Attempt: 1, Error: tracker.AlreadyTerminal})
		c.Notified(heard)
		for len(c.beatWorker(c.ids["w1"]).Lost) > 0 { // recorded in the background
		}
		if _, err := c.Complete(c.ctx, held[1], tracker.Completion{Outcome: tracker.Succeeded}); err != nil {
			c.Fatal(err)
		}
		c.sweep()
		c.wantNotices(c.beatWorker(c.ids["w1"]).Lost) // what it ended itself is no news
	})
}

// An inventory says what runs, names what is lost, and what two beats running miss is taken from the worker.
func TestInventory(t *testing.T) {
	t.Parallel()
	claims(t, func(c *crew) {
		c.hire("w1")
		c.hire("w2")
		w1 := c.ids["w1"]
		held := c.holding("w1", 3)
		c.queue("claimed", "x")
		claimed := c.claim("w1", 1)[0].Attempt
		foreign := c.holding("w2", 1)[0]
		if _, err := c.Complete(c.ctx, held[2], tracker.Completion{Outcome: tracker.Succeeded}); err != nil {
			c.Fatal(err)
		}
		if _, err := c.Cancel(c.ctx, scope, held[1].TaskID, "stop"); err != nil {
			c.Fatal(err)
		}
		report := string(tracker.AppendReport(nil, 0, nil, []byte("40"), []byte(`"on it"`)))
		beat := func(b *tracker.WorkerBeat) {
			listing(nameOf(claimed), nameOf(held[1]), nameOf(held[2]), nameOf(foreign), tracker.OwnedAttempt{TaskID: "nobody-knows", Number: 1})(b)
			b.Inventory[0].Report = report
		}
		heard := c.beatWorker(w1, beat)
		c.wantNotices(heard.Cancels, tracker.TaskNotice{TaskID: held[1].TaskID, Attempt: 1, Reason: "stop"})
		c.wantNotices(heard.Lost, tracker.TaskNotice{TaskID: foreign.TaskID, Attempt: 1, Error: tracker.AttemptMismatch},
			tracker.TaskNotice{TaskID: held[2].TaskID, Attempt: 1, Error: tracker.AlreadyTerminal})
		if task := c.wantState("claimed", tracker.Running, ""); task.Progress.Pct != "40" || task.Progress.Message != `"on it"` {
			c.Fatalf("%+v", task)
		}
		c.wantState(foreign.TaskID, tracker.Running, "")

		c.wantState(held[0].TaskID, tracker.Running, "")
		c.beatWorker(w1) // a beat without an inventory says nothing about it
		c.wantState(held[0].TaskID, tracker.Running, "")
		heard = c.beatWorker(w1, beat)
		if gone := (tracker.TaskNotice{TaskID: held[0].TaskID, Attempt: 1, Error: tracker.Expired}); !slices.Contains(heard.Lost, gone) {
			c.Fatalf("told %+v, want %+v among them", heard.Lost, gone)
		}
		task := c.wantState(held[0].TaskID, tracker.Queued, "")
		if task.Losses != 1 || task.History[0].Reason != tracker.WorkerLost {
			c.Fatalf("%+v", task)
		}
		c.wantState("claimed", tracker.Running, "")
		c.wantState(held[1].TaskID, tracker.Running, "")
	})
}

// What an inventory misses once and lists again is not lost.
func TestInventoryMissesOnceOnly(t *testing.T) {
	t.Parallel()
	claims(t, func(c *crew) {
		c.hire("w1")
		a := c.holding("w1", 1)[0]
		for i := range 6 {
			if i%2 == 0 {
				c.beatWorker(c.ids["w1"], listing())
			} else {
				c.beatWorker(c.ids["w1"], listing(nameOf(a)))
			}
			c.pass(10 * time.Second)
		}
		c.wantState(a.TaskID, tracker.Running, "")
	})
}

// Only attempts that were dispatched to a worker are its own, and those that it had before as well.
func TestOwned(t *testing.T) {
	t.Parallel()
	claims(t, func(c *crew) {
		c.hire("w1")
		c.hire("w2")
		mine, foreign := c.holding("w1", 2), c.holding("w2", 1)
		pushed := c.running(func(n *tracker.NewTask) { n.TaskID = "pushed" }) // says that it runs on w1
		if _, err := c.Complete(c.ctx, mine[1], tracker.Completion{Outcome: tracker.Succeeded}); err != nil {
			c.Fatal(err)
		}
		for range 2 { // the second time from what is remembered
			got, err := c.Owned(c.ctx, scope, c.ids["w1"], []tracker.OwnedAttempt{
				nameOf(mine[0]), nameOf(foreign[0]), nameOf(mine[1]), nameOf(pushed), {TaskID: "none", Number: 1}, {TaskID: mine[0].TaskID, Number: 2}})
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
			if err := c.beat(got[0], "").Err; err != nil {
				c.Fatal(err)
			}
			c.wantCode(c.beat(got[2], "").Err, tracker.AlreadyTerminal)
		}
	})
}

// A claimed attempt that the store lost is adopted from its token, with the worker that holds it: it is recovered with
// that worker.
func TestAClaimedAttemptIsAdoptedWithItsWorker(t *testing.T) {
	t.Parallel()
	claims(t, func(c *crew) {
		c.hire("w1")
		a := c.holding("w1", 1)[0]
		for _, key := range []string{"task", "doc", "history"} {
			c.store.Client.Del(c.ctx, fmt.Sprintf("lubdub:{%d}:%s:%s/%s", c.ShardOf(scope, a.TaskID), key, scope, a.TaskID))
		}
		c.store.Client.ZRem(c.ctx, fmt.Sprintf("lubdub:{%d}:held", c.ShardOf(scope, a.TaskID)), c.Holding(a))
		if _, err := c.Start(c.ctx, a, tracker.Report{}); err != nil {
			c.Fatal(err)
		}
		if task := c.wantState(a.TaskID, tracker.Running, ""); task.WorkerID != c.ids["w1"] {
			c.Fatalf("%+v", task)
		}
		c.advance(31 * time.Second)
		c.sweep()
		c.wantState(a.TaskID, tracker.Failed, tracker.WorkerLost) // without its record nobody knows its queue
	})
}
