package tracker_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/lubdub-io/lubdub/tracker"
)

// What two beats running miss is lost, however soon the second one follows; and the worker is told.
func TestInventoryMissedByTwoBeatsRunning(t *testing.T) {
	t.Parallel()
	claims(t, func(c *crew) {
		c.hire("w1")
		a := c.holding("w1", 1)[0]
		c.wantNotices(c.beatWorker(c.ids["w1"], listing()).Lost)
		c.wantState(a.TaskID, tracker.Running, "")
		c.wantNotices(c.beatWorker(c.ids["w1"], listing()).Lost, tracker.TaskNotice{TaskID: a.TaskID, Attempt: 1, Error: tracker.Expired})
		c.wantState(a.TaskID, tracker.Queued, "")
		c.wantCode(c.beat(a, "").Err, tracker.Expired)
	})
}

// Beats that are under way together were sent before the worker had the answer of the first: they count as one,
// whichever comes first.
func TestInventoriesUnderWayTogetherCountAsOne(t *testing.T) {
	t.Parallel()
	claims(t, func(c *crew) {
		c.hire("w1")
		var none tracker.WorkerBeat
		listing()(&none)
		for i, order := range [][]int{{0, 1, 2}, {2, 1, 0}, {1, 2, 0}} {
			name := fmt.Sprintf("w%d", i)
			c.hire(name)
			a := c.holding(name, 1)[0]
			if err := c.InventoriesTogether(scope, c.ids[name], none, order...); err != nil {
				c.Fatal(err)
			}
			c.wantState(a.TaskID, tracker.Running, "")
			c.beatWorker(c.ids[name], listing())
			c.wantState(a.TaskID, tracker.Queued, "")
		}
	})
}

// A beat that was overtaken by a later one, or comes again, says nothing about what is missing by now.
func TestAnOldInventoryTakesNothing(t *testing.T) {
	t.Parallel()
	claims(t, func(c *crew) {
		c.hire("w1")
		a := c.holding("w1", 1)[0]
		beat := func(seq int64, tasks ...tracker.OwnedAttempt) {
			c.beatWorker(c.ids["w1"], listing(tasks...), func(b *tracker.WorkerBeat) { b.Seq = &seq })
		}
		beat(5, nameOf(a))
		beat(3)
		beat(4)
		beat(5)
		c.wantState(a.TaskID, tracker.Running, "")
		beat(6)
		beat(6) // the answer got lost
		c.wantState(a.TaskID, tracker.Running, "")
		beat(7)
		c.wantState(a.TaskID, tracker.Queued, "")
	})
}

// What a claim has just taken the worker cannot list while that claim's answer is not out.
func TestInventoryDuringAClaim(t *testing.T) {
	t.Parallel()
	claims(t, func(c *crew) {
		c.hire("w1")
		a := c.holding("w1", 1)[0]
		settle, err := c.ReserveClaim(scope, c.ids["w1"], 1)
		if err != nil {
			c.Fatal(err)
		}
		for range 3 {
			c.beatWorker(c.ids["w1"], listing())
		}
		c.wantState(a.TaskID, tracker.Running, "")
		settle()
		c.beatWorker(c.ids["w1"], listing())
		c.wantState(a.TaskID, tracker.Running, "")
		c.beatWorker(c.ids["w1"], listing())
		c.wantState(a.TaskID, tracker.Queued, "")
	})
}

// Of more misses than one inventory can have the second beat finds the same ones as the first.
func TestInventoryThatMissesVeryMany(t *testing.T) {
	t.Parallel()
	claims(t, func(c *crew) {
		const n = tracker.MaxMissed + 200
		c.hire("w1", func(n *tracker.NewWorker) { n.MaxConcurrent = 10000 })
		var batch []tracker.NewTask
		for i := range n {
			task := tracker.NewTask{Scope: scope, TaskID: fmt.Sprintf("t%04d", i), Queue: "q", Type: "x"}
			if err := task.Validate(c.store.Clock.Now()); err != nil {
				c.Fatal(err)
			}
			batch = append(batch, task)
		}
		for part := range slices.Chunk(batch, 500) {
			c.CreateBatch(c.ctx, part)
		}
		for held := 0; held < n; {
			held += len(c.claim("w1", tracker.MaxClaim))
		}
		for i, want := range []int{0, tracker.MaxMissed, 0, n - tracker.MaxMissed} {
			if heard := c.beatWorker(c.ids["w1"], listing()); len(heard.Lost) != want {
				c.Fatalf("beat %d: %d lost, want %d", i, len(heard.Lost), want)
			}
		}
	})
}

// What the store cannot tell of an attempt is no news of its loss: its own token is heard all the while.
func TestInventoryWithAttemptsThatTheStoreCannotJudge(t *testing.T) {
	t.Parallel()
	live := func(c *crew, what string, a *tracker.Attempt) {
		c.Helper()
		for range 2 {
			if lost := c.beatWorker(c.ids["w1"], listing(nameOf(a))).Lost; len(lost) > 0 {
				c.Errorf("%s: its worker is told %+v", what, lost)
			}
			if b := c.beat(a, ""); b.Err != nil {
				c.Errorf("%s: its own beat is told %v", what, b.Err)
			}
		}
	}
	claims(t, func(c *crew) {
		records := map[string]*tracker.Registered{}
		for _, name := range []string{"w1", "w2"} {
			records[name] = c.register(func(n *tracker.NewWorker) { n.Queue, n.Types, n.MachineID = "q", []string{"x"}, "host-"+name })
			c.ids[name] = records[name].WorkerID
		}
		pushed := c.create(func(n *tracker.NewTask) { n.TaskID = "pushed" }).Envelope.Attempt
		live(c, "pushed", pushed)
		if _, err := c.Start(c.ctx, pushed, tracker.Report{WorkerID: c.ids["w1"]}); err != nil {
			c.Fatal(err)
		}
		live(c, "pushed, with the worker's name", pushed)

		own := c.holding("w1", 1, func(n *tracker.NewTask) { n.HeartbeatTimeout = 2 * time.Second })[0]
		live(c, "claimed", own)
		another := c.claimed("w2", "another")
		ahead := c.claimed("w1", "ahead")
		c.empty()
		for _, r := range records {
			c.adopt(r)
		}
		live(c, "adopted with a timeout of its own", own)
		if b := c.beat(another, ""); b.Err != nil {
			c.Fatal(b.Err)
		}
		c.wantNotices(c.beatWorker(c.ids["w1"], listing(nameOf(own), nameOf(another))).Lost,
			tracker.TaskNotice{TaskID: "another", Attempt: 1, Error: tracker.AttemptMismatch}) // it has no timeout, so it was claimed, and by w2

		c.queue("ahead", "x") // the store has its creation and lost its claim
		live(c, "ahead of the record", ahead)
	})
}

func (c *crew) claimed(worker, task string) *tracker.Attempt {
	c.Helper()
	c.queue(task, "x", func(n *tracker.NewTask) { n.WorkerID = c.ids[worker] })
	got := c.claim(worker, 1)
	c.wantIDs(got, task)
	return got[0].Attempt
}
