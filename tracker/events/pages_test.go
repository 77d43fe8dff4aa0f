package events_test

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lubdub-io/lubdub/internal/redistest"
	"github.com/lubdub-io/lubdub/tracker"
	"github.com/lubdub-io/lubdub/tracker/events"
	"github.com/lubdub-io/lubdub/tracker/model"
	"github.com/lubdub-io/lubdub/tracker/trackertest"
)

func stream(shard int) string { return fmt.Sprintf("lubdub:{%d}:events", shard) }

// storedIDs returns the IDs of all events, by shard, in the order of the streams.
func storedIDs(t testing.TB, c redis.Cmdable, shards int) (ids [][]string) {
	t.Helper()
	for shard := range shards {
		entries, err := c.XRange(context.Background(), stream(shard), "-", "+").Result()
		if err != nil {
			t.Fatal(err)
		}
		var of []string
		for _, e := range entries {
			of = append(of, fmt.Sprintf("evt_%03x_%s", shard, strings.Replace(e.ID, "-", "_", 1)))
		}
		ids = append(ids, of)
	}
	return ids
}

// pages follows a query to its end.
func pages(t testing.TB, tr *tracker.Tracker, q events.Query) (all []*events.Event, gaps []*events.Gap, next string) {
	t.Helper()
	for more := true; ; {
		before := q.After
		p, err := tr.Events.List(context.Background(), q)
		if err != nil {
			t.Fatal(err)
		}
		if len(p.Events) > 0 && !more {
			t.Fatalf("%d events behind a page that knew of no more", len(p.Events))
		}
		more = p.More
		if p.Gap != nil {
			gaps = append(gaps, p.Gap)
		}
		if p.Next == "" {
			t.Fatal("a page without a next")
		}
		if p.More && p.Next == before {
			t.Fatalf("a page of %d events announces more, and its cursor leads to itself", len(p.Events))
		}
		if len(p.Events) == 0 && !more {
			return all, gaps, p.Next
		}
		all, q.After = append(all, p.Events...), p.Next
	}
}

func idsOf(all []*events.Event) (ids []string) {
	for _, e := range all {
		ids = append(ids, e.ID())
	}
	return ids
}

// happenings causes events of all kinds.
func happenings(c *trackertest.Fleet) {
	c.Hire("w1", func(n *model.NewWorker) { n.Version = "1.2.3" })
	for i := range 20 {
		c.MustQueue(fmt.Sprint("t", i), "x", func(n *model.NewTask) { n.RunID = "nightly" })
	}
	for i, e := range c.MustClaim("w1", 10) {
		if _, err := c.Beats.Start(c.Ctx, e.Attempt, model.Report{}); err != nil {
			c.Fatal(err)
		}
		if i%2 == 0 {
			if _, err := c.Beats.Complete(c.Ctx, e.Attempt, model.Completion{Outcome: model.Succeeded}); err != nil {
				c.Fatal(err)
			}
		}
	}
	c.Running(func(n *model.NewTask) { n.TaskID = "pushed" })
	c.Advance(31 * time.Second)
	for range 3 {
		c.MustSweep()
	}
}

// Pages of any size contain everything in the streams once, each shard's events in order, and the same backwards.
func TestPagesReturnEverything(t *testing.T) {
	t.Parallel()
	trackertest.Claims(t, func(c *trackertest.Fleet) {
		happenings(c)
		want := storedIDs(c, c.Store.Client, c.Tracker.Store.Shards())
		for _, size := range []int{1, 7, 100} {
			for _, back := range []bool{false, true} {
				all, gaps, _ := pages(c, c.Tracker, events.Query{Size: size, Back: back})
				if len(gaps) > 0 {
					c.Errorf("a gap where nothing is missing: %+v", gaps[0])
				}
				got := make([][]string, c.Tracker.Store.Shards())
				for _, e := range all {
					got[e.Shard] = append(got[e.Shard], e.ID())
				}
				for shard := range got {
					if back {
						slices.Reverse(got[shard])
					}
					if !slices.Equal(got[shard], want[shard]) {
						c.Errorf("pages of %d, back %v: shard %d has %d events, %d were listed", size, back, shard, len(want[shard]), len(got[shard]))
					}
				}
				if back {
					slices.Reverse(all)
				}
				if !slices.IsSortedFunc(all, func(a, b *events.Event) int { return int(a.Ms - b.Ms) }) {
					c.Errorf("pages of %d, back %v are not in the order of time", size, back)
				}
			}
		}
	})
}

