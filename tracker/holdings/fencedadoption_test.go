package holdings_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/lubdub-io/lubdub/tracker/model"
	"github.com/lubdub-io/lubdub/tracker/trackertest"
)

// An attempt that the store has lost, and whose worker has ended and was recovered, ends like the worker's other attempts: otherwise it
// would never be taken.
func TestALostAttemptOfAnEndedWorkerIsNotHeldForEver(t *testing.T) {
	t.Parallel()
	trackertest.Claims(t, func(c *trackertest.Fleet) {
		for name, reason := range map[string]model.WorkerReason{"forced": model.WorkerForced, "deregistered": model.WorkerDeregistered} {
			c.Hire(name)
			var held []*model.Attempt
			before := map[string]map[string]string{}
			for i := range 4 {
				id := fmt.Sprintf("%s-%d", name, i)
				c.MustQueue(id, "x", func(n *model.NewTask) { n.WorkerID = c.IDs[name] })
				before[id] = c.Store.Client.HGetAll(c.Ctx, trackertest.TaskRecord(c.Tracker, trackertest.Scope, id)).Val()
				held = append(held, c.MustClaim(name, 1)[0].Attempt)
			}
			if _, err := c.Workers.Retire(c.Ctx, trackertest.Scope, c.IDs[name], reason, ""); err != nil {
				c.Fatal(err)
			}
			for i, a := range held { // the store loses the attempts: of two everything, of two all since their creation
				c.Store.Client.Del(c.Ctx, trackertest.TaskRecord(c.Tracker, trackertest.Scope, a.TaskID))
				if i >= 2 {
					c.Store.Client.HSet(c.Ctx, trackertest.TaskRecord(c.Tracker, trackertest.Scope, a.TaskID), before[a.TaskID])
				}
			}
			_, err := c.Beats.Start(c.Ctx, held[0], model.Report{})
			c.WantCode(err, model.AlreadyTerminal)
			c.WantState(held[0].TaskID, model.Failed, model.WorkerLost) // its queue is unknown now
			if _, err := c.Beats.Complete(c.Ctx, held[1], model.Completion{Outcome: model.Succeeded}); err != nil {
				c.Fatal(err) // a result is never discarded for this
			}
			c.WantState(held[1].TaskID, model.Succeeded, "")
			losses := 0
			if reason == model.WorkerForced {
				losses = 1
			}
			c.WantCode(c.MustBeat(held[2], "").Err, model.Expired)
			if task := c.WantState(held[2].TaskID, model.Queued, ""); task.Losses != losses || task.NextAttemptAt.IsZero() == (losses == 1) ||
				len(task.History) == 0 || task.History[len(task.History)-1].Reason != model.WorkerLost {
				c.Fatalf("%+v", task)
			}
			if e := c.Newest(held[2].TaskID).Evidence; e == nil || e.WorkerReason != reason || !strings.HasPrefix(e.Sweeper, "swp_") {
				c.Fatalf("%+v", e)
			}
			if w := c.MustWorker(c.IDs[name]); w.Held != 0 {
				c.Fatalf("an ended worker holds %d", w.Held)
			}
		}
	})
}
