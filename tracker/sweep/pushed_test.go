package sweep_test

import (
	"testing"
	"time"

	"github.com/lubdub-io/lubdub/internal/redistest"
	"github.com/lubdub-io/lubdub/tracker"
	"github.com/lubdub-io/lubdub/tracker/beats"
	"github.com/lubdub-io/lubdub/tracker/model"
)

// startOne creates a pushed task with a timeout of 2 s and sends one beat.
func startOne(t testing.TB, tr *tracker.Tracker, s *redistest.Store, id string) *model.Attempt {
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

// advance advances time, with enough empty beats for shard time to follow.
func advance(t testing.TB, tr *tracker.Tracker, s *redistest.Store, d time.Duration) {
	t.Helper()
	for ; d > 0; d -= 250 * time.Millisecond {
		s.Clock.Advance(250 * time.Millisecond)
		if err := tr.Beats.Tick(); err != nil {
			t.Fatal(err)
		}
	}
}
