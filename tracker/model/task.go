package model

import (
	"encoding/json"
	"log/slog"
	"time"
)

// Scope is a tenant and one of its workspaces. Every id is unique within its scope only.
type Scope struct {
	Tenant    string
	Workspace string
}

func (s Scope) String() string { return s.Tenant + "/" + s.Workspace }

// LogAttr is the scope in a line of the log: two fields, named as on the wire.
func (s Scope) LogAttr() slog.Attr {
	return slog.Attr{Value: slog.GroupValue(slog.String("tenantId", s.Tenant), slog.String("workspaceId", s.Workspace))}
}

// State is where a task stands in its life cycle.
type State string

const (
	Queued     State = "QUEUED"     // waits in its queue, for its time or for its backoff
	Dispatched State = "DISPATCHED" // an attempt was handed out and has not been heard yet
	Running    State = "RUNNING"    // an attempt beats
	Succeeded  State = "SUCCEEDED"
	Failed     State = "FAILED"
	Cancelled  State = "CANCELLED"
)

// Terminal reports whether a task in this state is finished.
func (s State) Terminal() bool { return s == Succeeded || s == Failed || s == Cancelled }

// States lists every state in the order of a task's life.
var States = []State{Queued, Dispatched, Running, Succeeded, Failed, Cancelled}

// Reason says why an attempt or task ended as it did.
type Reason string

const (
	HeartbeatTimeout Reason = "HEARTBEAT_TIMEOUT" // silent for longer than its timeout: a zombie
	CancelTimeout    Reason = "CANCEL_TIMEOUT"    // still running when the grace period was over
	DeadlineExceeded Reason = "DEADLINE_EXCEEDED"
	RunTimeout       Reason = "RUN_TIMEOUT"
	StartTimeout     Reason = "START_TIMEOUT" // dispatched and never heard
	WorkerLost       Reason = "WORKER_LOST"
	WorkerReported   Reason = "WORKER_REPORTED" // the worker itself said that it failed
	Terminated       Reason = "TERMINATED"      // cancelled without waiting for its worker
)

// Reasons lists all of them.
var Reasons = []Reason{HeartbeatTimeout, CancelTimeout, DeadlineExceeded, RunTimeout, StartTimeout, WorkerLost, WorkerReported, Terminated}

// Liveness is computed from the last beat whenever it is asked for; nobody reports it.
type Liveness string

const (
	Fresh Liveness = "FRESH"
	Late  Liveness = "LATE" // older than 1.5 × the interval
	Lost  Liveness = "LOST" // older than the timeout, or no beat on record
)

// Defaults and bounds of a task. The contract's numbers stand here and nowhere else in Go.
const (
	DefaultHeartbeatInterval = 30 * time.Second
	DefaultHeartbeatTimeout  = 90 * time.Second
	DefaultCancelGrace       = 30 * time.Second
	DefaultTokenTTL          = time.Hour
	MaxTokenTTL              = 2 * time.Hour        // of tasks' and workers' tokens
	MaxControlTTL            = 366 * 24 * time.Hour // of control tokens
	MinTimeout               = time.Second
	MaxTimeout               = 24 * time.Hour
	DefaultClaimStartTimeout = time.Minute // of queue tasks; pushed ones have their token's life

	DefaultFinishedRetention = 24 * time.Hour
	MinFinishedRetention     = MaxTokenTTL + 5*time.Minute // a verified token's record must still be there
	IdempotencyRetention     = 24 * time.Hour

	MaxMessageBytes = 1024 // of a progress message as JSON text; longer ones are cut, never refused
	MaxHistory      = 100  // newest attempts kept with a task
	MaxKeptError    = 2048 // bytes of an ended attempt's error in the history; longer ones are cut
	MaxKeptMetrics  = 1024 // bytes of an ended attempt's metrics in the history; members that do not fit are left out
)

