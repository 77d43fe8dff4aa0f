package tracker

import (
	"github.com/lubdub-io/lubdub/tracker/beats"
	"github.com/lubdub-io/lubdub/tracker/events"
	"github.com/lubdub-io/lubdub/tracker/holdings"
	"github.com/lubdub-io/lubdub/tracker/model"
	"github.com/lubdub-io/lubdub/tracker/queues"
	"github.com/lubdub-io/lubdub/tracker/revocations"
	"github.com/lubdub-io/lubdub/tracker/schedules"
	"github.com/lubdub-io/lubdub/tracker/schema"
	"github.com/lubdub-io/lubdub/tracker/stats"
	"github.com/lubdub-io/lubdub/tracker/store"
	"github.com/lubdub-io/lubdub/tracker/sweep"
	"github.com/lubdub-io/lubdub/tracker/tasks"
	"github.com/lubdub-io/lubdub/tracker/webhooks"
	"github.com/lubdub-io/lubdub/tracker/workers"
)

// What the rooms define and callers need, under the names by which they know it.

type (
	Acknowledged   = model.Acknowledged
	Acted          = workers.Acted
	ActedOnTasks   = tasks.Acted
	Asked          = schedules.Asked
	Attempt        = model.Attempt
	Beat           = beats.Beat
	Cancel         = model.Cancel
	CancelRequest  = model.CancelRequest
	ClaimRequest   = queues.ClaimRequest
	Code           = model.Code
	Completed      = model.Completed
	Completion     = model.Completion
	Created        = model.Created
	CreateResult   = tasks.CreateResult
	Delivery       = webhooks.Delivery
	DeliveryAnswer = webhooks.Answer
	DeliveryFilter = webhooks.DeliveryFilter
	DeliveryPage   = webhooks.DeliveryPage
	DeliveryStatus = webhooks.Status
	Drain          = workers.Drain
	Drained        = workers.Drained
	Durability     = store.Durability
	Envelope       = model.Envelope
	Error          = model.Error
	EvictionError  = store.EvictionError
	Event          = events.Event
	EventFilter    = events.Filter
	EventGap       = events.Gap
	EventListener  = events.Listener
	EventPage      = events.Page
	EventQuery     = events.Query
	EventTold      = events.Told
	Evidence       = model.Evidence
	FieldError     = model.FieldError
	Filter         = model.Filter
	Fire           = schedules.Fire
	FireOutcome    = schedules.Outcome
	HistoryEntry   = model.HistoryEntry
	InventoryItem  = holdings.InventoryItem
	Liveness       = model.Liveness
	Machine        = workers.Machine
	MachineFilter  = workers.MachineFilter
	MachinePage    = workers.MachinePage
	NewTask        = model.NewTask
	NewWebhook     = webhooks.NewWebhook
	NewWorker      = model.NewWorker
	OwnedAttempt   = holdings.OwnedAttempt
	Progress       = model.Progress
	Queue          = queues.Queue
	QueueKind      = queues.QueueKind
	Reason         = model.Reason
	Redelivered    = webhooks.Redelivered
	Registered     = workers.Registered
	Released       = sweep.Released
	Report         = model.Report
	Resumed        = workers.Resumed
	RetryPolicy    = model.RetryPolicy
	Revocation     = revocations.Revocation
	Run            = model.Run
	Schedule       = schedules.Schedule
	ScheduleSpec   = schedules.Spec
	ScheduleFilter = schedules.Filter
	SchedulePage   = schedules.Page
	ReplicaFacts   = stats.Facts
	Scope          = model.Scope
	LostWorkers    = stats.LostWorkers
	PoisonTask     = stats.PoisonTask
	ScopeFilter    = stats.ScopeFilter
	ScopePage      = stats.ScopePage
	Stats          = stats.Stats
	StatsCounts    = stats.Counts
	StatsStep      = stats.Step
	System         = stats.System
	NodeHealth     = store.NodeHealth
	ShardHealth    = stats.Shard
	Replica        = stats.Replica
	VerdictGroup   = stats.VerdictGroup
	VerdictQuery   = stats.VerdictQuery
	Verdicts       = stats.Verdicts
	Selection      = model.Selection
	SelectionError = model.SelectionError
	Selector       = model.Selector
	State          = model.State
	Sweeper        = sweep.Sweeper
	SweeperOptions = sweep.SweeperOptions
	SweepResult    = sweep.SweepResult
	Task           = model.Task
	TaskFilter     = model.TaskFilter
	TaskNotice     = holdings.TaskNotice
	TaskPage       = model.TaskPage
	Webhook        = webhooks.Webhook
	WebhookPoster  = webhooks.Poster
	Worker         = model.Worker
	WorkerAct      = workers.Act
	HookSettings   = webhooks.Settings
	WorkerBeat     = workers.WorkerBeat
	WorkerCordon   = model.Cordon
	OfflineHold    = model.Hold
	WorkerFilter   = workers.WorkerFilter
	WorkerHeard    = holdings.WorkerHeard
	WorkerPage     = workers.WorkerPage
	WorkerReason   = model.WorkerReason
	WorkerSort     = workers.WorkerSort
	WorkerStatus   = model.WorkerStatus
)

