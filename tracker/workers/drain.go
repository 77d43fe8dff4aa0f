package workers

import (
	"context"
	"time"

	"github.com/lubdub-io/lubdub/tracker/holdings"
	"github.com/lubdub-io/lubdub/tracker/model"
	"github.com/lubdub-io/lubdub/tracker/schema"
	"github.com/lubdub-io/lubdub/tracker/store"
)

// Drain is how a worker is to be drained.
type Drain struct {
	Reason   string        // free text, shown with the worker
	Deadline time.Duration // from now, after which it goes OFFLINE and what it still holds is requeued; 0: none
	BySelf   bool          // the worker asked for it itself, so it knows

	withMachine bool // it is its machine's drain
}

// MaxDrainDeadline bounds Drain.Deadline.
const MaxDrainDeadline = 30 * 24 * time.Hour

// Validate checks what can be judged without the store.
func (d *Drain) Validate() error {
	if d.Deadline < 0 || d.Deadline > MaxDrainDeadline {
		return model.Invalidf("deadlineMs", "is %d; use 1 to %d, or leave it out for none",
			d.Deadline.Milliseconds(), MaxDrainDeadline.Milliseconds())
	}
	return CheckReason(d.Reason)
}

// operations change workers at an operator's request, or their own: drain, cordon, resume, retire.
type operations struct {
	store    *store.Store
	holdings *holdings.Service
	scripts  *scripts
	reader   *reader
	loads    *loads
	views    *views
}

// Drain lets a worker finish what it holds and claim nothing more; then it goes OFFLINE. Called again it may set another
// deadline.
func (s *operations) Drain(ctx context.Context, scope model.Scope, id string, d Drain) (*model.Worker, error) {
	return s.changeAndUnpin(ctx, "drain", scope, id, func(r *schema.WorkerRef) *store.Call { return s.scripts.statusCall(r, d.args()) })
}

func (d *Drain) args() statusArgs {
	return statusArgs{action: drain, deadline: d.Deadline, bySelf: d.BySelf, given: d.Reason, withMachine: d.withMachine}
}

// CheckReason refuses a reason that is too long or cannot be shown in a line.
func CheckReason(reason string) error { return model.CheckText("reason", reason, model.MaxReasonBytes) }

// Resume undoes a drain or, of an OFFLINE worker, the hold that refuses its next registration. The reason
// goes into the event; it may be empty.
func (s *operations) Resume(ctx context.Context, scope model.Scope, id, given string) (*model.Worker, error) {
	return s.change(ctx, "resume", scope, id, func(r *schema.WorkerRef) *store.Call {
		return s.scripts.statusCall(r, statusArgs{action: resume, given: given})
	})
}

// Retire ends a worker at once and recovers what it holds: it deregisters, or an operator has given it up. Then it is held:
// its lineage is refused registration until Resume, also where it was OFFLINE before and no other has its identity. The
// reason given is shown with the worker; it may be empty.
func (s *operations) Retire(
	ctx context.Context, scope model.Scope, id string, end model.WorkerReason, given string,
) (*model.Worker, error) {
	const op = "offline"
	ctx = s.store.Within(ctx, 0)
	r, err := s.reader.findWorker(ctx, op, scope, id)
	if err != nil {
		return nil, err
	}
	forced := end == model.WorkerForced
	reply, err := s.store.Do(ctx, op, s.scripts.statusCall(r, statusArgs{action: retire, end: end, loss: forced, hold: forced, given: given}))
	if err != nil {
		return nil, err
	}
	if code := readStatus(reply).code; code != schema.CodeOK && code != schema.CodeOffline { // OFFLINE already is as good
		return nil, WorkerRefusal(op, code, "")
	}
	s.holdings.RecoverNow(ctx, scope, id)
	return s.views.Get(ctx, scope, id)
}

// change changes a worker and returns it as it is then.
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

// changeAndUnpin is for changes after which a worker claims nothing more: it also frees what waits for the worker.
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

// Drained counts what a drain of many workers did.
type Drained struct {
	Matched  int      // workers that the selector names and that are not OFFLINE
	Draining int      // of these, those that are DRAINING now
	Workers  []string // ids of those that match
}

// DrainMany drains every worker that a filter names and that is not OFFLINE; to name nobody is an error. With dryRun
// it only counts.
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

// unpinFrom frees what waits for workers that claim nothing any more.
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
