package workers

import (
	"context"
	"slices"

	"github.com/lubdub-io/lubdub/tracker/model"
	"github.com/lubdub-io/lubdub/tracker/schema"
	"github.com/lubdub-io/lubdub/tracker/store"
)

// WorkerFilter chooses workers of one scope. Zero fields do not filter.
type WorkerFilter struct {
	Scope       model.Scope
	Queue       string
	Status      model.WorkerStatus
	Type        string
	Runtime     string
	MachineID   string
	Version     string
	Labels      map[string]string
	Liveness    model.Liveness
	Schedulable *bool

	PageSize int    // 1 to 100
	After    string // worker id after which the page begins; empty: from the start
}

// WorkerPage is one page of a list, in the order of worker ids, which is that of registration.
type WorkerPage struct {
	Workers []*model.Worker
	Next    string // give it as After for the next page; empty: this was the last
	Total   int    // of all pages
}

// maxWorkers bounds how many workers of one scope are looked at. More than so many belong into several workspaces.
const maxWorkers = 100_000

// idsAtOnce is how many ids one script lists.
const idsAtOnce = 1000

// WorkerIDs lists the workers of a scope in the order of their ids.
func (t *Service) WorkerIDs(ctx context.Context, op string, scope model.Scope, statuses []model.WorkerStatus) ([]*schema.WorkerRef, error) {
	ids, err := t.indexed(ctx, op, scope, model.StatusCode(statuses...))
	if err != nil {
		return nil, err
	}
	refs := make([]*schema.WorkerRef, 0, len(ids))
	for _, id := range ids {
		if r, ok := t.store.WorkerRef(scope, id); ok {
			refs = append(refs, r)
		}
	}
	return refs, nil
}

// indexed lists what every shard's index of workers has for some letters, sorted.
func (t *Service) indexed(ctx context.Context, op string, scope model.Scope, letters string) (ids []string, err error) {
	type list struct {
		shard         int
		letter, after string
	}
	var open []list
	for shard := range t.store.Keys {
		for i := range letters {
			open = append(open, list{shard, letters[i : i+1], ""})
		}
	}
	for len(open) > 0 && len(ids) < maxWorkers {
		calls := make([]*store.Call, len(open))
		for i, l := range open {
			calls[i] = store.NewCall(l.shard, t.store.Scripts.Get("list"), []string{t.store.Keys[l.shard].Workers}, scope.String()+"/", l.letter, l.after, idsAtOnce, "")
		}
		t.store.DoBulk(ctx, op, calls)
		var more []list
		for i, c := range calls {
			if c.Err != nil {
				return nil, c.Err
			}
			page := c.Reply.List(0).Strings()
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
func (t *Service) sift(ctx context.Context, op string, refs []*schema.WorkerRef, wanted func(*model.Worker) bool) (found []*model.Worker, err error) {
	for page := range slices.Chunk(refs, workersInHand) {
		workers, err := t.ReadWorkers(ctx, op, page)
		if err != nil {
			return nil, err
		}
		for _, w := range workers {
			if wanted(w) {
				found = append(found, w.Slim())
			}
		}
	}
	return found, nil
}

// Workers gives one page of workers and counts all that match.
func (t *Service) Workers(ctx context.Context, f WorkerFilter) (*WorkerPage, error) {
	ctx = t.store.Within(ctx, 0)
	statuses := model.WorkerStatuses
	if f.Status != "" {
		statuses = []model.WorkerStatus{f.Status}
	}
	refs, err := t.WorkerIDs(ctx, "workers", f.Scope, statuses)
	if err != nil {
		return nil, err
	}
	size := min(max(f.PageSize, 1), 100)
	page := &WorkerPage{Total: len(refs)}
	if f.narrows() {
		if refs, err = t.matching(ctx, &f, refs); err != nil {
			return nil, err
		}
		page.Total = len(refs)
	}
	from, _ := slices.BinarySearchFunc(refs, f.After, func(r *schema.WorkerRef, after string) int { return compareAfter(r.ID, after) })
	rest := refs[from:]
	if len(rest) > size {
		rest = rest[:size]
		page.Next = rest[size-1].ID
	}
	if page.Workers, err = t.ReadWorkers(ctx, "workers", rest); err != nil {
		return nil, err
	}
	return page, t.complete(ctx, "workers", page.Workers)
}

// matching gives those of the workers that a filter names.
func (t *Service) matching(ctx context.Context, f *WorkerFilter, refs []*schema.WorkerRef) (found []*schema.WorkerRef, err error) {
	workers, err := t.sift(ctx, "workers", refs, f.matches)
	if err != nil {
		return nil, err
	}
	if f.Schedulable != nil {
		if err := t.CountLoad(ctx, t.store.DoBulk, "workers", workers); err != nil {
			return nil, err
		}
	}
	for _, w := range workers {
		if f.Schedulable == nil || *f.Schedulable == (len(w.FailedFilters()) == 0) {
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
func (f *WorkerFilter) matches(w *model.Worker) bool {
	return (f.Status == "" || w.Status == f.Status) && (f.Queue == "" || w.Queue == f.Queue) &&
		(f.Type == "" || model.Contains(w.Types, f.Type)) && (f.Runtime == "" || model.Contains(w.Runtimes, f.Runtime)) &&
		(f.MachineID == "" || w.MachineID == f.MachineID) && (f.Version == "" || w.Version == f.Version) &&
		model.HasLabels(w.Labels, f.Labels) && (f.Liveness == "" || w.Liveness == f.Liveness)
}
