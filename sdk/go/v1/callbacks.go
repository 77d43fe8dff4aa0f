package v1

import (
	"encoding/json"
	"slices"
)

// Outcome is how an attempt ended, as its worker reports it.
type Outcome string

const (
	OutcomeSucceeded Outcome = "SUCCEEDED"
	OutcomeFailed    Outcome = "FAILED"
	OutcomeCancelled Outcome = "CANCELLED"
	OutcomeSnoozed   Outcome = "SNOOZED" // the task returns to its queue; the attempt does not count against its retry policy
)

// Outcomes lists every outcome.
var Outcomes = []Outcome{OutcomeSucceeded, OutcomeFailed, OutcomeCancelled, OutcomeSnoozed}

// ErrorCategory is the kind of a failure. It decides whether the failure is worth a retry.
type ErrorCategory string

const (
	CategoryUserCode       ErrorCategory = "USER_CODE"      // error in the task's own code; retryable
	CategoryDataQuality    ErrorCategory = "DATA_QUALITY"   // input fails validation; not retryable
	CategoryInfrastructure ErrorCategory = "INFRASTRUCTURE" // cloud services, out of memory, disk full; retryable
	CategoryConfiguration  ErrorCategory = "CONFIGURATION"  // missing or invalid configuration; not retryable
	CategoryTimeout        ErrorCategory = "TIMEOUT"        // took longer than allowed; retryable
	CategoryCancelled      ErrorCategory = "CANCELLED"      // the task was cancelled; not retryable
)

// ErrorCategories lists every category.
var ErrorCategories = []ErrorCategory{
	CategoryUserCode, CategoryDataQuality, CategoryInfrastructure, CategoryConfiguration, CategoryTimeout, CategoryCancelled,
}

// Retryable reports whether a failure of this category is worth a retry if its report leaves that open.
func (c ErrorCategory) Retryable() bool {
	return c == CategoryUserCode || c == CategoryInfrastructure || c == CategoryTimeout
}

// Valid reports whether c is one of the six.
func (c ErrorCategory) Valid() bool { return slices.Contains(ErrorCategories, c) }

// StartedRequest is the body of POST /v1/tasks/{taskId}/started.
type StartedRequest struct {
	// Attempt is the attempt that the token was issued for.
	Attempt int `json:"attempt"`
	// WorkerID names the worker.
	WorkerID string `json:"workerId,omitempty"`
	// StartedAt is the worker's own time. It is kept and decides nothing.
	StartedAt Time `json:"startedAt,omitzero"`
}

// StartedResponse acknowledges a start.
type StartedResponse struct {
	// Acknowledged is always true.
	Acknowledged bool `json:"acknowledged"`
	// ServerTime is the store's clock.
	ServerTime Time `json:"serverTime"`
	// ShouldCancel asks the worker to stop; it is there only when true.
	ShouldCancel bool `json:"shouldCancel,omitempty"`
	// CancelReason is the reason given for the cancel.
	CancelReason string `json:"cancelReason,omitempty"`
}

// HeartbeatRequest is the body of POST /v1/tasks/{taskId}/heartbeat.
type HeartbeatRequest struct {
	// Attempt is the attempt that the token was issued for.
	Attempt int `json:"attempt"`
	// WorkerID names the worker.
	WorkerID string `json:"workerId,omitempty"`
	// HeartbeatAt is the worker's own time. It is kept and shown; liveness depends on the time of receipt.
	HeartbeatAt Time `json:"heartbeatAt,omitzero"`
	// ProgressPct is any number from 0 to 100; absent: as before.
	ProgressPct *float64 `json:"progressPct,omitempty"`
	// Message is free text about the progress, cut at 1,024 bytes of JSON text; absent: as before.
	Message *string `json:"message,omitempty"`
	// Details are a checkpoint: any JSON of at most 16 KiB without whitespace, for the next attempt's lastProgress; absent: as before.
	Details json.RawMessage `json:"details,omitempty"`
}

// HeartbeatResponse acknowledges a heartbeat: it is applied in the store.
type HeartbeatResponse struct {
	// Acknowledged is always true.
	Acknowledged bool `json:"acknowledged"`
	// ShouldCancel asks the worker to stop, to clean up and to report the outcome CANCELLED.
	ShouldCancel bool `json:"shouldCancel"`
	// CancelReason is the reason given for the cancel.
	CancelReason string `json:"cancelReason,omitempty"`
	// ServerTime is the store's clock when the heartbeat was applied.
	ServerTime Time `json:"serverTime"`
	// NextHeartbeatMs is how long to wait before the next heartbeat.
	NextHeartbeatMs int64 `json:"nextHeartbeatMs"`
	// TaskToken replaces the token in use; it is there only in the last third of that token's life.
	TaskToken string `json:"taskToken,omitempty"`
	// TokenExpiresAt is when the new token expires.
	TokenExpiresAt Time `json:"tokenExpiresAt,omitzero"`
}

