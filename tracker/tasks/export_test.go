package tasks

import (
	"context"
	"time"

	"github.com/lubdub-io/lubdub/tracker/model"
)

// CreatePlacedOn creates a placed task for a worker that was selected earlier.
func (s *Service) CreatePlacedOn(_ context.Context, scope model.Scope, id, worker string) {
	s.createAll(context.Background(), []*creation{{
		NewTask: model.NewTask{
			Scope: scope, TaskID: id, Queue: "default", Type: "send_email", Placement: "random", WorkerID: worker, HeartbeatInterval: time.Second,
		},
		fence: model.NewFence(),
	}})
}

// Awaited returns for how many tasks requests wait, each counted once for each request.
func (s *Service) Awaited() (n int) {
	s.awaiting.mu.Lock()
	defer s.awaiting.mu.Unlock()
	for _, requests := range s.awaiting.of {
		n += len(requests)
	}
	return n
}
