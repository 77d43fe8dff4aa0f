package model

import (
	"slices"
	"time"
)

// TaskFilter selects tasks of one scope. Zero fields do not filter.
type TaskFilter struct {
	Scope      Scope
	States     []State // any of them
	RunID      string
	WorkerID   string
	MachineID  string // any of its workers that are still known
	ScheduleID string // the schedule that created them
	Queue      string
	Type       string
	Reason     Reason
	Labels     map[string]string
	Liveness   Liveness
	Claimable  *bool // QUEUED, and ready to be claimed or not; pauses of queues are ignored

	FinishedAfter  time.Time // or at that time
	FinishedBefore time.Time

	Descending bool   // reverse order
	PageSize   int    // 1 to 100
	After      string // Next of the previous page; empty: first page
}

// ByEnd reports whether the list has finished tasks in the order of their ends; otherwise it is ordered by ID.
func (f *TaskFilter) ByEnd() bool { return !f.FinishedAfter.IsZero() || !f.FinishedBefore.IsZero() }

// Narrows reports whether the filter has conditions beyond those that the index counts exactly.
func (f *TaskFilter) Narrows() bool {
	return f.WorkerID != "" || f.MachineID != "" || f.ScheduleID != "" || f.Queue != "" || f.Type != "" || f.Reason != "" ||
		len(f.Labels) > 0 || f.Liveness != "" || f.Claimable != nil || f.ByEnd() && f.RunID != ""
}

// Matches reports whether a task passes the filter, except for its machine.
func (f *TaskFilter) Matches(t *Task) bool {
	return HasLabels(t.Labels, f.Labels) && (f.Claimable == nil || t.State == Queued) &&
		(len(f.States) == 0 || slices.Contains(f.States, t.State)) && // its state may have changed since the index was read
		(f.RunID == "" || t.RunID == f.RunID) && (f.WorkerID == "" || t.WorkerID == f.WorkerID) &&
		(f.ScheduleID == "" || t.ScheduleID == f.ScheduleID) &&
		(f.Queue == "" || t.Queue == f.Queue) && (f.Type == "" || t.Type == f.Type) && (f.Reason == "" || t.Reason == f.Reason) &&
		(f.Liveness == "" || t.Liveness == f.Liveness) && (!f.ByEnd() || f.endMatches(t.FinishedAt))
}

// endMatches reports whether a task's end passes the filter; zero: the task is not finished.
func (f *TaskFilter) endMatches(end time.Time) bool {
	return !end.IsZero() && !end.Before(f.FinishedAfter) && (f.FinishedBefore.IsZero() || end.Before(f.FinishedBefore))
}

// TaskPage is one page of a list, ordered by task ID, or by end.
type TaskPage struct {
	Tasks []*Task
	Next  string // After of the next page; empty: last page
	Total int    // -1 when the filter allows no exact count
}

// Run is the number of a run's tasks, by state and in total.
type Run struct {
	Scope  Scope
	ID     string
	Counts map[State]int
	Total  int
}
