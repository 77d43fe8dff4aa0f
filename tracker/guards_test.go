package tracker_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lubdub-io/lubdub/tracker"
)

// A shard's clock comes back older than the beats that it once scored, as from a backup of a part. Beats go on landing,
// and no score falls: who beat last would look longer silent than he was, and die of it.
func TestScoresNeverFallWithARestoredClock(t *testing.T) {
	t.Parallel()
	contract(t, func(h *harness) {
		a := h.running(func(n *tracker.NewTask) { n.TaskID = "t1" })
		h.advance(time.Second)
		if err := h.beat(a, "").Err; err != nil {
			h.Fatal(err)
		}
		shard := h.ShardOf(scope, "t1")
		clock, beats := fmt.Sprintf("lubdub:{%d}:clock", shard), fmt.Sprintf("lubdub:{%d}:beats:2000", shard)
		score := func() float64 {
			for _, z := range h.store.Client.ZRangeWithScores(h.ctx, beats, 0, -1).Val() {
				if z.Member != "!" {
					return z.Score
				}
			}
			h.Fatal("the attempt is not in its set")
			return 0
		}
		before := score()
		old := h.store.Clock.Now().Add(-time.Minute).UnixMilli()
		if err := h.store.Client.HSet(h.ctx, clock, "L", old, "m", h.store.Clock.Now().UnixMilli()).Err(); err != nil {
			h.Fatal(err)
		}
		for _, hear := range []func() error{
			func() error { return h.beat(a, "").Err },
			func() error { return h.beat(a, "\tw1\t50\t\"half\"").Err },
			func() error { _, err := h.Start(h.ctx, a, tracker.Report{}); return err },
		} {
			if err := hear(); err != nil {
				h.Fatal(err)
			}
			if after := score(); after < before {
				h.Fatalf("the score fell by %.0f ms", before-after)
			}
		}
		if r := h.sweep(); r.Zombies > 0 {
			h.Fatalf("%+v", r)
		}
	})
}

// The grace period of a cancel runs from the delivery of the first reply that carried it, not from the request: a
// worker that could not know yet is not late.
func TestGraceRunsFromTheDelivery(t *testing.T) {
	t.Parallel()
	contract(t, func(h *harness) {
		a := h.running(func(n *tracker.NewTask) { n.TaskID, n.CancelGrace = "t1", time.Second })
		if _, err := h.Cancel(h.ctx, scope, "t1", ""); err != nil {
			h.Fatal(err)
		}
		for range 3 { // three times the grace period, and no reply has got through
			h.advance(time.Second)
			if b := h.beat(a, ""); b.Err != nil || b.Cancel == nil || b.Cancel.Delivered {
				h.Fatalf("%+v", b)
			}
			if r := h.sweep(); r.TimedOut != 0 {
				h.Fatalf("%+v", r)
			}
		}
		for delivered := false; !delivered; {
			h.CancelDelivered(a)
			delivered = h.beat(a, "").Cancel.Delivered
		}
		h.advance(750 * time.Millisecond)
		if r := h.sweep(); r.TimedOut != 0 {
			h.Fatalf("too early: %+v", r)
		}
		h.advance(250 * time.Millisecond)
		h.sweep()
		h.wantState("t1", tracker.Failed, tracker.CancelTimeout)
	})
}

// However much is overdue, one look at it is bounded.
func TestALookAtWhatIsOverdueIsBounded(t *testing.T) {
	t.Parallel()
	contract(t, func(h *harness) {
		key, clock := "lubdub:{0}:timers", "lubdub:{0}:clock"
		var many []redis.Z
		for i := range 700 {
			many = append(many, redis.Z{Score: float64(i + 1), Member: fmt.Sprintf("s:acme/prod/t%03d#1.abcd", i)})
		}
		if err := h.store.Client.ZAdd(h.ctx, key, many...).Err(); err != nil {
			h.Fatal(err)
		}
		reply, err := h.store.Client.Eval(h.ctx, h.store.Scripts.Get("find").Source, []string{clock, key}, "L", 0, 0, 500).Slice()
		if err != nil || len(reply[2].([]any)) != 500 {
			h.Fatalf("%d found: %v", len(reply[2].([]any)), err)
		}
	})
}

// A task stands in the list of its state and in no other: the counts, which are read from the lists, are exact.
func TestATaskIsInOneList(t *testing.T) {
	t.Parallel()
	contract(t, func(h *harness) {
		a := h.create(func(n *tracker.NewTask) { n.TaskID, n.RunID = "t1", "r1" }).Envelope.Attempt
		want := func(state tracker.State) {
			h.Helper()
			run, err := h.Run(h.ctx, scope, "r1")
			if err != nil || run.Total != 1 || run.Counts[state] != 1 {
				h.Fatalf("%+v %v", run, err)
			}
			for _, s := range tracker.States {
				page, err := h.List(h.ctx, tracker.TaskFilter{Scope: scope, State: s})
				if err != nil || (page.Total == 1) != (s == state) || page.Total > 1 {
					h.Fatalf("%s: %d are counted %s: %v", state, page.Total, s, err)
				}
			}
		}
		want(tracker.Dispatched)
		if err := h.beat(a, "").Err; err != nil {
			h.Fatal(err)
		}
		want(tracker.Running)
		if _, err := h.Complete(h.ctx, a, tracker.Completion{Outcome: tracker.Succeeded}); err != nil {
			h.Fatal(err)
		}
		want(tracker.Succeeded)
	})
}

// Claims that wait together are served by one look, and each gets only what its own worker can run.
func TestClaimsThatWaitTogetherGetTheirOwnTypes(t *testing.T) {
	t.Parallel()
	claims(t, func(c *crew) {
		c.hire("w1")
		c.hire("w2", func(n *tracker.NewWorker) { n.Types = []string{"y"} })
		ctx, cancel := context.WithCancel(c.ctx)
		defer cancel()
		first := c.await(ctx, c.Tracker, "w1", 1)
		c.waiting(1)
		second := c.await(ctx, c.Tracker, "w2", 1)
		c.waiting(2)
		c.queue("for-y", "y")
		c.wantIDs(<-second, "for-y")
		c.queue("for-x", "x")
		c.wantIDs(<-first, "for-x")
	})
}
