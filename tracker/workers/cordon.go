package workers

import (
	"context"

	"github.com/lubdub-io/lubdub/tracker/model"
	"github.com/lubdub-io/lubdub/tracker/schema"
	"github.com/lubdub-io/lubdub/tracker/store"
)

// Cordon lets a worker take nothing new until it is uncordoned: it stays ONLINE, goes on with what it holds and does not end
// when it is idle. A worker that takes its place inherits the cordon. What was placed on it and waits is placed anew; what its
// creator pinned to it goes on waiting. The reason may be empty; called again the first one stands.
func (s *operations) Cordon(ctx context.Context, scope model.Scope, id, given string) (*model.Worker, error) {
	return s.changeAndUnpin(ctx, "cordon", scope, id, func(r *schema.WorkerRef) *store.Call { return s.scripts.cordonCall(r, true, given) })
}

// Uncordon undoes a cordon. The reason goes into the event; it may be empty.
func (s *operations) Uncordon(ctx context.Context, scope model.Scope, id, given string) (*model.Worker, error) {
	return s.change(ctx, "uncordon", scope, id, func(r *schema.WorkerRef) *store.Call { return s.scripts.cordonCall(r, false, given) })
}
