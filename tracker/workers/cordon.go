package workers

import (
	"context"

	"github.com/lubdub-io/lubdub/tracker/model"
	"github.com/lubdub-io/lubdub/tracker/schema"
	"github.com/lubdub-io/lubdub/tracker/store"
)

// Cordon stops new tasks for a worker until it is uncordoned: it stays ONLINE, continues with what it holds and does not end when
// it is idle. A worker that supersedes it inherits the cordon. Waiting tasks that were placed on it are placed again; tasks that their
// creator pinned to it keep waiting. The reason may be empty; a repeated call keeps the first one.
func (s *operations) Cordon(ctx context.Context, scope model.Scope, id, reason string) (*model.Worker, error) {
	return s.changeAndUnpin(ctx, "cordon", scope, id, func(r *schema.WorkerRef) *store.Call { return s.scripts.cordonCall(r, true, reason) })
}

// Uncordon undoes a cordon. The reason goes into the event; it may be empty.
func (s *operations) Uncordon(ctx context.Context, scope model.Scope, id, reason string) (*model.Worker, error) {
	return s.change(ctx, "uncordon", scope, id, func(r *schema.WorkerRef) *store.Call { return s.scripts.cordonCall(r, false, reason) })
}
