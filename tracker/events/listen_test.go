package events_test

import (
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lubdub-io/lubdub/internal/redistest"
	"github.com/lubdub-io/lubdub/internal/testenv"
	"github.com/lubdub-io/lubdub/tracker"
	"github.com/lubdub-io/lubdub/tracker/events"
	"github.com/lubdub-io/lubdub/tracker/model"
	"github.com/lubdub-io/lubdub/tracker/trackertest"
)

// receive reads from a listener until it has n events, or an error.
func receive(t testing.TB, h *trackertest.Harness, l *events.Listener, n int) (messages []*events.Message, err error) {
	t.Helper()
	for count := 0; count < n; {
		got, err := l.Next(h.Ctx)
		messages = append(messages, got...)
		for _, g := range got {
			if g.Event != nil {
				count++
			}
		}
		if errors.Is(err, events.ErrLagged) {
			return messages, err
		}
		if err == nil && len(got) > 0 {
			continue
		}
		select {
		case <-l.Woken():
		case <-time.After(time.Minute):
			t.Fatalf("received %d of %d events within a minute: %v", count, n, err)
		}
	}
	return messages, nil
}

func messageIDs(messages []*events.Message) (ids []string) {
	for _, g := range messages {
		if g.Event != nil {
			ids = append(ids, g.Event.ID())
		}
	}
	return ids
}

func listen(t testing.TB, h *trackertest.Harness, f events.Filter, after string) *events.Listener {
	t.Helper()
	l, err := h.Tracker.Events.Follow(h.Ctx, f, "after", after)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(l.Close)
	return l
}

// A listener that does not keep up gets an error once its queue is full, and misses nothing when it continues from its cursor.
func TestAListenerThatDoesNotKeepUp(t *testing.T) {
	testenv.OnlyAll(t)
	t.Parallel()
	redistest.Each(t, func(t *testing.T, s *redistest.Store) {
		h := trackertest.NewHarness(t, s, func(o *tracker.Options) { o.Shards, o.RedisTimeout = 1, time.Minute }) // it creates very many tasks
		slow := listen(t, h, events.Filter{Types: []string{"task.created"}}, "")
		const tasks = 5000
		h.FillQueue(tasks, func(int, *model.NewTask) {})
		quick := listen(t, h, events.Filter{Types: []string{"task.dispatched"}}, "") // what it receives was sent to all listeners before
		h.MustCreate()
		if _, err := receive(t, h, quick, 1); err != nil {
			t.Fatal(err)
		}
		messages, err := receive(t, h, slow, tasks)
		if !errors.Is(err, events.ErrLagged) || len(messages) == 0 {
			t.Fatalf("%d events, %v", len(messages), err)
		}
		rest, err := receive(t, h, listen(t, h, events.Filter{Types: []string{"task.created"}}, slow.Cursor()), tasks-len(messages))
		if err != nil {
			t.Fatal(err)
		}
		all, _, _ := pages(t, h.Tracker, events.Query{Size: 100, Filter: events.Filter{Types: []string{"task.created"}}})
		got, want := messageIDs(append(messages, rest...)), idsOf(all)
		slices.Sort(got)
		slices.Sort(want)
		if !slices.Equal(got, want) {
			t.Errorf("received %d events in two parts, want %d", len(got), len(want))
		}
	})
}

// While listeners come and go and events continue, each receives everything behind its cursor, once.
func TestListenersComeWhileItHappens(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, s *redistest.Store) {
		h := trackertest.NewHarness(t, s)
		first := listen(t, h, events.Filter{}, "")
		begin := first.Cursor()
		const tasks, parts = 400, 8
		done := make(chan struct{})
		go func() {
			defer close(done)
			for range parts {
				h.FillQueue(tasks/parts, func(int, *model.NewTask) {})
			}
		}()
		received := make([][]string, 6)
		for i := range received {
			messages, err := receive(t, h, listen(t, h, events.Filter{}, begin), tasks)
			if err != nil {
				t.Fatal(err)
			}
			received[i] = messageIDs(messages)
		}
		<-done
		messages, err := receive(t, h, first, tasks)
		if err != nil {
			t.Fatal(err)
		}
		want := messageIDs(messages)
		slices.Sort(want)
		for i, got := range received {
			if slices.Sort(got); !slices.Equal(got, want) {
				t.Errorf("listener %d received %d events, want %d", i, len(got), len(want))
			}
		}
	})
}

