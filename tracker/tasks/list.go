package tasks

import (
	"cmp"
	"context"
	"slices"

	"github.com/lubdub-io/lubdub/tracker/model"
	"github.com/lubdub-io/lubdub/tracker/schema"
	"github.com/lubdub-io/lubdub/tracker/store"
)

// maxScan bounds how many tasks one page of a filtered list may examine, scanStep at a time, no matter how small the page is.
const maxScan, scanStep = 1000, 100

// maxPageBytes bounds a page by the stored size of its tasks: it ends after the one that reaches the bound.
const maxPageBytes = 2 << 20

// List returns one page of tasks. Filters other than state and run are applied to at most maxScan tasks per page, so such a page
// may be short or empty and still have a next one, as may a page of large tasks.
func (s *Service) List(ctx context.Context, f model.TaskFilter) (*model.TaskPage, error) {
	ctx = s.store.Within(ctx, 0)
	size := min(max(f.PageSize, 1), scanStep)
	q := queryFor(&f)
	q.limit = size
	if f.Narrows() {
		q.limit = scanStep
	}
	p, err := s.newPage(ctx, "list", &f)
	if err != nil {
		return nil, err
	}
	p.size = size
	for scanned := 0; ; {
		ids, err := s.ids(ctx, "list", q)
		if err != nil {
			return nil, err
		}
		if p.Total < 0 && len(q.count) > 0 {
			p.Total = 0
			for _, n := range ids.counts {
				p.Total += n
			}
		}
		if err := p.fill(ctx, ids); err != nil {
			return nil, err
		}
		scanned += len(ids.refs)
		if p.full || p.Next == "" || scanned >= maxScan {
			return &p.TaskPage, nil
		}
		q.after = p.Next
	}
}

// queryFor returns the part of a filter that the index can handle.
func queryFor(f *model.TaskFilter) idQuery {
	q := idQuery{scope: f.Scope, run: f.RunID, states: f.States, after: f.After, reverse: f.Descending, ends: f.ByEnd()}
	if len(q.states) == 0 {
		q.states = model.States
	}
	if f.Claimable != nil {
		q.states = []model.State{model.Queued}
	}
	if !q.ends {
		if !f.Narrows() {
			q.count = q.states
		}
		return q
	}
	q.states = slices.DeleteFunc(slices.Clone(q.states), func(s model.State) bool { return !s.Terminal() })
	low, high := "", ""
	if !f.FinishedAfter.IsZero() {
		low = schema.Sortable(f.FinishedAfter)
	}
	if !f.FinishedBefore.IsZero() {
		high = schema.Sortable(f.FinishedBefore)
	}
	if q.reverse {
		low, high = high, low
	}
	q.after, q.before = cmp.Or(q.after, low), high
	return q
}

// pageOf is a page in progress.
type pageOf struct {
	model.TaskPage
	tasks   *Service
	filter  *model.TaskFilter
	workers map[string]bool // of the machine in the filter
	size    int             // maximum number of tasks
	bytes   int             // stored size of its tasks
	full    bool
}

func (s *Service) newPage(ctx context.Context, op string, f *model.TaskFilter) (p *pageOf, err error) {
	p = &pageOf{TaskPage: model.TaskPage{Total: -1}, tasks: s, filter: f}
	if f.MachineID != "" {
		p.workers, err = s.workers.OfMachine(ctx, op, f.Scope, f.MachineID)
	}
	return p, err
}

// wants reports whether a task that was read belongs to the page.
func (p *pageOf) wants(t *model.Task) bool {
	return t != nil && p.filter.Matches(t) && (p.filter.MachineID == "" || p.workers[t.WorkerID])
}

