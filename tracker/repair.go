package tracker

import (
	"slices"
	"strings"
	"time"
)

// repairTasks holds entries of a set about tasks against their records.
func (s *Sweeper) repairTasks(shard int, w walk, entries []string) (map[string]int, error) {
	t := s.t
	var refs []*taskRef
	var texts, workers []string
	for _, entry := range entries {
		if scope, id, worker, ok := entryOf(w.set, entry, shard); ok && t.store.shardOf(scope, id) == shard {
			refs, texts, workers = append(refs, t.ref(scope, id)), append(texts, entry), append(workers, worker)
		}
	}
	names, resolve := t.nameCalls(refs)
	t.store.doBulk("reconcile", names)
	for _, c := range names {
		if c.err != nil {
			return nil, c.err
		}
	}
	resolve()
	ended, err := s.endedWorkers(refs, workers)
	if err != nil {
		return nil, err
	}
	k := t.store.keys[shard]
	var calls []*call
	for from := 0; from < len(refs); from += repairLimit {
		keys := append(append(make([]string, 0, len(k.fixed)+2+5*repairLimit), k.fixed...), w.key(k), k.fences)
		args := []any{w.set, w.timeout, s.id, ms(t.opts.FinishedRetention), ms(DefaultCancelGrace), ms(DefaultClaimStartTimeout),
			int64(DefaultTokenTTL.Seconds()), ms(t.workerTimeout())}
		for i := from; i < min(from+repairLimit, len(refs)); i++ {
			r := refs[i]
			timeout := r.timeoutMs
			if timeout == "" {
				timeout = "0" // there is no record, so nothing is put into a beats set
			}
			keys = k.ofTask(keys, r.scope, r.id, r.run, timeout)
			args = append(args, r.scope.String(), r.id, texts[i], ended[workers[i]])
		}
		calls = append(calls, newCall(shard, t.store.scripts.Get("repair_tasks"), keys, args...))
	}
	t.store.doBulk("reconcile", calls)
	return t.countRepairs(calls)
}

// workerTimeout is how long a worker may be silent unless its interval was stretched.
func (t *Tracker) workerTimeout() time.Duration {
	return t.opts.WorkerInterval * time.Duration(t.opts.WorkerTimeoutMultiplier)
}

// endedWorkers tells what became of the workers that hold these tasks: "1" OFFLINE, "2" without a record for as long as
// one may be silent, "" neither, or it is being recovered. Until then a worker may live and be adopted by its next beat.
func (s *Sweeper) endedWorkers(refs []*taskRef, workers []string) (map[string]string, error) {
	t, ended := s.t, map[string]string{}
	var holders []*workerRef
	for i, id := range workers {
		if _, known := ended[id]; known || id == "" {
			continue
		}
		ended[id] = ""
		if r, ok := t.workerRef(refs[i].scope, id); ok {
			holders = append(holders, r)
		}
	}
	groups := byShard(holders)
	calls := make([]*call, len(groups))
	for g, group := range groups {
		k := t.store.keys[group[0].shard]
		keys, args := []string{k.clock, k.recoveries}, []any{}
		for _, r := range group {
			name := taskName(r.scope, r.id)
			keys, args = append(keys, k.worker(name)), append(args, name)
		}
		calls[g] = newCall(group[0].shard, t.store.scripts.Get("worker_ended"), keys, args...)
	}
	t.store.doBulk("reconcile", calls)
	for g, group := range groups {
		if calls[g].err != nil {
			return nil, calls[g].err
		}
		now := calls[g].reply.int(0)
		for i, r := range group {
			what := calls[g].reply.str(1 + i)
			long := s.withoutRecord(r.id, what == "2", now)
			if what == "1" || what == "2" && long > t.workerTimeout() {
				ended[r.id] = what
			}
		}
	}
	return ended, nil
}

