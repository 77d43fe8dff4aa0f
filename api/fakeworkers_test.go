package api

import (
	"cmp"
	"context"
	"time"

	"github.com/lubdub-io/lubdub/tracker"
)

// What the fake Tracker answers about workers and machines; what the domain does is tested against the real one.

const fakeWorkerID = "wkr_01HGW5N7XHJM4GX29KZRXQP6N9000"

func fakeWorker(s tracker.Scope, id string) *tracker.Worker {
	return &tracker.Worker{
		Scope: s, ID: id, Queue: "default", MachineID: "host-7", Types: []string{"send_email"}, Status: tracker.Online, Liveness: tracker.Fresh,
		MaxConcurrent: 10, RegisteredAt: fakeTime, LastHeartbeatAt: fakeTime, Interval: tracker.DefaultWorkerInterval,
		Timeout: 3 * tracker.DefaultWorkerInterval,
	}
}

func (f *fakeTracker) Register(_ context.Context, n tracker.NewWorker) (*tracker.Registered, error) {
	return &tracker.Registered{WorkerID: fakeWorkerID, MachineID: n.MachineID, Queue: n.Queue, At: fakeTime,
		Interval: tracker.DefaultWorkerInterval, Timeout: 3 * tracker.DefaultWorkerInterval}, nil
}

func (f *fakeTracker) BeatWorker(context.Context, tracker.Scope, string, tracker.WorkerBeat) (*tracker.WorkerHeard, error) {
	if f.beatWorker != nil {
		if err := f.beatWorker(); err != nil {
			return nil, err
		}
	}
	return &tracker.WorkerHeard{At: fakeTime, Interval: tracker.DefaultWorkerInterval, Timeout: 3 * tracker.DefaultWorkerInterval}, nil
}

func (f *fakeTracker) AdoptWorker(context.Context, tracker.Scope, string, []string) error { return nil }

func (f *fakeTracker) Worker(_ context.Context, s tracker.Scope, id string) (*tracker.Worker, error) {
	return fakeWorker(s, id), nil
}

func (f *fakeTracker) Workers(context.Context, tracker.WorkerFilter) (*tracker.WorkerPage, error) {
	return &tracker.WorkerPage{}, nil
}

func (f *fakeTracker) DrainWorker(_ context.Context, s tracker.Scope, id string, _ tracker.Drain) (*tracker.Worker, error) {
	w := fakeWorker(s, id)
	w.Status = tracker.Draining
	return w, nil
}

func (f *fakeTracker) DrainWorkers(_ context.Context, _ tracker.WorkerFilter, _ tracker.Drain, dryRun bool) (*tracker.Drained, error) {
	d := &tracker.Drained{Matched: 1, Workers: []string{fakeWorkerID}}
	if !dryRun {
		d.Draining = 1
	}
	return d, nil
}

func (f *fakeTracker) ResumeWorker(_ context.Context, s tracker.Scope, id, _ string) (*tracker.Worker, error) {
	return fakeWorker(s, id), nil
}

func (f *fakeTracker) RetireWorker(_ context.Context, s tracker.Scope, id string, end tracker.WorkerReason,
	reason string) (*tracker.Worker, error) {
	w := fakeWorker(s, id)
	w.Status, w.StatusReason, w.EndReason, w.DeregisteredAt = tracker.Offline, cmp.Or(reason, string(end)), end, fakeTime
	return w, nil
}

func (f *fakeTracker) CordonWorker(_ context.Context, s tracker.Scope, id, reason string) (*tracker.Worker, error) {
	w := fakeWorker(s, id)
	w.Cordon = &tracker.WorkerCordon{Since: fakeTime, Reason: reason}
	w.Unschedulable = []tracker.Filter{tracker.ByCordon}
	return w, nil
}

func (f *fakeTracker) UncordonWorker(_ context.Context, s tracker.Scope, id, _ string) (*tracker.Worker, error) {
	return fakeWorker(s, id), nil
}

func (f *fakeTracker) ActOnWorkers(
	_ context.Context, _ tracker.WorkerAct, _ tracker.WorkerFilter, _ string, dryRun bool,
) (*tracker.Acted, error) {
	a := &tracker.Acted{Matched: 1, Workers: []string{fakeWorkerID}}
	if !dryRun {
		a.Done = 1
	}
	return a, nil
}

func (f *fakeTracker) Select(_ context.Context, s tracker.Selector) (*tracker.Selection, error) {
	return &tracker.Selection{Worker: fakeWorker(s.Scope, fakeWorkerID), Considered: 1}, nil
}

func (f *fakeTracker) Machine(_ context.Context, s tracker.Scope, id string) (*tracker.Machine, error) {
	return &tracker.Machine{Scope: s, ID: id, Status: tracker.Online}, nil
}

func (f *fakeTracker) Machines(context.Context, tracker.MachineFilter) (*tracker.MachinePage, error) {
	return &tracker.MachinePage{}, nil
}

func (f *fakeTracker) DrainMachine(ctx context.Context, s tracker.Scope, _ string, d tracker.Drain) (*tracker.Drained, error) {
	return f.DrainWorkers(ctx, tracker.WorkerFilter{Scope: s}, d, false)
}

func (f *fakeTracker) OfflineMachine(context.Context, tracker.Scope, string, string) (*tracker.Acted, error) {
	return &tracker.Acted{Matched: 1, Done: 1, Workers: []string{fakeWorkerID}}, nil
}

func (f *fakeTracker) ResumeMachine(context.Context, tracker.Scope, string, string) (*tracker.Resumed, error) {
	return &tracker.Resumed{Matched: 1, Workers: []string{fakeWorkerID}}, nil
}

func (f *fakeTracker) Release(context.Context, tracker.Scope, time.Duration) (*tracker.Released, error) {
	return &tracker.Released{Tasks: 60, Until: fakeTime}, nil
}

func (f *fakeTracker) Sweep(context.Context) (tracker.SweepResult, error) {
	return tracker.SweepResult{}, nil
}
