package queues_test

import (
	"testing"
	"time"

	"github.com/lubdub-io/lubdub/tracker/model"
	"github.com/lubdub-io/lubdub/tracker/queues"
	"github.com/lubdub-io/lubdub/tracker/trackertest"
)

// A claim that is waiting when its worker is cordoned keeps waiting and gets nothing, not even what it is offered; when the cordon
// is undone it gets what is ready.
func TestAClaimThatWaitsThroughACordon(t *testing.T) {
	t.Parallel()
	trackertest.Claims(t, func(c *trackertest.Fleet) {
		c.Queues.OnlyWhenNotified()
		c.Hire("w")
		got := awaitFor(c, c.Ctx, c.Tracker, "w", 1, queues.MaxClaimWait)
		waiting(c, 1)
		if _, err := c.Workers.Cordon(c.Ctx, trackertest.Scope, c.IDs["w"], ""); err != nil {
			c.Fatal(err)
		}
		c.MustQueue("late", "x")
		waiting(c, 0) // it was offered the task and was refused a place
		c.WantState("late", model.Queued, "")
		c.Advance(time.Second)
		if _, err := c.Workers.Uncordon(c.Ctx, trackertest.Scope, c.IDs["w"], ""); err != nil {
			c.Fatal(err)
		}
		c.WantIDs(<-got, "late")
		if task := c.MustGet("late"); !task.DispatchedAt.Equal(c.Store.Clock.Now()) || task.Attempt != 1 {
			c.Fatalf("%+v", task)
		}
	})
}