// fill adds as many of the tasks as fit and sets where the next page begins. A filter reads little of each task; the rest is read
// only for tasks on the page.
func (p *pageOf) fill(ctx context.Context, ids *idPage) error {
	refs, last := ids.refs, -1 // last: the last of the IDs on the page
	var err error
	if p.filter.Narrows() {
		_, refs, err = p.matching(ctx, "list", refs)
	} else {
		err = p.tasks.resolve(ctx, "list", refs)
	}
	if err != nil {
		return err
	}
	for len(refs) > 0 && !p.full {
		step := refs[:min(p.size-len(p.Tasks), len(refs))]
		read, err := p.tasks.read(ctx, "list", step, Listed)
		if err != nil {
			return err
		}
		for i := 0; i < len(step) && !p.full; i++ {
			task, bytes, err := read.at(ctx, i)
			if err != nil {
				return err
			}
			p.bytes += bytes
			if p.wants(task) {
				p.Tasks = append(p.Tasks, task)
				last = slices.Index(ids.refs, step[i])
				p.full = len(p.Tasks) == p.size || p.bytes >= maxPageBytes
			}
		}
		refs = refs[len(step):]
	}
	p.Next = ids.next
	if p.full && (ids.next != "" || last < len(ids.refs)-1) {
		p.Next = ids.names[last]
	}
	return nil
}

// suits reports whether the filter may match a task whose record has these fields (suiting).
func (p *pageOf) suits(fields []string) bool {
	f, queue, worker, pin, schedule := p.filter, fields[0], fields[3], fields[4], fields[5]
	if f.Claimable != nil && *f.Claimable != (fields[6] != "") {
		return false
	}
	if f.Queue != "" && queue != f.Queue || f.Type != "" && fields[1] != f.Type || f.Reason != "" && fields[2] != string(f.Reason) ||
		f.ScheduleID != "" && schedule != f.ScheduleID {
		return false
	}
	known := queue != "" // the worker of a pushed task is stored elsewhere
	return !known || (f.WorkerID == "" || worker == f.WorkerID || pin == f.WorkerID) &&
		(f.MachineID == "" || p.workers[worker] || p.workers[pin])
}

// suiting are the fields that exclude most tasks that do not match a filter before more of them is read.
var suiting = []any{schema.TaskQueue, schema.TaskType, schema.TaskReason, schema.TaskWorker, schema.TaskPin, schema.TaskSchedule,
	schema.TaskReadySince}

// suitable resolves tasks and returns those that the filter may match.
func (p *pageOf) suitable(ctx context.Context, op string, refs []*schema.TaskRef) ([]*schema.TaskRef, error) {
	groups := schema.ByShard(refs, namesAtOnce, func(r *schema.TaskRef) int { return r.Shard })
	calls := store.CallEach(groups, func(group []*schema.TaskRef) *store.Call { return p.tasks.namesCall(group, suiting...) })
	p.tasks.store.DoBulk(ctx, op, calls)
	if err := store.FirstError(calls); err != nil {
		return nil, err
	}
	left := map[*schema.TaskRef]bool{}
	for i, c := range calls {
		for j, fields := range readNames(c.Reply, groups[i], len(suiting)) {
			left[groups[i][j]] = p.suits(fields)
		}
	}
	return slices.DeleteFunc(slices.Clone(refs), func(r *schema.TaskRef) bool { return !left[r] }), nil
}

// matching resolves tasks, reads a little of them, and returns those that match the filter.
func (p *pageOf) matching(ctx context.Context, op string, refs []*schema.TaskRef) (
	tasks []*model.Task, found []*schema.TaskRef, err error,
) {
	if refs, err = p.suitable(ctx, op, refs); err != nil {
		return nil, nil, err
	}
	seen, err := p.tasks.readAll(ctx, op, refs, partFor(p.filter))
	if err != nil {
		return nil, nil, err
	}
	for i, task := range seen {
		if p.wants(task) {
			tasks, found = append(tasks, task), append(found, refs[i])
		}
	}
	return tasks, found, nil
}

// resolve reads what identifies the other keys of tasks.
func (s *Service) resolve(ctx context.Context, op string, refs []*schema.TaskRef) error {
	names, resolve := s.NameCalls(refs)
	s.store.DoBulk(ctx, op, names)
	if err := store.FirstError(names); err != nil {
		return err
	}
	resolve()
	return nil
}

// partFor returns which part of a task a filter needs.
func partFor(f *model.TaskFilter) part {
	if len(f.Labels) > 0 {
		return andLabels
	}
	return glance
}