// HeartbeatsRequest is the body of POST /v1/heartbeats.
type HeartbeatsRequest struct {
	// Heartbeats are 1 to 1,000 heartbeats of any tasks.
	Heartbeats []HeartbeatItem `json:"heartbeats"`
}

// HeartbeatItem is one heartbeat in a batch.
type HeartbeatItem struct {
	// TaskID names the task.
	TaskID string `json:"taskId"`
	// TaskToken is valid for this heartbeat only; absent: the worker's token of the request is used.
	TaskToken string `json:"taskToken,omitempty"`
	HeartbeatRequest
}

// HeartbeatsResponse answers a batch of heartbeats.
type HeartbeatsResponse struct {
	// Results has one entry for each heartbeat, in the same order.
	Results []HeartbeatResult `json:"results"`
	// ServerTime is the store's clock.
	ServerTime Time `json:"serverTime"`
}

// HeartbeatResult is the result of one heartbeat: Status is the HTTP status that the heartbeat would have got on its own, and the fields
// are those of its answer.
type HeartbeatResult struct {
	TaskID string `json:"taskId"`
	// Status is 200, or a status of the error table.
	Status int `json:"status"`

	// The fields of HeartbeatResponse, with status 200.
	Acknowledged    bool   `json:"acknowledged,omitempty"`
	ShouldCancel    *bool  `json:"shouldCancel,omitempty"`
	CancelReason    string `json:"cancelReason,omitempty"`
	ServerTime      Time   `json:"serverTime,omitzero"`
	NextHeartbeatMs int64  `json:"nextHeartbeatMs,omitempty"`
	TaskToken       string `json:"taskToken,omitempty"`
	TokenExpiresAt  Time   `json:"tokenExpiresAt,omitzero"`

	// The fields of Error, with any other status.
	Error           string `json:"error,omitempty"`
	Message         string `json:"message,omitempty"`
	Field           string `json:"field,omitempty"`
	State           State  `json:"state,omitempty"`
	Reason          string `json:"reason,omitempty"`
	ExpectedAttempt int    `json:"expectedAttempt,omitempty"`
	ReceivedAttempt int    `json:"receivedAttempt,omitempty"`
	// RetryAfterMs is set with status 503.
	RetryAfterMs int64 `json:"retryAfterMs,omitempty"`
}

// CompletedRequest is the body of POST /v1/tasks/{taskId}/completed.
type CompletedRequest struct {
	// Attempt is the attempt that the token was issued for.
	Attempt int `json:"attempt"`
	// WorkerID names the worker.
	WorkerID string `json:"workerId,omitempty"`
	// Outcome is how the attempt ended.
	Outcome Outcome `json:"outcome"`
	// DelayMs is how long to wait before the next attempt, 0 to 31,622,400,000 (366 days). SNOOZED needs it; other outcomes have none.
	DelayMs *int64 `json:"delayMs,omitempty"`
	// CompletedAt is the worker's own time. It is kept and shown, and decides nothing.
	CompletedAt Time `json:"completedAt,omitzero"`
	// Output is any JSON value; it is kept as it is.
	Output json.RawMessage `json:"output,omitempty"`
	// Metrics is any JSON object; it is kept as it is.
	Metrics json.RawMessage `json:"metrics,omitempty"`
	// Error is the failure; FAILED needs its category. It is kept as it is, with any further fields, but retryable is added if absent.
	Error *TaskError `json:"error,omitempty"`
	// CancelledDuringPhase is the phase that a cancel interrupted.
	CancelledDuringPhase string `json:"cancelledDuringPhase,omitempty"`
	// PartialProgress is any JSON value that describes the progress before the cancel.
	PartialProgress json.RawMessage `json:"partialProgress,omitempty"`
}

// ExchangeRequest is the body of POST /v1/workers/{workerId}/exchange. It needs seq, completed or claim.
type ExchangeRequest struct {
	// Seq makes the request a heartbeat of the worker, and is its number: it increases from heartbeat to heartbeat.
	Seq *int64 `json:"seq,omitempty"`
	// ActiveCount, CompletedDelta and FailedDelta are as in the worker's heartbeat. They need seq.
	ActiveCount    *int  `json:"activeCount,omitempty"`
	CompletedDelta int64 `json:"completedDelta,omitempty"`
	FailedDelta    int64 `json:"failedDelta,omitempty"`
	// Progress is that of at most 1,000 of its attempts, which are kept alive by it. It needs seq.
	Progress []WorkerTaskItem `json:"progress,omitempty"`
	// Inventory lists all its attempts, as tasks does in the worker's heartbeat; absent: they are not listed. Those in completed and in
	// progress count as listed. It needs seq.
	Inventory []WorkerTaskItem `json:"inventory,omitempty"`
	// Completed are at most 100 results of attempts that were dispatched to the worker.
	Completed []ExchangeCompletion `json:"completed,omitempty"`
	// Claim claims tasks of the worker's queue. It waits as long as the answer to the heartbeat may: at most until the next one is due.
	Claim *ClaimRequest `json:"claim,omitempty"`
}

