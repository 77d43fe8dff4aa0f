package sweep

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/lubdub-io/lubdub/tracker/model"
	"github.com/lubdub-io/lubdub/tracker/schema"
	"github.com/lubdub-io/lubdub/tracker/store"
)

// repairTasks holds entries of a set about tasks against their records.
func (s *Sweeper) repairTasks(ctx context.Context, shard int, w walk, entries []string) (map[string]int, error) {
	t := s.t
	var refs []*schema.TaskRef
	var texts, workers []string
	for _, entry := range entries {
		if scope, id, worker, ok := entryOf(w.set, entry, shard); ok && t.store.ShardOf(scope, id) == shard {
			refs, texts, workers = append(refs, t.store.Ref(scope, id)), append(texts, entry), append(workers, worker)
		}
	}
	names, resolve := t.tasks.NameCalls(refs)
	t.store.DoBulk(ctx, "reconcile", names)
	for _, c := range names {
		if c.Err != nil {
			return nil, c.Err
		}
	}
	resolve()
	ended, err := s.endedWorkers(ctx, refs, workers)
	if err != nil {
		return nil, err
	}
	k := t.store.Keys[shard]
	var calls []*store.Call
	for from := 0; from < len(refs); from += repairLimit {
		keys := append(append(make([]string, 0, len(k.Fixed)+2+5*repairLimit), k.Fixed...), w.key(k), k.Fences)
		args := []any{w.set, w.timeout, s.id, model.Millis(t.opts.FinishedRetention), model.Millis(model.DefaultCancelGrace), model.Millis(model.DefaultClaimStartTimeout),
			int64(model.DefaultTokenTTL.Seconds()), model.Millis(t.workerTimeout())}
		for i := from; i < min(from+repairLimit, len(refs)); i++ {
			r := refs[i]
			timeout := r.TimeoutMs
			if timeout == "" {
				timeout = "0" // there is no record, so nothing is put into a beats set
			}
			keys = k.OfTask(keys, r.Scope, r.ID, r.Run, timeout)
			args = append(args, r.Scope.String(), r.ID, texts[i], ended[workers[i]])
		}
		calls = append(calls, store.NewCall(shard, t.store.Scripts.Get("repair_tasks"), keys, args...))
	}
	t.store.DoBulk(ctx, "reconcile", calls)
	return t.countRepairs(calls)
}

// workerTimeout is how long a worker may be silent unless its interval was stretched.
func (t *Service) workerTimeout() time.Duration {
	return t.opts.WorkerInterval * time.Duration(t.opts.WorkerTimeoutMultiplier)
}

