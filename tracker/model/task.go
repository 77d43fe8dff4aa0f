package model

import (
	"encoding/json"
	"log/slog"
	"time"
)

// Scope is a tenant and one of its workspaces. IDs are unique within their scope only.
type Scope struct {
	Tenant    string
	Workspace string
}

func (s Scope) String() string { return s.Tenant + "/" + s.Workspace }

// LogAttr returns the scope for a log line: two fields, named as on the wire.
func (s Scope) LogAttr() slog.Attr {
	return slog.Attr{Value: slog.GroupValue(slog.String("tenantId", s.Tenant), slog.String("workspaceId", s.Workspace))}
}

// State is a task's state in its life cycle.
type State string

const (
	Scheduled  State = "SCHEDULED"  // waits for its start time
	Queued     State = "QUEUED"     // waits in its queue, or for its backoff
	Dispatched State = "DISPATCHED" // an attempt was dispatched and has sent no heartbeat yet
	Running    State = "RUNNING"    // an attempt sends heartbeats
	Succeeded  State = "SUCCEEDED"
	Failed     State = "FAILED"
	Cancelled  State = "CANCELLED"
)

// Snoozed is the outcome of an attempt whose task returns to its queue without counting it; no task is in this state.
const Snoozed State = "SNOOZED"

// Terminal reports whether a task in this state is finished.
func (s State) Terminal() bool { return s == Succeeded || s == Failed || s == Cancelled }

// States lists all states in the order of a task's life.
var States = []State{Scheduled, Queued, Dispatched, Running, Succeeded, Failed, Cancelled}

// Reason is why an attempt or task ended as it did.
type Reason string

const (
	HeartbeatTimeout Reason = "HEARTBEAT_TIMEOUT" // silent for longer than its timeout: a zombie
	CancelTimeout    Reason = "CANCEL_TIMEOUT"    // still running after the grace period
	DeadlineExceeded Reason = "DEADLINE_EXCEEDED"
	RunTimeout       Reason = "RUN_TIMEOUT"
	StartTimeout     Reason = "START_TIMEOUT" // dispatched and never started
	WorkerLost       Reason = "WORKER_LOST"
	WorkerReported   Reason = "WORKER_REPORTED" // the worker reported the failure
	Terminated       Reason = "TERMINATED"      // cancelled without waiting for its worker
)

// Reasons lists all reasons.
var Reasons = []Reason{HeartbeatTimeout, CancelTimeout, DeadlineExceeded, RunTimeout, StartTimeout, WorkerLost, WorkerReported, Terminated}

// Liveness is computed from the last beat on every read; it is not stored.
type Liveness string

const (
	Fresh Liveness = "FRESH"
	Late  Liveness = "LATE" // older than 1.5 × the interval
	Lost  Liveness = "LOST" // older than the timeout, or no beat on record
)

// These are the defaults and bounds of a task. The numbers of the contract are defined only here in Go.
const (
	DefaultHeartbeatInterval = 30 * time.Second
	DefaultHeartbeatTimeout  = 90 * time.Second
	DefaultCancelGrace       = 30 * time.Second
	DefaultTokenTTL          = time.Hour
	MaxTokenTTL              = 2 * time.Hour        // of tasks' and workers' tokens
	MaxControlTTL            = 366 * 24 * time.Hour // of control tokens
	MaxDelay                 = 366 * 24 * time.Hour // of a delay or a snooze; a RunAt may be later
	MinTimeout               = time.Second
	MaxTimeout               = 24 * time.Hour
	DefaultClaimStartTimeout = time.Minute // of queued tasks; pushed ones use the life of their token

	DefaultFinishedRetention = 24 * time.Hour
	MinFinishedRetention     = MaxTokenTTL + 5*time.Minute // a verified token's record must still exist
	IdempotencyRetention     = 24 * time.Hour

	MaxMessageBytes   = 1024     // of a progress message as JSON text; longer ones are cut, not refused
	MaxDetailsBytes   = 16 << 10 // of a heartbeat's details as compact JSON
	MaxHistory        = 100      // newest attempts kept with a task
	MaxHistoryError   = 2048     // bytes of an ended attempt's error in the history; longer ones are cut
	MaxHistoryMetrics = 1024     // bytes of an ended attempt's metrics in the history; members that do not fit are left out
)

// RetryPolicy is how often a queued task is retried. The zero value means no retries.
type RetryPolicy struct {
	MaxAttempts    int           // failures reported by workers (and run timeouts) before the task fails; ≥ 1
	MaxLosses      int           // attempts lost to silence or a dead worker that are requeued; the next loss fails the task
	InitialBackoff time.Duration // before the first retry
	Multiplier     float64       // factor of the backoff for each further retry; ≥ 1
	MaxBackoff     time.Duration
}