// ExchangeCompletion is the result of one attempt.
type ExchangeCompletion struct {
	TaskID string `json:"taskId"`
	CompletedRequest
	// Progress is stored before the result. It needs the seq of the request.
	Progress *AttemptProgress `json:"progress,omitempty"`
}

// AttemptProgress is what an attempt reports about its progress.
type AttemptProgress struct {
	// ProgressPct is its progress, 0 to 100.
	ProgressPct *float64 `json:"progressPct,omitempty"`
	// Message describes the progress.
	Message *string `json:"message,omitempty"`
	// Details are its checkpoint, as in its own heartbeats.
	Details json.RawMessage `json:"details,omitempty"`
}

// ExchangeResponse answers an exchange. The same request again gets the same results and the same tasks.
type ExchangeResponse struct {
	// Heartbeat is the answer to the heartbeat; absent without seq.
	Heartbeat *WorkerHeartbeatResponse `json:"heartbeat,omitempty"`
	// Completed has one entry for each completion, in the same order.
	Completed []CompletionResult `json:"completed"`
	// Tasks are the claimed ones; none without a claim.
	Tasks []TaskEnvelope `json:"tasks"`
	// ClaimID is that of the claim.
	ClaimID string `json:"claimId,omitempty"`
	// ClaimError is why the claim was refused, which does not affect the rest; absent: it was not.
	ClaimError *ClaimError `json:"claimError,omitempty"`
}

// ClaimError is the refusal of a claim: Status is the HTTP status that the claim would have got on its own.
type ClaimError struct {
	Status  int    `json:"status"`
	Error   string `json:"error"`
	Message string `json:"message"`
	// Field is the field that is wrong.
	Field string `json:"field,omitempty"`
	// Reason is why the worker is OFFLINE.
	Reason string `json:"reason,omitempty"`
	// RetryAfterMs is set with status 429 and 503.
	RetryAfterMs int64 `json:"retryAfterMs,omitempty"`
}

// CompletionResult is the result of one completion: Status is the HTTP status that the completion would have got on its own, and the
// fields are those of its answer.
type CompletionResult struct {
	TaskID string `json:"taskId"`
	// Status is 200, or a status of the error table.
	Status int `json:"status"`

	// The fields of CompletedResponse, with status 200.
	Acknowledged bool  `json:"acknowledged,omitempty"`
	FinalState   State `json:"finalState,omitempty"`
	ServerTime   Time  `json:"serverTime,omitzero"`
	WillRetry    bool  `json:"willRetry,omitempty"`
	NextAttempt  int   `json:"nextAttempt,omitempty"`

	// The fields of Error, with any other status.
	Error           string `json:"error,omitempty"`
	Message         string `json:"message,omitempty"`
	Field           string `json:"field,omitempty"`
	State           State  `json:"state,omitempty"`
	Reason          string `json:"reason,omitempty"`
	ExpectedAttempt int    `json:"expectedAttempt,omitempty"`
	ReceivedAttempt int    `json:"receivedAttempt,omitempty"`
	// RetryAfterMs is set with status 429 and 503.
	RetryAfterMs int64 `json:"retryAfterMs,omitempty"`
}

// TaskError is a failure as its worker reports it.
type TaskError struct {
	// Category is one of the six.
	Category ErrorCategory `json:"category"`
	// Message is readable text.
	Message string `json:"message,omitempty"`
	// StackTrace is readable text.
	StackTrace string `json:"stackTrace,omitempty"`
	// Retryable reports whether a retry may help; absent: its category's default.
	Retryable *bool `json:"retryable,omitempty"`
	// RetryAfterMs is how long to wait before the next attempt, 0 to 31,622,400,000 (366 days), if the failure is retried; absent: the
	// backoff of the retry policy.
	RetryAfterMs *int64 `json:"retryAfterMs,omitempty"`
}

// CompletedResponse acknowledges a completion. The same completion again gets the same answer.
type CompletedResponse struct {
	// Acknowledged is always true.
	Acknowledged bool `json:"acknowledged"`
	// FinalState is this attempt's outcome, which may be SNOOZED.
	FinalState State `json:"finalState"`
	// ServerTime is the store's clock.
	ServerTime Time `json:"serverTime"`
	// WillRetry reports that another attempt follows.
	WillRetry bool `json:"willRetry,omitempty"`
	// NextAttempt is its number.
	NextAttempt int `json:"nextAttempt,omitempty"`
}
