package tracker_test

import (
	"sync"
	"testing"

	"github.com/lubdub-io/lubdub/internal/redistest"
	"github.com/lubdub-io/lubdub/tracker"
)

// Several ask for attempts after each other's. Whoever asks gets the envelope of the attempt after the one that it
// named, or a refusal: never that of one which somebody else has asked for since.
func TestNextAttemptGetsItsOwnEnvelope(t *testing.T) {
	h := newHarness(t, redistest.Real(t))
	h.create(func(n *tracker.NewTask) { n.TaskID = "t1" })
	const last = 300
	var asking sync.WaitGroup
	for range 4 {
		asking.Go(func() {
			for from := 1; from < last; {
				c, err := h.NextAttempt(h.ctx, scope, "t1", from)
				if code := tracker.CodeOf(err); code != "" && code != tracker.AttemptMismatch {
					t.Error(err)
					return
				}
				if err == nil && c.Envelope.Attempt.Number != from+1 {
					t.Errorf("asked for the attempt after %d and got the envelope of attempt %d", from, c.Envelope.Attempt.Number)
				}
				from++
			}
		})
	}
	asking.Wait()
}