// The store is read once for any number of listeners, and not at all without any.
func TestTheStoreIsReadOnceForAll(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, s *redistest.Store) {
		h := trackertest.NewHarness(t, s)
		count := trackertest.CountScripts(h.Tracker)
		var all []*events.Listener
		for range 50 {
			l, err := h.Tracker.Events.Follow(h.Ctx, events.Filter{}, "after", "")
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, l)
		}
		h.MustCreate()
		var first []*events.Message
		for i, l := range all {
			messages, err := receive(t, h, l, 2)
			if err != nil {
				t.Fatal(err)
			}
			if i == 0 {
				first = messages
			}
			for j := range messages {
				if messages[j] != first[j] {
					t.Fatalf("listener %d received other messages", i)
				}
			}
			l.Close()
		}
		ended := make(chan struct{})
		go func() { h.Tracker.Events.AwaitNoReader(); close(ended) }() // the last read may still be running
		select {
		case <-ended:
		case <-time.After(time.Minute):
			t.Fatal("a reader still runs without a listener")
		}
		if count()["read"] == 0 {
			t.Error("no reader has run")
		}
	})
}

// Listeners continue when the store has lost writes, even when other events have the IDs of the lost ones; events that were kept are not
// sent again.
func TestListenersOutliveLostWrites(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, s *redistest.Store) {
		h := trackertest.NewHarness(t, s, func(o *tracker.Options) { o.Shards = 1 })
		add := func(subject, id string) {
			if err := s.Client.XAdd(h.Ctx, &redis.XAddArgs{Stream: stream(0), ID: id,
				Values: []any{"type", "task.created", "time", "1", "scope", "a/b", "subject", subject}}).Err(); err != nil {
				t.Fatal(err)
			}
		}
		far := time.Now().Add(time.Hour).UnixMilli()
		id := func(i int) string { return fmt.Sprint(far+int64(i), "-0") }
		add("kept", id(1))
		l := listen(t, h, events.Filter{}, "")
		for i := 2; i < 6; i++ {
			add(fmt.Sprint("lost", i), id(i))
		}
		if _, err := receive(t, h, l, 4); err != nil {
			t.Fatal(err)
		}
		tx := s.Client.TxPipeline() // the store returns to its earlier state, with a clock that is behind
		for i := 2; i < 6; i++ {
			tx.XDel(h.Ctx, stream(0), id(i))
		}
		tx.Rename(h.Ctx, stream(0), stream(0)+":old")
		if _, err := tx.Exec(h.Ctx); err != nil {
			t.Fatal(err)
		}
		entries, err := s.Client.XRange(h.Ctx, stream(0)+":old", "-", "+").Result()
		if err != nil {
			t.Fatal(err)
		}
		tx = s.Client.TxPipeline()
		for _, e := range entries {
			var values []any
			for _, name := range []string{"type", "time", "scope", "subject", "attempt", "run", "queue", "kind", "worker", "machine", "by", "data"} {
				if v, ok := e.Values[name]; ok {
					values = append(values, name, v)
				}
			}
			tx.XAdd(h.Ctx, &redis.XAddArgs{Stream: stream(0), ID: e.ID, Values: values})
		}
		for i := 3; i < 5; i++ {
			tx.XAdd(h.Ctx, &redis.XAddArgs{Stream: stream(0), ID: id(i),
				Values: []any{"type", "task.created", "time", "1", "scope", "a/b", "subject", fmt.Sprint("again", i)}})
		}
		if _, err := tx.Exec(h.Ctx); err != nil {
			t.Fatal(err)
		}
		seen := map[string]bool{}
		for !seen["again3"] || !seen["again4"] {
			messages, err := receive(t, h, l, 1)
			if err != nil {
				t.Fatal(err)
			}
			for _, g := range messages {
				if g.Event != nil {
					seen[g.Event.Subject] = true
				}
				if g.Event != nil && g.Event.Type == "system.shard_started" {
					t.Error("the whole shard is delivered again")
				}
			}
		}
	})
}

