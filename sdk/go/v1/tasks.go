package v1

import (
	"encoding/json"
	"fmt"
)

// State is a task's state.
type State string

const (
	Scheduled  State = "SCHEDULED"  // waits for its start time
	Queued     State = "QUEUED"     // waits in its queue, or for its backoff
	Dispatched State = "DISPATCHED" // an attempt was handed out and has not started yet
	Running    State = "RUNNING"    // an attempt sends heartbeats
	Succeeded  State = "SUCCEEDED"
	Failed     State = "FAILED"
	Cancelled  State = "CANCELLED"
)

// States lists every state in the order of a task's life.
var States = []State{Scheduled, Queued, Dispatched, Running, Succeeded, Failed, Cancelled}

// CreateTaskRequest is the body of POST /v1/tasks. Without a queue the task is dispatched at once and the answer is its TaskEnvelope. With
// a queue it waits until a worker claims it.
type CreateTaskRequest struct {
	// TaskID names the task within its scope; absent: Lubdub generates one. Ids that begin with fire_ are reserved for the tasks of
	// schedules.
	TaskID string `json:"taskId,omitempty"`
	// RunID groups tasks; absent: a run with this task only.
	RunID string `json:"runId,omitempty"`
	// TaskKey is the caller's own name for the work.
	TaskKey string `json:"taskKey,omitempty"`
	// AssetID is the caller's own id of the result.
	AssetID string `json:"assetId,omitempty"`
	// TenantID is half of the scope; absent: the query's, else the token's.
	TenantID string `json:"tenantId,omitempty"`
	// WorkspaceID is the other half.
	WorkspaceID string `json:"workspaceId,omitempty"`
	// Traceparent is the W3C trace context that the task belongs to; absent: the header's. It is in the envelope and in the task's events.
	Traceparent string `json:"traceparent,omitempty"`
	// Type is the kind of work; workers register for types.
	Type string `json:"type,omitempty"`
	// Queue is where the task waits; absent: it is dispatched at once.
	Queue string `json:"queue,omitempty"`
	// Runtime that a worker must have. Queue tasks only.
	Runtime string `json:"runtime,omitempty"`
	// WorkerLabels that a worker must have. Queue tasks only.
	WorkerLabels map[string]string `json:"workerLabels,omitempty"`
	// WorkerID pins the task to one worker, which must exist. Queue tasks only.
	WorkerID string `json:"workerId,omitempty"`
	// Placement chooses a worker at creation. Queue tasks only.
	Placement *Placement `json:"placement,omitempty"`
	// Payload is any JSON value for the worker.
	Payload json.RawMessage `json:"payload,omitempty"`
	// Resources is any JSON object; it is part of the envelope.
	Resources json.RawMessage `json:"resources,omitempty"`
	// Labels are up to 64 pairs to find the task by.
	Labels map[string]string `json:"labels,omitempty"`
	// RunAt is the earliest time of the first claim; until then the task is SCHEDULED. Queue tasks only.
	RunAt Time `json:"runAt,omitzero"`
	// DelayMs is the time from the creation to the first claim at the earliest, 0 to 31,622,400,000 (366 days), instead of runAt.
	DelayMs *int64 `json:"delayMs,omitempty"`
	// NotBefore is another name of runAt.
	NotBefore Time `json:"notBefore,omitzero"`
	// Deadline fails the task with DEADLINE_EXCEEDED when it passes.
	Deadline Time `json:"deadline,omitzero"`
	// StartTimeoutMs bounds the time from dispatch to the start, rounded up to two significant digits. Default 60,000 after a claim;
	// without a queue the life of the token.
	StartTimeoutMs *int64 `json:"startTimeoutMs,omitempty"`
	// RunTimeoutMs bounds the time from an attempt's start to its end, rounded up to two significant digits; absent: no
	// bound.
	RunTimeoutMs *int64 `json:"runTimeoutMs,omitempty"`
	// HeartbeatIntervalMs is how often the worker should send heartbeats. Default 30,000.
	HeartbeatIntervalMs *int64 `json:"heartbeatIntervalMs,omitempty"`
	// HeartbeatTimeoutMs is how long an attempt may be silent: at least twice the interval, rounded up to two significant digits. Default
	// 90,000; a queue task without one depends on its worker's heartbeat.
	HeartbeatTimeoutMs *int64 `json:"heartbeatTimeoutMs,omitempty"`
	// CancelGracePeriodMs is how long the worker has after it was notified of a cancel. Default 30,000.
	CancelGracePeriodMs *int64 `json:"cancelGracePeriodMs,omitempty"`
	// TokenTTLSeconds is the life of the task token, 1 to 7,200. Default 3,600, or as long as the deadline needs.
	TokenTTLSeconds *int64 `json:"tokenTtlSeconds,omitempty"`
	// RenewToken lets heartbeats renew the token. Default true; with false the token must cover the deadline.
	RenewToken *bool `json:"renewToken,omitempty"`
	// Retry is how often the task is retried. Queue tasks only.
	Retry *RetryPolicy `json:"retry,omitempty"`
}