// RetryPolicy says how often a queue task is tried again. The zero value means no retries at all.
type RetryPolicy struct {
	MaxAttempts    int           // failures that workers reported (and run timeouts) before the task fails; ≥ 1
	MaxLosses      int           // attempts lost to silence or a dead worker that are requeued; the next one fails the task
	InitialBackoff time.Duration // before the first retry
	Multiplier     float64       // of the backoff, each further retry; ≥ 1
	MaxBackoff     time.Duration
}

// DefaultRetryPolicy is that of a queue task that names none.
var DefaultRetryPolicy = RetryPolicy{
	MaxAttempts: 3, MaxLosses: 3, InitialBackoff: time.Second, Multiplier: 2, MaxBackoff: time.Minute,
}

// NewTask is what a task is created from. Validate it with Validate before Create; zero durations mean the
// defaults above unless a comment says otherwise.
type NewTask struct {
	Scope  Scope
	TaskID string // empty: Lubdub makes one
	RunID  string // empty: a run of its own, named after the task
	Key    string // taskKey
	Asset  string // assetId
	Trace  string // traceparent, as ParseTraceparent returns it; empty: none
	Type   string
	Queue  string // empty: a pushed task, dispatched at once

	Runtime      string
	WorkerLabels map[string]string
	WorkerID     string
	Placement    string // strategy; kept for placement

	Payload   json.RawMessage   // any JSON value, compact; nil: none
	Resources json.RawMessage   // a JSON object, compact; nil: none
	Labels    map[string]string // nil: none

	NotBefore time.Time // zero: at once
	Deadline  time.Time // zero: none

	StartTimeout      time.Duration // zero: DefaultClaimStartTimeout with a queue, else the token's life
	RunTimeout        time.Duration // zero: none
	HeartbeatInterval time.Duration
	HeartbeatTimeout  time.Duration // zero with a queue: lives by its worker's beat
	CancelGrace       time.Duration
	TokenTTL          time.Duration // zero: DefaultTokenTTL, or as long as the deadline needs up to MaxTokenTTL
	NoRenewToken      bool
	Retry             *RetryPolicy // nil with a queue: DefaultRetryPolicy; must be nil without one

	ScheduleID string // schedule that creates it; empty: none. No request sets it

	IdempotencyKey  string // empty: none
	IdempotencyHash string // of the canonical request body; set with the key

	// Late is the refusal of a deadline that has passed, or of a worker that is gone, unless the key is known: its first
	// request was in time. nil: neither.
	Late error
}

// Attempt names one attempt of one task as its token does: what a callback needs to find its keys without a look-up. Make it
// with Tracker.Attempt, which fills in what the batcher needs; it is immutable then and may be shared and cached.
type Attempt struct {
	// A beat needs these and no others; where the token cache keeps them they end with a line of memory.
	TaskID   string
	Number   int
	Member   string // <scope>/<task>#<attempt>.<fence>
	BeatsKey string // of the set that it beats in
	Shard    int
	Timeout  time.Duration // heartbeat timeout, as rounded at creation; 0: lives by its worker's beat
	Interval time.Duration // between beats

	Scope    Scope
	RunID    string
	Fence    string    // drawn with the attempt, so that a number given out twice is told apart
	IssuedAt time.Time // when the attempt was dispatched
	WorkerID string    // that claimed it; empty: it was pushed
	Deadline int64     // of the task, ms since the epoch, so that an adopted one has it; 0: none
}

// Report is what a worker says with a callback besides "I am alive". All of it is optional.
type Report struct {
	WorkerID   string
	ReportedAt time.Time // the worker's own clock: kept and shown, decides nothing
	Progress   Progress
}

// Progress is a progress report. Both fields are JSON text exactly as the worker sent it (compact: Pct a
// number, Message a string literal with its quotes), so that no hop decodes and encodes it again; empty means
// that the report does not say, and the last one that did stands.
type Progress struct {
	Pct     string
	Message string
}

// Cancel is a pending cancel as a callback's reply tells it.
type Cancel struct {
	Reason    string // free text of whoever asked; may be empty
	Delivered bool   // a reply that carried it was already handed to the worker's connection
}

