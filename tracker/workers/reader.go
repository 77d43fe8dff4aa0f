package workers

import (
	"context"

	"github.com/lubdub-io/lubdub/tracker/model"
	"github.com/lubdub-io/lubdub/tracker/schema"
	"github.com/lubdub-io/lubdub/tracker/store"
)

// reader finds workers in the index and reads their records.
type reader struct {
	store   *store.Store
	scripts *scripts
}

// findWorker returns a worker's reference with the names of its keys.
func (s *reader) findWorker(ctx context.Context, op string, scope model.Scope, id string) (*schema.WorkerRef, error) {
	r, ok := s.store.WorkerRef(scope, id)
	if !ok {
		return nil, NoWorker(op)
	}
	calls, resolve := s.Names([]*schema.WorkerRef{r})
	s.store.DoAll(ctx, op, calls)
	if err := store.FirstError(calls); err != nil {
		return nil, err
	}
	if len(resolve()) == 0 {
		return nil, NoWorker(op)
	}
	return r, nil
}

// Names returns the calls that resolve refs, each about one shard. Call resolve after they have run: it completes the refs and
// returns those that exist.
func (s *reader) Names(refs []*schema.WorkerRef) (calls []*store.Call, resolve func() []*schema.WorkerRef) {
	groups := schema.WorkersByShard(refs)
	for _, group := range groups {
		calls = append(calls, s.scripts.namesCall(group))
	}
	return calls, func() (found []*schema.WorkerRef) {
		for g, group := range groups {
			found = append(found, readNames(calls[g].Reply, group)...) // a failed call has no reply
		}
		return found
	}
}

// refOf returns the resolved reference of a worker that was read.
func (s *reader) refOf(w *model.Worker) *schema.WorkerRef {
	r, _ := s.store.WorkerRef(w.Scope, w.ID)
	r.Machine, r.Lineage, r.Identity = w.MachineID, w.Lineage, identityOr(w.Identity, w.ID)
	return r
}

// Read reads the records of many workers and their holds, without those that are gone. complete adds their loads and the history
// of their machines and lineages.
func (s *reader) Read(ctx context.Context, op string, refs []*schema.WorkerRef) ([]*model.Worker, error) {
	groups := schema.WorkersByShard(refs)
	calls := store.CallEach(groups, s.scripts.readCall)
	s.store.DoBulk(ctx, op, calls)
	if err := store.FirstError(calls); err != nil {
		return nil, err
	}
	at := make(map[*schema.WorkerRef]*model.Worker, len(refs))
	for g, group := range groups {
		now, records := readRecords(calls[g].Reply, len(group))
		for i, r := range group {
			at[r] = newWorker(r, now, records[i])
		}
	}
	workers := make([]*model.Worker, 0, len(refs))
	for _, r := range refs {
		if at[r] != nil {
			workers = append(workers, at[r])
		}
	}
	return workers, s.readHolds(ctx, op, workers)
}

// readHolds reads the holds of workers that were held offline. A hold is of a lineage and is lifted with any of its workers.
func (s *reader) readHolds(ctx context.Context, op string, workers []*model.Worker) error {
	var held []*model.Worker
	for _, w := range workers {
		if w.Hold != nil {
			held = append(held, w)
		}
	}
	groups := s.byHome(held, holdsAtOnce)
	calls := make([]*store.Call, len(groups))
	for i, group := range groups {
		shard, _ := s.store.WorkerShard(group[0].ID)
		calls[i] = s.scripts.holdsCall(shard, group)
	}
	s.store.DoBulk(ctx, op, calls)
	if err := store.FirstError(calls); err != nil {
		return err
	}
	for i, group := range groups {
		for j, w := range group {
			w.Hold = readHold(calls[i].Reply, j)
		}
	}
	return nil
}

// byHome groups workers by their own shards, with at most that many in a group.
func (s *reader) byHome(workers []*model.Worker, most int) [][]*model.Worker {
	return schema.ByShard(workers, most, func(w *model.Worker) int {
		shard, _ := s.store.WorkerShard(w.ID)
		return shard
	})
}

// OfMachine returns the IDs of a machine's workers, including OFFLINE ones that are still known.
func (s *reader) OfMachine(ctx context.Context, op string, scope model.Scope, machine string) (map[string]bool, error) {
	shard, after := s.store.MachineShard(scope, machine), map[string]string{}
	for _, status := range model.WorkerStatuses {
		after[model.StatusCode(status)] = ""
	}
	ids, key := map[string]bool{}, s.store.Keys[shard].MachineWorkers(schema.TaskName(scope, machine))
	for len(after) > 0 && len(ids) < maxWorkers {
		var calls []*store.Call
		var letters []string
		for letter, last := range after {
			letters = append(letters, letter)
			calls = append(calls, s.scripts.ListCall(shard, []string{key}, ListArgs{States: letter, After: last, Limit: idsAtOnce}))
		}
		s.store.DoBulk(ctx, op, calls)
		if err := store.FirstError(calls); err != nil {
			return nil, err
		}
		clear(after)
		for i, c := range calls {
			page := ReadList(c.Reply, 1, 1)[0].IDs[0]
			for _, id := range page {
				ids[id] = true
			}
			if len(page) == idsAtOnce {
				after[letters[i]] = page[len(page)-1]
			}
		}
	}
	return ids, nil
}
