package workers

import (
	"context"

	"github.com/lubdub-io/lubdub/tracker/holdings"
	"github.com/lubdub-io/lubdub/tracker/model"
	"github.com/lubdub-io/lubdub/tracker/workers"
)

// Service is what the handlers need of the domain's registry.
type Service interface {
	Register(context.Context, model.NewWorker) (*workers.Registered, error)
	Beat(ctx context.Context, scope model.Scope, workerID string, b workers.WorkerBeat) (*holdings.WorkerBeatResponse, error)
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

// Machines is what the handlers need of the domain's machines.
type Machines interface {
	Machine(ctx context.Context, scope model.Scope, machineID string) (*workers.Machine, error)
	Machines(context.Context, workers.MachineFilter) (*workers.MachinePage, error)
	DrainMachine(ctx context.Context, scope model.Scope, machineID string, d workers.Drain) (*workers.Drained, error)
	OfflineMachine(ctx context.Context, scope model.Scope, machineID, reason string) (*workers.Acted, error)
	ResumeMachine(ctx context.Context, scope model.Scope, machineID, reason string) (*workers.Resumed, error)
}

// Notices concerns the notices that a worker is owed about its attempts.
type Notices interface {
	// Notified records that a reply which included all the notices was written to the connection. It does not block.
	Notified(*holdings.WorkerBeatResponse)
}

// Handlers answer the routes of workers and machines.
type Handlers struct {
	Workers  Service
	Machines Machines
	Notices  Notices
}