// Envelope is a dispatched attempt of a task, as it is handed to whoever runs it.
type Envelope struct {
	Task    *Task
	Attempt *Attempt
	// TokenTTL is the life of the attempt's token, counted from Attempt.IssuedAt.
	TokenTTL     time.Duration
	RenewToken   bool
	LastProgress *Progress // of the attempt before, nil when there is none
}

// Created is what Create and NextAttempt answer. Envelope is nil for a task that waits in a queue.
type Created struct {
	Task     *Task
	Envelope *Envelope
}

// Acknowledged is the answer to a callback.
type Acknowledged struct {
	At     time.Time // Redis's clock
	Cancel *Cancel   // nil: none pending
}

// Completion is what a worker reports at the end of an attempt.
type Completion struct {
	Report
	Outcome     State // Succeeded, Failed or Cancelled
	CompletedAt time.Time
	Output      json.RawMessage
	Metrics     json.RawMessage
	Error       json.RawMessage // the error object as sent, compact; required with Failed
	Category    string          // of the error
	Retryable   bool            // the error's own word, else its category's default

	CancelledDuringPhase string
	PartialProgress      json.RawMessage
}

// Completed is the answer to a completion. The same completion again gets the same answer.
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
	ScheduleID string // schedule that created it; empty: none
	Type       string
	Queue      string
	Runtime    string

	State    State
	Attempt  int // 0 until the first dispatch
	WorkerID string
	Liveness Liveness // empty unless RUNNING
	Progress Progress // of the current attempt

	CreatedAt       time.Time
	DispatchedAt    time.Time // zero times: has not happened
	StartedAt       time.Time
	LastHeartbeatAt time.Time // kept after the end
	ReportedAt      time.Time // the worker's own time of its last beat, where it said one
	CompletedAt     time.Time // the worker's own time of its completion, where it said one
	FinishedAt      time.Time
	Deadline        time.Time
	NotBefore       time.Time
	NextAttemptAt   time.Time // set while QUEUED for a backoff or notBefore

	CancelRequested bool
	CancelReason    string
	Reason          Reason // why it FAILED; empty otherwise

	RetriesExhausted bool // FAILED though a retry might have helped: its policy allows no more

	Payload      json.RawMessage
	Resources    json.RawMessage
	Labels       map[string]string
	WorkerLabels map[string]string
	Output       json.RawMessage
	Metrics      json.RawMessage
	Error        json.RawMessage // why it FAILED; while it is QUEUED for a retry, why the attempt before did; whole

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
	LastHeartbeatAt  time.Time // zero: never heard
	CompletedAt      time.Time // the worker's own time of its completion; zero: it said none
	EndedAt          time.Time
	Outcome          string // SUCCEEDED, FAILED, CANCELLED, ZOMBIE, TIMED_OUT, LOST or SUPERSEDED
	Reason           Reason
	LastProgress     Progress
	Error            json.RawMessage // at most MaxKeptError bytes
	Metrics          json.RawMessage // at most MaxKeptMetrics bytes; nil: none
	WillRetry        bool
	RetriesExhausted bool      // it might have been tried again, but the policy allows no more
	Evidence         *Evidence // of a verdict by Lubdub; nil when the worker ended it itself
}

// Evidence answers "why was it killed?".
type Evidence struct {
	LastHeartbeatAt time.Time     // zero: never heard
	Silent          time.Duration // in shard time, so without outages
	Timeout         time.Duration // that was exceeded
	OutageCredit    time.Duration // wall time since the last beat that was not counted
	DetectedAt      time.Time
	DetectionLag    time.Duration
	Sweeper         string // the process that found it; each has one name

	// Of an attempt that was lost with its worker: why that one ended, or NotInInventory, and all above is about the
	// worker; empty: it is about the attempt.
	WorkerReason   WorkerReason
	MassExpiryHeld bool // the mass expiry brake had held it, so it had one timeout more
}