// Placement chooses a worker when the task is created.
type Placement struct {
	// Strategy is leastLoaded, roundRobin or random.
	Strategy string `json:"strategy,omitempty"`
}

// RetryPolicy in a request; absent fields have the default in their comment.
type RetryPolicy struct {
	// MaxAttempts is the number of failures reported by workers that fails the task. Default 3.
	MaxAttempts *int `json:"maxAttempts,omitempty"`
	// MaxLosses is how many attempts may be lost to silence or a dead worker and be retried. Default 3.
	MaxLosses *int `json:"maxLosses,omitempty"`
	// InitialBackoffMs is the wait before the first retry. Default 1,000.
	InitialBackoffMs *int64 `json:"initialBackoffMs,omitempty"`
	// Multiplier of the wait from retry to retry, 1 to 100. Default 2.
	Multiplier *float64 `json:"multiplier,omitempty"`
	// MaxBackoffMs bounds the wait. Default 60,000.
	MaxBackoffMs *int64 `json:"maxBackoffMs,omitempty"`
}

// CreateTasksRequest is the body of POST /v1/tasks:batch.
type CreateTasksRequest struct {
	// Tasks are 1 to 1,000 creations; each has its own result.
	Tasks []CreateTasksItem `json:"tasks"`
}

// CreateTasksItem is one creation in a batch.
type CreateTasksItem struct {
	CreateTaskRequest
	// IdempotencyKey is for this item what the header of the same name is for POST /v1/tasks.
	IdempotencyKey string `json:"idempotencyKey,omitempty"`
}

// CreateTasksResponse has one result for each creation, in the same order: the body that the creation alone
// would have got (a TaskEnvelope, a Task or an Error) with its HTTP status as "status".
type CreateTasksResponse struct {
	Results []json.RawMessage `json:"results"`
}

// WaitTasksRequest is the body of POST /v1/tasks:wait.
type WaitTasksRequest struct {
	// TaskIDs are 1 to 1,000 tasks, each once.
	TaskIDs []string `json:"taskIds"`
	// WaitMs is how long to wait until the first of them has ended. Default 0: do not wait.
	WaitMs *int64 `json:"waitMs,omitempty"`
}

// WaitTasksResponse has those of the requested tasks that have ended.
type WaitTasksResponse struct {
	// Tasks are at most 100, less if they are large, in the order of the request and as lists have them, without payload and resources.
	// Other tasks that have ended are in the answer to the next request.
	Tasks []Task `json:"tasks"`
	// NotFound are the requested ids that do not exist.
	NotFound []string `json:"notFound"`
}