// A page reads a limited number of events. When matching ones are behind these, the page is empty, and states that there may be more.
func TestEventsBehindManyOthersAreFound(t *testing.T) {
	t.Parallel()
	const others = 5_050
	s := redistest.Real(t)
	h := trackertest.NewHarness(t, s, func(o *tracker.Options) { o.Shards, o.RedisTimeout = 1, time.Minute })
	add := func(p redis.Pipeliner, subject string) {
		p.XAdd(h.Ctx, &redis.XAddArgs{Stream: stream(0),
			Values: []any{"type", "task.created", "time", "1", "scope", "acme/prod", "subject", subject}})
	}
	for _, crowd := range []bool{false, true, false} { // one is before them, and one behind
		if _, err := s.Client.Pipelined(h.Ctx, func(p redis.Pipeliner) error {
			if !crowd {
				add(p, "sought")
			}
			for i := range others {
				if crowd {
					add(p, fmt.Sprint(i))
				}
			}
			return nil
		}); err != nil {
			t.Fatal(err)
		}
	}
	for _, back := range []bool{false, true} {
		q := events.Query{Filter: events.Filter{Tenant: "acme", Workspace: "prod", Subject: "sought"}, Size: 100, Back: back}
		first, err := h.Tracker.Events.List(h.Ctx, q)
		if err != nil || len(first.Events) != 1 || !first.More {
			t.Fatalf("back %v: %+v %v", back, first, err)
		}
		if all, _, _ := pages(t, h.Tracker, q); len(all) != 2 {
			t.Errorf("back %v: %d of 2 are found", back, len(all))
		}
	}
}

// inOrder orders events by time, and within a shard by their stream.
func inOrder(a, b *events.Event) int {
	return cmp.Or(cmp.Compare(a.Ms, b.Ms), cmp.Compare(a.Shard, b.Shard), cmp.Compare(a.At.Ms, b.At.Ms), cmp.Compare(a.At.Seq, b.At.Seq))
}

// Every filter returns exactly its matches, page by page, forwards and backwards.
func TestEventsAreFiltered(t *testing.T) {
	t.Parallel()
	trackertest.Claims(t, func(c *trackertest.Fleet) {
		happenings(c)
		w1 := c.IDs["w1"]
		all, _, _ := pages(c, c.Tracker, events.Query{Size: 100})
		slices.SortFunc(all, inOrder)
		for name, test := range map[string]struct {
			filter events.Filter
			wanted func(e *events.Event) bool
		}{
			"tenant": {events.Filter{Tenant: "acme"}, func(e *events.Event) bool { return e.Scope.Tenant == "acme" }},
			"workspace": {events.Filter{Tenant: "acme", Workspace: "prod"},
				func(e *events.Event) bool { return e.Scope == trackertest.Scope }},
			"elsewhere": {events.Filter{Tenant: "acme", Workspace: "other"}, func(*events.Event) bool { return false }},
			"type":      {events.Filter{Types: []string{"task.created"}}, func(e *events.Event) bool { return e.Type == "task.created" }},
			"types": {events.Filter{Types: []string{"task.retrying", "worker.*"}}, func(e *events.Event) bool {
				return e.Type == "task.retrying" || strings.HasPrefix(e.Type, "worker.")
			}},
			"subject": {events.Filter{Tenant: "acme", Workspace: "prod", Subject: "t3"},
				func(e *events.Event) bool { return e.Subject == "t3" }},
			"worker's own": {events.Filter{Tenant: "acme", Workspace: "prod", Subject: w1},
				func(e *events.Event) bool { return e.Subject == w1 }},
			"machine's own": {events.Filter{Tenant: "acme", Workspace: "prod", Subject: "host-w1"},
				func(e *events.Event) bool { return e.Subject == "host-w1" }},
			"run":     {events.Filter{RunID: "nightly"}, func(e *events.Event) bool { return e.RunID == "nightly" }},
			"own run": {events.Filter{RunID: "run_pushed"}, func(e *events.Event) bool { return e.Subject == "pushed" }},
			"queue":   {events.Filter{Queue: "q"}, func(e *events.Event) bool { return e.Queue == "q" }},
			"kind":    {events.Filter{TaskType: "x"}, func(e *events.Event) bool { return e.TaskType == "x" }},
			"worker":  {events.Filter{WorkerID: w1}, func(e *events.Event) bool { return e.WorkerID == w1 }},
			"machine": {events.Filter{MachineID: "host-w1"},
				func(e *events.Event) bool { return e.WorkerID == w1 || e.Subject == "host-w1" }},
		} {
			var want []string
			for _, e := range all {
				if test.wanted(e) {
					want = append(want, e.ID())
				}
			}
			if len(want) == 0 && name != "elsewhere" {
				c.Errorf("%s: there is nothing to find", name)
			}
			for _, size := range []int{1, 3, 100} {
				for _, back := range []bool{false, true} {
					got, _, _ := pages(c, c.Tracker, events.Query{Filter: test.filter, Size: size, Back: back})
					if slices.SortFunc(got, inOrder); !slices.Equal(idsOf(got), want) {
						c.Errorf("%s by %d, back %v: %d events, want %d", name, size, back, len(got), len(want))
					}
				}
			}
		}
		_, err := c.Tracker.Events.List(c.Ctx, events.Query{Filter: events.Filter{Types: []string{"task.made"}}, Size: 1})
		c.WantCode(err, model.Invalid)
		if !strings.Contains(err.Error(), "task.created, task.dispatched") {
			c.Errorf("an unknown type is refused without the list: %v", err)
		}
	})
}

