package workers

import (
	"context"
	"time"

	"github.com/lubdub-io/lubdub/tracker/holdings"
	"github.com/lubdub-io/lubdub/tracker/model"
	"github.com/lubdub-io/lubdub/tracker/schema"
	"github.com/lubdub-io/lubdub/tracker/store"
)

// Drain describes a drain of a worker.
type Drain struct {
	Reason   string        // free text, shown with the worker
	Deadline time.Duration // from now, after which it goes OFFLINE and what it still holds is requeued; 0: none
	BySelf   bool          // the worker requested it itself, so it knows of it

	withMachine bool // it is part of its machine's drain
}

// MaxDrainDeadline bounds Drain.Deadline.
const MaxDrainDeadline = 30 * 24 * time.Hour

// Validate checks what can be checked without the store.
func (d *Drain) Validate() error {
	if d.Deadline < 0 || d.Deadline > MaxDrainDeadline {
		return model.Invalidf("deadlineMs", "is %d; use 1 to %d, or omit it for none",
			d.Deadline.Milliseconds(), MaxDrainDeadline.Milliseconds())
	}
	return CheckReason(d.Reason)
}

// operations change workers on request of an operator or of the worker: drain, cordon, resume, retire.
type operations struct {
	store    *store.Store
	holdings *holdings.Service
	scripts  *scripts
	reader   *reader
	loads    *loads
	views    *views
}

// Drain lets a worker finish what it holds and claim nothing more; then it goes OFFLINE. A repeated call may set another deadline.
func (s *operations) Drain(ctx context.Context, scope model.Scope, id string, d Drain) (*model.Worker, error) {
	return s.changeAndUnpin(ctx, "drain", scope, id, func(r *schema.WorkerRef) *store.Call { return s.scripts.statusCall(r, d.args()) })
}

func (d *Drain) args() statusArgs {
	return statusArgs{action: drain, deadline: d.Deadline, bySelf: d.BySelf, reason: d.Reason, withMachine: d.withMachine}
}

// CheckReason returns an error for a reason that is too long or cannot be shown in one line.
func CheckReason(reason string) error { return model.CheckText("reason", reason, model.MaxReasonBytes) }

// Resume undoes a drain or, for an OFFLINE worker, the hold that refuses its next registration. The reason goes into the event; it
// may be empty.
func (s *operations) Resume(ctx context.Context, scope model.Scope, id, reason string) (*model.Worker, error) {
	return s.change(ctx, "resume", scope, id, func(r *schema.WorkerRef) *store.Call {
		return s.scripts.statusCall(r, statusArgs{action: resume, reason: reason})
	})
}

// Retire ends a worker at once and recovers what it holds, because it deregisters or because an operator gave it up. In the latter
// case its lineage is held: registrations are refused until Resume, even if the worker was already OFFLINE, unless another worker
// has its identity. The reason is shown with the worker; it may be empty.
func (s *operations) Retire(
	ctx context.Context, scope model.Scope, id string, end model.WorkerReason, reason string,
) (*model.Worker, error) {
	const op = "offline"
	ctx = s.store.Within(ctx, 0)
	r, err := s.reader.findWorker(ctx, op, scope, id)
	if err != nil {
		return nil, err
	}
	forced := end == model.WorkerForced
	args := statusArgs{action: retire, end: end, loss: forced, hold: forced, reason: reason}
	reply, err := s.store.Do(ctx, op, s.scripts.statusCall(r, args))
	if err != nil {
		return nil, err
	}
	if code := readStatus(reply).code; code != schema.CodeOK && code != schema.CodeOffline { // already OFFLINE is fine too
		return nil, WorkerRefusal(op, code, "")
	}
	s.holdings.RecoverNow(ctx, scope, id)
	return s.views.Get(ctx, scope, id)
}

// change changes a worker and returns the new state.
func (s *operations) change(
	ctx context.Context, op string, scope model.Scope, id string, call func(*schema.WorkerRef) *store.Call,
) (*model.Worker, error) {
	ctx = s.store.Within(ctx, 0)
	r, err := s.reader.findWorker(ctx, op, scope, id)
	if err != nil {
		return nil, err
	}
	reply, err := s.store.Do(ctx, op, call(r))
	if err != nil {
		return nil, err
	}
	re := readStatus(reply)
	if err := WorkerRefusal(op, re.code, re.reason); err != nil {
		return nil, err
	}
	return s.views.Get(ctx, scope, id)
}

// changeAndUnpin is for changes after which a worker claims nothing more: it also frees the tasks that wait for the worker.
func (s *operations) changeAndUnpin(
	ctx context.Context, op string, scope model.Scope, id string, call func(*schema.WorkerRef) *store.Call,
) (*model.Worker, error) {
	ctx = s.store.Within(ctx, 0)
	w, err := s.change(ctx, op, scope, id, call)
	if err == nil && w.Placed > 0 {
		err = s.holdings.UnpinAll(ctx, op, s.reader.refOf(w), w.Queue)
	}
	return w, err
}

// Drained is the result of a drain of many workers.
type Drained struct {
	Matched  int      // workers that the selector matches and that are not OFFLINE
	Draining int      // of these, those that are DRAINING now
	Workers  []string // ids of those that match
}

// DrainMany drains every worker that a filter matches and that is not OFFLINE; it fails if the filter matches none. With dryRun it
// only counts.
func (s *operations) DrainMany(ctx context.Context, f WorkerFilter, d Drain, dryRun bool) (*Drained, error) {
	const op = "drain"
	ctx = s.store.Within(ctx, 0)
	workers, err := s.named(ctx, op, &f)
	if err != nil {
		return nil, err
	}
	if len(workers) == 0 && !dryRun {
		return nil, noWorkersMatch(op)
	}
	result := &Drained{Matched: len(workers)}
	for _, w := range workers {
		result.Workers = append(result.Workers, w.ID)
		if w.Status == model.Draining {
			result.Draining++
		}
	}
	if dryRun {
		return result, nil
	}
	draining, err := s.drainAll(ctx, op, workers, d)
	if err == nil {
		err = s.unpinFrom(ctx, op, draining)
	}
	if err != nil {
		return nil, err
	}
	result.Draining = len(draining)
	return result, nil
}

// drainAll drains workers and returns those that are DRAINING now.
func (s *operations) drainAll(ctx context.Context, op string, workers []*model.Worker, d Drain) (draining []*model.Worker, err error) {
	calls := store.CallEach(workers, func(w *model.Worker) *store.Call { return s.scripts.statusCall(s.reader.refOf(w), d.args()) })
	s.store.DoAll(ctx, op, calls)
	if err := store.FirstError(calls); err != nil {
		return nil, err
	}
	for i, c := range calls {
		if code := readStatus(c.Reply).code; code == schema.CodeOK || code == schema.CodeRepeated {
			draining = append(draining, workers[i])
		}
	}
	return draining, nil
}

// unpinFrom frees the tasks that wait for workers that claim nothing any more.
func (s *operations) unpinFrom(ctx context.Context, op string, workers []*model.Worker) error {
	if err := s.loads.CountLoad(ctx, s.store.DoAll, op, workers); err != nil {
		return err
	}
	for _, w := range workers {
		if w.Placed > 0 {
			if err := s.holdings.UnpinAll(ctx, op, s.reader.refOf(w), w.Queue); err != nil {
				return err
			}
		}
	}
	return nil
}
