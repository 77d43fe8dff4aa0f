package tracker_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/lubdub-io/lubdub/internal/redistest"
	"github.com/lubdub-io/lubdub/tracker"
	"github.com/lubdub-io/lubdub/tracker/model"
	"github.com/lubdub-io/lubdub/tracker/trackertest"
)

// eventFields are the fields of an event, in this order, so that a stream stores their names once for many events; plainFields are those
// of an event without known values for the others.
var (
	eventFields = []string{
		"type", "time", "scope", "subject", "attempt", "run", "queue", "kind", "worker", "machine", "by", "trace", "data"}
	plainFields = []string{"type", "time", "scope", "subject", "attempt", "worker", "by", "data"}
)

// Filtering and grouping events needs no second read: each contains what it is about, as far as its script knows.
func TestEventsIncludeTheirContext(t *testing.T) {
	t.Parallel()
	trackertest.Claims(t, func(c *trackertest.Fleet) {
		c.Hire("w1")
		w1 := c.IDs["w1"]
		c.MustQueue("t1", "x", func(n *model.NewTask) { n.RunID = "nightly" })
		a := c.MustClaim("w1", 1)[0].Attempt
		if _, err := c.Beats.Start(c.Ctx, a, model.Report{}); err != nil {
			c.Fatal(err)
		}
		pushed := c.Running(func(n *model.NewTask) { n.TaskID = "t2" })
		if _, err := c.Beats.Complete(c.Ctx, pushed, model.Completion{Outcome: model.Succeeded}); err != nil {
			c.Fatal(err)
		}
		c.Advance(31 * time.Second)
		for range 3 {
			c.MustSweep()
		}
		const swept = "swp_test"
		t1 := trackertest.StoredEvent{Subject: "t1", Run: "nightly", Queue: "q", Kind: "x"}
		by := func(e trackertest.StoredEvent, kind string, attempt int, worker, actor string) trackertest.StoredEvent {
			e.Type, e.Attempt, e.Worker, e.By = kind, attempt, worker, actor
			return e
		}
		hired := trackertest.StoredEvent{Subject: w1, Queue: "q", Worker: w1, Machine: "host-w1"}
		machine := trackertest.StoredEvent{Subject: "host-w1", Queue: "q", Worker: w1, Machine: "host-w1"}
		want := []trackertest.StoredEvent{
			by(t1, "task.created", 0, "", ""), by(t1, "task.dispatched", 1, w1, w1), by(t1, "task.started", 1, w1, ""),
			by(t1, "task.retrying", 1, w1, swept),
			by(trackertest.StoredEvent{Subject: "t2"}, "task.created", 1, "", ""), by(trackertest.StoredEvent{Subject: "t2"}, "task.dispatched", 1,
				"", ""),
			by(trackertest.StoredEvent{Subject: "t2"}, "task.started", 1, "w1", ""), by(trackertest.StoredEvent{Subject: "t2"}, "task.succeeded", 1,
				"w1", ""),
			by(hired, "worker.registered", 0, w1, ""), by(hired, "worker.offline", 0, w1, swept), by(hired, "worker.tasks_recovered", 0, w1, swept),
			by(hired, "worker.recovered", 0, w1, swept),
			by(machine, "machine.online", 0, w1, ""), by(machine, "machine.offline", 0, w1, swept),
		}
		for range c.Tracker.Store.Shards() {
			want = append(want, trackertest.StoredEvent{Type: "system.shard_started"})
		}
		for _, e := range trackertest.StoredEvents(c, c.Store.Client, c.Tracker.Store.Shards()) {
			e.AtMs, e.Data.Reason, e.Data.NextAttemptAtMs = 0, "", 0
			i := slices.Index(want, e)
			if i < 0 {
				c.Errorf("not expected: %+v", e)
				continue
			}
			want = slices.Delete(want, i, i+1)
		}
		for _, e := range want {
			c.Errorf("missing: %+v", e)
		}
		for shard := range c.Tracker.Store.Shards() {
			entries, err := c.Store.Client.Do(c.Ctx, "xrange", fmt.Sprintf("lubdub:{%d}:events", shard), "-", "+").Slice()
			if err != nil {
				c.Fatal(err)
			}
			for _, entry := range entries {
				var names []string
				want, words := plainFields, entry.([]any)[1].([]any)
				for i := 0; i+1 < len(words); i += 2 {
					names = append(names, words[i].(string))
					if words[i+1] != "" && !slices.Contains(plainFields, names[len(names)-1]) {
						want = eventFields
					}
				}
				if !slices.Equal(names, want) {
					c.Errorf("an event has the fields %v, want %v", names, want)
				}
			}
		}
	})
}

// Without a sweeper a stream keeps four times as many events as the setting states, and at most a hundred more: Redis drops whole nodes.
func TestEventsAreTrimmed(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, s *redistest.Store) {
		const retained = 150
		h := trackertest.NewHarness(t, s, func(o *tracker.Options) { o.Shards, o.EventsPerShard = 1, retained })
		batch := make([]model.NewTask, 200) // two events each
		for i := range batch {
			batch[i] = model.NewTask{Scope: trackertest.Scope}
			if err := batch[i].Validate(s.Clock.Now()); err != nil {
				t.Fatal(err)
			}
		}
		for range 3 {
			for _, r := range h.Tasks.CreateBatch(h.Ctx, batch) {
				if r.Err != nil {
					t.Fatal(r.Err)
				}
			}
		}
		if n := s.Client.XLen(h.Ctx, "lubdub:{0}:events").Val(); n < 4*retained || n >= 4*retained+100 {
			t.Errorf("%d of %d events are kept, want about %d", n, 6*len(batch), 4*retained)
		}
	})
}
