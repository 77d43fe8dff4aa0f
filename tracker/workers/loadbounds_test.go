package workers_test

import (
	"fmt"
	"testing"

	"github.com/lubdub-io/lubdub/internal/testenv"
	"github.com/lubdub-io/lubdub/tracker"
	"github.com/lubdub-io/lubdub/tracker/model"
	"github.com/lubdub-io/lubdub/tracker/queues"
	"github.com/lubdub-io/lubdub/tracker/trackertest"
)

// Counting what many workers hold is fast, both with a scan of everything held and with a count for each worker.
func TestScriptsAboutLoadsAreShort(t *testing.T) {
	testenv.MeasuresScripts(t)
	t.Parallel()
	h := trackertest.Timed(t, func(o *tracker.Options) { o.Shards = 1 })
	const count = 1100
	ids := make([]string, count)
	for i := range ids {
		ids[i] = h.MustRegister(func(n *model.NewWorker) { n.MachineID, n.MaxConcurrent = fmt.Sprintf("m%d", i), 100 }).WorkerID
	}
	hold := func(n int) {
		h.FillQueue(n, func(_ int, n *model.NewTask) {})
		for i := 0; n > 0; i++ {
			got, err := h.Queues.Claim(h.Ctx, queues.ClaimRequest{Scope: trackertest.Scope, WorkerID: ids[i%count], Queue: "default", Max: 50})
			if err != nil {
				t.Fatal(err)
			}
			n -= len(got)
		}
	}
	hold(3900)
	choose := func() {
		found, err := choose(h.Harness, model.Selector{Queue: "default"})
		if err != nil || found.Considered != count {
			t.Fatalf("%+v, %v", found, err)
		}
	}
	h.Short("all that is held", choose)
	hold(2000)
	h.Short("a count for each", choose)
}
