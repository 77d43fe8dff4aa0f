package tracker

import "context"

// DrainMachine drains every worker of a machine, and has those that register on it later wait, DRAINING, until it is
// resumed. Again it may set another deadline and reason.
func (t *Tracker) DrainMachine(ctx context.Context, scope Scope, id string, d Drain) (*Drained, error) {
	t = t.within(ctx, 0)
	if err := t.setMachine("drain", scope, id, d); err != nil {
		return nil, err
	}
	d.withMachine = true // whoever registers from here on has found the machine drained
	drained, err := t.DrainWorkers(ctx, WorkerFilter{Scope: scope, MachineID: id}, d, false)
	if CodeOf(err) == NoWorkersMatch {
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
func (t *Tracker) ResumeMachine(ctx context.Context, scope Scope, id, given string) (*Resumed, error) {
	t = t.within(ctx, 0)
	const op = "resume"
	if err := t.setMachine(op, scope, id, Drain{Reason: given}); err != nil {
		return nil, err
	}
	refs, err := t.workerIDs(op, scope, []WorkerStatus{Draining})
	if err != nil {
		return nil, err
	}
	workers, err := t.sift(op, refs, func(w *Worker) bool { return w.MachineID == id })
	if err != nil {
		return nil, err
	}
	calls := make([]*call, len(workers))
	for i, w := range workers {
		calls[i] = t.statusCall(t.refOf(w), op, statusChange{given: given, withMachine: true})
	}
	t.store.doAll(op, calls)
	result := &Resumed{Matched: len(workers)}
	for i, c := range calls {
		if c.err != nil {
			return nil, c.err
		}
		if c.reply.int(0) == codeOK {
			result.Workers = append(result.Workers, workers[i].ID)
		}
	}
	return result, nil
}

// setMachine tells the machine alone.
func (t *Tracker) setMachine(op string, scope Scope, id string, d Drain) error {
	shard := t.store.machineShard(scope, id)
	k, name := t.store.keys[shard], taskName(scope, id)
	keys := append(append([]string(nil), k.ofWorkers...), k.machine(name), k.machineWorkers(name), k.machinePeriods(name), k.stales(scope, "m:"+id))
	reply, err := t.store.do(op, newCall(shard, t.store.scripts.Get("machine_drain"), keys,
		scope.String(), id, op, d.deadline(), d.Reason, jsonOrNull(d.Reason)))
	if err != nil {
		return err
	}
	if reply.int(0) == codeNotFound {
		return machineNotFound(op)
	}
	return nil
}
