package redistest

import (
	"context"
	"reflect"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

func TestMain(m *testing.M) { Main(m) }

// wall gets the wall time in ms from a script that production runs too.
func wall(t *testing.T, s *Store) int64 {
	t.Helper()
	r, err := s.Eval(context.Background(), "peek", []string{"c", "t", "d", "o", "s", "w", "r"}, "me", 1000, 0).Slice()
	if err != nil {
		t.Fatal(err)
	}
	return r[0].(int64)
}

func TestClockIsControlled(t *testing.T) {
	Each(t, func(t *testing.T, s *Store) {
		first := wall(t, s)
		if want := time.Date(2026, 1, 15, 10, 0, 0, 0, time.UTC); first != want.UnixMilli() || !s.Clock.Now().Equal(want) {
			t.Fatalf("begins at %d and %s", first, s.Clock.Now())
		}
		if wall(t, s) != first {
			t.Fatal("the clock advances on its own")
		}
		s.Clock.Advance(1500 * time.Millisecond)
		if got := wall(t, s); got != first+1500 {
			t.Fatalf("advanced from %d to %d", first, got)
		}
		s.Clock.Advance(-time.Hour)
		if got := wall(t, s); got != first+1500-3_600_000 {
			t.Fatalf("stepped back to %d", got)
		}
		s.Clock.Set(time.UnixMicro(1_800_000_000_999_999))
		if got := wall(t, s); got != 1_800_000_000_999 {
			t.Fatalf("set to %d", got)
		}
	})
}

func TestKeysExpireByTheClock(t *testing.T) {
	Each(t, func(t *testing.T, s *Store) {
		ctx := context.Background()
		s.Client.Set(ctx, "brief", "", time.Minute)
		s.Client.Set(ctx, "for ever", "", 0)
		left := func() int64 { return s.Client.Exists(ctx, "brief", "for ever").Val() }
		s.Clock.Advance(59 * time.Second)
		s.Clock.Advance(-time.Hour) // going back gives no time back, and takes none
		if left() != 2 {
			t.Fatalf("too early: %d left", left())
		}
		s.Clock.Advance(2 * time.Second)
		if left() != 1 {
			t.Fatalf("%d left", left())
		}
	})
}

func TestWallClock(t *testing.T) {
	Each(t, func(t *testing.T, s *Store) {
		before := time.Now().UnixMilli()
		got := wall(t, s)
		if after := time.Now().UnixMilli(); got < before || got > after {
			t.Errorf("scripts see %d, not in %d–%d", got, before, after)
		}
		if s.Clock.Now().UnixMilli() < before {
			t.Errorf("the clock shows %s", s.Clock.Now())
		}
		defer func() {
			if recover() == nil {
				t.Error("the true clock was moved")
			}
		}()
		s.Clock.Advance(time.Second)
	}, WallClock)
}

func TestDump(t *testing.T) {
	Each(t, func(t *testing.T, s *Store) {
		if d := s.Dump(t); len(d) != 0 {
			t.Fatalf("a new store holds %v", d)
		}
		ctx := context.Background()
		s.Client.Set(ctx, "string", "v", 0)
		s.Client.HSet(ctx, "hash", "f", "v")
		s.Client.RPush(ctx, "list", "a", "b")
		s.Client.SAdd(ctx, "set", "a", "b")
		s.Client.ZAdd(ctx, "zset", redis.Z{Score: 1.5, Member: "m"})
		s.Client.XAdd(ctx, &redis.XAddArgs{Stream: "stream", ID: "1-1", Values: []string{"f", "v"}})
		want := map[string]any{
			"string": "v",
			"hash":   map[string]string{"f": "v"},
			"list":   []string{"a", "b"},
			"set":    map[string]struct{}{"a": {}, "b": {}},
			"zset":   []redis.Z{{Score: 1.5, Member: "m"}},
			"stream": []redis.XMessage{{ID: "1-1", Values: map[string]any{"f": "v"}}},
		}
		if got := s.Dump(t); !reflect.DeepEqual(got, want) {
			t.Fatalf("got  %v\nwant %v", got, want)
		}
		s.Clock.Advance(time.Second)
		if got := s.Dump(t); !reflect.DeepEqual(got, want) {
			t.Fatalf("moving the clock shows: %v", got)
		}
	})
}

func TestSnapshot(t *testing.T) {
	Each(t, func(t *testing.T, s *Store) {
		ctx := t.Context()
		s.Client.Set(ctx, "text", "a", time.Minute)
		s.Client.HSet(ctx, "hash", "a", "1", "b", "2")
		s.Client.RPush(ctx, "list", "c", "a", "b")
		s.Client.SAdd(ctx, "set", "a", "b")
		s.Client.ZAdd(ctx, "sorted", redis.Z{Score: 9007199254740991, Member: "!"}, redis.Z{Score: 1.5, Member: "a"})
		s.Client.XAdd(ctx, &redis.XAddArgs{Stream: "stream", ID: "5-1", Values: []any{"z", "1", "a", "2"}})
		before := s.Dump(t)
		was := s.Snapshot(t)
		s.Clock.Advance(30 * time.Second)
		s.Client.Del(ctx, "list", "stream")
		s.Client.HSet(ctx, "hash", "a", "3", "c", "4")
		s.Client.Set(ctx, "new", "", 0)
		now := wall(t, s)
		s.Restore(t, was)
		if after := s.Dump(t); !reflect.DeepEqual(before, after) {
			t.Errorf("restored\n%v, was\n%v", after, before)
		}
		if got := wall(t, s); got != now {
			t.Errorf("the clock went from %d to %d", now, got)
		}
		s.Clock.Advance(time.Minute + time.Second)
		if s.Client.Exists(ctx, "text").Val() != 0 {
			t.Error("a key does not expire any more")
		}
	})
}