// TaskEnvelope is what a worker needs to run one attempt and to report about it.
type TaskEnvelope struct {
	TaskID      string  `json:"taskId"`
	RunID       string  `json:"runId"`
	AssetID     *string `json:"assetId"`
	TaskKey     *string `json:"taskKey"`
	TenantID    string  `json:"tenantId"`
	WorkspaceID string  `json:"workspaceId"`
	// Attempt is the number of the attempt, counted from 1. Every callback includes it.
	Attempt int `json:"attempt"`
	// State is DISPATCHED, or RUNNING if the claim has started the task.
	State State `json:"state"`
	// Resources as given at creation; an empty object when none were.
	Resources json.RawMessage `json:"resources"`
	// EnqueuedAt is when this attempt was handed out.
	EnqueuedAt Time `json:"enqueuedAt"`
	// ReadyAt is since when the task could be claimed; absent if it was pushed, or if the claim was repeated.
	ReadyAt  Time `json:"readyAt,omitzero"`
	Deadline Time `json:"deadline"`
	// CallbackBaseURL is where the callbacks go: POST {callbackBaseUrl}/v1/tasks/{taskId}/heartbeat and so on.
	CallbackBaseURL string `json:"callbackBaseUrl"`
	// TaskToken is the bearer token of this very attempt.
	TaskToken      string `json:"taskToken"`
	TokenExpiresAt Time   `json:"tokenExpiresAt"`
	// HeartbeatIntervalMs is how often to send heartbeats.
	HeartbeatIntervalMs int64 `json:"heartbeatIntervalMs"`
	// HeartbeatTimeoutMs is the silence after which the attempt is dead; null: it depends on its worker's heartbeat.
	HeartbeatTimeoutMs *int64 `json:"heartbeatTimeoutMs"`
	// CancelGracePeriodMs is how long the worker has to stop once it was notified of a cancel.
	CancelGracePeriodMs int64 `json:"cancelGracePeriodMs"`
	// RunTimeoutMs bounds the time from the attempt's start to its end; absent: the task has no separate limit.
	RunTimeoutMs int64 `json:"runTimeoutMs,omitempty"`

	// Type and Queue are null when the task has none.
	Type   *string           `json:"type"`
	Queue  *string           `json:"queue"`
	Labels map[string]string `json:"labels"`
	// Payload as given at creation; null when none was.
	Payload json.RawMessage `json:"payload"`
	// LastProgress is the last progress that the previous attempt reported.
	LastProgress *Progress `json:"lastProgress,omitempty"`
	// Traceparent is the W3C trace context of the creation; absent if it had none.
	Traceparent string `json:"traceparent,omitempty"`
	// ScheduleID is the schedule that created the task; absent if none did.
	ScheduleID string `json:"scheduleId,omitempty"`
}

// Progress is a progress report.
type Progress struct {
	// ProgressPct is a number from 0 to 100, as the worker sent it.
	ProgressPct json.RawMessage `json:"progressPct"`
	// Message is a string, as the worker sent it.
	Message json.RawMessage `json:"message"`
	// Details are the last checkpoint of the task: the details that a heartbeat of any earlier attempt reported. They are absent where
	// none did, and from histories.
	Details json.RawMessage `json:"details,omitempty"`
}

// Reported returns the progress, 0 to 100, and the message; false if there is neither. It may be called on nil.
func (p *Progress) Reported() (pct float64, message string, ok bool) {
	if p == nil || !given(p.ProgressPct) && !given(p.Message) {
		return 0, "", false
	}
	_ = json.Unmarshal(p.ProgressPct, &pct)
	_ = json.Unmarshal(p.Message, &message)
	return pct, message, true
}

// Checkpoint decodes the last checkpoint into v, a pointer, and returns false if no attempt has set one. It may be called on nil.
func (p *Progress) Checkpoint(v any) (ok bool, err error) {
	if p == nil || len(p.Details) == 0 {
		return false, nil
	}
	if err := json.Unmarshal(p.Details, v); err != nil {
		return false, fmt.Errorf("lubdub: the last checkpoint: %w", err)
	}
	return true, nil
}

// given reports whether a field was given, and is not null.
func given(field json.RawMessage) bool { return len(field) > 0 && string(field) != "null" }

// Liveness is computed from the last heartbeat at the time of the answer.
type Liveness string

const (
	LivenessFresh Liveness = "FRESH"
	LivenessLate  Liveness = "LATE" // older than 1.5 × the interval
	LivenessLost  Liveness = "LOST" // older than the timeout, or no heartbeat on record
)

