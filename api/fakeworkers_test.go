package api

import (
	"cmp"
	"context"
	"time"

	"github.com/lubdub-io/lubdub/tracker/brake"
	"github.com/lubdub-io/lubdub/tracker/holdings"
	"github.com/lubdub-io/lubdub/tracker/model"
	"github.com/lubdub-io/lubdub/tracker/sweep"
	"github.com/lubdub-io/lubdub/tracker/workers"
)

// What the fake Tracker answers about workers and machines; what the domain does is tested against the real one.

const fakeWorkerID = "wkr_01HGW5N7XHJM4GX29KZRXQP6N9000"

func fakeWorker(s model.Scope, id string) *model.Worker {
	return &model.Worker{
		Scope: s, ID: id, Queue: "default", MachineID: "host-7", Types: []string{"send_email"}, Status: model.Online, Liveness: model.Fresh,
		MaxConcurrent: 10, RegisteredAt: fakeTime, LastHeartbeatAt: fakeTime, Interval: model.DefaultWorkerInterval,
		Timeout: 3 * model.DefaultWorkerInterval,
	}
}

func (f fakeWorkers) Register(_ context.Context, n model.NewWorker) (*workers.Registered, error) {
	return &workers.Registered{WorkerID: fakeWorkerID, MachineID: n.MachineID, Queue: n.Queue, At: fakeTime,
		Interval: model.DefaultWorkerInterval, Timeout: 3 * model.DefaultWorkerInterval}, nil
}

func (f fakeWorkers) Beat(context.Context, model.Scope, string, workers.WorkerBeat) (*holdings.WorkerBeatResponse, error) {
	if f.beatWorker != nil {
		if err := f.beatWorker(); err != nil {
			return nil, err
		}
	}
	return &holdings.WorkerBeatResponse{At: fakeTime, Interval: model.DefaultWorkerInterval, Timeout: 3 * model.DefaultWorkerInterval}, nil
}

func (f fakeWorkers) Adopt(context.Context, model.Scope, string, []string) error { return nil }

func (f fakeWorkers) Get(_ context.Context, s model.Scope, id string) (*model.Worker, error) {
	return fakeWorker(s, id), nil
}

func (f fakeWorkers) List(context.Context, workers.WorkerFilter) (*workers.WorkerPage, error) {
	return &workers.WorkerPage{}, nil
}

func (f fakeWorkers) Drain(_ context.Context, s model.Scope, id string, _ workers.Drain) (*model.Worker, error) {
	w := fakeWorker(s, id)
	w.Status = model.Draining
	return w, nil
}

func (f fakeWorkers) DrainMany(_ context.Context, _ workers.WorkerFilter, _ workers.Drain, dryRun bool) (*workers.Drained, error) {
	d := &workers.Drained{Matched: 1, Workers: []string{fakeWorkerID}}
	if !dryRun {
		d.Draining = 1
	}
	return d, nil
}

func (f fakeWorkers) Resume(_ context.Context, s model.Scope, id, _ string) (*model.Worker, error) {
	return fakeWorker(s, id), nil
}

func (f fakeWorkers) Retire(_ context.Context, s model.Scope, id string, end model.WorkerReason,
	reason string) (*model.Worker, error) {
	w := fakeWorker(s, id)
	w.Status, w.StatusReason, w.EndReason, w.DeregisteredAt = model.Offline, cmp.Or(reason, string(end)), end, fakeTime
	return w, nil
}

func (f fakeWorkers) Cordon(_ context.Context, s model.Scope, id, reason string) (*model.Worker, error) {
	w := fakeWorker(s, id)
	w.Cordon = &model.Cordon{Since: fakeTime, Reason: reason}
	w.Unschedulable = []model.Filter{model.ByCordon}
	return w, nil
}

func (f fakeWorkers) Uncordon(_ context.Context, s model.Scope, id, _ string) (*model.Worker, error) {
	return fakeWorker(s, id), nil
}

func (f fakeWorkers) ActOnMany(
	_ context.Context, _ workers.Act, _ workers.WorkerFilter, _ string, dryRun bool,
) (*workers.Acted, error) {
	a := &workers.Acted{Matched: 1, Workers: []string{fakeWorkerID}}
	if !dryRun {
		a.Done = 1
	}
	return a, nil
}

func (f fakeWorkers) Select(_ context.Context, s model.Selector) (*model.Selection, error) {
	return &model.Selection{Worker: fakeWorker(s.Scope, fakeWorkerID), Considered: 1}, nil
}

func (f fakeWorkers) Machine(_ context.Context, s model.Scope, id string) (*workers.Machine, error) {
	return &workers.Machine{Scope: s, ID: id, Status: model.Online}, nil
}

func (f fakeWorkers) Machines(context.Context, workers.MachineFilter) (*workers.MachinePage, error) {
	return &workers.MachinePage{}, nil
}

func (f fakeWorkers) DrainMachine(ctx context.Context, s model.Scope, _ string, d workers.Drain) (*workers.Drained, error) {
	return f.DrainMany(ctx, workers.WorkerFilter{Scope: s}, d, false)
}

func (f fakeWorkers) OfflineMachine(context.Context, model.Scope, string, string) (*workers.Acted, error) {
	return &workers.Acted{Matched: 1, Done: 1, Workers: []string{fakeWorkerID}}, nil
}

func (f fakeWorkers) ResumeMachine(context.Context, model.Scope, string, string) (*workers.Resumed, error) {
	return &workers.Resumed{Matched: 1, Workers: []string{fakeWorkerID}}, nil
}

func (f *fakeTracker) Release(context.Context, model.Scope, time.Duration) (*brake.Released, error) {
	return &brake.Released{Tasks: 60, Until: fakeTime}, nil
}

func (f *fakeTracker) Sweep(context.Context) (sweep.SweepResult, error) {
	return sweep.SweepResult{}, nil
}
