package tracker

import "context"

// maxScan bounds how many tasks one page of a filtered list may look at, scanStep at a time, however small the page is.
const maxScan, scanStep = 1000, 100

// maxPageBytes bounds a page by what its tasks take in the store, readStep at a time: it ends behind the one that reaches
// the bound.
const (
	maxPageBytes = 2 << 20
	readStep     = 8
)

// List gives one page of tasks. Filters other than state and run are applied to at most maxScan tasks a page, so
// such a page may be short, or empty, and still have a next one; and so may be a page of large tasks.
func (t *Tracker) List(ctx context.Context, f TaskFilter) (*TaskPage, error) {
	t = t.within(ctx, 0)
	size := min(max(f.PageSize, 1), scanStep)
	q := idQuery{scope: f.Scope, run: f.RunID, states: States, after: f.After, limit: size}
	if f.State != "" {
		q.states = []State{f.State}
	}
	if f.narrows() {
		q.limit = scanStep
	} else {
		q.count = q.states
	}
	p := &pageOf{TaskPage: TaskPage{Total: -1}, t: t, filter: &f, size: size}
	for scanned := 0; ; {
		ids, err := t.ids("list", q)
		if err != nil {
			return nil, err
		}
		if p.Total < 0 && !f.narrows() {
			p.Total = 0
			for _, n := range ids.counts {
				p.Total += n
			}
		}
		if err := p.fill(ids); err != nil {
			return nil, err
		}
		scanned += len(ids.refs)
		if p.full || p.Next == "" || scanned >= maxScan {
			return &p.TaskPage, nil
		}
		q.after = p.Next
	}
}

// pageOf is a page that is being filled.
type pageOf struct {
	TaskPage
	t      *Tracker
	filter *TaskFilter
	size   int // tasks that it takes
	bytes  int // that its tasks take in the store
	full   bool
}

// fill takes what fits of some ids, and tells where the next page begins. A filter looks at little of each task; the rest
// is read only of those that the page shows.
func (p *pageOf) fill(ids *idPage) error {
	refs := ids.refs
	if err := p.t.resolve("list", refs); err != nil {
		return err
	}
	if p.filter.narrows() {
		seen, err := p.t.readAll("list", refs, p.filter.looksAt())
		if err != nil {
			return err
		}
		refs = refs[:0:0]
		for i, task := range seen.tasks {
			if task != nil && p.filter.matches(task) {
				refs = append(refs, ids.refs[i])
			}
		}
	}
	for len(refs) > 0 && !p.full {
		step := refs[:min(readStep, len(refs))]
		read, err := p.t.readAll("list", step, listed)
		if err != nil {
			return err
		}
		for i, task := range read.tasks {
			if p.full {
				break
			}
			p.bytes += read.bytes[i]
			if task != nil && p.filter.matches(task) {
				p.Tasks = append(p.Tasks, task)
				p.full = len(p.Tasks) == p.size || p.bytes >= maxPageBytes
			}
		}
		refs = refs[len(step):]
	}
	p.Next = ids.next
	if last := len(p.Tasks) - 1; p.full && (ids.next != "" || p.Tasks[last].ID != ids.refs[len(ids.refs)-1].id) {
		p.Next = p.Tasks[last].ID
	}
	return nil
}

// resolve learns what names the other keys of tasks.
func (t *Tracker) resolve(op string, refs []*taskRef) error {
	names, resolve := t.nameCalls(refs)
	t.store.doBulk(op, names)
	for _, c := range names {
		if c.err != nil {
			return c.err
		}
	}
	resolve()
	return nil
}

// readTasks are what was read of some tasks, and how many bytes that was of each.
type readTasks struct {
	tasks []*Task
	bytes []int
}

// readAll reads a part of many resolved tasks; one that is gone by then is nil.
func (t *Tracker) readAll(op string, refs []*taskRef, p part) (*readTasks, error) {
	read := &readTasks{tasks: make([]*Task, len(refs)), bytes: make([]int, len(refs))}
	calls := make([]*call, 0, len(refs))
	at := make([]int, 0, len(refs))
	for i, r := range refs {
		if r.exists {
			calls = append(calls, t.getCall(r, p))
			at = append(at, i)
		}
	}
	t.store.doBulk(op, calls)
	for i, c := range calls {
		if c.err != nil {
			return nil, c.err
		}
		read.bytes[at[i]] = c.reply.bytes()
		if v := readTask(refs[at[i]], c.reply); v != nil {
			read.tasks[at[i]] = v.Task
		}
	}
	return read, t.liveByWorkers(op, read.tasks)
}

// looksAt tells what a filter that narrows needs to know of a task.
func (f *TaskFilter) looksAt() part {
	if len(f.Labels) > 0 {
		return andLabels
	}
	return glance
}

// narrows tells whether the filter asks for more than what the index counts exactly.
func (f *TaskFilter) narrows() bool {
	return f.WorkerID != "" || f.Queue != "" || f.Type != "" || len(f.Labels) > 0 || f.Liveness != ""
}

func (f *TaskFilter) matches(t *Task) bool {
	for k, v := range f.Labels {
		if got, ok := t.Labels[k]; !ok || got != v {
			return false
		}
	}
	return (f.State == "" || t.State == f.State) && // it may have moved since the index was read
		(f.WorkerID == "" || t.WorkerID == f.WorkerID) && (f.Queue == "" || t.Queue == f.Queue) &&
		(f.Type == "" || t.Type == f.Type) && (f.Liveness == "" || t.Liveness == f.Liveness)
}
