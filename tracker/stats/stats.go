package stats

import (
	"context"
	"time"

	"github.com/lubdub-io/lubdub/tracker/model"
	"github.com/lubdub-io/lubdub/tracker/queues"
)

// Stats are the counts of a scope, and the activity of the deployment in the last hour.
type Stats struct {
	At     time.Time
	Counts *Counts // of the scope
	Steps  []*Step // of the last hour, oldest first, without steps that no replica reported
	Gaps   Gaps    // of the last hour
}

// Get returns the statistics of one scope, of a whole tenant if the workspace is empty, or of all for the zero Scope. The result
// may be a second old and is shared: the caller must not change it.
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

// hour returns the last hour for all callers that show a part of it; it may be a second old.
func (s *Service) hour(ctx context.Context) (*lastHour, error) {
	return answer(ctx, s.snapshots, "steps", func() (*lastHour, error) { return s.readHour(ctx) })
}

// QueuesNow lists the queues of a scope. The result may be a second old and is shared: the caller must not change it.
func (s *Service) QueuesNow(ctx context.Context, scope model.Scope) ([]*queues.Queue, error) {
	ctx = s.store.Within(ctx, 0)
	found, err := answer(ctx, s.snapshots, "queues "+scope.String(), func() ([]*queues.Queue, error) { return s.queues.List(ctx, scope) })
	if err != nil {
		return nil, s.refused(err)
	}
	return found, nil
}

// refused returns an error as callers expect it: a caller whose time runs out while another one computes the result is too late.
func (s *Service) refused(err error) error {
	if model.CodeOf(err) == "" {
		return s.store.TooLateError()
	}
	return err
}
