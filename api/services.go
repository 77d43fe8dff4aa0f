package api

import (
	"context"
	"time"

	"github.com/lubdub-io/lubdub/tracker"
	"github.com/lubdub-io/lubdub/tracker/beats"
	"github.com/lubdub-io/lubdub/tracker/brake"
	"github.com/lubdub-io/lubdub/tracker/events"
	"github.com/lubdub-io/lubdub/tracker/holdings"
	"github.com/lubdub-io/lubdub/tracker/model"
	"github.com/lubdub-io/lubdub/tracker/queues"
	"github.com/lubdub-io/lubdub/tracker/revocations"
	"github.com/lubdub-io/lubdub/tracker/schedules"
	"github.com/lubdub-io/lubdub/tracker/stats"
	"github.com/lubdub-io/lubdub/tracker/store"
	"github.com/lubdub-io/lubdub/tracker/sweep"
	"github.com/lubdub-io/lubdub/tracker/tasks"
	"github.com/lubdub-io/lubdub/tracker/webhooks"
	"github.com/lubdub-io/lubdub/tracker/workers"
)

// Services is what the front end needs of the tracker, by what it is about. Every error is a *model.Error.
type Services struct {
	Beats       Beats
	Tasks       Tasks
	Workers     Workers
	Machines    Machines
	Holdings    Holdings
	Queues      Queues
	Schedules   Schedules
	Webhooks    Webhooks
	Events      Events
	Stats       Stats
	Revocations Revocations
	Sweeper     Sweeper
	Store       Store
}

// ServicesOf are those of a tracker.
func ServicesOf(t *tracker.Tracker) Services {
	type releaser = brake.Service // a second field of the name Service cannot be embedded
	return Services{
		Beats: t.Beats, Tasks: t.Tasks, Workers: t.Workers, Machines: t.Workers, Holdings: t.Holdings, Queues: t.Queues,
		Schedules: t.Schedules, Webhooks: t.Webhooks, Events: t.Events, Stats: t.Stats, Revocations: t.Revocations,
		Sweeper: struct {
			*sweep.Service
			*releaser
		}{t.Sweeper, t.Brake},
		Store: t.Store,
	}
}

// Beats takes heartbeats, and what else a worker reports of an attempt.
type Beats interface {
	Attempt(model.Attempt) *model.Attempt // fills in an attempt's derived names; the result is cached with its token
	Beat(*beats.Beat)                     // returns when the beat has its result
	BeatMany([]*beats.Beat)               // returns when each has its result
	// Land does not wait: landed is called, on other goroutines, with those that have their result, each once. It must not block.
	Land(batch []*beats.Beat, landed func([]*beats.Beat))
	CancelDelivered(*model.Attempt) // a reply that carried the cancel was handed to the connection; does not block
	Start(context.Context, *model.Attempt, model.Report) (model.Acknowledged, error)
	Complete(context.Context, *model.Attempt, model.Completion) (model.Completed, error)
	Skew() time.Duration // how far the store's clock is ahead of this process's
}

type Tasks interface {
	Create(context.Context, model.NewTask) (*model.Created, error)
	CreateBatch(context.Context, []model.NewTask) []tasks.CreateResult // in the same order
	NextAttempt(ctx context.Context, scope model.Scope, taskID string, from int) (*model.Created, error)
	Get(ctx context.Context, scope model.Scope, taskID string) (*model.Task, error)
	List(context.Context, model.TaskFilter) (*model.TaskPage, error)
	Cancel(ctx context.Context, scope model.Scope, taskID string, how model.CancelRequest) (*model.Task, error)
	CancelMany(ctx context.Context, f model.TaskFilter, how model.CancelRequest, dryRun bool) (*tasks.Acted, error)
	RetryMany(ctx context.Context, f model.TaskFilter, dryRun bool) (*tasks.Acted, error)
	Run(ctx context.Context, scope model.Scope, runID string) (*model.Run, error)
	CancelRun(ctx context.Context, scope model.Scope, runID string, how model.CancelRequest) (*model.Run, error)
}

type Workers interface {
	Register(context.Context, model.NewWorker) (*workers.Registered, error)
	Adopt(ctx context.Context, scope model.Scope, workerID string, record []string) error
	Beat(ctx context.Context, scope model.Scope, workerID string, b workers.WorkerBeat) (*holdings.WorkerHeard, error)
	Get(ctx context.Context, scope model.Scope, workerID string) (*model.Worker, error)
	List(context.Context, workers.WorkerFilter) (*workers.WorkerPage, error)
	Select(context.Context, model.Selector) (*model.Selection, error)
	Drain(ctx context.Context, scope model.Scope, workerID string, d workers.Drain) (*model.Worker, error)
	DrainMany(ctx context.Context, f workers.WorkerFilter, d workers.Drain, dryRun bool) (*workers.Drained, error)
	Resume(ctx context.Context, scope model.Scope, workerID, reason string) (*model.Worker, error)
	Retire(ctx context.Context, scope model.Scope, workerID string, end model.WorkerReason, reason string) (*model.Worker, error)
	Cordon(ctx context.Context, scope model.Scope, workerID, reason string) (*model.Worker, error)
	Uncordon(ctx context.Context, scope model.Scope, workerID, reason string) (*model.Worker, error)
	ActOnMany(ctx context.Context, act workers.Act, f workers.WorkerFilter, reason string, dryRun bool) (*workers.Acted, error)
}

