package tracker

// checkPins refuses tasks that name a worker which is not there: nobody would ever claim them. As with a deadline that has
// passed, the repeat with an idempotency key gets its first answer all the same.
func (t *Tracker) checkPins(batch []*creation) {
	pinned := map[*workerRef][]*creation{}
	known := map[string]*workerRef{}
	var refs []*workerRef
	for _, c := range batch {
		if c.WorkerID == "" || c.late != nil {
			continue
		}
		name := taskName(c.Scope, c.WorkerID)
		r, asked := known[name]
		if !asked {
			var ok bool
			r, ok = t.workerRef(c.Scope, c.WorkerID)
			if known[name] = r; ok {
				refs = append(refs, r)
			}
		}
		pinned[r] = append(pinned[r], c)
	}
	calls, resolve := t.workerNames(refs)
	t.store.doAll("create", calls)
	resolve()
	failed := map[int]error{}
	for _, c := range calls {
		if c.err != nil {
			failed[c.shard] = c.err
		}
	}
	for r, tasks := range pinned {
		for _, c := range tasks {
			switch {
			case r.machine != "": // it is there
			case failed[r.shard] != nil:
				c.err = failed[r.shard]
			default:
				c.late = invalid("workerId", "names no worker of this tenant and workspace, so nobody would ever claim the task; take one from GET /v1/workers, or leave it out")
				if c.IdempotencyKey == "" {
					c.err = c.late
				}
			}
		}
	}
}
