package tracker_test

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/lubdub-io/lubdub/tracker/beats"
	"github.com/lubdub-io/lubdub/tracker/model"
	"github.com/lubdub-io/lubdub/tracker/trackertest"
)

// storedBytes returns the bytes of a task's documents and history, and the size in its record.
func storedBytes(h *trackertest.Harness, id string) (stored, recorded int64, class string) {
	h.Helper()
	for shard := range h.Tracker.Store.Shards() {
		prefix := fmt.Sprintf("lubdub:{%d}:", shard)
		doc, err := h.Store.Client.HGetAll(h.Ctx, prefix+"doc:"+trackertest.Scope.String()+"/"+id).Result()
		if err != nil {
			h.Fatal(err)
		}
		for _, v := range doc {
			stored += int64(len(v))
		}
		history, err := h.Store.Client.LRange(h.Ctx, prefix+"history:"+trackertest.Scope.String()+"/"+id, 0, -1).Result()
		if err != nil {
			h.Fatal(err)
		}
		for _, v := range history {
			stored += int64(len(v))
		}
		if z := h.Store.Client.HGet(h.Ctx, prefix+"task:"+trackertest.Scope.String()+"/"+id, "z").Val(); z != "" {
			class = z[:1]
			recorded, _ = strconv.ParseInt(z[1:], 10, 64)
		}
	}
	return stored, recorded, class
}

// A task's recorded size stays correct, whatever happens to the task, and is deleted with it.
func TestRecordedTaskSizeStaysCorrect(t *testing.T) {
	t.Parallel()
	trackertest.Claims(t, func(c *trackertest.Fleet) {
		c.Hire("w1")
		random := rand.New(rand.NewPCG(1, 2))
		text := func(most int) []byte {
			return []byte(`"` + strings.Repeat("x", random.IntN(most+1)) + `"`)
		}
		check := func(id, when string) {
			c.Helper()
			stored, recorded, class := storedBytes(c.Harness, id)
			if d := stored - recorded; d > 2500 || d < -2500 {
				c.Fatalf("%s, %s: takes %d bytes, and is recorded with %d", id, when, stored, recorded)
			}
			entry := "~acme/" + class + "/prod/" + id
			if n := strings.Count(strings.Join(c.Sizes(), "\n")+"\n", "/prod/"+id+"\n"); n > 1 || (n == 1) != (recorded > 1024) || n == 1 &&
				!strings.Contains(strings.Join(c.Sizes(), "\n")+"\n", entry+"\n") {
				c.Fatalf("%s, %s: listed %d times, recorded with %d: %v", id, when, n, recorded, c.Sizes())
			}
		}
		for i := range 8 {
			id := fmt.Sprintf("t%d", i)
			c.MustCreate(func(n *model.NewTask) {
				n.TaskID, n.Queue, n.Type, n.HeartbeatTimeout = id, "q", "x", 0
				n.Payload = text(20_000 * (i % 3))
				n.Retry = &model.RetryPolicy{MaxAttempts: 6, MaxLosses: 3, Multiplier: 1, MaxBackoff: time.Second}
			})
			check(id, "created")
			for try := range 6 {
				got := c.MustClaim("w1", 1)
				if len(got) != 1 {
					c.Fatalf("%s: claimed %d", id, len(got))
				}
				a := got[0].Attempt
				for range random.IntN(3) {
					b := &beats.Beat{Attempt: a, Details: string(text(600 + 8000*(i%2)))}
					if c.Beats.Beat(b); b.Err != nil {
						c.Fatal(b.Err)
					}
					check(id, "with details")
				}
				done := model.Completion{Outcome: model.Failed, Category: "TRANSIENT", Retryable: true, Error: text(9000), Metrics: text(3000)}
				if try == 5 && i%2 == 0 {
					done = model.Completion{Outcome: model.Succeeded, Output: text(90_000), Metrics: text(100)}
				}
				if _, err := c.Beats.Complete(c.Ctx, a, done); err != nil {
					c.Fatal(err)
				}
				check(id, fmt.Sprintf("after attempt %d", try+1))
			}
			if i%2 == 1 { // it has failed: request one more attempt
				if _, err := c.Tasks.NextAttempt(c.Ctx, trackertest.Scope, id, 6); err != nil {
					c.Fatal(err)
				}
				check(id, "queued again")
				if _, err := c.Tasks.Cancel(c.Ctx, trackertest.Scope, id, model.CancelRequest{}); err != nil {
					c.Fatal(err)
				}
			}
		}
		c.Store.Clock.Advance(model.DefaultFinishedRetention + time.Hour)
		c.MustTick()
		c.MustSweep()
		if left := c.Sizes(); len(left) > 0 {
			c.Fatalf("left behind: %v", left)
		}
	})
}
