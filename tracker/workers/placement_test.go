package workers_test

import (
	"context"
	"testing"
	"time"

	"github.com/lubdub-io/lubdub/internal/redistest"
	"github.com/lubdub-io/lubdub/tracker"
	"github.com/lubdub-io/lubdub/tracker/model"
	"github.com/lubdub-io/lubdub/tracker/trackertest"
	"github.com/lubdub-io/lubdub/tracker/workers"
)

// Whoever goes away while a task of theirs waits for a place that others have reserved is not judged: nobody was asked to the
// end, and nothing is made.
func TestTheWaitForAPlaceEndsWithItsContext(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, s *redistest.Store) {
		tr := trackertest.Open(t, s)
		if err := tr.Tick(); err != nil {
			t.Fatal(err)
		}
		scope := tracker.Scope{Tenant: "acme", Workspace: "prod"}
		n := model.NewWorker{Scope: scope, Queue: "default", Types: []string{"send_email"}, MaxConcurrent: 1}
		if err := n.Validate(); err != nil {
			t.Fatal(err)
		}
		registered, err := tr.Register(t.Context(), n)
		if err != nil {
			t.Fatal(err)
		}
		r, _ := tr.WorkerRef(scope, registered.WorkerID)
		others := tr.ReserveCall(workers.Reservation{Worker: r, Name: "others"}, workers.ReserveArgs{Want: 1, Life: time.Minute})
		if _, err := tr.Do(t.Context(), "test", others); err != nil {
			t.Fatal(err)
		}

		task := tracker.NewTask{
			Scope: scope, TaskID: "t1", Queue: "default", Type: "send_email", Placement: "random", HeartbeatInterval: time.Second,
		}
		if err := task.Validate(s.Clock.Now()); err != nil {
			t.Fatal(err)
		}
		gone, leave := context.WithCancel(t.Context())
		leave()
		if _, err := tr.Create(gone, task); model.CodeOf(err) != model.Unavailable {
			t.Fatalf("the creation of one who has gone: %v", err)
		}
		if _, err := tr.Get(t.Context(), scope, "t1"); model.CodeOf(err) != model.NotFound {
			t.Fatalf("its task: %v", err)
		}
	})
}
