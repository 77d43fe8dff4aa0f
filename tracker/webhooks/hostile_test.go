package webhooks_test

import (
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/lubdub-io/lubdub/tracker/trackertest"
)

// While events are read again from the beginning, since the store had lost writes, and one webhook is out of reach, the others receive
// nothing repeatedly.
func TestARepeatedRereadQueuesNothingTwice(t *testing.T) {
	t.Parallel()
	contract(t, func(h *hooked) {
		h.create("w", "task.created")
		h.create("x", "task.created")
		const tasks = 5
		for i := range tasks {
			h.MustCreate(named(fmt.Sprint("t", i)))
		}
		h.deliver()
		rewind := func() {
			for shard := range h.Tracker.Store.Shards() {
				h.Store.Client.HSet(h.Ctx, fmt.Sprintf("lubdub:{%d}:eventmarks", shard), "taken", "0-0", "mark", "0")
			}
		}
		rewind()
		var failing atomic.Bool
		failing.Store(true)
		trackertest.FailCalls(h.Tracker, "webhook_push", true, func(int) bool { return failing.Load() })
		for range 5 {
			if h.Sweeper.Deliver(h.Ctx) == nil {
				t.Fatal("nothing was lost")
			}
		}
		failing.Store(false)
		wants := func(each int) {
			t.Helper()
			h.deliver()
			for _, id := range []string{"w", "x"} {
				deliveries := map[string]int{}
				for _, d := range h.deliveries(id, "") {
					deliveries[d.Subject]++
				}
				for i := range tasks {
					if n := deliveries[fmt.Sprint("t", i)]; n != each {
						t.Errorf("%s received %d messages about t%d, want %d", id, n, i, each)
					}
				}
			}
		}
		wants(2) // once for each reading
		rewind() // a second one
		wants(3)
	})
}

// A webhook whose last try failed gets one delivery when its next turn begins, however many are due: it may hang, and occupy slots that
// others need.
func TestAWebhookThatFailsBeginsEachTurnWithOne(t *testing.T) {
	t.Parallel()
	contract(t, func(h *hooked) {
		h.create("w", "task.created")
		for i := range 40 {
			h.MustCreate(named(fmt.Sprint("t", i)))
		}
		h.always(500)
		h.deliver()
		h.Store.Clock.Advance(10 * time.Second) // all are due again
		var most atomic.Int64
		h.answers(func(string, post) (int, error) {
			for _, key := range h.Store.Client.Keys(h.Ctx, "*:hookflight:*").Val() {
				n := h.Store.Client.ZCard(h.Ctx, key).Val()
				for had := most.Load(); n > had && !most.CompareAndSwap(had, n); had = most.Load() {
				}
			}
			return 500, nil
		})
		if got := h.deliver(); len(got) != 40 || most.Load() != 1 {
			t.Errorf("%d tries, %d at once", len(got), most.Load())
		}
		h.always(200)
		h.Store.Clock.Advance(time.Hour)
		if h.deliver(); h.hook("w").Pending != 0 {
			t.Errorf("when it works again: %+v", h.hook("w"))
		}
	})
}

// A receiver controls its response, and so what an error quotes: neither fills Redis.
func TestStoredResponsesAreBounded(t *testing.T) {
	t.Parallel()
	contract(t, func(h *hooked) {
		h.create("w", "task.created")
		h.MustCreate()
		h.answers(func(string, post) (int, error) { return 0, errors.New(strings.Repeat("\x01", 1<<20)) })
		h.deliver()
		if d := h.deliveries("w", "")[0]; d.Answer == nil || len(d.Answer.Error) == 0 || len(d.Answer.Error) > 1<<10 {
			t.Errorf("kept: %.100v", d.Answer)
		}
	})
}
