package workers_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/lubdub-io/lubdub/tracker/holdings"
	"github.com/lubdub-io/lubdub/tracker/model"
	"github.com/lubdub-io/lubdub/tracker/trackertest"
	"github.com/lubdub-io/lubdub/tracker/workers"
)

// An attempt that two consecutive heartbeats do not list is lost, no matter how soon the second one follows, and the worker learns
// of it.
func TestInventoryMissedByTwoBeatsRunning(t *testing.T) {
	t.Parallel()
	trackertest.Claims(t, func(c *trackertest.Fleet) {
		c.Hire("w1")
		a := c.MustHolding("w1", 1)[0]
		c.WantNotices(c.MustBeatWorker(c.IDs["w1"], trackertest.Listing()).Lost)
		c.WantState(a.TaskID, model.Running, "")
		c.WantNotices(c.MustBeatWorker(c.IDs["w1"], trackertest.Listing()).Lost,
			holdings.TaskNotice{TaskID: a.TaskID, Attempt: 1, Error: model.Expired})
		c.WantState(a.TaskID, model.Queued, "")
		c.WantCode(c.MustBeat(a, "").Err, model.Expired)
	})
}

// Concurrent heartbeats were sent before the worker had the response to the first: they count as one, whichever comes first.
func TestInventoriesUnderWayTogetherCountAsOne(t *testing.T) {
	t.Parallel()
	trackertest.Claims(t, func(c *trackertest.Fleet) {
		stored, inventory := make(chan bool), make([]chan bool, 3)
		var replicas []*trackertest.Harness
		for i := range inventory {
			inventory[i] = make(chan bool)
			replicas = append(replicas, c.Replica())
			trackertest.After(replicas[i].Tracker, "worker_beat", func() { stored <- true; <-inventory[i] })
		}
		for i, order := range [][]int{{0, 1, 2}, {2, 1, 0}, {1, 2, 0}} {
			name := fmt.Sprintf("w%d", i)
			c.Hire(name)
			a := c.MustHolding(name, 1)[0]
			done := make(chan bool)
			for _, r := range replicas {
				go func() { r.MustBeatWorker(c.IDs[name], trackertest.Listing()); done <- true }()
				<-stored
			}
			for _, i := range order {
				inventory[i] <- true
				<-done
			}
			c.WantState(a.TaskID, model.Running, "")
			c.MustBeatWorker(c.IDs[name], trackertest.Listing())
			c.WantState(a.TaskID, model.Queued, "")
		}
	})
}

// A heartbeat that was overtaken by a later one, or is a repeat, does not show what is missing by now.
func TestAnOldInventoryTakesNothing(t *testing.T) {
	t.Parallel()
	trackertest.Claims(t, func(c *trackertest.Fleet) {
		c.Hire("w1")
		a := c.MustHolding("w1", 1)[0]
		beat := func(seq int64, tasks ...holdings.OwnedAttempt) {
			c.MustBeatWorker(c.IDs["w1"], trackertest.Listing(tasks...), func(b *workers.WorkerBeat) { b.Seq = &seq })
		}
		beat(5, trackertest.NameOf(a))
		beat(3)
		beat(4)
		beat(5)
		c.WantState(a.TaskID, model.Running, "")
		beat(6)
		beat(6) // the response was lost
		c.WantState(a.TaskID, model.Running, "")
		beat(7)
		c.WantState(a.TaskID, model.Queued, "")
	})
}

// An attempt whose state the store does not know is not reported as lost: its own token still keeps it alive.
func TestInventoryWithAttemptsUnknownToTheStore(t *testing.T) {
	t.Parallel()
	live := func(c *trackertest.Fleet, what string, a *model.Attempt) {
		c.Helper()
		for range 2 {
			if lost := c.MustBeatWorker(c.IDs["w1"], trackertest.Listing(trackertest.NameOf(a))).Lost; len(lost) > 0 {
				c.Errorf("%s: its worker gets %+v", what, lost)
			}
			if b := c.MustBeat(a, ""); b.Err != nil {
				c.Errorf("%s: its own beat gets %v", what, b.Err)
			}
		}
	}
	trackertest.Claims(t, func(c *trackertest.Fleet) {
		records := map[string]*workers.Registered{}
		for _, name := range []string{"w1", "w2"} {
			records[name] = c.MustRegister(func(n *model.NewWorker) { n.Queue, n.Types, n.MachineID = "q", []string{"x"}, "host-"+name })
			c.IDs[name] = records[name].WorkerID
		}
		pushed := c.MustCreate(func(n *model.NewTask) { n.TaskID = "pushed" }).Envelope.Attempt
		live(c, "pushed", pushed)
		if _, err := c.Beats.Start(c.Ctx, pushed, model.Report{WorkerID: c.IDs["w1"]}); err != nil {
			c.Fatal(err)
		}
		live(c, "pushed, with the worker's name", pushed)

		own := c.MustHolding("w1", 1, func(n *model.NewTask) { n.HeartbeatTimeout = 2 * time.Second })[0]
		live(c, "claimed", own)
		another := claimed(c, "w2", "another")
		ahead := claimed(c, "w1", "ahead")
		c.Empty()
		for _, r := range records {
			adopt(c.Harness, r)
		}
		live(c, "adopted with its own timeout", own)
		if b := c.MustBeat(another, ""); b.Err != nil {
			c.Fatal(b.Err)
		}
		c.WantNotices(c.MustBeatWorker(c.IDs["w1"], trackertest.Listing(trackertest.NameOf(own), trackertest.NameOf(another))).Lost,
			holdings.TaskNotice{TaskID: "another", Attempt: 1, Error: model.AttemptMismatch}) // it has no timeout, so it was claimed, and by w2

		c.MustQueue("ahead", "x") // the store has its creation and lost its claim
		live(c, "ahead of the record", ahead)
	})
}

func claimed(c *trackertest.Fleet, worker, task string) *model.Attempt {
	c.Helper()
	c.MustQueue(task, "x", func(n *model.NewTask) { n.WorkerID = c.IDs[worker] })
	got := c.MustClaim(worker, 1)
	c.WantIDs(got, task)
	return got[0].Attempt
}
