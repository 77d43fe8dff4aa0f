package events_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lubdub-io/lubdub/internal/redistest"
	"github.com/lubdub-io/lubdub/tracker"
	"github.com/lubdub-io/lubdub/tracker/trackertest"
)

// hear reads a listener until it was told n events, or has ended.
func hear(t testing.TB, h *trackertest.Harness, l *tracker.EventListener, n int) (told []*tracker.EventTold, err error) {
	t.Helper()
	for count := 0; count < n; {
		got, err := l.Next(h.Ctx)
		told = append(told, got...)
		for _, g := range got {
			if g.Event != nil {
				count++
			}
		}
		if errors.Is(err, tracker.ErrEventsLagged) {
			return told, err
		}
		if err == nil && len(got) > 0 {
			continue
		}
		select {
		case <-l.Woken():
		case <-time.After(time.Minute):
			t.Fatalf("told %d of %d events within a minute: %v", count, n, err)
		}
	}
	return told, nil
}

func toldIDs(told []*tracker.EventTold) (ids []string) {
	for _, g := range told {
		if g.Event != nil {
			ids = append(ids, g.Event.ID())
		}
	}
	return ids
}

func listen(t testing.TB, h *trackertest.Harness, f tracker.EventFilter, after string) *tracker.EventListener {
	t.Helper()
	l, err := h.FollowEvents(h.Ctx, f, "after", after)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(l.Close)
	return l
}

// One that does not keep up is told so once its queue is full, and misses nothing when it goes on from where it came to.
func TestAListenerThatDoesNotKeepUp(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, s *redistest.Store) {
		h := trackertest.NewHarness(t, s, func(o *tracker.Options) { o.Shards, o.RedisTimeout = 1, time.Minute }) // it creates very many
		slow := listen(t, h, tracker.EventFilter{Types: []string{"task.created"}}, "")
		const tasks = 5000
		h.FillQueue(tasks, func(int, *tracker.NewTask) {})
		quick := listen(t, h, tracker.EventFilter{Types: []string{"task.dispatched"}}, "") // who hears this was told of all before it
		h.MustCreate()
		if _, err := hear(t, h, quick, 1); err != nil {
			t.Fatal(err)
		}
		told, err := hear(t, h, slow, tasks)
		if !errors.Is(err, tracker.ErrEventsLagged) || len(told) == 0 {
			t.Fatalf("%d events, %v", len(told), err)
		}
		rest, err := hear(t, h, listen(t, h, tracker.EventFilter{Types: []string{"task.created"}}, slow.Cursor()), tasks-len(told))
		if err != nil {
			t.Fatal(err)
		}
		all, _, _ := pages(t, h.Tracker, tracker.EventQuery{Size: 100, Filter: tracker.EventFilter{Types: []string{"task.created"}}})
		got, want := toldIDs(append(told, rest...)), idsOf(all)
		slices.Sort(got)
		slices.Sort(want)
		if !slices.Equal(got, want) {
			t.Errorf("told %d events in two parts, want %d", len(got), len(want))
		}
	})
}

// While listeners come and go and everything goes on happening, each is told everything behind its cursor, once.
func TestListenersComeWhileItHappens(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, s *redistest.Store) {
		h := trackertest.NewHarness(t, s)
		first := listen(t, h, tracker.EventFilter{}, "")
		begin := first.Cursor()
		const tasks, parts = 400, 8
		done := make(chan struct{})
		go func() {
			defer close(done)
			for range parts {
				h.FillQueue(tasks/parts, func(int, *tracker.NewTask) {})
			}
		}()
		heard := make([][]string, 6)
		for i := range heard {
			told, err := hear(t, h, listen(t, h, tracker.EventFilter{}, begin), tasks)
			if err != nil {
				t.Fatal(err)
			}
			heard[i] = toldIDs(told)
		}
		<-done
		told, err := hear(t, h, first, tasks)
		if err != nil {
			t.Fatal(err)
		}
		want := toldIDs(told)
		slices.Sort(want)
		for i, got := range heard {
			if slices.Sort(got); !slices.Equal(got, want) {
				t.Errorf("listener %d was told %d events, want %d", i, len(got), len(want))
			}
		}
	})
}

// However many listen the store is read once for all of them, and not at all when nobody does.
func TestTheStoreIsReadOnceForAll(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, s *redistest.Store) {
		h := trackertest.NewHarness(t, s)
		count := trackertest.CountScripts(h.Tracker)
		var all []*tracker.EventListener
		for range 50 {
			l, err := h.FollowEvents(h.Ctx, tracker.EventFilter{}, "after", "")
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, l)
		}
		h.MustCreate()
		var first []*tracker.EventTold
		for i, l := range all {
			told, err := hear(t, h, l, 2)
			if err != nil {
				t.Fatal(err)
			}
			if i == 0 {
				first = told
			}
			for j := range told {
				if told[j] != first[j] {
					t.Fatalf("listener %d was told something of its own", i)
				}
			}
			l.Close()
		}
		ended := make(chan struct{})
		go func() { h.AwaitNoReader(); close(ended) }() // the last read may be under way
		select {
		case <-ended:
		case <-time.After(time.Minute):
			t.Fatal("somebody reads though nobody listens")
		}
		if count()["read"] == 0 {
			t.Error("nobody has read")
		}
	})
}

// Whoever listens is told on when the store has lost writes and goes on without them, even where other events have the ids of
// those; what was kept is not told again.
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
		l := listen(t, h, tracker.EventFilter{}, "")
		for i := 2; i < 6; i++ {
			add(fmt.Sprint("lost", i), id(i))
		}
		if _, err := hear(t, h, l, 4); err != nil {
			t.Fatal(err)
		}
		tx := s.Client.TxPipeline() // the store comes back as it was before, and goes on with a clock that is behind
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
				Values: []any{"type", "task.created", "time", "1", "scope", "a/b", "subject", fmt.Sprint("anew", i)}})
		}
		if _, err := tx.Exec(h.Ctx); err != nil {
			t.Fatal(err)
		}
		seen := map[string]bool{}
		for !seen["anew3"] || !seen["anew4"] {
			told, err := hear(t, h, l, 1)
			if err != nil {
				t.Fatal(err)
			}
			for _, g := range told {
				if g.Event != nil {
					seen[g.Event.Subject] = true
				}
				if g.Event != nil && g.Event.Type == "system.shard_started" {
					t.Error("the whole shard is told again")
				}
			}
		}
	})
}
