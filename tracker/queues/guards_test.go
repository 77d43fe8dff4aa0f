package queues_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lubdub-io/lubdub/tracker/model"
	"github.com/lubdub-io/lubdub/tracker/trackertest"
)

// A shard's clock returns older than its stored beats, as from a partial backup. Further heartbeats are still stored and no score
// falls: otherwise the latest heartbeats would look too old and their attempts would be declared dead.
func TestScoresNeverFallWithARestoredClock(t *testing.T) {
	t.Parallel()
	trackertest.Contract(t, func(h *trackertest.Harness) {
		a := h.Running(func(n *model.NewTask) { n.TaskID = "t1" })
		h.Advance(time.Second)
		if err := h.MustBeat(a, "").Err; err != nil {
			h.Fatal(err)
		}
		shard := h.Tracker.Store.ShardOf(trackertest.Scope, "t1")
		clock, beats := fmt.Sprintf("lubdub:{%d}:clock", shard), fmt.Sprintf("lubdub:{%d}:beats:2000", shard)
		score := func() float64 {
			for _, z := range h.Store.Client.ZRangeWithScores(h.Ctx, beats, 0, -1).Val() {
				if z.Member != "!" {
					return z.Score
				}
			}
			h.Fatal("the attempt is not in its set")
			return 0
		}
		before := score()
		old := h.Store.Clock.Now().Add(-time.Minute).UnixMilli()
		if err := h.Store.Client.HSet(h.Ctx, clock, "L", old, "m", h.Store.Clock.Now().UnixMilli()).Err(); err != nil {
			h.Fatal(err)
		}
		for _, send := range []func() error{
			func() error { return h.MustBeat(a, "").Err },
			func() error { return h.MustBeat(a, "\tw1\t50\t\"half\"").Err },
			func() error { _, err := h.Beats.Start(h.Ctx, a, model.Report{}); return err },
		} {
			if err := send(); err != nil {
				h.Fatal(err)
			}
			if after := score(); after < before {
				h.Fatalf("the score fell by %.0f ms", before-after)
			}
		}
		if r := h.MustSweep(); r.Zombies > 0 {
			h.Fatalf("%+v", r)
		}
	})
}

// The grace period of a cancel starts when the first response that includes it is delivered, not at the request: a worker that
// could not know of it is not late.
func TestGraceRunsFromTheDelivery(t *testing.T) {
	t.Parallel()
	trackertest.Contract(t, func(h *trackertest.Harness) {
		a := h.Running(func(n *model.NewTask) { n.TaskID, n.CancelGrace = "t1", time.Second })
		if _, err := h.Tasks.Cancel(h.Ctx, trackertest.Scope, "t1", model.CancelRequest{}); err != nil {
			h.Fatal(err)
		}
		for range 3 { // three times the grace period, and no response has arrived
			h.Advance(time.Second)
			if b := h.MustBeat(a, ""); b.Err != nil || b.Cancel == nil || b.Cancel.Delivered {
				h.Fatalf("%+v", b)
			}
			if r := h.MustSweep(); r.TimedOut != 0 {
				h.Fatalf("%+v", r)
			}
		}
		trackertest.Eventually(h, "the delivery is recorded", func() bool {
			h.Beats.CancelDelivered(a)
			return h.MustBeat(a, "").Cancel.Delivered
		})
		h.Advance(750 * time.Millisecond)
		if r := h.MustSweep(); r.TimedOut != 0 {
			h.Fatalf("too early: %+v", r)
		}
		h.Advance(250 * time.Millisecond)
		h.MustSweep()
		h.WantState("t1", model.Failed, model.CancelTimeout)
	})
}

// No matter how much is overdue, one look at it is bounded.
func TestALookAtWhatIsOverdueIsBounded(t *testing.T) {
	t.Parallel()
	trackertest.Contract(t, func(h *trackertest.Harness) {
		key, clock := "lubdub:{0}:timers", "lubdub:{0}:clock"
		var many []redis.Z
		for i := range 700 {
			many = append(many, redis.Z{Score: float64(i + 1), Member: fmt.Sprintf("s:acme/prod/t%03d#1.abcd", i)})
		}
		if err := h.Store.Client.ZAdd(h.Ctx, key, many...).Err(); err != nil {
			h.Fatal(err)
		}
		reply, err := h.Store.Eval(h.Ctx, "find", []string{clock, key}, "L", 0, 0, 500).Slice()
		if err != nil || len(reply[2].([]any)) != 500 {
			h.Fatalf("%d found: %v", len(reply[2].([]any)), err)
		}
	})
}

// A task is in the list of its state and in no other, so the counts that are read from the lists are exact.
func TestATaskIsInOneList(t *testing.T) {
	t.Parallel()
	trackertest.Contract(t, func(h *trackertest.Harness) {
		a := h.MustCreate(func(n *model.NewTask) { n.TaskID, n.RunID = "t1", "r1" }).Envelope.Attempt
		want := func(state model.State) {
			h.Helper()
			run, err := h.Tasks.Run(h.Ctx, trackertest.Scope, "r1")
			if err != nil || run.Total != 1 || run.Counts[state] != 1 {
				h.Fatalf("%+v %v", run, err)
			}
			for _, s := range model.States {
				page, err := h.Tasks.List(h.Ctx, model.TaskFilter{Scope: trackertest.Scope, States: []model.State{s}})
				if err != nil || (page.Total == 1) != (s == state) || page.Total > 1 {
					h.Fatalf("%s: %d are counted %s: %v", state, page.Total, s, err)
				}
			}
		}
		want(model.Dispatched)
		if err := h.MustBeat(a, "").Err; err != nil {
			h.Fatal(err)
		}
		want(model.Running)
		if _, err := h.Beats.Complete(h.Ctx, a, model.Completion{Outcome: model.Succeeded}); err != nil {
			h.Fatal(err)
		}
		want(model.Succeeded)
	})
}

// Claims that wait together are served by one read, and each gets only what its own worker can run.
func TestClaimsThatWaitTogetherGetTheirOwnTypes(t *testing.T) {
	t.Parallel()
	trackertest.Claims(t, func(c *trackertest.Fleet) {
		c.Queues.OnlyWhenNotified()
		c.Hire("w1")
		c.Hire("w2", func(n *model.NewWorker) { n.Types = []string{"y"} })
		ctx, cancel := context.WithCancel(c.Ctx)
		defer cancel()
		first := await(c, ctx, c.Tracker, "w1", 1)
		waiting(c, 1)
		second := await(c, ctx, c.Tracker, "w2", 1)
		waiting(c, 2)
		c.MustQueue("for-y", "y")
		c.WantIDs(<-second, "for-y")
		c.MustQueue("for-x", "x")
		c.WantIDs(<-first, "for-x")
	})
}
