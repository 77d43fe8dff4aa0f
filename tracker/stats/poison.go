package stats

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/lubdub-io/lubdub/tracker/model"
	"github.com/lubdub-io/lubdub/tracker/schema"
	"github.com/lubdub-io/lubdub/tracker/store"
)

const (
	// MaxPoisonTasks is how many tasks a result lists.
	MaxPoisonTasks = 10
	// poisonLosses is how many workers must be lost with a task before it is suspected. Two are enough where they used up its retries.
	poisonLosses = 3
	// poisonWorkers is how many of a task's lost workers are read.
	poisonWorkers = 10
)

// PoisonTask is a task that ran on several workers when they were lost, so it may be what ends them.
type PoisonTask struct {
	Task    *model.Task     // as it is now, with its history
	Workers []*model.Worker // those that were lost in the last hour, newest first
	Last    time.Time       // when Lubdub ended its newest lost attempt
}

// PoisonTasks returns the tasks of a workspace that lost the most workers in the last hour, most first. It examines only the
// latest verdicts of each shard. The result may be a second old and is shared: the caller must not change it.
func (s *Service) PoisonTasks(ctx context.Context, scope model.Scope) ([]PoisonTask, error) {
	ctx = s.store.Within(ctx, 0)
	found, err := answer(ctx, s.snapshots, "poison "+scope.String(), func() ([]PoisonTask, error) { return s.readPoisonTasks(ctx, scope) })
	if err != nil {
		return nil, s.refused(err)
	}
	return found, nil
}

func (s *Service) readPoisonTasks(ctx context.Context, scope model.Scope) ([]PoisonTask, error) {
	re, err := s.store.Do(ctx, "stats", s.fleetCall(nil))
	if err != nil {
		return nil, err
	}
	since := readFleet(re).now.Add(-recently)
	calls := make([]*store.Call, len(s.store.Keys))
	for shard := range calls {
		calls[shard] = s.verdictsCall(shard, scope, since, never)
	}
	s.store.DoBulk(ctx, "stats", calls)
	if err := store.FirstError(calls); err != nil {
		return nil, err
	}
	suspects := suspectsOf(calls)
	lost, err := s.readLostOf(ctx, scope, suspects)
	if err != nil {
		return nil, err
	}
	var found []PoisonTask
	for _, p := range suspects {
		is := PoisonTask{Last: p.last}
		for _, id := range p.workers {
			if w := lost[id]; w != nil {
				is.Workers = append(is.Workers, w)
			}
		}
		if len(is.Workers) < poisonLosses-1 || len(found) == MaxPoisonTasks {
			continue
		}
		is.Task, err = s.opts.Task(ctx, scope, p.task)
		switch e := (*model.Error)(nil); {
		case errors.As(err, &e) && e.Code == model.NotFound:
			continue
		case err != nil:
			return nil, err
		case is.Task.State == model.Succeeded || is.Task.State == model.Cancelled || is.Task.CancelRequested:
			continue // it does no harm any more: a cancelled task is not retried, even if its last attempt ends its worker and it ends FAILED
		case len(is.Workers) >= poisonLosses || is.Task.RetriesExhausted:
			found = append(found, is)
		}
	}
	return found, nil
}

// suspect is a task and the workers, newest first, that had it when Lubdub ended its attempts.
type suspect struct {
	task    string
	workers []string
	last    time.Time
}

// suspectsOf returns the tasks that more than one worker had, those with the most workers first, as many as are worth reading.
func suspectsOf(calls []*store.Call) (found []*suspect) {
	of := map[string]*suspect{}
	for _, c := range calls {
		for _, text := range readVerdicts(c.Reply) { // newest first, and all of a task are in one shard
			v, ok := schema.ParseVerdict(text)
			if !ok || v.WorkerID == "" || v.Reason != model.WorkerLost && v.Reason != model.HeartbeatTimeout {
				continue
			}
			p := of[v.TaskID]
			if p == nil {
				p = &suspect{task: v.TaskID, last: v.At}
				of[v.TaskID] = p
			}
			if len(p.workers) < poisonWorkers && !slices.Contains(p.workers, v.WorkerID) {
				p.workers = append(p.workers, v.WorkerID)
			}
		}
	}
	for _, p := range of {
		if len(p.workers) >= poisonLosses-1 {
			found = append(found, p)
		}
	}
	slices.SortFunc(found, func(a, b *suspect) int {
		return cmp.Or(cmp.Compare(len(b.workers), len(a.workers)), b.last.Compare(a.last), cmp.Compare(a.task, b.task))
	})
	return found[:min(len(found), 2*MaxPoisonTasks)]
}

// readLostOf reads the workers of suspects that ended because they were silent or replaced, by their ids.
func (s *Service) readLostOf(ctx context.Context, scope model.Scope, suspects []*suspect) (map[string]*model.Worker, error) {
	seen := map[string]bool{}
	var refs []*schema.WorkerRef
	for _, p := range suspects {
		for _, id := range p.workers {
			if r, ok := s.store.WorkerRef(scope, id); ok && !seen[id] {
				seen[id] = true
				refs = append(refs, r)
			}
		}
	}
	list, err := s.workers.ReadLost(ctx, "stats", refs)
	if err != nil {
		return nil, err
	}
	lost := map[string]*model.Worker{}
	for _, w := range list {
		if w.EndReason == model.WorkerStale || w.EndReason == model.WorkerSuperseded {
			lost[w.ID] = w
		}
	}
	return lost, nil
}
