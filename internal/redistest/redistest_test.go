package redistest

import (
	"context"
	"reflect"
	"testing"
	"time"
)

func TestMain(m *testing.M) { Main(m) }

func TestClockIsInHand(t *testing.T) {
	Each(t, func(t *testing.T, s *Store) {
		ask := func() int64 {
			t.Helper()
			r, err := s.Client.Eval(context.Background(), s.Scripts.Get("peek").Source, []string{"c", "t", "d", "o", "s"}, "me", 1000).Slice()
			if err != nil {
				t.Fatal(err)
			}
			return r[0].(int64)
		}
		first := ask()
		if first != s.Clock.Now().UnixMilli() || ask() != first {
			t.Fatalf("the clock runs: %d", first)
		}
		s.Clock.Advance(1500 * time.Millisecond)
		if got := ask(); got != first+1500 {
			t.Fatalf("advanced from %d to %d", first, got)
		}
		s.Clock.Advance(-time.Hour)
		if got := ask(); got != first+1500-3600_000 {
			t.Fatalf("stepped back to %d", got)
		}
	})
}

func TestStoresAreEmptyAndApart(t *testing.T) {
	a, b := Real(t), Real(t)
	ctx := context.Background()
	if err := a.Client.Set(ctx, "k", "v", 0).Err(); err != nil {
		t.Fatal(err)
	}
	if d := b.Dump(t); len(d) != 0 {
		t.Fatalf("not empty: %v", d)
	}
	if d := a.Dump(t); !reflect.DeepEqual(d, map[string]any{"k": "v"}) {
		t.Fatalf("%v", d)
	}
}

func TestServerLivesAndDies(t *testing.T) {
	s := StartServer(t)
	c := s.Client()
	defer func() { _ = c.Close() }()
	ctx := context.Background()
	if err := c.Ping(ctx).Err(); err != nil {
		t.Fatal(err)
	}
	s.Kill()
	if err := c.Ping(ctx).Err(); err == nil {
		t.Fatal("it answers after Kill")
	}
	if err := s.Restart(); err != nil {
		t.Fatal(err)
	}
	if err := c.Ping(ctx).Err(); err != nil {
		t.Fatal(err)
	}
}
