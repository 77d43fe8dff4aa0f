package sweep

import (
	"context"
	"errors"
)

// split parts what the sweeper takes itself from the outboxes.
func split(todo []overdue) (take, outboxes []overdue) {
	for _, o := range todo {
		if o.kind == "outbox" {
			outboxes = append(outboxes, o)
		} else {
			take = append(take, o)
		}
	}
	return take, outboxes
}

// carry empties outboxes. A ranked sweeper does it beside its rounds: the workers' shards may lie on a node that does
// not answer, and no verdict must wait for that one.
func (s *Sweeper) carry(ctx context.Context, outboxes []overdue, ranked bool, result *SweepResult) error {
	var failed error
	for _, o := range outboxes {
		if _, busy := s.carrying.LoadOrStore(o.shard, true); busy {
			continue
		}
		run := func() error {
			defer s.carrying.Delete(o.shard)
			for more := true; more; {
				var err error
				if more, err = s.t.holdings.SendNotices(ctx, o.shard, o.grace); err != nil {
					return err
				}
			}
			return nil
		}
		if ranked {
			s.beside.Go(s.t.store.Guard("carrying notices", func() { _ = run() })) // what fails is found again
		} else {
			failed = errors.Join(failed, run())
		}
	}
	return failed
}