// endedWorkers tells what became of the workers that hold these tasks: "1" OFFLINE, "2" without a record for as long as
// one may be silent, "" neither, or it is being recovered. Until then a worker may live and be adopted by its next beat.
func (s *Sweeper) endedWorkers(ctx context.Context, refs []*schema.TaskRef, workers []string) (map[string]string, error) {
	t, ended := s.t, map[string]string{}
	var holders []*schema.WorkerRef
	for i, id := range workers {
		if _, known := ended[id]; known || id == "" {
			continue
		}
		ended[id] = ""
		if r, ok := t.store.WorkerRef(refs[i].Scope, id); ok {
			holders = append(holders, r)
		}
	}
	groups := schema.WorkersByShard(holders)
	calls := make([]*store.Call, len(groups))
	for g, group := range groups {
		k := t.store.Keys[group[0].Shard]
		keys, args := []string{k.Clock, k.Recoveries}, []any{}
		for _, r := range group {
			name := schema.TaskName(r.Scope, r.ID)
			keys, args = append(keys, k.Worker(name)), append(args, name)
		}
		calls[g] = store.NewCall(group[0].Shard, t.store.Scripts.Get("worker_ended"), keys, args...)
	}
	t.store.DoBulk(ctx, "reconcile", calls)
	for g, group := range groups {
		if calls[g].Err != nil {
			return nil, calls[g].Err
		}
		now := calls[g].Reply.Int(0)
		for i, r := range group {
			what := calls[g].Reply.Str(1 + i)
			long := s.withoutRecord(r.ID, what == "2", now)
			if what == "1" || what == "2" && long > t.workerTimeout() {
				ended[r.ID] = what
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
	ref   *schema.WorkerRef
	set   string
	entry string
}

// repairWorkers holds entries of a set about workers against their records, and the lists of machines that it names
// too.
func (t *Service) repairWorkers(ctx context.Context, shard int, set string, entries []string) (map[string]int, error) {
	var found []workerEntry
	var machines []*schema.WorkerRef
	for _, entry := range entries {
		name := entry
		if set == "workerdue" {
			_, name, _ = strings.Cut(entry, ":")
		}
		scope, id, ok := schema.SplitName(name)
		if letter, rest, cut := strings.Cut(id, "/"); set == "workers" && cut { // <scope>/<status letter>/<worker>
			if id = rest; letter == "M" {
				machines = append(machines, &schema.WorkerRef{Scope: scope, Shard: shard, Machine: id})
				continue
			}
		}
		if ok {
			found = append(found, workerEntry{&schema.WorkerRef{Scope: scope, ID: id, Shard: shard}, set, entry})
		}
	}
	members, err := t.machineMembers(ctx, shard, machines)
	if err != nil {
		return nil, err
	}
	found = append(found, members...)
	machineOf := make([]string, len(found))
	refs := make([]*schema.WorkerRef, len(found))
	for i, e := range found {
		refs[i], machineOf[i] = e.ref, e.ref.Machine
	}
	calls, resolve := t.workers.WorkerNames(refs)
	t.store.DoBulk(ctx, "reconcile", calls)
	for _, c := range calls {
		if c.Err != nil {
			return nil, c.Err
		}
	}
	resolve()
	for i, r := range refs {
		if r.Machine == "" { // no record: its machine is the one that listed it
			r.Machine, r.Lineage, r.Identity = machineOf[i], r.ID, r.ID
			if r.Machine == "" {
				r.Machine = r.ID
			}
		}
	}
	for _, m := range machines {
		found = append(found, workerEntry{&schema.WorkerRef{Scope: m.Scope, Shard: shard, Machine: m.Machine, Lineage: m.Machine, Identity: m.Machine}, "machine", ""})
	}
	repairs := t.repairWorkerCalls(found)
	t.store.DoBulk(ctx, "reconcile", repairs)
	return t.countRepairs(repairs)
}

// machineMembers lists the workers that machines count as theirs.
func (t *Service) machineMembers(ctx context.Context, shard int, machines []*schema.WorkerRef) (found []workerEntry, err error) {
	const limit = 100 // of each status; a machine has few
	k := t.store.Keys[shard]
	calls := make([]*store.Call, len(machines))
	for i, m := range machines {
		calls[i] = store.NewCall(shard, t.store.Scripts.Get("list"), []string{k.MachineWorkers(schema.TaskName(m.Scope, m.Machine))}, "", "NDF", "", limit, "")
	}
	t.store.DoBulk(ctx, "reconcile", calls)
	for i, m := range machines {
		if calls[i].Err != nil {
			return nil, calls[i].Err
		}
		for at, letter := range []string{"N", "D", "F"} {
			for _, id := range calls[i].Reply.List(at).Strings() {
				found = append(found, workerEntry{&schema.WorkerRef{Scope: m.Scope, ID: id, Shard: shard, Machine: m.Machine}, "machineworkers", letter + "/" + id})
			}
		}
	}
	return found, nil
}

// repairWorkerCalls makes the calls for entries of one shard whose keys are resolved.
func (t *Service) repairWorkerCalls(entries []workerEntry) (calls []*store.Call) {
	for part := range slices.Chunk(entries, repairLimit) {
		shard := part[0].ref.Shard
		k := t.store.Keys[shard]
		keys, args := slices.Clone(k.OfWorkers), []any{model.Millis(t.opts.OfflineRetention), t.store.Shards()}
		for _, e := range part {
			keys = k.OfWorker(keys, e.ref)
			args = append(args, e.ref.Scope.String(), e.ref.ID, e.ref.Machine, e.set, e.entry)
		}
		calls = append(calls, store.NewCall(shard, t.store.Scripts.Get("repair_workers"), keys, args...))
	}
	return calls
}
