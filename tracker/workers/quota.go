package workers

import (
	"context"

	"github.com/lubdub-io/lubdub/tracker/model"
	"github.com/lubdub-io/lubdub/tracker/quotas"
)

// admitWorker holds a registration to its tenant's quota. One that takes the place of another worker is no more than
// before.
func (t *Service) admitWorker(ctx context.Context, n *model.NewWorker, id string) (*quotas.Usage, error) {
	u, refusal := t.quotas.AdmitWorker(ctx, n.Scope.Tenant)
	if refusal == nil {
		return u, nil
	}
	if holder, err := t.holderOf(ctx, n, id); err != nil || holder != "" {
		return nil, err
	}
	return nil, refusal
}
