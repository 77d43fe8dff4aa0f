package tracker_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/lubdub-io/lubdub/tracker"
)

// What two beats running miss is lost, however soon the second one follows; and the worker is told.
func TestInventoryMissedByTwoBeatsRunning(t *testing.T) {
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
