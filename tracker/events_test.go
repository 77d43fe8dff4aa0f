package tracker_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lubdub-io/lubdub/internal/redistest"
	"github.com/lubdub-io/lubdub/tracker"
)

// storedEvent is one event as it stands in a shard's stream.
type storedEvent struct {
	Type    string
	AtMs    int64 // wall time of the script that wrote it
	Subject string
	Attempt int
	Run     string // "": the task's own
	Queue   string
	Kind    string // the task's type
	Worker  string
	Machine string
	By      string
	Data    struct {
		Reason          tracker.Reason
		NextAttemptAtMs int64
	}
}

// eventFields are those of every event, in this order, so that a stream keeps their names once for many.
var eventFields = []string{"type", "time", "scope", "subject", "attempt", "run", "queue", "kind", "worker", "machine", "by", "data"}

// storedEvents reads the streams of all shards, one after the other.
func storedEvents(t testing.TB, c *redis.Client, shards int) (events []storedEvent) {
	t.Helper()
	for shard := range shards {
		entries, err := c.XRange(context.Background(), fmt.Sprintf("lubdub:{%d}:events", shard), "-", "+").Result()
		if err != nil {
			t.Fatal(err)
		}
		for _, entry := range entries {
			field := func(name string) string { s, _ := entry.Values[name].(string); return s }
			e := storedEvent{Type: field("type"), Subject: field("subject"), Run: field("run"), Queue: field("queue"),
				Kind: field("kind"), Worker: field("worker"), Machine: field("machine"), By: field("by")}
			e.AtMs, _ = strconv.ParseInt(field("time"), 10, 64)
			e.Attempt, _ = strconv.Atoi(field("attempt"))
			if data := field("data"); data != "" {
				if err := json.Unmarshal([]byte(data), &e.Data); err != nil {
					t.Fatalf("%s: %q: %v", e.Type, data, err)
				}
			}
			events = append(events, e)
		}
	}
	return events
}

// Whoever filters or groups events needs no second read: each says what it is about, as far as its script knows.
func TestEventsSayWhatTheyAreAbout(t *testing.T) {
	t.Parallel()
	claims(t, func(c *crew) {
		c.hire("w1")
		w1 := c.ids["w1"]
		c.queue("t1", "x", func(n *tracker.NewTask) { n.RunID = "nightly" })
		a := c.claim("w1", 1)[0].Attempt
		if _, err := c.Start(c.ctx, a, tracker.Report{}); err != nil {
			c.Fatal(err)
		}
		pushed := c.running(func(n *tracker.NewTask) { n.TaskID = "t2" })
		if _, err := c.Complete(c.ctx, pushed, tracker.Completion{Outcome: tracker.Succeeded}); err != nil {
			c.Fatal(err)
		}
		c.advance(31 * time.Second)
		for range 3 {
			c.sweep()
		}
		const swept = "swp_test"
		t1 := storedEvent{Subject: "t1", Run: "nightly", Queue: "q", Kind: "x"}
		by := func(e storedEvent, kind string, attempt int, worker, actor string) storedEvent {
			e.Type, e.Attempt, e.Worker, e.By = kind, attempt, worker, actor
			return e
		}
		hired := storedEvent{Subject: w1, Queue: "q", Worker: w1, Machine: "host-w1"}
		machine := storedEvent{Subject: "host-w1", Queue: "q", Worker: w1, Machine: "host-w1"}
		want := []storedEvent{
			by(t1, "task.created", 0, "", ""), by(t1, "task.dispatched", 1, w1, ""), by(t1, "task.started", 1, w1, ""),
			by(t1, "task.retrying", 1, w1, swept),
			by(storedEvent{Subject: "t2"}, "task.created", 1, "", ""), by(storedEvent{Subject: "t2"}, "task.dispatched", 1, "", ""),
			by(storedEvent{Subject: "t2"}, "task.started", 1, "w1", ""), by(storedEvent{Subject: "t2"}, "task.succeeded", 1, "w1", ""),
			by(hired, "worker.registered", 0, w1, ""), by(hired, "worker.offline", 0, w1, swept), by(hired, "worker.recovered", 0, w1, ""),
			by(machine, "machine.online", 0, w1, ""), by(machine, "machine.offline", 0, w1, swept),
		}
		for range c.Shards() {
			want = append(want, storedEvent{Type: "system.shard_started"})
		}
		for _, e := range storedEvents(c, c.store.Client, c.Shards()) {
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
		for shard := range c.Shards() {
			entries, err := c.store.Client.Do(c.ctx, "xrange", fmt.Sprintf("lubdub:{%d}:events", shard), "-", "+").Slice()
			if err != nil {
				c.Fatal(err)
			}
			for _, entry := range entries {
				var names []string
				for i, word := range entry.([]any)[1].([]any) {
					if i%2 == 0 {
						names = append(names, word.(string))
					}
				}
				if !slices.Equal(names, eventFields) {
					c.Errorf("an event has the fields %v", names)
				}
			}
		}
	})
}

// A stream keeps as many events as the setting says, and no more than a hundred besides: Redis drops whole nodes.
func TestEventsAreTrimmed(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, s *redistest.Store) {
		const kept = 150
		h := newHarness(t, s, func(o *tracker.Options) { o.Shards, o.EventsPerShard = 1, kept })
		batch := make([]tracker.NewTask, 200) // two events each
		for i := range batch {
			batch[i] = tracker.NewTask{Scope: scope}
			if err := batch[i].Validate(s.Clock.Now()); err != nil {
				t.Fatal(err)
			}
		}
		for _, r := range h.CreateBatch(h.ctx, batch) {
			if r.Err != nil {
				t.Fatal(r.Err)
			}
		}
		if n := s.Client.XLen(h.ctx, "lubdub:{0}:events").Val(); n < kept || n >= kept+100 {
			t.Errorf("%d of %d events are kept, want about %d", n, 2*len(batch), kept)
		}
	})
}
