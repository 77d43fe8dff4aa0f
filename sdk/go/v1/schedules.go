package v1

// CreateScheduleRequest is the body of POST /v1/schedules.
type CreateScheduleRequest struct {
	// ScheduleID names the schedule within its scope; absent: Lubdub generates one.
	ScheduleID string `json:"scheduleId,omitempty"`
	// TenantID is half of the scope; absent: the query's, else the token's.
	TenantID string `json:"tenantId,omitempty"`
	// WorkspaceID is the other half.
	WorkspaceID string `json:"workspaceId,omitempty"`
	// Cron is when it fires, in UTC: [seconds] minutes hours day-of-month month day-of-week, or these six and a year. Days of the week are
	// 1 to 7 with 1 = SUN, or names; both day fields must match, and ? in one of them is any day; years are 1970 to 2100. Five fields fire
	// at second 0 and are returned as six; they are accepted if they mean the same as in crontab, so days of the week are names.
	Cron string `json:"cron"`
	// Overlap is what a fire does while the previous task is not finished: allow (the default) creates its task, skip does not.
	Overlap Overlap `json:"overlap,omitempty"`
	// MaxCatchup is how many missed fires are caught up, the newest: 0 to 1,000. Default 100.
	MaxCatchup *int `json:"maxCatchup,omitempty"`
	// Task is what each fire creates, as in POST /v1/tasks: with a queue, and without taskId, deadline, runAt, delayMs and traceparent.
	Task *CreateTaskRequest `json:"task"`
}

// ChangeScheduleRequest is the body of PUT and PATCH /v1/schedules/{scheduleId}. With PUT what is absent gets its default, and cron
// and task are required; with PATCH it stays as it is.
type ChangeScheduleRequest struct {
	// Cron is when it fires, as in its creation. Fires missed since the last one are caught up.
	Cron *string `json:"cron,omitempty"`
	// Overlap is allow or skip.
	Overlap Overlap `json:"overlap,omitempty"`
	// MaxCatchup is how many missed fires are caught up.
	MaxCatchup *int `json:"maxCatchup,omitempty"`
	// Task is what each fire creates from now on, as a whole.
	Task *CreateTaskRequest `json:"task,omitempty"`
}

// Overlap is what a fire does while the previous task is not finished.
type Overlap string

const (
	OverlapAllow Overlap = "allow" // creates its task
	OverlapSkip  Overlap = "skip"  // creates no task
)

// Schedule creates a task at each of its times.
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
	// Last is the last fire that was processed; before the first one, the time of creation.
	Last Time `json:"last"`
	// Next is the next fire; null if the schedule has no further fire or is paused.
	Next Time `json:"next"`
	// Fired is how many fires have created their tasks.
	Fired int64 `json:"fired"`
	// Skipped is how many fires created no task: they were missed and exceed maxCatchup, the previous task still ran, or theirs was
	// refused.
	Skipped int64 `json:"skipped"`
	// Pending is how many fires wait for their tasks.
	Pending int `json:"pending"`
	// Fires are the last ten processed fires, newest first.
	Fires []ScheduleFire `json:"fires"`
}

// ScheduleFire is one time at which a schedule fired.
type ScheduleFire struct {
	FireAt Time `json:"fireAt"`
	// Kind is the origin: schedule, manual or backfill.
	Kind string `json:"kind"`
	// Outcome is CREATED, SKIPPED (the previous task still ran) or REFUSED (its task was refused).
	Outcome string `json:"outcome"`
	// TaskID is the created task; with SKIPPED the one that still ran.
	TaskID string `json:"taskId,omitempty"`
	// State is the state of the created task; absent once that is deleted.
	State State `json:"state,omitempty"`
	// Reason is why that task failed.
	Reason string `json:"reason,omitempty"`
	// Error is the code with which the task was refused.
	Error string `json:"error,omitempty"`
	// NotedAt is when the outcome was recorded.
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
	// Next are the next fires, as if the schedule were not paused.
	Next []Time `json:"next"`
}

// BackfillRequest is the body of POST /v1/schedules/{scheduleId}/backfill.
type BackfillRequest struct {
	// From is the start of the period, exclusive.
	From Time `json:"from"`
	// To is the end of the period, inclusive. It must be in the past.
	To Time `json:"to"`
}

// AskedFires are recorded manual or backfill fires. Their tasks are created within moments, each once.
type AskedFires struct {
	ScheduleID string `json:"scheduleId"`
	// Fires are ordered by time.
	Fires []AskedFire `json:"fires"`
	// Skipped is how many older ones exceed maxCatchup, or would create more than 64 MiB of tasks together.
	Skipped int64 `json:"skipped"`
}

// AskedFire is one manual or backfill fire.
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
