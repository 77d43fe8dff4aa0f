package workers_test

import (
	"context"
	"testing"
	"time"

	"github.com/lubdub-io/lubdub/tracker/model"
	"github.com/lubdub-io/lubdub/tracker/trackertest"
	"github.com/lubdub-io/lubdub/tracker/workers"
)

// A request that is cancelled while its task waits for a place that others have reserved returns no selection result, since the
// workers were not all evaluated, and creates nothing.
func TestTheWaitForAPlaceEndsWithItsContext(t *testing.T) {
	t.Parallel()
	trackertest.Contract(t, func(h *trackertest.Harness) {
		id := h.MustRegister(func(n *model.NewWorker) { n.MaxConcurrent = 1 }).WorkerID
		r, _ := h.Tracker.Store.WorkerRef(trackertest.Scope, id)
		others := h.Workers.ReserveCall(workers.Reservation{Worker: r, Name: "others"}, workers.ReserveArgs{Want: 1, Life: time.Minute})
		if _, err := h.Tracker.Store.Do(h.Ctx, "test", others); err != nil {
			h.Fatal(err)
		}
		n := model.NewTask{Scope: trackertest.Scope, TaskID: "t1", HeartbeatInterval: time.Second}
		trackertest.Placed("random")(&n)
		cancelled, leave := context.WithCancel(h.Ctx)
		leave()
		_, err := h.Tasks.Create(cancelled, n)
		h.WantCode(err, model.Unavailable)
		_, err = h.Tasks.Get(h.Ctx, trackertest.Scope, "t1")
		h.WantCode(err, model.NotFound)
	})
}
