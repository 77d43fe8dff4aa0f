package reconcile

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/lubdub-io/lubdub/tracker/schema"
	"github.com/lubdub-io/lubdub/tracker/store"
)

const op = "reconcile"

// repairTasks compares entries of a set about tasks with their records.
func (r *Reconciler) repairTasks(ctx context.Context, shard int, w walk, texts []string) (map[string]int, error) {
	s := r.service
	var entries []taskEntry
	var refs []*schema.TaskRef
	for _, text := range texts {
		if e, ok := w.task(text, shard); ok && s.store.ShardOf(e.ref.Scope, e.ref.ID) == shard {
			entries, refs = append(entries, e), append(refs, e.ref)
		}
	}
	names, resolve := s.tasks.NameCalls(refs)
	s.store.DoBulk(ctx, op, names)
	if err := store.FirstError(names); err != nil {
		return nil, err
	}
	resolve()
	ended, err := r.endedWorkers(ctx, entries)
	if err != nil {
		return nil, err
	}
	var calls []*store.Call
	for part := range slices.Chunk(entries, repairLimit) {
		calls = append(calls, s.scripts.repairTasksCall(shard, w, r.sweeper, s.opts.Retention, s.opts.WorkerTimeout, part, ended))
	}
	s.store.DoBulk(ctx, op, calls)
	return s.countRepairs(calls)
}

// endedWorkers returns how those workers have ended that hold these tasks: OFFLINE, or without a record for longer than the worker
// timeout. Until then a worker may be alive, and its next heartbeat would restore it.
func (r *Reconciler) endedWorkers(ctx context.Context, entries []taskEntry) (map[string]workerEnd, error) {
	s, ended := r.service, map[string]workerEnd{}
	var holders []*schema.WorkerRef
	for _, e := range entries {
		if _, known := ended[e.worker]; known || e.worker == "" {
			continue
		}
		ended[e.worker] = notEnded
		if ref, ok := s.store.WorkerRef(e.ref.Scope, e.worker); ok {
			holders = append(holders, ref)
		}
	}
	groups := schema.WorkersByShard(holders)
	calls := store.CallEach(groups, s.scripts.workerEndedCall)
	s.store.DoBulk(ctx, op, calls)
	if err := store.FirstError(calls); err != nil {
		return nil, err
	}
	for g, group := range groups {
		now, ends := readWorkerEnded(calls[g].Reply)
		for i, ref := range group {
			long := r.recordless.note(ref.ID, ends[i] == withoutRecord, now)
			if ends[i] == wentOffline || ends[i] == withoutRecord && long > s.opts.WorkerTimeout {
				ended[ref.ID] = ends[i]
			}
		}
	}
	return ended, nil
}

// recordless are workers that were found without a record. The walks of one sweeper share it, under mu.
type recordless struct {
	mu    sync.Mutex
	since map[string]int64 // worker ID → shard time at which it was first found so, ms
}

// note returns how long, in shard time, a worker has been found without a record: 0 if only just now, or if it has one.
func (w *recordless) note(id string, is bool, now int64) time.Duration {
	const most = 100_000 // of cached workers
	w.mu.Lock()
	defer w.mu.Unlock()
	if !is {
		delete(w.since, id)
		return 0
	}
	since, known := w.since[id]
	if !known {
		if len(w.since) >= most {
			clear(w.since)
		}
		w.since[id], since = now, now
	}
	return time.Duration(now-since) * time.Millisecond
}

// repairWorkers compares entries of a set about workers with their records, and the lists of the machines that it names too.
func (s *Service) repairWorkers(ctx context.Context, shard int, w walk, texts []string) (map[string]int, error) {
	var found, machines []workerEntry
	for _, text := range texts {
		if e, ok := w.worker(text, shard); ok && e.isMachine() {
			machines = append(machines, e)
		} else if ok {
			found = append(found, e)
		}
	}
	members, err := s.machineMembers(ctx, shard, machines)
	if err != nil {
		return nil, err
	}
	found = append(found, members...)
	if err := s.resolve(found, func(calls []*store.Call) { s.store.DoBulk(ctx, op, calls) }); err != nil {
		return nil, err
	}
	calls := s.repairWorkerCalls(append(found, machines...))
	s.store.DoBulk(ctx, op, calls)
	return s.countRepairs(calls)
}

// resolve reads what identifies the keys of the workers of entries; run runs its calls.
func (s *Service) resolve(entries []workerEntry, run func([]*store.Call)) error {
	machineOf := make([]string, len(entries))
	refs := make([]*schema.WorkerRef, len(entries))
	for i, e := range entries {
		refs[i], machineOf[i] = e.ref, e.ref.Machine
	}
	calls, resolve := s.workers.Names(refs)
	run(calls)
	if err := store.FirstError(calls); err != nil {
		return err
	}
	resolve()
	for i, r := range refs {
		if r.Machine == "" { // no record: the machine that listed it
			r.Machine, r.Lineage, r.Identity = machineOf[i], r.ID, r.ID
			if r.Machine == "" {
				r.Machine = r.ID
			}
		}
	}
	return nil
}

// machineMembers lists the workers in the lists of machines.
func (s *Service) machineMembers(ctx context.Context, shard int, machines []workerEntry) (found []workerEntry, err error) {
	const limit = 100 // of each status; a machine has few
	calls := store.CallEach(machines, func(m workerEntry) *store.Call {
		return s.listMachineCall(shard, schema.TaskName(m.ref.Scope, m.ref.Machine), limit)
	})
	s.store.DoBulk(ctx, op, calls)
	if err := store.FirstError(calls); err != nil {
		return nil, err
	}
	for i, m := range machines {
		for status, ids := range readList(calls[i].Reply, len(workerLetters)) {
			for _, id := range ids {
				ref := &schema.WorkerRef{Scope: m.ref.Scope, ID: id, Shard: shard, Machine: m.ref.Machine}
				found = append(found, workerEntry{ref, "machineworkers", workerLetters[status:status+1] + "/" + id})
			}
		}
	}
	return found, nil
}

// repairWorkerCalls returns the calls for entries of one shard whose keys are resolved.
func (s *Service) repairWorkerCalls(entries []workerEntry) (calls []*store.Call) {
	for part := range slices.Chunk(entries, repairLimit) {
		calls = append(calls, s.scripts.repairWorkersCall(s.opts.Retention, part))
	}
	return calls
}

func repairSchedules(ctx context.Context, s *Service, shard int, entries []string) (map[string]int, error) {
	calls := s.schedules.RepairCalls(shard, entries)
	s.store.DoBulk(ctx, op, calls)
	return s.countRepairs(calls)
}

func repairWebhooks(ctx context.Context, s *Service, shard int, entries []string) (map[string]int, error) {
	repairs, err := s.webhooks.Repair(ctx, shard, entries)
	s.reportRepairs(repairs)
	return repairs, err
}