// DefaultRetryPolicy is that of a queued task without a policy.
var DefaultRetryPolicy = RetryPolicy{
	MaxAttempts: 3, MaxLosses: 3, InitialBackoff: time.Second, Multiplier: 2, MaxBackoff: time.Minute,
}

// NewTask describes a task to create. Call Validate before Create; zero durations mean the defaults above unless a comment states
// otherwise.
type NewTask struct {
	Scope  Scope
	TaskID string // empty: Lubdub generates one
	RunID  string // empty: its own run, named after the task
	Key    string // taskKey
	Asset  string // assetId
	Trace  string // traceparent, as ParseTraceparent returns it; empty: none
	Type   string
	Queue  string // empty: a pushed task, dispatched at once

	Runtime      string
	WorkerLabels map[string]string
	WorkerID     string
	Placement    string // strategy; kept for placement

	Payload   json.RawMessage   // compact JSON of any type; nil: none
	Resources json.RawMessage   // a compact JSON object; nil: none
	Labels    map[string]string // nil: none

	RunAt    time.Time     // zero: at once, or after Delay
	Delay    time.Duration // from the creation on, instead of RunAt
	Deadline time.Time     // zero: none

	StartTimeout      time.Duration // zero: DefaultClaimStartTimeout with a queue, else the token's life
	RunTimeout        time.Duration // zero: none
	HeartbeatInterval time.Duration
	HeartbeatTimeout  time.Duration // zero with a queue: its worker's beats keep it alive
	CancelGrace       time.Duration
	TokenTTL          time.Duration // zero: DefaultTokenTTL, or until the deadline, at most MaxTokenTTL
	NoRenewToken      bool
	Retry             *RetryPolicy // nil with a queue: DefaultRetryPolicy; must be nil without one

	ScheduleID string // the schedule that creates it; empty: none. Requests do not set it

	IdempotencyKey  string // empty: none
	IdempotencyHash string // of the canonical request body; set with the key

	// AdmissionErr is the error for a deadline that has passed, or for a worker that is gone. Create returns it unless the key is known,
	// since its first request was in time. nil: neither.
	AdmissionErr error
}

// Attempt identifies one attempt of one task as its token does: everything a callback needs to find its keys without a look-up. Create it
// with beats.Service.Attempt, which sets what the batcher needs; it is immutable then and may be shared and cached.
type Attempt struct {
	// A beat needs only these. In the token cache they end with a line of memory.
	TaskID   string
	Number   int
	Member   string // <scope>/<task>#<attempt>.<fence>
	BeatsKey string // of the set of its last beats
	Shard    int
	Timeout  time.Duration // heartbeat timeout, as rounded at creation; 0: its worker's beats keep it alive
	Interval time.Duration // between beats

	Scope    Scope
	RunID    string
	Fence    string    // random, distinguishes attempts with the same number
	IssuedAt time.Time // when the attempt was dispatched
	WorkerID string    // the worker that claimed it; empty: it was pushed
	Deadline int64     // of the task, ms since the epoch, for adoption; 0: none
}

// Report is what a worker may report with a callback. All fields are optional.
type Report struct {
	WorkerID   string
	ReportedAt time.Time // the worker's own clock: stored and shown, never used for decisions
	Progress   Progress
}

// Progress is a progress report. All fields are JSON text exactly as the worker sent it (compact: Pct a number, Message a string literal
// with its quotes), so that no step decodes and encodes it again. Empty fields keep their last reported value.
type Progress struct {
	Pct     string
	Message string
	Details string // of an envelope only
}

// Cancel is a pending cancel in the response to a callback.
type Cancel struct {
	Reason    string // free text from the requester; may be empty
	Delivered bool   // a response with it was already written to the worker's connection
}

// Envelope is a dispatched attempt of a task, in the form in which its worker receives it.
type Envelope struct {
	Task    *Task
	Attempt *Attempt
	// TokenTTL is the life of the attempt's token from Attempt.IssuedAt.
	TokenTTL     time.Duration
	RenewToken   bool
	ReadyAt      time.Time // since when the task could be claimed; zero: unknown
	LastProgress *Progress // of the previous attempt, with the task's details; nil when there is none
}

// Created is the result of Create and NextAttempt. Envelope is nil for a task that waits in a queue.
type Created struct {
	Task     *Task
	Envelope *Envelope
}

// Acknowledged is the result of a callback.
type Acknowledged struct {
	At     time.Time // Redis's clock
	Cancel *Cancel   // nil: none pending
}