// Former names of LivenessFresh, LivenessLate and LivenessLost.
//
// Deprecated: the next release removes them.
const (
	Fresh = LivenessFresh
	Late  = LivenessLate
	Lost  = LivenessLost
)

// Task is the full view of one task.
type Task struct {
	TaskID      string            `json:"taskId"`
	RunID       string            `json:"runId"`
	TaskKey     *string           `json:"taskKey"`
	AssetID     *string           `json:"assetId"`
	TenantID    string            `json:"tenantId"`
	WorkspaceID string            `json:"workspaceId"`
	Queue       *string           `json:"queue"`
	Type        *string           `json:"type"`
	Labels      map[string]string `json:"labels"`
	State       State             `json:"state"`
	// Attempt is the current attempt, 0 before the first dispatch.
	Attempt  int     `json:"attempt"`
	WorkerID *string `json:"workerId"`
	// Liveness is null unless the task is RUNNING.
	Liveness    *Liveness       `json:"liveness"`
	ProgressPct json.RawMessage `json:"progressPct"`
	Message     json.RawMessage `json:"message"`
	// Details are the last checkpoint that a heartbeat of any attempt reported; absent if none did, and from lists.
	Details      json.RawMessage `json:"details,omitempty"`
	CreatedAt    Time            `json:"createdAt"`
	DispatchedAt Time            `json:"dispatchedAt"`
	StartedAt    Time            `json:"startedAt"`
	// LastHeartbeatAt is when the last heartbeat was received, by the store's clock; while a task without its own timeout is RUNNING, its
	// worker's, if that is later. It is kept after the end.
	LastHeartbeatAt Time `json:"lastHeartbeatAt"`
	// ReportedHeartbeatAt is the worker's own clock at that time.
	ReportedHeartbeatAt Time `json:"reportedHeartbeatAt"`
	// CompletedAt is the worker's own clock when it completed the last attempt.
	CompletedAt     Time    `json:"completedAt"`
	FinishedAt      Time    `json:"finishedAt"`
	Deadline        Time    `json:"deadline"`
	CancelRequested bool    `json:"cancelRequested"`
	CancelReason    *string `json:"cancelReason"`
	// Reason is why the task FAILED; TERMINATED where it was CANCELLED without waiting for its worker.
	Reason *string `json:"reason"`
	// RetriesExhausted reports that a retry might have helped the task that FAILED, but its policy allows no more; absent
	// otherwise, as when the error was not retryable.
	RetriesExhausted bool            `json:"retriesExhausted,omitempty"`
	Output           json.RawMessage `json:"output"`
	Metrics          json.RawMessage `json:"metrics"`
	// Error is why the task FAILED or, while it is QUEUED for a retry, why the previous attempt did: everything that the worker reported.
	Error               json.RawMessage `json:"error"`
	HeartbeatIntervalMs int64           `json:"heartbeatIntervalMs"`
	// HeartbeatTimeoutMs is null for a task that depends on its worker's heartbeat.
	HeartbeatTimeoutMs  *int64 `json:"heartbeatTimeoutMs"`
	CancelGracePeriodMs int64  `json:"cancelGracePeriodMs"`
	// Retry is null for a task that is not retried automatically.
	Retry *Retry `json:"retry"`
	// NextAttemptAt is the earliest time of the next dispatch, while SCHEDULED, or QUEUED for a backoff.
	NextAttemptAt Time `json:"nextAttemptAt"`
	// Traceparent is the W3C trace context of the creation; absent if it had none.
	Traceparent string `json:"traceparent,omitempty"`
	// ScheduleID is the schedule that created the task; absent if none did.
	ScheduleID string `json:"scheduleId,omitempty"`
	// History has an entry for each ended attempt, oldest first; the newest 100 are kept.
	History []HistoryEntry `json:"history"`

	Runtime      string            `json:"runtime,omitempty"`
	WorkerLabels map[string]string `json:"workerLabels,omitempty"`
	// RunAt is the earliest time of the first claim.
	RunAt Time `json:"runAt,omitzero"`
	// NotBefore is another name of runAt.
	NotBefore Time `json:"notBefore,omitzero"`
	// StartTimeoutMs is present if the task was given one.
	StartTimeoutMs int64 `json:"startTimeoutMs,omitempty"`
	RunTimeoutMs   int64 `json:"runTimeoutMs,omitempty"`
	// Failures are counted against retry.maxAttempts.
	Failures int `json:"failures"`
	// Losses are counted against retry.maxLosses.
	Losses               int             `json:"losses"`
	CancelledDuringPhase string          `json:"cancelledDuringPhase,omitempty"`
	PartialProgress      json.RawMessage `json:"partialProgress,omitempty"`
	// Payload and Resources are returned by GET /v1/tasks/{taskId} only.
	Payload   json.RawMessage `json:"payload,omitempty"`
	Resources json.RawMessage `json:"resources,omitempty"`
}

