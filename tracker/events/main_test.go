package events_test

import (
	"context"
	"testing"

	"github.com/lubdub-io/lubdub/tracker/sweep"
	"github.com/lubdub-io/lubdub/tracker/trackertest"
)

func TestMain(m *testing.M) { trackertest.Main(m) }

// run runs a sweeper until the test ends.
func run(t *testing.T, h *trackertest.Harness, s *sweep.Sweeper) {
	ctx, stop := context.WithCancel(h.Ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = s.Run(ctx)
	}()
	t.Cleanup(func() { stop(); <-done })
}
