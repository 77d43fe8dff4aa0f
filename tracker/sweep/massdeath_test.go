package sweep_test

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/lubdub-io/lubdub/internal/redistest"
	"github.com/lubdub-io/lubdub/tracker/sweep"
	"github.com/lubdub-io/lubdub/tracker/trackertest"
)

// While the response to some verdicts is on its way, Redis already works on the next ones.
func TestVerdictCallsOverlap(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, s *redistest.Store) {
		tr := trackertest.OpenOn(t, s)
		const tasks = 40
		for i := range tasks {
			startOne(t, tr, s, fmt.Sprint("t", i))
		}
		advance(t, tr, s, 2250*time.Millisecond)
		var calls atomic.Int32
		others := make(chan struct{})
		anotherRan := sync.OnceFunc(func() { close(others) })
		trackertest.After(tr, "expire", func() {
			if calls.Add(1) > 1 {
				anotherRan()
				return
			}
			select {
			case <-others:
			case <-t.Context().Done():
			case <-time.After(trackertest.Patience):
				t.Error("no other verdicts fall while the answer to the first ones is held back")
			}
		})
		r, err := sweep.NewSweeper(tr.Sweeper, sweep.SweeperOptions{}).RunOnce(t.Context())
		if err != nil || r.Zombies != tasks {
			t.Fatalf("%d zombies of %d: %v", r.Zombies, tasks, err)
		}
	})
}
