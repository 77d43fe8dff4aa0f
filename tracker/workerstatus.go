package tracker

import (
	"context"
	"encoding/json"
	"strconv"
	"time"
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
		return invalid("deadlineMs", "is %d; use 1 to %d, or leave it out for none", d.Deadline.Milliseconds(), MaxDrainDeadline.Milliseconds())
	}
	return CheckReason(d.Reason)
}

// deadline is how scripts are told of it.
func (d *Drain) deadline() string {
	if d.Deadline == 0 {
		return ""
	}
	return strconv.FormatInt(ms(d.Deadline), 10)
}

// DrainWorker lets a worker finish what it holds and claim nothing more; then it goes OFFLINE. Again it may set
// another deadline.
func (t *Tracker) DrainWorker(ctx context.Context, scope Scope, id string, d Drain) (*Worker, error) {
	t = t.within(ctx, 0)
	r, err := t.findWorker("drain", scope, id)
	if err != nil {
		return nil, err
	}
	w, err := t.setStatus("drain", r, t.drainCall(r, d))
	if err == nil && w.Placed > 0 {
		err = t.unpinAll("drain", r, w.Queue)
	}
	return w, err
}

func (t *Tracker) drainCall(r *workerRef, d Drain) *call {
	return t.statusCall(r, "drain", statusChange{deadline: d.deadline(), bySelf: d.BySelf, given: d.Reason, withMachine: d.withMachine})
}

// CheckReason refuses a reason that is too long or not to be shown in a line.
func CheckReason(reason string) error { return checkText("reason", reason, MaxReasonBytes) }

// ResumeWorker takes a drain back. The reason is told in the event; it may be empty.
func (t *Tracker) ResumeWorker(ctx context.Context, scope Scope, id, given string) (*Worker, error) {
	t = t.within(ctx, 0)
	r, err := t.findWorker("resume", scope, id)
	if err != nil {
		return nil, err
	}
	return t.setStatus("resume", r, t.statusCall(r, "resume", statusChange{given: given}))
}

// RetireWorker ends a worker at once and recovers what it holds: it deregisters, or an operator has given it up. The
// reason that is given is shown with the worker; it may be empty.
func (t *Tracker) RetireWorker(ctx context.Context, scope Scope, id string, end WorkerReason, given string) (*Worker, error) {
	t = t.within(ctx, 0)
	r, err := t.findWorker("offline", scope, id)
	if err != nil {
		return nil, err
	}
	c := t.statusCall(r, "retire", statusChange{end: end, loss: end == WorkerForced, given: given})
	t.store.doAll("offline", []*call{c})
	if c.err != nil {
		return nil, c.err
	}
	if code := c.reply.int(0); code != codeOK && code != codeOffline { // OFFLINE already is as good
		return nil, workerRefusal("offline", code, "")
	}
	t.recoverNow(ctx, scope, id)
	return t.Worker(ctx, scope, id)
}

// statusChange is what worker_status.lua is told besides the worker.
type statusChange struct {
	end      WorkerReason
	deadline string // ms from now; "": none
	bySelf   bool
	loss     bool   // what it holds counts as lost
	given    string // reason that somebody gave

	withMachine bool // it is part of its machine's drain, or of the machine's being resumed
}

func (t *Tracker) statusCall(r *workerRef, action string, c statusChange) *call {
	return newCall(r.shard, t.store.scripts.Get("worker_status"), t.workerKeys(r), r.scope.String(), r.id, action, string(c.end), c.deadline, flag(c.bySelf),
		t.store.shards(), ms(t.opts.OfflineRetention), flag(c.loss), c.given, jsonOrNull(c.given), flag(c.withMachine))
}

// jsonOrNull gives a text as the JSON of an event, null when it is empty.
func jsonOrNull(text string) string {
	if text == "" {
		return "null"
	}
	b, _ := json.Marshal(text) // a string: cannot fail
	return string(b)
}

func (t *Tracker) setStatus(op string, r *workerRef, c *call) (*Worker, error) {
	re, err := t.store.do(op, c)
	if err != nil {
		return nil, err
	}
	if err := workerRefusal(op, re.int(0), WorkerReason(re.str(2))); err != nil {
		return nil, err
	}
	return t.Worker(context.Background(), r.scope, r.id)
}

// Drained counts what a drain of many workers did.
type Drained struct {
	Matched  int // workers that the selector names and that are not OFFLINE
	Draining int // of these, those that are DRAINING now
	Workers  []string
}

// NoWorkersMatch is the code of a drain whose selector names nobody.
const NoWorkersMatch Code = "no_workers_match"

// ValidateSelector checks a filter as a drain takes it; its fields are named as the API names them.
func (f *WorkerFilter) ValidateSelector() error {
	for _, id := range []struct{ field, value string }{{"selector.queue", f.Queue}, {"selector.machineId", f.MachineID}} {
		if id.value == "" {
			continue
		}
		if err := CheckID(id.field, id.value); err != nil {
			return err
		}
	}
	if err := checkText("selector.version", f.Version, MaxVersionBytes); err != nil {
		return err
	}
	return checkLabels("selector.labels", f.Labels)
}

// DrainWorkers drains every worker that a filter names and that is not OFFLINE; to name nobody is an error. With dryRun
// it only counts.
func (t *Tracker) DrainWorkers(ctx context.Context, f WorkerFilter, d Drain, dryRun bool) (*Drained, error) {
	t = t.within(ctx, 0)
	refs, err := t.workerIDs("drain", f.Scope, []WorkerStatus{Online, Draining})
	if err != nil {
		return nil, err
	}
	workers, err := t.sift("drain", refs, func(w *Worker) bool { return w.Status != Offline && f.matches(w) })
	if err != nil {
		return nil, err
	}
	if len(workers) == 0 && !dryRun {
		return nil, &Error{Code: NoWorkersMatch, Op: "drain", Message: "no worker that is ONLINE or DRAINING matches; check the selector, tenantId and workspaceId"}
	}
	result := &Drained{Matched: len(workers)}
	calls := make([]*call, len(workers))
	for i, w := range workers {
		result.Workers = append(result.Workers, w.ID)
		if w.Status == Draining {
			result.Draining++
		}
		calls[i] = t.drainCall(t.refOf(w), d)
	}
	if dryRun {
		return result, nil
	}
	result.Draining = 0
	var draining []*Worker
	t.store.doAll("drain", calls)
	for i, c := range calls {
		if c.err != nil {
			return nil, c.err
		}
		if code := c.reply.int(0); code == codeOK || code == codeRepeated {
			result.Draining++
			draining = append(draining, workers[i])
		}
	}
	if err := t.countLoad(t.store.doAll, "drain", draining); err != nil {
		return nil, err
	}
	for _, w := range draining {
		if w.Placed > 0 {
			if err := t.unpinAll("drain", t.refOf(w), w.Queue); err != nil {
				return nil, err
			}
		}
	}
	return result, nil
}
