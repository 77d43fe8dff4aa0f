package sweep

import (
	"context"
	"time"

	"github.com/lubdub-io/lubdub/tracker/model"
	"github.com/lubdub-io/lubdub/tracker/schema"
)

// RecoverUntil continues a worker's recovery until it is done or the context ends.
func (s *Sweeper) RecoverUntil(ctx context.Context, scope model.Scope, id string) (taken int, err error) {
	r, _ := s.service.store.WorkerRef(scope, id)
	_, taken, err = s.workers.recoveries.all(ctx, []*schema.WorkerRef{r})
	return taken, err
}

// AtWork marks a worker's recovery as in progress on this sweeper.
func (s *Sweeper) AtWork(id string) { s.workers.recoveries.begin(&schema.WorkerRef{ID: id}) }

// FindSilent finds what is silent in a beats set; take ends it and may be called repeatedly.
func (s *Sweeper) FindSilent(shard int, timeoutMs string) (found int, take func() (SweepResult, error), err error) {
	n := s.service.store.Node(shard)
	items, _, err := s.tasks.find(context.Background(), n, []overdue{{shard: shard, set: beatsSet, timeout: timeoutMs}})
	return len(items), func() (SweepResult, error) {
		r := &round{node: n}
		err := s.tasks.take(context.Background(), r, items, &cleared{})
		return r.result, err
	}, err
}

// FireBudget exposes the budget of a sweeper that fires schedules.
type FireBudget struct{ b *fireBudget }

func NewFireBudget(perSecond int) FireBudget { return FireBudget{newFireBudget(perSecond)} }

func (b FireBudget) Take(now time.Time, fires int) int { return b.b.take(now, fires) }
func (b FireBudget) Wait(now time.Time) time.Duration  { return b.b.wait(now) }
