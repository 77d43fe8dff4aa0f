package model

// TaskFilter chooses tasks of one scope. Zero fields do not filter.
type TaskFilter struct {
	Scope    Scope
	State    State
	RunID    string
	WorkerID string
	Queue    string
	Type     string
	Labels   map[string]string
	Liveness Liveness

	PageSize int    // 1 to 100
	After    string // task id after which the page begins; empty: from the start
}

// Narrows reports whether the filter asks for more than what the index counts exactly.
func (f *TaskFilter) Narrows() bool {
	return f.WorkerID != "" || f.Queue != "" || f.Type != "" || len(f.Labels) > 0 || f.Liveness != ""
}

// Matches reports whether a task is one that the filter asks for.
func (f *TaskFilter) Matches(t *Task) bool {
	return HasLabels(t.Labels, f.Labels) &&
		(f.State == "" || t.State == f.State) && // it may have moved since the index was read
		(f.WorkerID == "" || t.WorkerID == f.WorkerID) && (f.Queue == "" || t.Queue == f.Queue) &&
		(f.Type == "" || t.Type == f.Type) && (f.Liveness == "" || t.Liveness == f.Liveness)
}

// TaskPage is one page of a list, in the order of task ids.
type TaskPage struct {
	Tasks []*Task
	Next  string // pass it as After for the next page; empty: this was the last
	Total int    // -1 when the filter does not allow an exact count
}

// Run counts a run's tasks.
type Run struct {
	Scope  Scope
	ID     string
	Counts map[State]int
	Total  int
}