// Retry is a retry policy in force.
type Retry struct {
	MaxAttempts      int     `json:"maxAttempts"`
	MaxLosses        int     `json:"maxLosses"`
	InitialBackoffMs int64   `json:"initialBackoffMs"`
	Multiplier       float64 `json:"multiplier"`
	MaxBackoffMs     int64   `json:"maxBackoffMs"`
}

// HistoryEntry is one ended attempt.
type HistoryEntry struct {
	Attempt      int     `json:"attempt"`
	WorkerID     *string `json:"workerId"`
	DispatchedAt Time    `json:"dispatchedAt"`
	StartedAt    Time    `json:"startedAt"`
	// LastHeartbeatAt is when the attempt's last heartbeat was received; null if there was none.
	LastHeartbeatAt Time `json:"lastHeartbeatAt"`
	// CompletedAt is the worker's own clock when it completed the attempt.
	CompletedAt Time `json:"completedAt,omitzero"`
	EndedAt     Time `json:"endedAt"`
	// Outcome is SUCCEEDED, FAILED, CANCELLED, SNOOZED, ZOMBIE, TIMED_OUT, LOST or SUPERSEDED.
	Outcome      string    `json:"outcome"`
	Reason       *string   `json:"reason"`
	LastProgress *Progress `json:"lastProgress"`
	// Error is at most 2 KiB; the texts of a longer one are cut.
	Error json.RawMessage `json:"error,omitempty"`
	// Metrics are at most 1 KiB: of larger ones, the first members that fit. The task has all of the last attempt's.
	Metrics   json.RawMessage `json:"metrics,omitempty"`
	WillRetry bool            `json:"willRetry,omitempty"`
	// RetriesExhausted reports that the attempt was worth a retry, but the task's policy allows no more.
	RetriesExhausted bool `json:"retriesExhausted,omitempty"`
	// Evidence is the evidence for Lubdub's verdict; null if the worker ended the attempt itself.
	Evidence *Evidence `json:"evidence"`
}

// Evidence answers "why was it killed?".
type Evidence struct {
	// LastHeartbeatAt is null if no heartbeat was received.
	LastHeartbeatAt Time `json:"lastHeartbeatAt"`
	// SilentMs is the silence that counted: time during which no heartbeat could be stored is excluded.
	SilentMs int64 `json:"silentMs"`
	// TimeoutMs is what was exceeded.
	TimeoutMs int64 `json:"timeoutMs"`
	// OutageCreditMs is the excluded time since the last heartbeat.
	OutageCreditMs int64 `json:"outageCreditMs"`
	DetectedAt     Time  `json:"detectedAt"`
	// DetectionLagMs is how long after the timeout the verdict came.
	DetectionLagMs int64 `json:"detectionLagMs"`
	// Sweeper names the process that found it; each has one name.
	Sweeper string `json:"sweeper"`
	// WorkerReason is why an attempt was lost with its worker: that worker's statusReason, or NOT_IN_INVENTORY if it is alive and two of
	// its inventories in a row did not list the attempt. The times above are then the worker's.
	WorkerReason string `json:"workerReason,omitempty"`
	// MassExpiryHeld reports that the mass-expiry brake had held it, so that it had a second timeout period.
	MassExpiryHeld bool `json:"massExpiryHeld,omitempty"`
}