// An event contains its actor and subject without a second read, with the worker's machine and version.
func TestEventsOnTheWire(t *testing.T) {
	t.Parallel()
	trackertest.Claims(t, func(c *trackertest.Fleet) {
		happenings(c)
		ended := events.Filter{Types: []string{"task.retrying", "worker.offline"}}
		all, _, _ := pages(c, c.Tracker, events.Query{Size: 100, Filter: ended})
		if len(all) < 2 {
			c.Fatalf("%d events", len(all))
		}
		for _, e := range all {
			text := string(e.AppendJSON(nil))
			var is map[string]any
			if err := json.Unmarshal([]byte(text), &is); err != nil {
				c.Fatalf("%s: %v", text, err)
			}
			want := map[string]any{"id": e.ID(), "type": e.Type, "tenantId": "acme", "workspaceId": "prod", "subject": e.Subject, "queue": "q",
				"workerId": c.IDs["w1"], "machineId": "host-w1", "version": "1.2.3"}
			if e.Type == "task.retrying" {
				want["attempt"], want["runId"], want["taskType"] = 1.0, "nightly", "x"
				want["cause"], want["by"] = "WORKER_LOST", e.By
			} else {
				want["cause"], want["by"] = "HEARTBEAT_TIMEOUT", "swp_test"
				if is["data"].(map[string]any)["lastHeartbeatAt"] != "2026-01-15T10:00:00.000Z" {
					c.Errorf("%s has no time of the last heartbeat", text)
				}
			}
			if at, err := time.Parse(time.RFC3339, is["time"].(string)); err != nil || at.UnixMilli() != e.Ms {
				c.Errorf("%s has the time %v: %v", text, is["time"], err)
			}
			for name, value := range want {
				if is[name] != value {
					c.Errorf("%s: %s is %v, want %v", text, name, is[name], value)
				}
			}
		}
	})
}

// A reader that continues from a cursor whose event was trimmed gets a gap; one whose event still exists misses nothing.
func TestAGapIsReported(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, s *redistest.Store) {
		h := trackertest.NewHarness(t, s, func(o *tracker.Options) { o.Shards = 1 })
		h.MustCreate()
		p, err := h.Tracker.Events.List(h.Ctx, events.Query{Size: 2})
		if err != nil || len(p.Events) != 2 {
			t.Fatalf("%+v, %v", p, err)
		}
		seen := p.Events[1]
		for range 10 {
			h.MustCreate()
		}
		go1 := func(after string) ([]*events.Event, []*events.Gap) {
			all, gaps, _ := pages(t, h.Tracker, events.Query{After: after, Size: 5})
			return all, gaps
		}
		stored := storedIDs(t, s.Client, 1)[0]
		if all, gaps := go1(p.Next); len(gaps) > 0 || !slices.Equal(idsOf(all), stored[2:]) {
			t.Errorf("%d events and gaps %v, want %d and none", len(all), gaps, len(stored)-2)
		}
		early := time.UnixMilli(int64(seen.At.Ms) - 1000).UTC().Format(time.RFC3339Nano)
		if all, gaps := go1(early); len(gaps) > 0 || len(all) != len(stored) {
			t.Errorf("from before the first event: %d events and gaps %v, want %d and none", len(all), gaps, len(stored))
		}
		if err := s.Client.XTrimMaxLen(h.Ctx, stream(0), 5).Err(); err != nil {
			t.Fatal(err)
		}
		left := storedIDs(t, s.Client, 1)[0]
		all, gaps := go1(p.Next)
		if len(gaps) != 1 || !slices.Equal(gaps[0].Shards, []int{0}) || gaps[0].From != seen.At.Time() || gaps[0].To != all[0].At.Time() {
			t.Errorf("the gap is %+v", gaps)
		}
		if !slices.Equal(idsOf(all), left) {
			t.Errorf("%d events behind the gap, want %d", len(all), len(left))
		}
		if _, gaps := go1(early); len(gaps) != 1 {
			t.Errorf("from a time before the first event that is left: gaps %v", gaps)
		}
		if _, gaps, _ := pages(t, h.Tracker, events.Query{Size: 5}); len(gaps) > 0 {
			t.Errorf("from the first event that is left: a gap %+v", gaps[0])
		}
	})
}

