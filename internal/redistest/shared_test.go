package redistest

import (
	"context"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"
)

func TestDatabasesAreIsolated(t *testing.T) {
	a, b := Real(t), Real(t)
	if err := a.Client.Set(context.Background(), "k", "v", 0).Err(); err != nil {
		t.Fatal(err)
	}
	if d := b.Dump(t); len(d) != 0 {
		t.Fatalf("not empty: %v", d)
	}
}

func TestDatabasesComeBackEmpty(t *testing.T) {
	skipIfShort(t)
	var url string
	t.Run("use", func(t *testing.T) {
		s := Real(t)
		url = s.URL
		if err := s.Client.Set(context.Background(), "k", "v", 0).Err(); err != nil {
			t.Fatal(err)
		}
	})
	if n := len(shared.free); n != databases {
		t.Fatalf("%d of %d databases are free", n, databases)
	}
	o, err := redis.ParseURL(strings.Replace(url, "miniredis:", "redis:", 1))
	if err != nil {
		t.Fatal(err)
	}
	c := dial(o.Addr, o.DB)
	defer func() { _ = c.Close() }()
	if n, err := c.DBSize(context.Background()).Result(); n != 0 || err != nil {
		t.Fatalf("%d keys are left, %v", n, err)
	}
}

func TestRealWaitsForADatabase(t *testing.T) {
	Real(t) // so that the server is there
	var held []int
	for len(shared.free) > 0 {
		held = append(held, <-shared.free)
	}
	go func() {
		for _, db := range held {
			shared.free <- db
		}
	}()
	Real(t)
}