// TaskList is one page of GET /v1/tasks, in the order of task ids.
type TaskList struct {
	Tasks []Task `json:"tasks"`
	// NextPageToken is absent on the last page. It is valid for the same filter only.
	NextPageToken string `json:"nextPageToken,omitempty"`
	// TotalCount is null when the filter does not allow an exact count.
	TotalCount *int `json:"totalCount"`
}

// CancelRequest is the body of POST /v1/tasks/{taskId}/cancel and POST /v1/runs/{runId}/cancel.
type CancelRequest struct {
	// Reason is passed to the worker as cancelReason.
	Reason string `json:"reason,omitempty"`
	// GracePeriodMs is how long a worker has to stop after it was notified; absent: the task's cancelGracePeriodMs. 0 ends the task at
	// once, CANCELLED by TERMINATED, whether or not its worker was notified. Of several requests the last one with a value counts.
	GracePeriodMs *int64 `json:"gracePeriodMs,omitempty"`
}

// TaskSelector selects tasks that match all of its fields.
type TaskSelector struct {
	// State is one state, or several separated by commas.
	State     string `json:"state,omitempty"`
	Queue     string `json:"queue,omitempty"`
	Type      string `json:"type,omitempty"`
	RunID     string `json:"runId,omitempty"`
	WorkerID  string `json:"workerId,omitempty"`
	MachineID string `json:"machineId,omitempty"`
	// ScheduleID is the schedule that created them.
	ScheduleID string            `json:"scheduleId,omitempty"`
	Labels     map[string]string `json:"labels,omitempty"`
	// Reason is why they ended.
	Reason string `json:"reason,omitempty"`
	// FinishedAfter selects finished tasks by when they ended.
	FinishedAfter Time `json:"finishedAfter,omitzero"`
}

// CancelTasksRequest is the body of POST /v1/tasks:cancel.
type CancelTasksRequest struct {
	CancelRequest
	// Selector selects the tasks; it must have at least one field.
	Selector TaskSelector `json:"selector"`
	// DryRun only counts the tasks that match, and those that would be changed.
	DryRun bool `json:"dryRun,omitempty"`
	// PageToken is the nextPageToken of the previous answer.
	PageToken string `json:"pageToken,omitempty"`
}

// RetryTasksRequest is the body of POST /v1/tasks:retry.
type RetryTasksRequest struct {
	// Selector selects the tasks; it must have at least one field. Of those that match only FAILED ones are retried.
	Selector TaskSelector `json:"selector"`
	// DryRun only counts the tasks that match, and those that would be changed.
	DryRun bool `json:"dryRun,omitempty"`
	// PageToken is the nextPageToken of the previous answer.
	PageToken string `json:"pageToken,omitempty"`
}

// ActOnTasksResponse counts what was done to one page of the tasks that a selector matches.
type ActOnTasksResponse struct {
	// Matched is the number of tasks on this page.
	Matched int `json:"matched"`
	// WouldDo is how many of them would be changed, with dryRun only: by a cancel those that have not ended, by a retry those that are
	// FAILED.
	WouldDo *int `json:"wouldDo,omitempty"`
	// Done is how many of them were changed, or already were as requested; 0 with dryRun.
	Done int `json:"done"`
	// Refused counts the others by the error code that each would have got on its own.
	Refused map[string]int `json:"refused"`
	// NextPageToken is the next page; absent: this was the last. It is valid for the same operation and selector only.
	NextPageToken string `json:"nextPageToken,omitempty"`
}

// NextAttemptRequest is the body of POST /v1/tasks/{taskId}/attempts.
type NextAttemptRequest struct {
	// FromAttempt is the attempt that the new one follows.
	FromAttempt int `json:"fromAttempt"`
}

// Run counts the tasks of a run.
type Run struct {
	RunID       string `json:"runId"`
	TenantID    string `json:"tenantId"`
	WorkspaceID string `json:"workspaceId"`
	// Counts has every state, including those without tasks.
	Counts map[State]int `json:"counts"`
	// TotalCount is their sum.
	TotalCount int `json:"totalCount"`
}