type Machines interface {
	Machine(ctx context.Context, scope model.Scope, machineID string) (*workers.Machine, error)
	Machines(context.Context, workers.MachineFilter) (*workers.MachinePage, error)
	DrainMachine(ctx context.Context, scope model.Scope, machineID string, d workers.Drain) (*workers.Drained, error)
	OfflineMachine(ctx context.Context, scope model.Scope, machineID, reason string) (*workers.Acted, error)
	ResumeMachine(ctx context.Context, scope model.Scope, machineID, reason string) (*workers.Resumed, error)
}

// Holdings knows which attempts a worker holds.
type Holdings interface {
	// Owned returns nil for attempts that are not the worker's.
	Owned(ctx context.Context, scope model.Scope, workerID string, names []holdings.OwnedAttempt) ([]*model.Attempt, error)
	// Notified records that a reply which carried all the notices was handed to the connection. It does not block.
	Notified(*holdings.WorkerHeard)
}

type Queues interface {
	// Claim may wait as long as the request says, or until the context ends.
	Claim(context.Context, queues.ClaimRequest) ([]*model.Envelope, error)
	List(context.Context, model.Scope) ([]*queues.Queue, error)
	Get(ctx context.Context, scope model.Scope, queue string) (*queues.Queue, error)
	Pause(ctx context.Context, scope model.Scope, queue string) (created bool, err error)
	Resume(ctx context.Context, scope model.Scope, queue string) error
}

type Schedules interface {
	Create(context.Context, schedules.Spec) (*schedules.Schedule, error)
	// Change may call change more than once, each time with what the schedule says then.
	Change(ctx context.Context, scope model.Scope, scheduleID string, change func(*schedules.Spec) error) (*schedules.Schedule, error)
	Get(ctx context.Context, scope model.Scope, scheduleID string) (*schedules.Schedule, error)
	List(context.Context, schedules.Filter) (*schedules.Page, error)
	Delete(ctx context.Context, scope model.Scope, scheduleID string) error
	Pause(ctx context.Context, scope model.Scope, scheduleID string) (*schedules.Schedule, error)
	Resume(ctx context.Context, scope model.Scope, scheduleID string) (*schedules.Schedule, error)
	NextFires(ctx context.Context, scope model.Scope, scheduleID string, count int) ([]time.Time, error)
	Fire(ctx context.Context, scope model.Scope, scheduleID string) (*schedules.Fire, error)
	Backfill(ctx context.Context, scope model.Scope, scheduleID string, from, to time.Time) (*schedules.Asked, error)
}

type Webhooks interface {
	Create(context.Context, webhooks.NewWebhook) (*webhooks.Webhook, error)
	Update(ctx context.Context, scope model.Scope, id string, to webhooks.Settings, managed bool) (*webhooks.Webhook, error)
	Delete(ctx context.Context, scope model.Scope, id string, managed bool) error
	RotateSecret(ctx context.Context, scope model.Scope, id, secret string, managed bool) (*webhooks.Webhook, error)
	Get(ctx context.Context, scope model.Scope, id string) (*webhooks.Webhook, error)
	List(context.Context, model.Scope) ([]*webhooks.Webhook, error)
	Test(ctx context.Context, scope model.Scope, webhookID string) (*webhooks.Delivery, error)
	Deliveries(context.Context, webhooks.DeliveryFilter) (*webhooks.DeliveryPage, error)
	Redeliver(ctx context.Context, scope model.Scope, webhookID, deliveryID string) error
	RedeliverSince(ctx context.Context, scope model.Scope, webhookID, after string) (*webhooks.Redelivered, error)
}

type Events interface {
	List(context.Context, events.Query) (*events.Page, error)
	// Follow returns a listener behind a cursor, which field names in refusals; "": from now on.
	Follow(ctx context.Context, f events.Filter, field, after string) (*events.Listener, error)
}

type Stats interface {
	Get(ctx context.Context, scope model.Scope) (*stats.Stats, error) // an empty half stands for all
	Verdicts(context.Context, stats.VerdictQuery) (*stats.Verdicts, error)
	PoisonTasks(context.Context, model.Scope) ([]stats.PoisonTask, error)
	RecentlyLost(context.Context, model.Scope) (*stats.LostWorkers, error)
	System(context.Context) (*stats.System, error)
	QueuesNow(context.Context, model.Scope) ([]*queues.Queue, error) // as Queues.List, perhaps a second old
	Scopes(context.Context, stats.ScopeFilter) (*stats.ScopePage, error)
}

type Revocations interface {
	Revoke(context.Context, revocations.Revocation) error
	// Heed has f told of all tokens that were taken back and which of that is new, now and whenever it changes.
	Heed(f func(all, news []revocations.Revocation))
}

type Sweeper interface {
	Sweep(context.Context) (sweep.SweepResult, error)
	Release(ctx context.Context, scope model.Scope, lasts time.Duration) (*sweep.Released, error)
}

type Store interface {
	NodesHealth(context.Context) []store.NodeHealth
	Ready(context.Context) error // what is wrong with the store; nil: nothing
}