const (
	AlreadyTerminal          = model.AlreadyTerminal
	AttemptMismatch          = model.AttemptMismatch
	ByCapacity               = model.ByCapacity
	ByCordon                 = model.ByCordon
	ByFreshness              = model.ByFreshness
	ByLabels                 = model.ByLabels
	ByLastHeartbeat          = workers.ByLastHeartbeat
	ByRuntime                = model.ByRuntime
	ByStaleCount             = workers.ByStaleCount
	ByStatus                 = model.ByStatus
	ByType                   = model.ByType
	ByUptime                 = workers.ByUptime
	CancelTimeout            = model.CancelTimeout
	CordonWorkers            = workers.Cordon
	Cancelled                = model.Cancelled
	DeadlineExceeded         = model.DeadlineExceeded
	DeliveryNotFound         = webhooks.DeliveryNotFound
	DefaultFinishedRetention = model.DefaultFinishedRetention
	DefaultMaxCatchup        = schedules.DefaultMaxCatchup
	DefaultMaxConcurrent     = model.DefaultMaxConcurrent
	DefaultTokenTTL          = model.DefaultTokenTTL
	DefaultWorkerInterval    = model.DefaultWorkerInterval
	DefaultWorkerMultiplier  = model.DefaultWorkerMultiplier
	Dispatched               = model.Dispatched
	Draining                 = model.Draining
	Exists                   = model.Exists
	Expired                  = model.Expired
	Failed                   = model.Failed
	FireCreated              = schedules.Created
	FireRefused              = schedules.Refused
	FireSkipped              = schedules.Skipped
	Forbidden                = queues.Forbidden
	Fresh                    = model.Fresh
	Fsync                    = store.Fsync
	HeartbeatTimeout         = model.HeartbeatTimeout
	IdempotencyMismatch      = model.IdempotencyMismatch
	Invalid                  = model.Invalid
	InvalidCursor            = events.InvalidCursor
	InvalidID                = model.InvalidID
	Late                     = model.Late
	Lost                     = model.Lost
	MachineNotFound          = workers.MachineNotFound
	MaxClaim                 = queues.MaxClaim
	MaxClaimWait             = queues.MaxClaimWait
	MaxControlTTL            = model.MaxControlTTL
	MaxDurableReplicas       = store.MaxDurableReplicas
	MaxEventPage             = events.MaxPage
	MaxHistory               = model.MaxHistory
	MaxIDBytes               = model.MaxIDBytes
	MaxKeptError             = model.MaxKeptError
	MaxKeyBytes              = model.MaxKeyBytes
	MaxLabels                = model.MaxLabels
	MaxLabelValBytes         = model.MaxLabelValBytes
	MaxMaxConcurrent         = model.MaxMaxConcurrent
	MaxMessageBytes          = model.MaxMessageBytes
	MaxMultiplier            = model.MaxMultiplier
	MaxNextFires             = schedules.MaxNext
	MaxPausedQueues          = queues.MaxPausedQueues
	MaxPayloadBytes          = model.MaxPayloadBytes
	MaxPhaseBytes            = model.MaxPhaseBytes
	MaxReasonBytes           = model.MaxReasonBytes
	MaxRelease               = sweep.MaxRelease
	MaxRetryAttempts         = model.MaxRetryAttempts
	MaxShards                = store.MaxShards
	MaxTimeout               = model.MaxTimeout
	MaxTokenTTL              = model.MaxTokenTTL
	MaxTypes                 = model.MaxTypes
	Memory                   = store.Memory
	MinFinishedRetention     = model.MinFinishedRetention
	MinTimeout               = model.MinTimeout
	NoCapacity               = model.NoCapacity
	NoFreshWorkers           = model.NoFreshWorkers
	NoMatchingWorkers        = model.NoMatchingWorkers
	NotFailed                = tasks.NotFailed
	NotFound                 = model.NotFound
	NoWorkersMatch           = workers.NoWorkersMatch
	Offline                  = model.Offline
	Online                   = model.Online
	Overloaded               = model.Overloaded
	Queued                   = model.Queued
	QueueNotFound            = queues.QueueNotFound
	Replicated               = store.Replicated
	ResumeWorkers            = workers.Resume
	RetireWorkers            = workers.Retire
	RevokedOfSubject         = revocations.OfSubject
	RevokedOfTenant          = revocations.OfTenant
	RevokedOfWorker          = revocations.OfWorker
	Running                  = model.Running
	RunNotFound              = model.RunNotFound
	RunTimeout               = model.RunTimeout
	ScheduleExists           = schedules.Exists
	ScheduleNotFound         = schedules.NotFound
	StartTimeout             = model.StartTimeout
	StatsStepLength          = stats.StepLength
	StatsStepsKept           = stats.StepsKept
	Succeeded                = model.Succeeded
	Terminated               = model.Terminated
	Unavailable              = model.Unavailable
	UncordonWorkers          = workers.Uncordon
	WebhookDisabled          = webhooks.Disabled
	WebhookExists            = webhooks.Exists
	WebhookManaged           = webhooks.Managed
	WebhookNotFound          = webhooks.NotFound
	WorkerDeregistered       = model.WorkerDeregistered
	WorkerDrainDeadline      = model.WorkerDrainDeadline
	WorkerDrained            = model.WorkerDrained
	WorkerDraining           = workers.WorkerDraining
	WorkerForced             = model.WorkerForced
	WorkerLost               = model.WorkerLost
	WorkerNotFound           = workers.WorkerNotFound
	WorkerOffline            = workers.WorkerOffline
	WorkerHeld               = workers.WorkerHeld
	WorkerReported           = model.WorkerReported
	WorkerStale              = model.WorkerStale
	WorkerSuperseded         = model.WorkerSuperseded
	WorkerTokenTTL           = model.WorkerTokenTTL
)

var (
	ErrEventsLagged    = events.ErrLagged
	AttemptInDoubt     = beats.AttemptInDoubt
	DefaultRetryPolicy = model.DefaultRetryPolicy
	DeliveryStatuses   = webhooks.Statuses
	EventTypes         = model.EventTypes
	EventsWithoutScope = model.WithoutScope
	Reasons            = model.Reasons
	States             = model.States
	VerdictGroups      = stats.VerdictGroups
	WorkerStatuses     = model.WorkerStatuses
	AppendReport       = schema.AppendReport
	ArrivedAt          = store.ArrivedAt
	ParseTraceparent   = model.ParseTraceparent
	WithActor          = model.WithActor
	CheckDepth         = model.CheckDepth
	CheckReason        = workers.CheckReason
	CodeOf             = model.CodeOf
)

// VerdictsByLabel begins what names a label among VerdictGroups, such as label:team.
const VerdictsByLabel = stats.ByLabel

// ValidLabelKey reports whether labels may have the key.
func ValidLabelKey(k string) bool { return model.ValidLabelKey(k) }

// ValidID reports whether s may be an id.
func ValidID[T ~string | ~[]byte](s T) bool { return model.ValidID(s) }