// When the store has lost writes that a reader had seen, the reader gets everything that is left: it misses nothing, and an event that
// comes twice has the same ID.
func TestLostWritesHideNothing(t *testing.T) {
	t.Parallel()
	for name, rest := range map[string][]string{
		"older entries only": {"1-0", "2-0"},
		"a gap":              {"1-0", "2-0", "9-0"},
		"the same id":        {"1-0", "2-0", "5-0", "9-0"},
	} {
		t.Run(name, func(t *testing.T) {
			redistest.Each(t, func(t *testing.T, s *redistest.Store) {
				h := trackertest.NewHarness(t, s, func(o *tracker.Options) { o.Shards = 1 })
				write := func(what string, ids ...string) {
					if err := s.Client.Del(h.Ctx, stream(0)).Err(); err != nil {
						t.Fatal(err)
					}
					for _, id := range ids {
						subject := id
						if id == "5-0" {
							subject = what
						}
						if err := s.Client.XAdd(h.Ctx, &redis.XAddArgs{Stream: stream(0), ID: id,
							Values: []any{"type", "task.created", "time", "1", "scope", "a/b", "subject", subject}}).Err(); err != nil {
							t.Fatal(err)
						}
					}
				}
				write("before", "1-0", "2-0", "5-0")
				all, _, next := pages(t, h.Tracker, events.Query{Size: 2})
				if len(all) != 3 {
					t.Fatalf("%v", idsOf(all))
				}
				write("after", rest...)
				all, gaps, next := pages(t, h.Tracker, events.Query{Size: 2, After: next})
				if want := storedIDs(t, s.Client, 1)[0]; len(gaps) > 0 || !slices.Equal(idsOf(all), want) {
					t.Errorf("received %v, want %v; gaps %v", idsOf(all), want, gaps)
				}
				if all, _, _ := pages(t, h.Tracker, events.Query{Size: 2, After: next}); len(all) > 0 {
					t.Errorf("and again: %v", idsOf(all))
				}
			})
		})
	}
}

// "now" selects events from now on, a time those since then.
func TestAfterNowAndATime(t *testing.T) {
	t.Parallel()
	trackertest.Contract(t, func(h *trackertest.Harness) {
		h.MustCreate()
		p, err := h.Tracker.Events.List(h.Ctx, events.Query{Size: 100, After: "now"})
		if err != nil || len(p.Events) > 0 {
			t.Fatalf("%v, %v", p, err)
		}
		before, _, _ := pages(t, h.Tracker, events.Query{Size: 100})
		h.MustCreate(func(n *model.NewTask) { n.TaskID = "later" })
		all, _, _ := pages(t, h.Tracker, events.Query{Size: 100, After: p.Next})
		if len(all) != 2 || all[0].Subject != "later" {
			t.Errorf("after now: %v", idsOf(all))
		}
		newest := slices.MaxFunc(before, func(a, b *events.Event) int { return int(a.At.Ms) - int(b.At.Ms) })
		at := newest.At.Time().Format(time.RFC3339Nano)
		all, _, _ = pages(t, h.Tracker, events.Query{Size: 100, After: at})
		for _, e := range all {
			if e.At.Ms <= newest.At.Ms {
				t.Errorf("after %s: %s", at, e.ID())
			}
		}
		all, _, _ = pages(t, h.Tracker, events.Query{Size: 100, After: at, Back: true})
		for _, e := range all {
			if e.At.Ms >= newest.At.Ms {
				t.Errorf("back from %s: %s", at, e.ID())
			}
		}
	})
}
