package stats

import (
	"context"
	"time"

	"github.com/lubdub-io/lubdub/tracker/model"
	"github.com/lubdub-io/lubdub/tracker/queues"
)

// Stats are what there is in a scope, and what has gone on in the deployment in the last hour.
type Stats struct {
	At     time.Time
	Counts *Counts // of the scope
	Steps  []*Step // of the last hour, oldest first, without those in which nobody reported
	Gaps   Gaps    // of the last hour
}

// Stats answers about one scope, about all of a tenant where the workspace is empty, or about all for the zero Scope. The
// answer may be a second old, and is shared: nobody changes it.
func (s *Service) Get(ctx context.Context, scope model.Scope) (*Stats, error) {
	ctx = s.store.Within(ctx, 0)
	counts, err := answer(ctx, s.snapshots, "counts "+scope.String(), func() (*Counts, error) {
		if scope.Workspace == "" {
			return s.countAll(ctx, scope.Tenant)
		}
		return s.count(ctx, []string{scope.String()})
	})
	if err != nil {
		return nil, s.refused(err)
	}
	steps, err := s.hour(ctx)
	if err != nil {
		return nil, s.refused(err)
	}
	return &Stats{At: steps.now, Counts: counts, Steps: steps.steps, Gaps: steps.gaps}, nil
}

// hour is the last hour, perhaps a second old, for all who show something of it.
func (s *Service) hour(ctx context.Context) (*lastHour, error) {
	return answer(ctx, s.snapshots, "steps", func() (*lastHour, error) { return s.readHour(ctx) })
}

// QueuesNow lists the queues of a scope as Queues does. The answer may be a second old, and is shared: nobody changes it.
func (s *Service) QueuesNow(ctx context.Context, scope model.Scope) ([]*queues.Queue, error) {
	ctx = s.store.Within(ctx, 0)
	found, err := answer(ctx, s.snapshots, "queues "+scope.String(), func() ([]*queues.Queue, error) { return s.queues.List(ctx, scope) })
	if err != nil {
		return nil, s.refused(err)
	}
	return found, nil
}

// refused is an error as callers know it: one whose time is over while it waits for another's answer is too late.
func (s *Service) refused(err error) error {
	if model.CodeOf(err) == "" {
		return s.store.Late()
	}
	return err
}