// Completion is what a worker reports at the end of an attempt.
type Completion struct {
	Report
	Outcome     State // Succeeded, Failed, Cancelled or Snoozed
	CompletedAt time.Time
	Output      json.RawMessage
	Metrics     json.RawMessage
	Error       json.RawMessage // the error object as sent, compact; required for Failed
	Category    string          // of the error
	Retryable   bool            // as the error states, else the default of its category
	RetryAfter  *time.Duration  // before the next attempt of a snoozed one, or of a failed one instead of the backoff; nil: the backoff

	CancelledDuringPhase string
	PartialProgress      json.RawMessage
}

// Completed is the result of a completion. Repeating the completion returns the same result.
type Completed struct {
	At          time.Time
	Outcome     State
	WillRetry   bool
	NextAttempt int // set with WillRetry
}

// Task is the full view of one task.
type Task struct {
	Scope      Scope
	ID         string
	RunID      string
	Key        string
	Asset      string
	Trace      string // traceparent of its creation; empty: none
	ScheduleID string // the schedule that created it; empty: none
	Type       string
	Queue      string
	Runtime    string

	State    State
	Attempt  int // 0 until the first dispatch
	WorkerID string
	Liveness Liveness        // empty unless RUNNING
	Progress Progress        // of the current attempt
	Details  json.RawMessage // the last checkpoint of any attempt; nil: none, or a list

	CreatedAt       time.Time
	DispatchedAt    time.Time // zero times: not yet
	StartedAt       time.Time
	LastHeartbeatAt time.Time // kept after the end
	ReportedAt      time.Time // the worker's own time of its last beat, if reported
	CompletedAt     time.Time // the worker's own time of its completion, if reported
	FinishedAt      time.Time
	Deadline        time.Time
	RunAt           time.Time
	NextAttemptAt   time.Time // set while SCHEDULED, or QUEUED for a backoff

	CancelRequested bool
	CancelReason    string
	Reason          Reason // why it FAILED; empty otherwise

	RetriesExhausted bool // FAILED although it was retryable: its policy allows no more

	Payload      json.RawMessage
	Resources    json.RawMessage
	Labels       map[string]string
	WorkerLabels map[string]string
	Output       json.RawMessage
	Metrics      json.RawMessage
	Error        json.RawMessage // complete; why it FAILED, or while QUEUED for a retry, why the previous attempt did

	CancelledDuringPhase string
	PartialProgress      json.RawMessage

	HeartbeatInterval time.Duration
	HeartbeatTimeout  time.Duration
	CancelGrace       time.Duration
	StartTimeout      time.Duration // zero: the default
	RunTimeout        time.Duration // zero: none
	TokenTTL          time.Duration // zero: the default
	NoRenewToken      bool
	Retry             *RetryPolicy // nil: none
	Failures          int          // counted against Retry.MaxAttempts
	Losses            int          // counted against Retry.MaxLosses

	History []HistoryEntry // oldest first, ended attempts only
}

// HistoryEntry is one ended attempt.
type HistoryEntry struct {
	Attempt          int
	WorkerID         string
	DispatchedAt     time.Time
	StartedAt        time.Time
	LastHeartbeatAt  time.Time // zero: never received
	CompletedAt      time.Time // the worker's own time of its completion; zero: not reported
	EndedAt          time.Time
	Outcome          string // SUCCEEDED, FAILED, CANCELLED, SNOOZED, ZOMBIE, TIMED_OUT, LOST or SUPERSEDED
	Reason           Reason
	LastProgress     Progress
	Error            json.RawMessage // at most MaxHistoryError bytes
	Metrics          json.RawMessage // at most MaxHistoryMetrics bytes; nil: none
	WillRetry        bool
	RetriesExhausted bool      // it was retryable, but the policy allows no more
	Evidence         *Evidence // of a verdict by Lubdub; nil when the worker reported the end
}

// Evidence is why Lubdub ended an attempt.
type Evidence struct {
	LastHeartbeatAt time.Time     // zero: never received
	Silent          time.Duration // in shard time, which excludes outages
	Timeout         time.Duration // the timeout that was exceeded
	OutageCredit    time.Duration // wall time since the last beat that was excluded
	DetectedAt      time.Time
	DetectionLag    time.Duration
	Sweeper         string // the process that reached the verdict

	// WorkerReason is why the worker ended, for an attempt that was lost with it, or NotInInventory; the fields above are then about the
	// worker. Empty: they are about the attempt.
	WorkerReason   WorkerReason
	MassExpiryHeld bool // the mass-expiry brake had held it for a second timeout period
}
