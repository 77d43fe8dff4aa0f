package workers

import (
	"context"

	"github.com/lubdub-io/lubdub/tracker/model"
	"github.com/lubdub-io/lubdub/tracker/schema"
	"github.com/lubdub-io/lubdub/tracker/store"
)

// DrainMachine drains every worker of a machine, and has those that register on it later wait, DRAINING, until it is
// resumed. Again it may set another deadline and reason.
func (t *Service) DrainMachine(ctx context.Context, scope model.Scope, id string, d Drain) (*Drained, error) {
	ctx = t.store.Within(ctx, 0)
	if err := t.setMachine(ctx, "drain", scope, id, d); err != nil {
		return nil, err
	}
	d.withMachine = true // whoever registers from here on has found the machine drained
	drained, err := t.DrainWorkers(ctx, WorkerFilter{Scope: scope, MachineID: id}, d, false)
	if model.CodeOf(err) == NoWorkersMatch {
		return &Drained{}, nil
	}
	return drained, err
}

// Resumed counts what resuming a machine did.
type Resumed struct {
	Matched int      // workers of it that were DRAINING
	Workers []string // those of them that are ONLINE now
}

// ResumeMachine takes the drain of a machine back, and that of the workers which drain with it. Those that were drained
// by themselves go on draining. What a failure cuts off is done by the same call again.
func (t *Service) ResumeMachine(ctx context.Context, scope model.Scope, id, given string) (*Resumed, error) {
	ctx = t.store.Within(ctx, 0)
	const op = "resume"
	if err := t.setMachine(ctx, op, scope, id, Drain{Reason: given}); err != nil {
		return nil, err
	}
	refs, err := t.WorkerIDs(ctx, op, scope, []model.WorkerStatus{model.Draining})
	if err != nil {
		return nil, err
	}
	workers, err := t.sift(ctx, op, refs, func(w *model.Worker) bool { return w.MachineID == id })
	if err != nil {
		return nil, err
	}
	calls := make([]*store.Call, len(workers))
	for i, w := range workers {
		calls[i] = t.statusCall(t.refOf(w), op, statusChange{given: given, withMachine: true})
	}
	t.store.DoAll(ctx, op, calls)
	result := &Resumed{Matched: len(workers)}
	for i, c := range calls {
		if c.Err != nil {
			return nil, c.Err
		}
		if c.Reply.Int(0) == schema.CodeOK {
			result.Workers = append(result.Workers, workers[i].ID)
		}
	}
	return result, nil
}

// setMachine tells the machine alone.
func (t *Service) setMachine(ctx context.Context, op string, scope model.Scope, id string, d Drain) error {
	shard := t.store.MachineShard(scope, id)
	k, name := t.store.Keys[shard], schema.TaskName(scope, id)
	keys := append(append([]string(nil), k.OfWorkers...), k.Machine(name), k.MachineWorkers(name), k.MachinePeriods(name), k.Stales(scope, "m:"+id))
	reply, err := t.store.Do(ctx, op, store.NewCall(shard, t.store.Scripts.Get("machine_drain"), keys,
		scope.String(), id, op, d.deadline(), d.Reason, jsonOrNull(d.Reason)))
	if err != nil {
		return err
	}
	if reply.Int(0) == schema.CodeNotFound {
		return machineNotFound(op)
	}
	return nil
}
