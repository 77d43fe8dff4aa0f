package workers

import (
	"cmp"
	"context"

	"github.com/lubdub-io/lubdub/tracker/model"
	"github.com/lubdub-io/lubdub/tracker/schema"
	"github.com/lubdub-io/lubdub/tracker/store"
)

// WorkerNotFound is the code of a worker that this scope does not have, or not any more.
const WorkerNotFound model.Code = "worker_not_found"

// NoWorker is the error about a worker that this scope does not have, or not any more.
func NoWorker(op string) error {
	return &model.Error{
		Code: WorkerNotFound, Op: op,
		Message: "no worker with this id in this tenant and workspace; OFFLINE workers are removed at the end of their retention: register again",
	}
}

// identityOr returns what names a worker's identity key: one that has no identity is named after itself.
func identityOr(identity, id string) string { return cmp.Or(identity, id) }

// findWorker resolves a worker's keys.
func (s *Service) findWorker(ctx context.Context, op string, scope model.Scope, id string) (*schema.WorkerRef, error) {
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

// WorkerNames makes the calls that resolve refs, each about one shard. Call resolve when they have run: it fills the refs in and
// returns those that exist.
func (s *Service) Names(refs []*schema.WorkerRef) (calls []*store.Call, resolve func() []*schema.WorkerRef) {
	groups := schema.WorkersByShard(refs)
	for _, group := range groups {
		calls = append(calls, s.namesCall(group))
	}
	return calls, func() (found []*schema.WorkerRef) {
		for g, group := range groups {
			found = append(found, readNames(calls[g].Reply, group)...) // of one that failed there is no reply
		}
		return found
	}
}

// refOf returns the resolved name of a worker that was read.
func (s *Service) refOf(w *model.Worker) *schema.WorkerRef {
	r, _ := s.store.WorkerRef(w.Scope, w.ID)
	r.Machine, r.Lineage, r.Identity = w.MachineID, w.Lineage, identityOr(w.Identity, w.ID)
	return r
}