// fillStream stores n events of acme/prod in a shard, of tasks t0, t1 and so on.
func fillStream(h *trackertest.Harness, shard, n int) {
	h.Helper()
	for i := range n {
		if err := h.Store.Client.XAdd(h.Ctx, &redis.XAddArgs{Stream: stream(shard), Values: []string{
			"type", "task.created", "time", "1768471200000", "scope", "acme/prod", "subject", fmt.Sprint("t", i),
		}}).Err(); err != nil {
			h.Fatal(err)
		}
	}
}

const longAgo = "2020-01-01T00:00:00Z"

// Entries that a tenant's streams and pages read from old cursors are charged to it, even when few pass their filters: its streams wait
// for their turn, and its pages are refused. Neither delays the other, or another tenant.
func TestWhatATenantReadsIsCharged(t *testing.T) {
	t.Parallel()
	trackertest.Contract(t, func(h *trackertest.Harness) {
		h.Tracker.Events.SetPace(1, 0) // the first read is granted, and uses up the rate for minutes
		fillStream(h, 0, 300)
		nothing := func(tenant string) events.Filter {
			return events.Filter{Tenant: tenant, Types: []string{"worker.late"}}
		}
		var reads atomic.Int64
		trackertest.FailCalls(h.Tracker, "read", false, func(int) bool { reads.Add(1); return false })
		follow := func(tenant string) int64 {
			l, before := listen(h.TB, h, nothing(tenant), longAgo), reads.Load()
			for range 3 {
				if messages, err := l.Next(h.Ctx); err != nil || len(messages) > 0 {
					h.Fatalf("received %v, %v", messages, err)
				}
			}
			return reads.Load() - before
		}
		page := func(tenant string) (err error) {
			_, err = h.Tracker.Events.List(h.Ctx, events.Query{Filter: nothing(tenant), Size: 100})
			return err
		}
		if n := follow("acme"); n == 0 {
			h.Error("the first stream reads nothing")
		}
		for range 20 {
			if n := follow("acme"); n != 0 {
				h.Fatalf("another stream of the tenant reads %d times", n)
			}
		}
		if err := page("acme"); err != nil {
			h.Errorf("the tenant's page: %v", err)
		}
		var e *model.Error
		if err := page("acme"); !errors.As(err, &e) || e.Code != model.Overloaded || !e.TooMany || e.RetryAfter <= 0 {
			h.Errorf("the tenant's next page: %v", err)
		}
		if n := follow("other"); n == 0 {
			h.Error("another tenant's stream reads nothing")
		}
		if err := page("other"); err != nil {
			h.Errorf("another tenant's page: %v", err)
		}
	})
}

// Streams that wait for their turns reach the hub's position, and miss nothing.
func TestStreamsThatTakeTurnsMissNothing(t *testing.T) {
	t.Parallel()
	trackertest.Contract(t, func(h *trackertest.Harness) {
		h.Tracker.Events.SetPace(200_000, 0)
		fillStream(h, 0, 500)
		var all []*events.Listener
		for range 10 {
			all = append(all, listen(h.TB, h, events.Filter{Tenant: "acme"}, longAgo))
		}
		live := h.MustCreate().Task.ID
		for _, l := range all {
			messages, err := receive(h.TB, h, l, 502)
			ids := messageIDs(messages)
			slices.Sort(ids)
			if err != nil || len(ids) != 502 || len(slices.Compact(ids)) != 502 || messages[501].Event.Subject != live {
				h.Fatalf("received %d events, %d of them once, %v", len(messages), len(slices.Compact(ids)), err)
			}
		}
	})
}
