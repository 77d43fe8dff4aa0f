package v1

// CreateScheduleRequest is the body of POST /v1/schedules.
type CreateScheduleRequest struct {
	// ScheduleID names the schedule within its scope; absent: Lubdub makes one.
	ScheduleID string `json:"scheduleId,omitempty"`
	// TenantID is half of the scope; absent: the query's, else the token's.
	TenantID string `json:"tenantId,omitempty"`
	// WorkspaceID is the other half.
	WorkspaceID string `json:"workspaceId,omitempty"`
	// Cron says when it fires, in UTC: seconds minutes hours day-of-month month day-of-week [year]. Days of the week are 1 to 7 with
	// 1 = SUN, or names; both day fields must match, and ? in one of them is any day; years are 1970 to 2100.
	Cron string `json:"cron"`
	// Overlap is what a fire does while the task of the one before is not finished: allow (the default) creates its own all the same,
	// skip does not.
	Overlap Overlap `json:"overlap,omitempty"`
	// MaxCatchup is how many missed fires are caught up, the newest: 0 to 1,000. Default 100.
	MaxCatchup *int `json:"maxCatchup,omitempty"`
	// Task is what each fire creates, as in POST /v1/tasks: with a queue, and without taskId, deadline, notBefore and traceparent.
	Task *CreateTaskRequest `json:"task"`
}

// ChangeScheduleRequest is the body of PUT and PATCH /v1/schedules/{scheduleId}. With PUT what is absent gets its default, and cron
// and task are required; with PATCH it stays as it is.
type ChangeScheduleRequest struct {
	// Cron says when it fires, as in its creation. What it has missed since the last fire is caught up.
	Cron *string `json:"cron,omitempty"`
	// Overlap is allow or skip.
	Overlap Overlap `json:"overlap,omitempty"`
	// MaxCatchup is how many missed fires are caught up.
	MaxCatchup *int `json:"maxCatchup,omitempty"`
	// Task is what each fire creates from now on, as a whole.
	Task *CreateTaskRequest `json:"task,omitempty"`
}

// Overlap is what a fire does while the task of the one before is not finished.
type Overlap string

const (
	OverlapAllow Overlap = "allow" // creates its own all the same
	OverlapSkip  Overlap = "skip"  // creates none
)

// Schedule creates a task whenever its time has come.
type Schedule struct {
	ScheduleID  string  `json:"scheduleId"`
	TenantID    string  `json:"tenantId"`
	WorkspaceID string  `json:"workspaceId"`
	Cron        string  `json:"cron"`
	Overlap     Overlap `json:"overlap"`
	MaxCatchup  int     `json:"maxCatchup"`
	// Task is what each fire creates; lists leave out its payload and resources.
	Task *CreateTaskRequest `json:"task"`
	// Paused reports that it does not fire.
	Paused    bool `json:"paused"`
	PausedAt  Time `json:"pausedAt"`
	CreatedAt Time `json:"createdAt"`
	UpdatedAt Time `json:"updatedAt"`
	// Last is the last fire that was dealt with; before the first the time of creation.
	Last Time `json:"last"`
	// Next is the fire to come; null when none is, or when the schedule is paused.
	Next Time `json:"next"`
	// Fired is how many fires have created their tasks.
	Fired int64 `json:"fired"`
	// Skipped is how many fires have not: they were missed and are more than maxCatchup, the task before still ran, or theirs was refused.
	Skipped int64 `json:"skipped"`
	// Pending is how many fires wait for their tasks.
	Pending int `json:"pending"`
	// Fires are the last ten that were dealt with, newest first.
	Fires []ScheduleFire `json:"fires"`
}

// ScheduleFire is one time at which a schedule fired.
type ScheduleFire struct {
	FireAt Time `json:"fireAt"`
	// Kind is schedule, manual or backfill: where it comes from.
	Kind string `json:"kind"`
	// Outcome is CREATED, SKIPPED (the task before still ran) or REFUSED (its task was).
	Outcome string `json:"outcome"`
	// TaskID is the task that was created; with SKIPPED the one that still ran.
	TaskID string `json:"taskId,omitempty"`
	// State is that of the task that was created; absent when it is forgotten.
	State State `json:"state,omitempty"`
	// Reason is why that task failed.
	Reason string `json:"reason,omitempty"`
	// Error is the code with which the task was refused.
	Error string `json:"error,omitempty"`
	// NotedAt is when that was noted.
	NotedAt Time `json:"notedAt"`
}

// ScheduleList is the answer of GET /v1/schedules.
type ScheduleList struct {
	// Schedules are ordered by id.
	Schedules     []Schedule `json:"schedules"`
	NextPageToken string     `json:"nextPageToken,omitempty"`
	TotalCount    int        `json:"totalCount"`
}

// NextFires is the answer of GET /v1/schedules/{scheduleId}/next.
type NextFires struct {
	ScheduleID string `json:"scheduleId"`
	// Next are the fires to come, as if the schedule were not paused.
	Next []Time `json:"next"`
}

// BackfillRequest is the body of POST /v1/schedules/{scheduleId}/backfill.
type BackfillRequest struct {
	// From is the time after which fires are made up for; it is not one of them itself.
	From Time `json:"from"`
	// To is the time up to which, and which may be one of them. It must be over.
	To Time `json:"to"`
}

// AskedFires are fires that somebody asked for and that are recorded. Their tasks are created within moments, each once.
type AskedFires struct {
	ScheduleID string `json:"scheduleId"`
	// Fires are ordered by time.
	Fires []AskedFire `json:"fires"`
	// Skipped is how many older ones are more than maxCatchup, or would make more than 64 MiB of tasks together.
	Skipped int64 `json:"skipped"`
}

// AskedFire is one of them.
type AskedFire struct {
	FireAt Time   `json:"fireAt"`
	TaskID string `json:"taskId"`
}

// FiredResponse is the answer of POST /v1/schedules/{scheduleId}/fire.
type FiredResponse struct {
	ScheduleID string `json:"scheduleId"`
	AskedFire
}

// DeletedSchedule is the answer of DELETE /v1/schedules/{scheduleId}.
type DeletedSchedule struct {
	ScheduleID string `json:"scheduleId"`
	Deleted    bool   `json:"deleted"`
}
