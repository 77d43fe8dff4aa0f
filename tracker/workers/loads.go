package workers

import (
	"context"
	"slices"

	"github.com/lubdub-io/lubdub/tracker/model"
	"github.com/lubdub-io/lubdub/tracker/store"
)

// mostHeld is how many entries one scan of everything held may have; with more, loads are counted worker by worker.
const mostHeld = 4000

// manyWorkers is the number of workers from which one scan of everything held is tried first.
const manyWorkers = 64

// loadsAtOnce is how many workers' loads one script counts.
const loadsAtOnce = 250

// runner runs calls in a lane: store.DoAll for results that a decision waits for, store.DoBulk for results that are only shown.
type runner func(ctx context.Context, op string, calls []*store.Call)

// loads counts what workers hold and what waits for them alone.
type loads struct {
	store   *store.Store
	scripts *scripts
}

// CountLoad counts what workers of one scope hold and what waits for them alone.
func (s *loads) CountLoad(ctx context.Context, run runner, op string, workers []*model.Worker) error {
	if len(workers) >= manyWorkers {
		if done, err := s.countAllLoads(ctx, run, op, workers); done || err != nil {
			return err
		}
	}
	calls, set := s.LoadCalls(workers)
	run(ctx, op, calls)
	if err := store.FirstError(calls); err != nil {
		return err
	}
	set()
	return nil
}

// LoadCalls returns the calls that count the loads of workers in every shard; call set after they have run.
func (s *loads) LoadCalls(workers []*model.Worker) (calls []*store.Call, set func()) {
	groups := slices.Collect(slices.Chunk(workers, loadsAtOnce))
	for _, group := range groups {
		for shard := range s.store.Keys {
			calls = append(calls, s.scripts.loadsCall(shard, group))
		}
	}
	return calls, func() {
		shards := s.store.Shards()
		for g, group := range groups {
			for i, w := range group {
				w.Held, w.Placed = 0, 0
				for _, c := range calls[g*shards : (g+1)*shards] {
					addLoad(w, readLoad(c.Reply, i))
				}
			}
		}
	}
}

func addLoad(w *model.Worker, l load) {
	w.Held += l.held
	w.Placed += l.placed
}

// countAllLoads counts the loads of workers by scanning everything held; false: there is too much.
func (s *loads) countAllLoads(ctx context.Context, run runner, op string, workers []*model.Worker) (done bool, err error) {
	var queues []string
	byID := make(map[string]*model.Worker, len(workers))
	for _, w := range workers {
		w.Held, w.Placed = 0, 0
		byID[w.ID] = w
		if name := w.Scope.String() + "/" + w.Queue; !slices.Contains(queues, name) {
			queues = append(queues, name)
		}
	}
	calls := make([]*store.Call, s.store.Shards())
	for shard := range calls {
		calls[shard] = s.scripts.allLoadsCall(shard, min(4*len(workers), mostHeld), queues)
	}
	run(ctx, op, calls)
	if err := store.FirstError(calls); err != nil {
		return false, err
	}
	replies := make([]allLoadsReply, len(calls))
	for shard, c := range calls {
		if replies[shard] = readAllLoads(c.Reply); !replies[shard].within {
			return false, nil
		}
	}
	for _, reply := range replies {
		for id, l := range reply.loads {
			if w := byID[id]; w != nil {
				addLoad(w, l)
			}
		}
	}
	return true, nil
}
