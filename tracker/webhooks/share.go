package webhooks

import (
	"context"

	"github.com/lubdub-io/lubdub/tracker/store"
)

// The bytes allowed for the deliveries of a tenant's webhooks are divided evenly among all its webhooks, disabled ones included. So the
// tenant's total over all shards stays below its limit although no script sees more than one webhook, and a webhook that receives nothing
// drops only its own deliveries.

// shares returns, by tenant, how many bytes each of its webhooks may take.
func (s *Service) shares(all []*Webhook) map[string]int64 {
	shares := map[string]int64{}
	for _, w := range all {
		shares[w.Scope.Tenant]++
	}
	for tenant, n := range shares {
		shares[tenant] = s.opts.TenantBytes / n
	}
	return shares
}

// share returns how many bytes each webhook of a tenant may take, when not all webhooks are loaded.
func (s *Service) share(ctx context.Context, tenant string) (int64, error) {
	n, err := s.count(ctx, "webhooks", tenant+"/")
	return s.opts.TenantBytes / int64(max(1, n)), err
}

// trim drops the oldest deliveries of webhooks beyond their shares, and records changed shares.
func (s *Service) trim(ctx context.Context, all []*Webhook, shares map[string]int64) error {
	var left []*Webhook
	total := int64(0)
	for _, w := range all {
		total += w.bytes
		if share := shares[w.Scope.Tenant]; w.most != share || w.bytes > share {
			left = append(left, w)
		}
	}
	s.metrics.pending.Set(float64(total))
	for len(left) > 0 {
		calls := store.CallEach(left, func(w *Webhook) *store.Call { return s.trimCall(s.ref(w.Scope, w.ID), shares[w.Scope.Tenant]) })
		s.store.DoBulk(ctx, "webhooks", calls)
		if err := store.FirstError(calls); err != nil {
			return err
		}
		var more []*Webhook
		for i, w := range left {
			dropped, again := readTrim(calls[i].Reply)
			s.metrics.dropped.Add(float64(dropped))
			if again {
				more = append(more, w)
			}
		}
		left = more
	}
	return nil
}
