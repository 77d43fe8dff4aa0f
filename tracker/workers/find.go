package workers

import (
	"context"

	"github.com/lubdub-io/lubdub/tracker/model"
	"github.com/lubdub-io/lubdub/tracker/schema"
	"github.com/lubdub-io/lubdub/tracker/store"
)

// WorkerNotFound is the code of a worker that this scope does not have, or not any more.
const WorkerNotFound model.Code = "worker_not_found"

func NoWorker(op string) error {
	return &model.Error{Code: WorkerNotFound, Op: op, Message: "no worker with this id in this tenant and workspace; OFFLINE workers are removed at the end of their retention: register again"}
}

// findWorker resolves a worker's keys.
func (t *Service) findWorker(ctx context.Context, op string, scope model.Scope, id string) (*schema.WorkerRef, error) {
	r, ok := t.store.WorkerRef(scope, id)
	if !ok {
		return nil, NoWorker(op)
	}
	found, err := t.findWorkers(ctx, op, []*schema.WorkerRef{r})
	if err != nil {
		return nil, err
	}
	if len(found) == 0 {
		return nil, NoWorker(op)
	}
	return r, nil
}

// findWorkers resolves the keys of many and leaves out those that are gone.
func (t *Service) findWorkers(ctx context.Context, op string, refs []*schema.WorkerRef) ([]*schema.WorkerRef, error) {
	calls, resolve := t.WorkerNames(refs)
	t.store.DoAll(ctx, op, calls)
	for _, c := range calls {
		if c.Err != nil {
			return nil, c.Err
		}
	}
	return resolve(), nil
}

// WorkerNames makes the calls that resolve refs, one for each shard; call the result when they have run.
func (t *Service) WorkerNames(refs []*schema.WorkerRef) (calls []*store.Call, resolve func() []*schema.WorkerRef) {
	groups := schema.WorkersByShard(refs)
	for _, group := range groups {
		k := t.store.Keys[group[0].Shard]
		keys := make([]string, len(group))
		for i, r := range group {
			keys[i] = k.Worker(schema.TaskName(r.Scope, r.ID))
		}
		calls = append(calls, store.NewCall(group[0].Shard, t.store.Scripts.Get("worker_names"), keys))
	}
	return calls, func() (found []*schema.WorkerRef) {
		for g, group := range groups {
			for i, r := range group {
				re := calls[g].Reply
				if r.Machine = re.Str(3 * i); calls[g].Err == nil && r.Machine != "" {
					r.Lineage, r.Identity = re.Str(3*i+1), re.Str(3*i+2)
					if r.Identity == "" {
						r.Identity = r.ID
					}
					found = append(found, r)
				}
			}
		}
		return found
	}
}

// WorkerKeys gives the keys of a resolved worker as scripts about workers declare them.
func (t *Service) WorkerKeys(r *schema.WorkerRef) []string {
	k := t.store.Keys[r.Shard]
	return k.OfWorker(append(make([]string, 0, len(k.OfWorkers)+9), k.OfWorkers...), r)
}
