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
	"github.com/lubdub-io/lubdub/tracker/beats"
	"github.com/lubdub-io/lubdub/tracker/model"
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

// StartOne creates a pushed task with a timeout of 2 s and sends one beat.
func StartOne(t testing.TB, tr *tracker.Tracker, s *redistest.Store, id string) *model.Attempt {
	t.Helper()
	n := model.NewTask{
		Scope: model.Scope{Tenant: "acme", Workspace: "prod"}, TaskID: id, HeartbeatInterval: time.Second, HeartbeatTimeout: 2 * time.Second,
	}
	if err := n.Validate(s.Clock.Now()); err != nil {
		t.Fatal(err)
	}
	c, err := tr.Tasks.Create(t.Context(), n)
	if err != nil {
		t.Fatal(err)
	}
	b := &beats.Beat{Attempt: c.Envelope.Attempt}
	if tr.Beats.Beat(b); b.Err != nil {
		t.Fatal(b.Err)
	}
	return b.Attempt
}

// Advance advances time, with enough empty beats for shard time to follow.
func Advance(t testing.TB, tr *tracker.Tracker, s *redistest.Store, d time.Duration) {
	t.Helper()
	for ; d > 0; d -= 250 * time.Millisecond {
		s.Clock.Advance(250 * time.Millisecond)
		if err := tr.Beats.Tick(); err != nil {
			t.Fatal(err)
		}
	}
}
