package model

import (
	"slices"
	"time"
)

// TaskFilter chooses tasks of one scope. Zero fields do not filter.
type TaskFilter struct {
	Scope      Scope
	States     []State // any of them
	RunID      string
	WorkerID   string
	MachineID  string // any worker of it that is still known
	ScheduleID string // that created them
	Queue      string
	Type       string
	Reason     Reason
	Labels     map[string]string
	Liveness   Liveness
	Claimable  *bool // QUEUED, and ready to be claimed or not; a paused queue makes no difference

	FinishedAfter  time.Time // or then
	FinishedBefore time.Time

	Descending bool   // the order is the other way round
	PageSize   int    // 1 to 100
	After      string // Next of the page before; empty: from the start
}

// ByEnd reports whether the list is of finished tasks, in the order of their ends; else it is in that of ids.
func (f *TaskFilter) ByEnd() bool { return !f.FinishedAfter.IsZero() || !f.FinishedBefore.IsZero() }

// Narrows reports whether the filter asks for more than what the index counts exactly.
func (f *TaskFilter) Narrows() bool {
	return f.WorkerID != "" || f.MachineID != "" || f.ScheduleID != "" || f.Queue != "" || f.Type != "" || f.Reason != "" ||
		len(f.Labels) > 0 || f.Liveness != "" || f.Claimable != nil || f.ByEnd() && f.RunID != ""
}

// Matches reports whether a task is one that the filter asks for, but for its machine.
func (f *TaskFilter) Matches(t *Task) bool {
	return HasLabels(t.Labels, f.Labels) && (f.Claimable == nil || t.State == Queued) &&
		(len(f.States) == 0 || slices.Contains(f.States, t.State)) && // it may have moved since the index was read
		(f.RunID == "" || t.RunID == f.RunID) && (f.WorkerID == "" || t.WorkerID == f.WorkerID) &&
		(f.ScheduleID == "" || t.ScheduleID == f.ScheduleID) &&
		(f.Queue == "" || t.Queue == f.Queue) && (f.Type == "" || t.Type == f.Type) && (f.Reason == "" || t.Reason == f.Reason) &&
		(f.Liveness == "" || t.Liveness == f.Liveness) && (!f.ByEnd() || f.endMatches(t.FinishedAt))
}

// endMatches reports whether a task's end is among those asked for; zero: it goes on.
func (f *TaskFilter) endMatches(end time.Time) bool {
	return !end.IsZero() && !end.Before(f.FinishedAfter) && (f.FinishedBefore.IsZero() || end.Before(f.FinishedBefore))
}

// TaskPage is one page of a list, in the order of task ids, or of ends.
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
