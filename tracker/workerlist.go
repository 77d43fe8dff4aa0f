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

// idsAtOnce is how many ids one script lists.
const idsAtOnce = 1000

// workerIDs lists the workers of a scope in the order of their ids.
func (t *Tracker) workerIDs(op string, scope Scope, statuses []WorkerStatus) ([]*workerRef, error) {
	ids, err := t.indexed(op, scope, statusCode(statuses...))
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
func (t *Tracker) indexed(op string, scope Scope, letters string) (ids []string, err error) {
	type list struct {
		shard         int
		letter, after string
	}
	var open []list
	for shard := range t.store.keys {
		for i := range letters {
			open = append(open, list{shard, letters[i : i+1], ""})
		}
	}
	for len(open) > 0 && len(ids) < maxWorkers {
		calls := make([]*call, len(open))
		for i, l := range open {
			calls[i] = newCall(l.shard, t.store.scripts.Get("list"), []string{t.store.keys[l.shard].workers}, scope.String()+"/", l.letter, l.after, idsAtOnce, "")
		}
		t.store.doBulk(op, calls)
		var more []list
		for i, c := range calls {
			if c.err != nil {
				return nil, c.err
			}
			page := c.reply.list(0).strings()
			if ids = append(ids, page...); len(page) == idsAtOnce {
				more = append(more, list{open[i].shard, open[i].letter, page[len(page)-1]})
			}
		}
		open = more
	}
	slices.Sort(ids)
	return slices.Compact(ids), nil
}

// sift reads many workers, and gives those that are wanted, without what may be long.
func (t *Tracker) sift(op string, refs []*workerRef, wanted func(*Worker) bool) (found []*Worker, err error) {
	for page := range slices.Chunk(refs, workersInHand) {
		workers, err := t.readWorkers(op, page)
		if err != nil {
			return nil, err
		}
		for _, w := range workers {
			if wanted(w) {
				found = append(found, w.slim())
			}
		}
	}
	return found, nil
}

// Workers gives one page of workers and counts all that match.
func (t *Tracker) Workers(ctx context.Context, f WorkerFilter) (*WorkerPage, error) {
	t = t.within(ctx, 0)
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
		if refs, err = t.matching(&f, refs); err != nil {
			return nil, err
		}
		page.Total = len(refs)
	}
	from, _ := slices.BinarySearchFunc(refs, f.After, func(r *workerRef, after string) int { return compareAfter(r.id, after) })
	rest := refs[from:]
	if len(rest) > size {
		rest = rest[:size]
		page.Next = rest[size-1].id
	}
	if page.Workers, err = t.readWorkers("workers", rest); err != nil {
		return nil, err
	}
	return page, t.complete("workers", page.Workers)
}

// matching gives those of the workers that a filter names.
func (t *Tracker) matching(f *WorkerFilter, refs []*workerRef) (found []*workerRef, err error) {
	workers, err := t.sift("workers", refs, f.matches)
	if err != nil {
		return nil, err
	}
	if f.Schedulable != nil {
		if err := t.countLoad(t.store.doBulk, "workers", workers); err != nil {
			return nil, err
		}
	}
	for _, w := range workers {
		if f.Schedulable == nil || *f.Schedulable == (len(w.unschedulable()) == 0) {
			found = append(found, t.refOf(w))
		}
	}
	return found, nil
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

// matches tells whether a worker has what the filter asks for, but for whether it is schedulable, which takes a count.
func (f *WorkerFilter) matches(w *Worker) bool {
	return (f.Status == "" || w.Status == f.Status) && (f.Queue == "" || w.Queue == f.Queue) &&
		(f.Type == "" || contains(w.Types, f.Type)) && (f.Runtime == "" || contains(w.Runtimes, f.Runtime)) &&
		(f.MachineID == "" || w.MachineID == f.MachineID) && (f.Version == "" || w.Version == f.Version) &&
		hasLabels(w.Labels, f.Labels) && (f.Liveness == "" || w.Liveness == f.Liveness)
}