// withoutRecord tells for how long, in shard time, a worker has been found without a record; it is just now, or is not.
func (s *Sweeper) withoutRecord(id string, is bool, now int64) time.Duration {
	const most = 100_000 // of those that are remembered
	s.mu.Lock()
	defer s.mu.Unlock()
	if !is {
		delete(s.recordless, id)
		return 0
	}
	since, known := s.recordless[id]
	if !known {
		if len(s.recordless) >= most {
			clear(s.recordless)
		}
		s.recordless[id], since = now, now
	}
	return time.Duration(now-since) * time.Millisecond
}

// workerEntry is an entry of a set that names a worker.
type workerEntry struct {
	ref   *workerRef
	set   string
	entry string
}

// repairWorkers holds entries of a set about workers against their records, and the lists of machines that it names
// too.
func (t *Tracker) repairWorkers(shard int, set string, entries []string) (map[string]int, error) {
	var found []workerEntry
	var machines []*workerRef
	for _, entry := range entries {
		name := entry
		if set == "workerdue" {
			_, name, _ = strings.Cut(entry, ":")
		}
		scope, id, ok := splitName(name)
		if letter, rest, cut := strings.Cut(id, "/"); set == "workers" && cut { // <scope>/<status letter>/<worker>
			if id = rest; letter == "M" {
				machines = append(machines, &workerRef{scope: scope, shard: shard, machine: id})
				continue
			}
		}
		if ok {
			found = append(found, workerEntry{&workerRef{scope: scope, id: id, shard: shard}, set, entry})
		}
	}
	members, err := t.machineMembers(shard, machines)
	if err != nil {
		return nil, err
	}
	found = append(found, members...)
	machineOf := make([]string, len(found))
	refs := make([]*workerRef, len(found))
	for i, e := range found {
		refs[i], machineOf[i] = e.ref, e.ref.machine
	}
	calls, resolve := t.workerNames(refs)
	t.store.doBulk("reconcile", calls)
	for _, c := range calls {
		if c.err != nil {
			return nil, c.err
		}
	}
	resolve()
	for i, r := range refs {
		if r.machine == "" { // no record: its machine is the one that listed it
			r.machine, r.lineage, r.identity = machineOf[i], r.id, r.id
			if r.machine == "" {
				r.machine = r.id
			}
		}
	}
	for _, m := range machines {
		found = append(found, workerEntry{&workerRef{scope: m.scope, shard: shard, machine: m.machine, lineage: m.machine, identity: m.machine}, "machine", ""})
	}
	repairs := t.repairWorkerCalls(found)
	t.store.doBulk("reconcile", repairs)
	return t.countRepairs(repairs)
}

// machineMembers lists the workers that machines count as theirs.
func (t *Tracker) machineMembers(shard int, machines []*workerRef) (found []workerEntry, err error) {
	const limit = 100 // of each status; a machine has few
	k := t.store.keys[shard]
	calls := make([]*call, len(machines))
	for i, m := range machines {
		calls[i] = newCall(shard, t.store.scripts.Get("list"), []string{k.machineWorkers(taskName(m.scope, m.machine))}, "", "NDF", "", limit, "")
	}
	t.store.doBulk("reconcile", calls)
	for i, m := range machines {
		if calls[i].err != nil {
			return nil, calls[i].err
		}
		for at, letter := range []string{"N", "D", "F"} {
			for _, id := range calls[i].reply.list(at).strings() {
				found = append(found, workerEntry{&workerRef{scope: m.scope, id: id, shard: shard, machine: m.machine}, "machineworkers", letter + "/" + id})
			}
		}
	}
	return found, nil
}

// repairWorkerCalls makes the calls for entries of one shard whose keys are resolved.
func (t *Tracker) repairWorkerCalls(entries []workerEntry) (calls []*call) {
	for part := range slices.Chunk(entries, repairLimit) {
		shard := part[0].ref.shard
		k := t.store.keys[shard]
		keys, args := slices.Clone(k.ofWorkers), []any{ms(t.opts.OfflineRetention), t.store.shards()}
		for _, e := range part {
			keys = k.ofWorker(keys, e.ref)
			args = append(args, e.ref.scope.String(), e.ref.id, e.ref.machine, e.set, e.entry)
		}
		calls = append(calls, newCall(shard, t.store.scripts.Get("repair_workers"), keys, args...))
	}
	return calls
}
