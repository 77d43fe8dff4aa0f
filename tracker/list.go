package tracker

import (
	"context"
	"slices"
)

// idPage is one page of task ids in their order, over all shards.
type idPage struct {
	refs   []*taskRef
	counts map[State]int // of the states that the query counts, over everything that its scope or run holds
	next   string        // "" when this was the last page
}

// idQuery asks for ids. The order is that of ids and does not depend on state, so a page token stays right while
// tasks come, go and move from state to state.
type idQuery struct {
	scope  Scope
	run    string // "" : all of the scope
	states []State
	count  []State
	after  string
	limit  int
}

// ids merges what every shard has. Ids fall evenly on the shards, so each is asked for its part of the page and some
// more; where that was too little, all are asked again for what comes after the ids that are certain.
func (t *Tracker) ids(op string, q idQuery) (*idPage, error) {
	page := &idPage{counts: map[State]int{}}
	ids, err := t.ownRun(op, q, page)
	if err != nil {
		return nil, err
	}
	count, after, quota := q.count, q.after, min(q.limit+1, 2*q.limit/t.store.shards()+4)
	for {
		found, certain, err := t.idsAfter(op, q, count, after, quota, page.counts)
		if err != nil {
			return nil, err
		}
		ids = append(ids, found...)
		slices.Sort(ids)
		ids = slices.Compact(ids)
		if len(ids) > q.limit && (certain == "" || ids[q.limit] <= certain) {
			ids = ids[:q.limit]
			page.next = ids[q.limit-1]
			break
		}
		if certain == "" {
			break
		}
		count, after, quota = nil, certain, min(q.limit+1, 2*quota)
	}
	for _, id := range ids {
		page.refs = append(page.refs, t.ref(q.scope, id))
	}
	return page, nil
}

// idsAfter asks every shard for so many ids of each state. Up to the id that it tells no other shard can have more; ""
// when there are none after these.
func (t *Tracker) idsAfter(op string, q idQuery, count []State, after string, quota int, counts map[State]int) (ids []string, certain string, err error) {
	prefix := q.scope.String() + "/"
	if q.run != "" {
		prefix = ""
	}
	groups := t.store.allTogether()
	calls := make([]*call, len(groups))
	for i, group := range groups {
		keys := make([]string, len(group))
		for j, shard := range group {
			if keys[j] = t.store.keys[shard].ix; q.run != "" {
				keys[j] = t.store.keys[shard].run(q.scope, q.run)
			}
		}
		calls[i] = newCall(group[0], t.store.scripts.Get("list"), keys, prefix, letters(q.states...), after, quota, letters(count...))
	}
	t.store.doBulk(op, calls)
	for i, c := range calls {
		if c.err != nil {
			return nil, "", c.err
		}
		lists := c.reply
		for range groups[i] {
			for range q.states {
				of := lists.list(0).strings()
				lists = lists[1:]
				ids = append(ids, of...)
				if len(of) == quota && (certain == "" || of[quota-1] < certain) {
					certain = of[quota-1]
				}
			}
			for j, s := range count {
				counts[s] += int(lists.list(0).int(j))
			}
			lists = lists[1:]
		}
	}
	return ids, certain, nil
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
		if slices.Contains(q.count, v.State) {
			page.counts[v.State]++
		}
		if slices.Contains(q.states, v.State) && id > q.after {
			ids = append(ids, id)
		}
	}
	return ids, nil
}

// maxScan bounds how many tasks one page of a filtered list may look at, scanStep at a time, however small the page is.
const maxScan, scanStep = 1000, 100

// List gives one page of tasks. Filters other than state and run are applied to at most maxScan tasks a page, so
// such a page may be short, or empty, and still have a next one.
func (t *Tracker) List(_ context.Context, f TaskFilter) (*TaskPage, error) {
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
	page := &TaskPage{Total: -1}
	for scanned := 0; ; {
		ids, err := t.ids("list", q)
		if err != nil {
			return nil, err
		}
		if page.Total < 0 && !f.narrows() {
			page.Total = 0
			for _, n := range ids.counts {
				page.Total += n
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
	t.store.doBulk(op, names)
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
	t.store.doBulk(op, calls)
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
