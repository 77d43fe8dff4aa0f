package schema

import "github.com/lubdub-io/lubdub/tracker/model"

// TaskRef is a task and the fields of it that never change and name its other keys.
type TaskRef struct {
	Scope     model.Scope
	ID        string
	Shard     int
	Run       string
	TimeoutMs string
	Exists    bool
}

// Resolve fills in what the store said of the task; without a timeout there is no such task.
func (r *TaskRef) Resolve(run, timeoutMs string) {
	r.Exists = timeoutMs != ""
	r.TimeoutMs = timeoutMs
	if r.Run = run; run == "" {
		r.Run = RunOf(r.ID)
	}
}

// WorkerRef is a worker and the fields of it that never change and name its other keys.
type WorkerRef struct {
	Scope    model.Scope
	ID       string
	Shard    int
	Machine  string
	Lineage  string // hash of what a worker that is started again has in common with itself
	Identity string // hash of what only one registration may have; its own id: none
}

// TakeLimit is how many attempts or tasks one script takes from where they are.
const TakeLimit = 50

// workersAtOnce is how many workers one script reads: records of MaxWorkerBytes come to 200 KiB then.
const workersAtOnce = 25

// WorkersByShard groups refs, bounded so that no script holds up Redis for long.
func WorkersByShard(refs []*WorkerRef) [][]*WorkerRef {
	return ByShard(refs, workersAtOnce, func(r *WorkerRef) int { return r.Shard })
}

// soughtAtOnce is of how many workers one script looks into what may be long, without a word of it in its reply: 800 KiB.
const soughtAtOnce = 100

// SoughtByShard groups refs of workers among which those are sought that have something in what may be long.
func SoughtByShard(refs []*WorkerRef) [][]*WorkerRef {
	return ByShard(refs, soughtAtOnce, func(r *WorkerRef) int { return r.Shard })
}

// shortAtOnce is of how many workers one script reads a few fields that are short.
const shortAtOnce = 250

// ShortByShard groups refs of workers of which nothing is read that may be long.
func ShortByShard(refs []*WorkerRef) [][]*WorkerRef {
	return ByShard(refs, shortAtOnce, func(r *WorkerRef) int { return r.Shard })
}

// ByShard groups items, each group of one shard and with at most so many, for one script call each. Items of a shard keep their
// order, and groups stand in the order of their first items.
func ByShard[T any](items []T, atMost int, shardOf func(T) int) (groups [][]T) {
	at := map[int]int{} // the group of a shard that is not full yet
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

// Runs cuts items into runs of neighbours that are alike, each of at most so many.
func Runs[T any](items []T, atMost int, alike func(a, b T) bool) (runs [][]T) {
	for len(items) > 0 {
		k := 1
		for k < len(items) && k < atMost && alike(items[0], items[k]) {
			k++
		}
		runs, items = append(runs, items[:k]), items[k:]
	}
	return runs
}
