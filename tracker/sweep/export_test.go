package sweep

import (
	"context"

	"github.com/lubdub-io/lubdub/tracker/model"
	"github.com/lubdub-io/lubdub/tracker/schema"
)

// ReconcileAShare takes steps as a running reconciler does, and tells how many entries each shard showed.
func (s *Sweeper) ReconcileAShare(steps int) ([]int, error) {
	seen := make([]int, s.t.store.Shards())
	for shard := range seen {
		for range steps {
			n, _, err := s.reconciler.step(context.Background(), shard, true)
			if err != nil {
				return nil, err
			}
			seen[shard] += n
		}
	}
	return seen, nil
}

// RecoverUntil has a sweeper go on with a worker's recovery for as long as the context lives.
func (s *Sweeper) RecoverUntil(ctx context.Context, scope model.Scope, id string) (taken int, err error) {
	s.life = ctx
	r, _ := s.t.store.WorkerRef(scope, id)
	_, taken, err = s.recoverAll(context.Background(), []*schema.WorkerRef{r})
	return taken, err
}

// AtWork has a sweeper believe that it is at a recovery.
func (s *Sweeper) AtWork(id string) { s.begin(&schema.WorkerRef{ID: id}) }

// FindSilent finds what is silent in a set of beats; take ends what was found, as often as it is called.
func (s *Sweeper) FindSilent(shard int, timeoutMs string) (found int, take func() (SweepResult, error), err error) {
	n := s.t.store.Node(shard)
	items, _, err := s.find(context.Background(), n, []overdue{{shard: shard, kind: "expire", timeout: timeoutMs}})
	return len(items), func() (SweepResult, error) { return s.take(context.Background(), n, items) }, err
}
