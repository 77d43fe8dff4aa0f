package workers_test

import (
	"context"
	"testing"
	"time"

	"github.com/lubdub-io/lubdub/tracker"
	"github.com/lubdub-io/lubdub/tracker/trackertest"
	"github.com/lubdub-io/lubdub/tracker/workers"
)

// Whoever goes away while a task of theirs waits for a place that others have reserved is not judged: nobody was asked to the
// end, and nothing is made.
func TestTheWaitForAPlaceEndsWithItsContext(t *testing.T) {
	t.Parallel()
	trackertest.Contract(t, func(h *trackertest.Harness) {
		id := h.MustRegister(func(n *tracker.NewWorker) { n.MaxConcurrent = 1 }).WorkerID
		r, _ := h.WorkerRef(trackertest.Scope, id)
		others := h.ReserveCall(workers.Reservation{Worker: r, Name: "others"}, workers.ReserveArgs{Want: 1, Life: time.Minute})
		if _, err := h.Do(h.Ctx, "test", others); err != nil {
			h.Fatal(err)
		}
		n := tracker.NewTask{Scope: trackertest.Scope, TaskID: "t1", HeartbeatInterval: time.Second}
		trackertest.Placed("random")(&n)
		gone, leave := context.WithCancel(h.Ctx)
		leave()
		_, err := h.Create(gone, n)
		h.WantCode(err, tracker.Unavailable)
		_, err = h.Get(h.Ctx, trackertest.Scope, "t1")
		h.WantCode(err, tracker.NotFound)
	})
}
