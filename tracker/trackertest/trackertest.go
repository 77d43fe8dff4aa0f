// Package trackertest is shared by the tests of tracker's packages: a tracker on a store of redistest, with a clock that tests control.
package trackertest

import (
	"context"
	"io"
	"log/slog"
	"testing"
	"time"

	"github.com/lubdub-io/lubdub/internal/redistest"
	"github.com/lubdub-io/lubdub/tracker"
)

// OpenOn opens a tracker with one shard on a store; `change` may set other options.
func OpenOn(t testing.TB, s *redistest.Store, change ...func(*tracker.Options)) *tracker.Tracker {
	t.Helper()
	o := tracker.Options{
		RedisURL: s.URL, Scripts: s.Scripts, RedisTimeout: 10 * time.Second, Shards: 1, Logger: slog.New(slog.NewTextHandler(io.Discard, nil)),
	}
	for _, c := range change {
		c(&o)
	}
	tr, err := tracker.Open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = tr.Close(context.Background()) })
	return tr
}
