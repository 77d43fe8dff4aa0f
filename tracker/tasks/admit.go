package tasks

import (
	"context"

	"github.com/lubdub-io/lubdub/tracker/model"
	"github.com/lubdub-io/lubdub/tracker/quotas"
	"github.com/lubdub-io/lubdub/tracker/schema"
)

// checkPins refuses tasks that name a worker that does not exist: no worker would ever claim them. As with a deadline that has
// passed, a repeat with an idempotency key still gets its first result.
func (s *Service) checkPins(ctx context.Context, batch []*creation) {
	pinned := map[*schema.WorkerRef][]*creation{}
	known := map[string]*schema.WorkerRef{}
	var refs []*schema.WorkerRef
	for _, c := range batch {
		if c.WorkerID == "" || c.AdmissionErr != nil {
			continue
		}
		name := schema.TaskName(c.Scope, c.WorkerID)
		r, seen := known[name]
		if !seen {
			var ok bool
			r, ok = s.store.WorkerRef(c.Scope, c.WorkerID)
			if known[name] = r; ok {
				refs = append(refs, r)
			}
		}
		pinned[r] = append(pinned[r], c)
	}
	calls, resolve := s.workers.Names(refs)
	s.store.DoAll(ctx, "create", calls)
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
			case r.Machine != "": // the worker exists
			case failed[r.Shard] != nil:
				c.err = failed[r.Shard]
			default:
				c.AdmissionErr = model.Invalidf("workerId", "names no worker of this tenant and workspace, so the task would never be claimed; "+
					"take one from GET /v1/workers, or omit it")
				if c.IdempotencyKey == "" {
					c.err = c.AdmissionErr
				}
			}
		}
	}
}

// bytes returns the size of a creation, as quotas count it.
func (c *creation) bytes() int64 {
	if n := c.document().bytes(); n > quotas.LightBytes {
		return quotas.LightBytes + n
	}
	return quotas.LightBytes
}

// admitBatch checks the creations of a batch against the quotas of their tenants. One that exceeds them is refused, unless its key
// is known: a repeat gets the first result. Call settle when the admitted tasks are in the store.
func (s *Service) admitBatch(ctx context.Context, batch []*creation) (settle func()) {
	if !s.quotas.BoundsTasks() {
		return func() {}
	}
	taken := make([]*quotas.Usage, len(batch))
	for i, c := range batch {
		if c.err != nil || c.AdmissionErr != nil {
			continue // creates nothing
		}
		u, err := s.quotas.AdmitTask(ctx, c.Scope.Tenant, c.bytes())
		switch {
		case err == nil:
			taken[i] = u
		case c.IdempotencyKey != "" && model.CodeOf(err) == model.Overloaded:
			c.AdmissionErr = err
		default:
			c.err = err
		}
	}
	return func() {
		for i, c := range batch {
			taken[i].Settle(1, c.bytes())
		}
	}
}
