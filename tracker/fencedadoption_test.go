package tracker_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/lubdub-io/lubdub/tracker"
)

// An attempt that the store has lost, and whose worker has ended and was recovered, ends as the others that the worker
// held: nobody would ever take it again.
func TestALostAttemptOfAnEndedWorkerIsNotHeldForEver(t *testing.T) {
	t.Parallel()
	claims(t, func(c *crew) {
		for name, reason := range map[string]tracker.WorkerReason{"forced": tracker.WorkerForced, "deregistered": tracker.WorkerDeregistered} {
			c.hire(name)
			var held []*tracker.Attempt
			before := map[string]map[string]string{}
			for i := range 4 {
				id := fmt.Sprintf("%s-%d", name, i)
				c.queue(id, "x", func(n *tracker.NewTask) { n.WorkerID = c.ids[name] })
				before[id] = c.store.Client.HGetAll(c.ctx, c.TaskKey(scope, id)).Val()
				held = append(held, c.claim(name, 1)[0].Attempt)
			}
			if _, err := c.RetireWorker(c.ctx, scope, c.ids[name], reason, ""); err != nil {
				c.Fatal(err)
			}
			for i, a := range held { // the store loses what it knew of the attempts, of two all, of two back to their creation
				c.store.Client.Del(c.ctx, c.TaskKey(scope, a.TaskID))
				if i >= 2 {
					c.store.Client.HSet(c.ctx, c.TaskKey(scope, a.TaskID), before[a.TaskID])
				}
			}
			_, err := c.Start(c.ctx, held[0], tracker.Report{})
			c.wantCode(err, tracker.AlreadyTerminal)
			c.wantState(held[0].TaskID, tracker.Failed, tracker.WorkerLost) // its queue is not known any more
			if _, err := c.Complete(c.ctx, held[1], tracker.Completion{Outcome: tracker.Succeeded}); err != nil {
				c.Fatal(err) // a result is never thrown away for this
			}
			c.wantState(held[1].TaskID, tracker.Succeeded, "")
			losses := 0
			if reason == tracker.WorkerForced {
				losses = 1
			}
			c.wantCode(c.beat(held[2], "").Err, tracker.Expired)
			if task := c.wantState(held[2].TaskID, tracker.Queued, ""); task.Losses != losses || task.NextAttemptAt.IsZero() == (losses == 1) ||
				len(task.History) == 0 || task.History[len(task.History)-1].Reason != tracker.WorkerLost {
				c.Fatalf("%+v", task)
			}
			if e := c.newest(held[2].TaskID).Evidence; e == nil || e.WorkerReason != reason || !strings.HasPrefix(e.Sweeper, "swp_") {
				c.Fatalf("%+v", e)
			}
			if w := c.worker(c.ids[name]); w.Held != 0 {
				c.Fatalf("an ended worker holds %d", w.Held)
			}
		}
	})
}
