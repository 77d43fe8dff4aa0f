package tracker_test

import (
	"fmt"
	"testing"

	"github.com/lubdub-io/lubdub/tracker"
)

// Counting what many workers hold is a matter of moments, whether all that is held is looked at or each is counted.
func TestScriptsAboutLoadsAreShort(t *testing.T) {
	t.Parallel()
	h := timed(t, func(o *tracker.Options) { o.Shards = 1 })
	const crew = 1100
	ids := make([]string, crew)
	for i := range ids {
		ids[i] = h.register(func(n *tracker.NewWorker) { n.MachineID, n.MaxConcurrent = fmt.Sprintf("m%d", i), 100 }).WorkerID
	}
	hold := func(n int) {
		h.fillQueue(n, func(_ int, n *tracker.NewTask) {})
		for i := 0; n > 0; i++ {
			got, err := h.Claim(h.ctx, tracker.ClaimRequest{Scope: scope, WorkerID: ids[i%crew], Queue: "default", Max: 50})
			if err != nil {
				t.Fatal(err)
			}
			n -= len(got)
		}
	}
	hold(3900)
	choose := func() {
		found, err := h.choose(tracker.Selector{Queue: "default"})
		if err != nil || found.Considered != crew {
			t.Fatalf("%+v, %v", found, err)
		}
	}
	h.short("all that is held", choose)
	hold(2000)
	h.short("a count for each", choose)
}
