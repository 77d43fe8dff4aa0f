package tasks

import (
	"context"

	"github.com/lubdub-io/lubdub/tracker/model"
	"github.com/lubdub-io/lubdub/tracker/schema"
)

// checkPins refuses tasks that name a worker which is not there: nobody would ever claim them. As with a deadline that has
// passed, the repeat with an idempotency key gets its first answer all the same.
func (t *Service) checkPins(ctx context.Context, batch []*creation) {
	pinned := map[*schema.WorkerRef][]*creation{}
	known := map[string]*schema.WorkerRef{}
	var refs []*schema.WorkerRef
	for _, c := range batch {
		if c.WorkerID == "" || c.Late != nil {
			continue
		}
		name := schema.TaskName(c.Scope, c.WorkerID)
		r, asked := known[name]
		if !asked {
			var ok bool
			r, ok = t.store.WorkerRef(c.Scope, c.WorkerID)
			if known[name] = r; ok {
				refs = append(refs, r)
			}
		}
		pinned[r] = append(pinned[r], c)
	}
	calls, resolve := t.workers.WorkerNames(refs)
	t.store.DoAll(ctx, "create", calls)
	resolve()
	failed := map[int]error{}
	for _, c := range calls {
		if c.Err != nil {
			failed[c.Shard] = c.Err
		}
	}
	for r, tasks := range pinned {
		for _, c := range tasks {
			switch {
			case r.Machine != "": // it is there
			case failed[r.Shard] != nil:
				c.err = failed[r.Shard]
			default:
				c.Late = model.Invalidf("workerId", "names no worker of this tenant and workspace, so nobody would ever claim the task; take one from GET /v1/workers, or leave it out")
				if c.IdempotencyKey == "" {
					c.err = c.Late
				}
			}
		}
	}
}
