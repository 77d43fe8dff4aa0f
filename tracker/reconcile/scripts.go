package reconcile

import (
	"slices"
	"time"

	"github.com/lubdub-io/lubdub/lua"
	"github.com/lubdub-io/lubdub/tracker/model"
	"github.com/lubdub-io/lubdub/tracker/schema"
	"github.com/lubdub-io/lubdub/tracker/store"
	"github.com/lubdub-io/lubdub/tracker/workers"
)

// scripts are the Lua scripts of this package. For each there is a function that builds its call, with arguments as the script's
// header names them, and one that reads its reply. No other file knows the positions in either.
type scripts struct {
	keys []*schema.ShardKeys // by shard

	walk, repairTasks, repairWorkers, workerEnded, workerMissing *lua.Script
}

func newScripts(set *lua.Set, keys []*schema.ShardKeys) scripts {
	return scripts{
		keys: keys, walk: set.Get("walk"), repairTasks: set.Get("repair_tasks"), repairWorkers: set.Get("repair_workers"),
		workerEnded: set.Get("worker_ended"), workerMissing: set.Get("worker_missing"),
	}
}

// sentinel is an entry that keeps a set from disappearing when it has no others.
const sentinel = "!"

func (s *scripts) walkCall(shard int, set, scan, cursor string, entries int) *store.Call {
	return store.NewCall(shard, s.walk, []string{set, s.keys[shard].Sweepers}, scan, cursor, entries)
}

// walkPage is one page of a set.
type walkPage struct {
	cursor   string   // where the next one begins; 0: this is the last
	entries  []string // without the sentinel
	sweepers []string
}

func readWalk(r store.Reply) walkPage {
	entries := slices.DeleteFunc(r.List(1).Strings(), func(e string) bool { return e == sentinel })
	return walkPage{cursor: r.Str(0), entries: entries, sweepers: r.List(2).Strings()}
}

// repairTasksCall repairs tasks of one shard, whose keys are resolved. Their entries are of one set.
func (s *scripts) repairTasksCall(
	shard int, w walk, by string, retention, workerTimeout time.Duration, entries []taskEntry, ended map[string]workerEnd) *store.Call {
	k := s.keys[shard]
	keys := append(append(make([]string, 0, len(k.Fixed)+2+5*len(entries)), k.Fixed...), w.key(k), k.Fences)
	args := []any{w.set, w.timeout, by, model.Millis(retention), model.Millis(model.DefaultCancelGrace),
		model.Millis(model.DefaultClaimStartTimeout), int64(model.DefaultTokenTTL.Seconds()), model.Millis(workerTimeout)}
	for _, e := range entries {
		timeout := e.ref.TimeoutMs
		if timeout == "" {
			timeout = "0" // there is no record, so nothing is added to a beats set
		}
		keys = k.OfTask(keys, e.ref.Scope, e.ref.ID, e.ref.Run, timeout)
		args = append(args, e.ref.Scope.String(), e.ref.ID, e.text, string(ended[e.worker]))
	}
	return store.NewCall(shard, s.repairTasks, keys, args...)
}

// repairWorkersCall repairs workers of one shard, whose keys are resolved.
func (s *scripts) repairWorkersCall(retention time.Duration, entries []workerEntry) *store.Call {
	shard := entries[0].ref.Shard
	k := s.keys[shard]
	keys, args := slices.Clone(k.OfWorkers), []any{model.Millis(retention), len(s.keys)}
	for _, e := range entries {
		keys = k.OfWorker(keys, e.ref)
		args = append(args, e.ref.Scope.String(), e.ref.ID, e.ref.Machine, e.set, e.text)
	}
	return store.NewCall(shard, s.repairWorkers, keys, args...)
}

// readRepairs returns what was repaired, for each task or worker.
func readRepairs(r store.Reply) [][]string {
	all := make([][]string, len(r))
	for i := range all {
		all[i] = r.List(i).Strings()
	}
	return all
}

// workerEnd is how a worker has ended. A worker whose tasks are being recovered counts as notEnded.
type workerEnd string

const (
	notEnded      workerEnd = ""
	wentOffline   workerEnd = "1"
	withoutRecord workerEnd = "2"
)

// workerEndedCall reads the ends of workers of one shard.
func (s *scripts) workerEndedCall(workers []*schema.WorkerRef) *store.Call {
	shard := workers[0].Shard
	k := s.keys[shard]
	keys, args := []string{k.Clock, k.Recoveries}, []any{}
	for _, r := range workers {
		name := schema.TaskName(r.Scope, r.ID)
		keys, args = append(keys, k.Worker(name)), append(args, name)
	}
	return store.NewCall(shard, s.workerEnded, keys, args...)
}

// readWorkerEnded returns shard time, ms, and the end of each worker.
func readWorkerEnded(r store.Reply) (now int64, ends []workerEnd) {
	for i := 1; i < len(r); i++ {
		end := notEnded
		if r.Int(i) > 0 {
			end = workerEnd(r.Str(i))
		}
		ends = append(ends, end)
	}
	return r.Int(0), ends
}

func (s *scripts) workerMissingCall(shard int, after string, limit int) *store.Call {
	k := s.keys[shard]
	return store.NewCall(shard, s.workerMissing, []string{k.Workers, k.WorkerBeats}, after, limit)
}

// readWorkerMissing returns the entry to continue after, "" at the end, and the names of workers that no sweeper would check.
func readWorkerMissing(r store.Reply) (after string, names []string) {
	return r.Str(0), r.List(1).Strings()
}

// workerLetters has the letters of all worker statuses: online, draining and offline.
const workerLetters = "NDF"

// listMachineCall lists the workers of a machine, up to a limit for each status.
func (s *Service) listMachineCall(shard int, machine string, limit int) *store.Call {
	return s.workers.ListCall(shard, []string{s.store.Keys[shard].MachineWorkers(machine)},
		workers.ListArgs{States: workerLetters, Limit: limit})
}

// readList returns the IDs of each of the requested statuses.
func readList(r store.Reply, statuses int) [][]string { return workers.ReadList(r, 1, statuses)[0].IDs }
