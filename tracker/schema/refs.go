package schema

import "github.com/lubdub-io/lubdub/tracker/model"

// TaskRef is a task with its constant fields, from which its other keys are built.
type TaskRef struct {
	Scope     model.Scope
	ID        string
	Shard     int
	Run       string
	TimeoutMs string
	Exists    bool
}

// Resolve sets the fields that the store returned; without a timeout the task does not exist.
func (r *TaskRef) Resolve(run, timeoutMs string) {
	r.Exists = timeoutMs != ""
	r.TimeoutMs = timeoutMs
	if r.Run = run; run == "" {
		r.Run = RunOf(r.ID)
	}
}

// WorkerRef is a worker with its constant fields, from which its other keys are built.
type WorkerRef struct {
	Scope    model.Scope
	ID       string
	Shard    int
	Machine  string
	Lineage  string // hash that a restarted worker shares with its predecessor
	Identity string // hash that only one registration may have; its own ID: none
}

// TakeLimit is how many attempts or tasks one script takes.
const TakeLimit = 50

// workersAtOnce is how many workers one script reads: records of MaxWorkerBytes are 200 KiB in total then.
const workersAtOnce = 25

// WorkersByShard groups refs, so that no script blocks Redis for long.
func WorkersByShard(refs []*WorkerRef) [][]*WorkerRef {
	return ByShard(refs, workersAtOnce, func(r *WorkerRef) int { return r.Shard })
}

// soughtAtOnce is how many workers one script checks in fields that may be long, and that its reply omits: 800 KiB.
const soughtAtOnce = 100

// SoughtByShard groups refs of workers for searches in fields that may be long.
func SoughtByShard(refs []*WorkerRef) [][]*WorkerRef {
	return ByShard(refs, soughtAtOnce, func(r *WorkerRef) int { return r.Shard })
}

// shortAtOnce is how many workers one script reads a few short fields of.
const shortAtOnce = 250

// ShortByShard groups refs of workers for reads of short fields only.
func ShortByShard(refs []*WorkerRef) [][]*WorkerRef {
	return ByShard(refs, shortAtOnce, func(r *WorkerRef) int { return r.Shard })
}

// ByShard groups items, each group of one shard and at most `atMost` items, for one script call each. Items of a shard keep their order,
// and groups are in the order of their first items.
func ByShard[T any](items []T, atMost int, shardOf func(T) int) (groups [][]T) {
	at := map[int]int{} // by shard: the group that is not full
	for _, item := range items {
		shard := shardOf(item)
		i, open := at[shard]
		if !open || len(groups[i]) == atMost {
			i = len(groups)
			at[shard] = i
			groups = append(groups, nil)
		}
		groups[i] = append(groups[i], item)
	}
	return groups
}

// Runs splits items into runs of equivalent neighbours, at most `atMost` each.
func Runs[T any](items []T, atMost int, same func(a, b T) bool) (runs [][]T) {
	for len(items) > 0 {
		k := 1
		for k < len(items) && k < atMost && same(items[0], items[k]) {
			k++
		}
		runs, items = append(runs, items[:k]), items[k:]
	}
	return runs
}
