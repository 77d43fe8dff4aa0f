package workers

import (
	"context"
	"encoding/json"
	"strconv"
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
		return model.Invalidf("deadlineMs", "is %d; use 1 to %d, or leave it out for none", d.Deadline.Milliseconds(), MaxDrainDeadline.Milliseconds())
	}
	return CheckReason(d.Reason)
}

// deadline is how scripts are told of it.
func (d *Drain) deadline() string {
	if d.Deadline == 0 {
		return ""
	}
	return strconv.FormatInt(model.Millis(d.Deadline), 10)
}

// DrainWorker lets a worker finish what it holds and claim nothing more; then it goes OFFLINE. Again it may set
// another deadline.
func (t *Service) DrainWorker(ctx context.Context, scope model.Scope, id string, d Drain) (*model.Worker, error) {
	ctx = t.store.Within(ctx, 0)
	r, err := t.findWorker(ctx, "drain", scope, id)
	if err != nil {
		return nil, err
	}
	w, err := t.setStatus(ctx, "drain", r, t.drainCall(r, d))
	if err == nil && w.Placed > 0 {
		err = t.holdings.UnpinAll(ctx, "drain", r, w.Queue)
	}
	return w, err
}

func (t *Service) drainCall(r *schema.WorkerRef, d Drain) *store.Call {
	return t.statusCall(r, "drain", statusChange{deadline: d.deadline(), bySelf: d.BySelf, given: d.Reason, withMachine: d.withMachine})
}

// CheckReason refuses a reason that is too long or not to be shown in a line.
func CheckReason(reason string) error { return model.CheckText("reason", reason, model.MaxReasonBytes) }

// ResumeWorker takes a drain back. The reason is told in the event; it may be empty.
func (t *Service) ResumeWorker(ctx context.Context, scope model.Scope, id, given string) (*model.Worker, error) {
	ctx = t.store.Within(ctx, 0)
	r, err := t.findWorker(ctx, "resume", scope, id)
	if err != nil {
		return nil, err
	}
	return t.setStatus(ctx, "resume", r, t.statusCall(r, "resume", statusChange{given: given}))
}

// RetireWorker ends a worker at once and recovers what it holds: it deregisters, or an operator has given it up. The
// reason that is given is shown with the worker; it may be empty.
func (t *Service) RetireWorker(ctx context.Context, scope model.Scope, id string, end model.WorkerReason, given string) (*model.Worker, error) {
	ctx = t.store.Within(ctx, 0)
	r, err := t.findWorker(ctx, "offline", scope, id)
	if err != nil {
		return nil, err
	}
	c := t.statusCall(r, "retire", statusChange{end: end, loss: end == model.WorkerForced, given: given})
	t.store.DoAll(ctx, "offline", []*store.Call{c})
	if c.Err != nil {
		return nil, c.Err
	}
	if code := c.Reply.Int(0); code != schema.CodeOK && code != model.CodeOffline { // OFFLINE already is as good
		return nil, WorkerRefusal("offline", code, "")
	}
	t.holdings.RecoverNow(ctx, scope, id)
	return t.Worker(ctx, scope, id)
}

// statusChange is what worker_status.lua is told besides the worker.
type statusChange struct {
	end      model.WorkerReason
	deadline string // ms from now; "": none
	bySelf   bool
	loss     bool   // what it holds counts as lost
	given    string // reason that somebody gave

	withMachine bool // it is part of its machine's drain, or of the machine's being resumed
}

func (t *Service) statusCall(r *schema.WorkerRef, action string, c statusChange) *store.Call {
	return store.NewCall(r.Shard, t.store.Scripts.Get("worker_status"), t.WorkerKeys(r), r.Scope.String(), r.ID, action, string(c.end), c.deadline, holdings.Flag(c.bySelf),
		t.store.Shards(), model.Millis(t.opts.OfflineRetention), holdings.Flag(c.loss), c.given, jsonOrNull(c.given), holdings.Flag(c.withMachine))
}

// jsonOrNull gives a text as the JSON of an event, null when it is empty.
func jsonOrNull(text string) string {
	if text == "" {
		return "null"
	}
	b, _ := json.Marshal(text) // a string: cannot fail
	return string(b)
}

func (t *Service) setStatus(ctx context.Context, op string, r *schema.WorkerRef, c *store.Call) (*model.Worker, error) {
	re, err := t.store.Do(ctx, op, c)
	if err != nil {
		return nil, err
	}
	if err := WorkerRefusal(op, re.Int(0), model.WorkerReason(re.Str(2))); err != nil {
		return nil, err
	}
	return t.Worker(ctx, r.Scope, r.ID)
}

// Drained counts what a drain of many workers did.
type Drained struct {
	Matched  int // workers that the selector names and that are not OFFLINE
	Draining int // of these, those that are DRAINING now
	Workers  []string
}

// NoWorkersMatch is the code of a drain whose selector names nobody.
const NoWorkersMatch model.Code = "no_workers_match"

// ValidateSelector checks a filter as a drain takes it; its fields are named as the API names them.
func (f *WorkerFilter) ValidateSelector() error {
	for _, id := range []struct{ field, value string }{{"selector.queue", f.Queue}, {"selector.machineId", f.MachineID}} {
		if id.value == "" {
			continue
		}
		if err := model.CheckID(id.field, id.value); err != nil {
			return err
		}
	}
	if err := model.CheckText("selector.version", f.Version, model.MaxVersionBytes); err != nil {
		return err
	}
	return model.CheckLabels("selector.labels", f.Labels)
}

// DrainWorkers drains every worker that a filter names and that is not OFFLINE; to name nobody is an error. With dryRun
// it only counts.
func (t *Service) DrainWorkers(ctx context.Context, f WorkerFilter, d Drain, dryRun bool) (*Drained, error) {
	ctx = t.store.Within(ctx, 0)
	refs, err := t.WorkerIDs(ctx, "drain", f.Scope, []model.WorkerStatus{model.Online, model.Draining})
	if err != nil {
		return nil, err
	}
	workers, err := t.sift(ctx, "drain", refs, func(w *model.Worker) bool { return w.Status != model.Offline && f.matches(w) })
	if err != nil {
		return nil, err
	}
	if len(workers) == 0 && !dryRun {
		return nil, &model.Error{Code: NoWorkersMatch, Op: "drain", Message: "no worker that is ONLINE or DRAINING matches; check the selector, tenantId and workspaceId"}
	}
	result := &Drained{Matched: len(workers)}
	calls := make([]*store.Call, len(workers))
	for i, w := range workers {
		result.Workers = append(result.Workers, w.ID)
		if w.Status == model.Draining {
			result.Draining++
		}
		calls[i] = t.drainCall(t.refOf(w), d)
	}
	if dryRun {
		return result, nil
	}
	result.Draining = 0
	var draining []*model.Worker
	t.store.DoAll(ctx, "drain", calls)
	for i, c := range calls {
		if c.Err != nil {
			return nil, c.Err
		}
		if code := c.Reply.Int(0); code == schema.CodeOK || code == schema.CodeRepeated {
			result.Draining++
			draining = append(draining, workers[i])
		}
	}
	if err := t.CountLoad(ctx, t.store.DoAll, "drain", draining); err != nil {
		return nil, err
	}
	for _, w := range draining {
		if w.Placed > 0 {
			if err := t.holdings.UnpinAll(ctx, "drain", t.refOf(w), w.Queue); err != nil {
				return nil, err
			}
		}
	}
	return result, nil
}
