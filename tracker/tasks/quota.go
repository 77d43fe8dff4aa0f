package tasks

import (
	"context"

	"github.com/lubdub-io/lubdub/tracker/model"
	"github.com/lubdub-io/lubdub/tracker/quotas"
)

// bytes is what a creation will take, as countBytes counts it.
func (c *creation) bytes() int64 {
	n := int64(0)
	for i, d := 1, c.document(); i < len(d); i += 2 {
		n += int64(len(d[i].(string)))
	}
	if n <= quotas.LightBytes {
		n = 0
	}
	return quotas.LightBytes + n
}

// admitBatch holds the creations of a batch to their tenants' quotas. One that is too much is refused, unless its key
// is known: a repeat gets the first answer. Call the result when what was admitted stands in the store.
func (t *Service) admitBatch(ctx context.Context, batch []*creation) (settle func()) {
	if !t.quotas.BoundsTasks() {
		return func() {}
	}
	taken := make([]*quotas.Usage, len(batch))
	for i, c := range batch {
		if c.err != nil || c.Late != nil {
			continue // creates nothing
		}
		u, err := t.quotas.AdmitTask(ctx, c.Scope.Tenant, c.bytes())
		switch {
		case err == nil:
			taken[i] = u
		case c.IdempotencyKey != "" && model.CodeOf(err) == model.Overloaded:
			c.Late = err
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
