package trackertest

import (
	"context"
	"io"
	"log/slog"
	"testing"
	"time"

	"github.com/lubdub-io/lubdub/tracker"
	"github.com/lubdub-io/lubdub/tracker/model"
)

// PatientRedis is a redis-timeout that holds on a busy host.
const PatientRedis = 10 * time.Second

var Quiet = slog.New(slog.NewTextHandler(io.Discard, nil))

// Open opens a tracker. If the test sets no redis-timeout, it is PatientRedis.
func Open(t *testing.T, o tracker.Options) *tracker.Tracker {
	t.Helper()
	o.Logger = Quiet
	if o.RedisTimeout == 0 {
		o.RedisTimeout = PatientRedis
	}
	tr, err := tracker.Open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = tr.Close(context.Background()) })
	return tr
}

func NewTask(t *testing.T, tr *tracker.Tracker, id string) *model.Attempt {
	t.Helper()
	n := model.NewTask{Scope: Scope, TaskID: id}
	if err := n.Validate(time.Now()); err != nil {
		t.Fatal(err)
	}
	c, err := tr.Tasks.Create(t.Context(), n)
	if err != nil {
		t.Fatal(err)
	}
	return c.Envelope.Attempt
}
