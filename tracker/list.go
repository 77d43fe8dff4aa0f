package tracker

import (
	"context"
	"slices"
)

// idPage is one page of task ids in their order, over all shards.
type idPage struct {
	refs   []*taskRef
	counts map[State]int // of everything that the query's scope or run holds
	next   string        // "" when this was the last page
}

// idQuery asks for ids. The order is that of ids and does not depend on state, so a page token stays right while
// tasks come, go and move from state to state.
type idQuery struct {
	scope  Scope
	run    string // "" : all of the scope
	states []State
	after  string
	limit  int
}

// ids merges what every shard has.
func (t *Tracker) ids(op string, q idQuery) (*idPage, error) {
	prefix := q.scope.String() + "/"
	if q.run != "" {
		prefix = ""
	}
	calls := make([]*call, t.store.shards())
	for shard, k := range t.store.keys {
		key := k.ix
		if q.run != "" {
			key = k.run(q.scope, q.run)
		}
		calls[shard] = newCall(shard, t.store.scripts.Get("list"), []string{key}, prefix, letters(q.states...), q.after, q.limit, letters(States...))
	}
	t.store.doAll(op, calls)
	page := &idPage{counts: map[State]int{}}
	var ids []string
	for _, c := range calls {
		if c.err != nil {
			return nil, c.err
		}
		for i := range q.states {
			ids = append(ids, c.reply.list(i).strings()...)
		}
		counts := c.reply.list(len(q.states))
		for i, s := range States {
			page.counts[s] += int(counts.int(i))
		}
	}
	own, err := t.ownRun(op, q, page)
	if err != nil {
		return nil, err
	}
	ids = append(ids, own...)
	slices.Sort(ids)
	ids = slices.Compact(ids)
	if len(ids) > q.limit {
		ids = ids[:q.limit]
		page.next = ids[q.limit-1]
	}
	for _, id := range ids {
		page.refs = append(page.refs, t.ref(q.scope, id))
	}
	return page, nil
}

// ownRun finds the tasks whose run is named after them, which no run set holds.
func (t *Tracker) ownRun(op string, q idQuery, page *idPage) ([]string, error) {
	var ids []string
	for _, id := range tasksOf(q.run) {
		if !ValidID(id) {
			continue
		}
		v, err := t.get(op, t.ref(q.scope, id))
		switch {
		case CodeOf(err) == NotFound:
			continue
		case err != nil:
			return nil, err
		case v.RunID != q.run:
			continue
		}
		page.counts[v.State]++
		if slices.Contains(q.states, v.State) && id > q.after {
			ids = append(ids, id)
		}
	}
	return ids, nil
}

// maxScan bounds how many tasks one page of a filtered list may look at.
const maxScan = 1000

// List gives one page of tasks. Filters other than state and run are applied to at most maxScan tasks a page, so
// such a page may be short, or empty, and still have a next one.
func (t *Tracker) List(_ context.Context, f TaskFilter) (*TaskPage, error) {
	q := idQuery{scope: f.Scope, run: f.RunID, states: States, after: f.After, limit: min(max(f.PageSize, 1), 100)}
	if f.State != "" {
		q.states = []State{f.State}
	}
	size := q.limit
	page := &TaskPage{Total: -1}
	for scanned := 0; ; {
		ids, err := t.ids("list", q)
		if err != nil {
			return nil, err
		}
		if page.Total < 0 && !f.narrows() {
			page.Total = 0
			for _, s := range q.states {
				page.Total += ids.counts[s]
			}
		}
		tasks, err := t.readAll("list", ids.refs)
		if err != nil {
			return nil, err
		}
		page.Next = ids.next
		for i, task := range tasks {
			if task == nil || !f.matches(task) {
				continue
			}
			page.Tasks = append(page.Tasks, task)
			if len(page.Tasks) == size {
				if i < len(tasks)-1 || ids.next != "" {
					page.Next = task.ID
				}
				return page, nil
			}
		}
		scanned += len(ids.refs)
		if page.Next == "" || scanned >= maxScan {
			return page, nil
		}
		q.after = page.Next
	}
}

// readAll reads many tasks; one that is gone by then is nil.
func (t *Tracker) readAll(op string, refs []*taskRef) ([]*Task, error) {
	names, resolve := t.nameCalls(refs)
	t.store.doAll(op, names)
	for _, c := range names {
		if c.err != nil {
			return nil, c.err
		}
	}
	resolve()
	tasks := make([]*Task, len(refs))
	calls := make([]*call, 0, len(refs))
	at := make([]int, 0, len(refs))
	for i, r := range refs {
		if r.exists {
			calls = append(calls, t.getCall(r))
			at = append(at, i)
		}
	}
	t.store.doAll(op, calls)
	for i, c := range calls {
		if c.err != nil {
			return nil, c.err
		}
		if v := readTask(refs[at[i]], c.reply); v != nil {
			tasks[at[i]] = v.Task
		}
	}
	return tasks, t.liveByWorkers(op, tasks)
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
