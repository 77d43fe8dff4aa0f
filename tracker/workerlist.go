package tracker

import (
	"context"
	"slices"
)

// WorkerFilter chooses workers of one scope. Zero fields do not filter.
type WorkerFilter struct {
	Scope       Scope
	Queue       string
	Status      WorkerStatus
	Type        string
	Runtime     string
	MachineID   string
	Version     string
	Labels      map[string]string
	Liveness    Liveness
	Schedulable *bool

	PageSize int    // 1 to 100
	After    string // worker id after which the page begins; empty: from the start
}

// WorkerPage is one page of a list, in the order of worker ids, which is that of registration.
type WorkerPage struct {
	Workers []*Worker
	Next    string // give it as After for the next page; empty: this was the last
	Total   int    // of all pages
}

// maxWorkers bounds how many workers of one scope are looked at. More than so many belong into several workspaces.
const maxWorkers = 100_000

// workerIDs lists the workers of a scope in the order of their ids.
func (t *Tracker) workerIDs(op string, scope Scope, statuses []WorkerStatus) ([]*workerRef, error) {
	ids, err := t.indexed(op, scope, statusCode(statuses...), maxWorkers)
	if err != nil {
		return nil, err
	}
	refs := make([]*workerRef, 0, len(ids))
	for _, id := range ids {
		if r, ok := t.workerRef(scope, id); ok {
			refs = append(refs, r)
		}
	}
	return refs, nil
}

// indexed lists what every shard's index of workers has for some letters, sorted.
func (t *Tracker) indexed(op string, scope Scope, letters string, limit int) ([]string, error) {
	calls := make([]*call, t.store.shards())
	for shard, k := range t.store.keys {
		calls[shard] = newCall(shard, t.store.scripts.Get("list"), []string{k.workers}, scope.String()+"/", letters, "", limit, "")
	}
	t.store.doBulk(op, calls)
	var ids []string
	for _, c := range calls {
		if c.err != nil {
			return nil, c.err
		}
		for i := range letters {
			ids = append(ids, c.reply.list(i).strings()...)
		}
	}
	slices.Sort(ids)
	return slices.Compact(ids), nil
}

// Workers gives one page of workers and counts all that match.
func (t *Tracker) Workers(_ context.Context, f WorkerFilter) (*WorkerPage, error) {
	statuses := WorkerStatuses
	if f.Status != "" {
		statuses = []WorkerStatus{f.Status}
	}
	refs, err := t.workerIDs("workers", f.Scope, statuses)
	if err != nil {
		return nil, err
	}
	size := min(max(f.PageSize, 1), 100)
	page := &WorkerPage{Total: len(refs)}
	if f.narrows() {
		workers, err := t.readWorkers("workers", refs)
		if err != nil {
			return nil, err
		}
		if f.Schedulable != nil {
			if err := t.countLoad("workers", workers); err != nil {
				return nil, err
			}
		}
		workers = slices.DeleteFunc(workers, func(w *Worker) bool { return !f.matches(w) })
		page.Total = len(workers)
		from, _ := slices.BinarySearchFunc(workers, f.After, func(w *Worker, after string) int { return compareAfter(w.ID, after) })
		page.Workers = workers[from:]
	} else {
		from, _ := slices.BinarySearchFunc(refs, f.After, func(r *workerRef, after string) int { return compareAfter(r.id, after) })
		rest := refs[from:]
		more := len(rest) > size
		rest = rest[:min(size, len(rest))]
		if page.Workers, err = t.readWorkers("workers", rest); err != nil {
			return nil, err
		}
		if more {
			page.Next = rest[len(rest)-1].id
		}
	}
	if len(page.Workers) > size {
		page.Workers = page.Workers[:size]
		page.Next = page.Workers[size-1].ID
	}
	return page, t.complete("workers", page.Workers)
}

// compareAfter lets a search find the first id that is greater than one.
func compareAfter(id, after string) int {
	if id <= after {
		return -1
	}
	return 1
}

func (f *WorkerFilter) narrows() bool {
	return f.Queue != "" || f.Type != "" || f.Runtime != "" || f.MachineID != "" || f.Version != "" || len(f.Labels) > 0 ||
		f.Liveness != "" || f.Schedulable != nil
}

func (f *WorkerFilter) matches(w *Worker) bool {
	return (f.Status == "" || w.Status == f.Status) && (f.Queue == "" || w.Queue == f.Queue) &&
		(f.Type == "" || contains(w.Types, f.Type)) && (f.Runtime == "" || contains(w.Runtimes, f.Runtime)) &&
		(f.MachineID == "" || w.MachineID == f.MachineID) && (f.Version == "" || w.Version == f.Version) &&
		hasLabels(w.Labels, f.Labels) && (f.Liveness == "" || w.Liveness == f.Liveness) &&
		(f.Schedulable == nil || *f.Schedulable == (len(w.unschedulable()) == 0))
}
