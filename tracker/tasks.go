package tracker

import (
	"context"
	"encoding/json"
	"fmt"
	"time"
)

// Get reads one task.
func (t *Tracker) Get(ctx context.Context, scope Scope, id string) (*Task, error) {
	t = t.within(ctx, 0)
	v, err := t.get("get", t.ref(scope, id), whole)
	if err != nil {
		return nil, err
	}
	return v.Task, t.liveByWorkers("get", []*Task{v.Task})
}

func (t *Tracker) get(op string, r *taskRef, p part) (*view, error) {
	if err := t.lookUp(op, r); err != nil {
		return nil, err
	}
	reply, err := t.store.do(op, t.getCall(r, p))
	if err != nil {
		return nil, err
	}
	v := readTask(r, reply)
	if v == nil {
		return nil, notFound(op)
	}
	return v, nil
}

// Cancel asks a task to stop: at once when no worker has begun it, else cooperatively with the next beat. It
// is idempotent; a finished task is AlreadyTerminal.
func (t *Tracker) Cancel(ctx context.Context, scope Scope, id, reason string) (*Task, error) {
	t = t.within(ctx, 0)
	r := t.ref(scope, id)
	if err := t.lookUp("cancel", r); err != nil {
		return nil, err
	}
	c := t.cancelCall(r, reason)
	t.store.doDurably("cancel", c)
	if err := cancelled(c); err != nil {
		return nil, err
	}
	task, err := t.Get(ctx, scope, id)
	if err == nil && task.Queue != "" {
		t.tellWorkers(r.shard)
	}
	return task, err
}

func (t *Tracker) cancelCall(r *taskRef, reason string) *call {
	text := ""
	if reason != "" {
		b, _ := json.Marshal(reason) // a string: cannot fail
		text = string(b)
	}
	return newCall(r.shard, t.store.scripts.Get("cancel"), t.keysOf(r), r.scope.String(), r.id, text,
		ms(DefaultCancelGrace), ms(t.opts.FinishedRetention))
}

func cancelled(c *call) error {
	if c.err != nil {
		return c.err
	}
	switch c.reply.int(0) {
	case codeOK:
		return nil
	case codeNotFound:
		return notFound("cancel")
	}
	state := stateOf(c.reply.str(1))
	return &Error{Code: AlreadyTerminal, Op: "cancel", State: state, Message: fmt.Sprintf("the task is already %s; there is nothing left to cancel", state)}
}

// NextAttempt makes the attempt after `from` and fences that one at once. A pushed task is dispatched and comes
// with its envelope; a queue task goes back to its queue. The same call again gets the same answer.
func (t *Tracker) NextAttempt(ctx context.Context, scope Scope, id string, from int) (*Created, error) {
	t = t.within(ctx, 0)
	return t.nextAttempt("attempt", t.ref(scope, id), from, "")
}

// Dispatch hands a queued task to a worker: its next attempt, counted from the one that ended last (0: none).
func (t *Tracker) Dispatch(ctx context.Context, scope Scope, id string, from int, workerID string) (*Created, error) {
	t = t.within(ctx, 0)
	return t.nextAttempt("dispatch", t.ref(scope, id), from, workerID)
}

func (t *Tracker) nextAttempt(op string, r *taskRef, from int, worker string) (*Created, error) {
	before, err := t.get(op, r, listed)
	if err != nil {
		return nil, err
	}
	life := tokenLife(before.TokenTTL, before.Deadline, time.Now())
	c := newCall(r.shard, t.store.scripts.Get("next_attempt"), t.keysOf(r), r.scope.String(), r.id, from,
		newFence(), int64(life/time.Second), ms(startTimeout(before.Queue, before.StartTimeout, life)), worker)
	t.store.doDurably(op, c)
	if c.err != nil {
		return nil, c.err
	}
	switch reply, code := c.reply, c.reply.int(0); code {
	case codeOK, codeRepeated:
	case codeNotFound:
		return nil, notFound(op)
	case codeMismatch:
		current := int(reply.int(2))
		return nil, &Error{Code: AttemptMismatch, Op: op, Expected: current, Received: from,
			Message: fmt.Sprintf("attempt %d is current, not %d; read the task and ask again from its attempt", current, from)}
	case codeTerminal:
		state := stateOf(reply.str(2))
		return nil, &Error{Code: AlreadyTerminal, Op: op, State: state,
			Message: fmt.Sprintf("the task is %s and stays so; create a new task instead", state)}
	default:
		why := "a cancel is pending; wait until the task has ended"
		if reply.str(2) == "deadline" {
			why = "its deadline has passed; create a new task instead"
		}
		return nil, &Error{Code: AlreadyTerminal, Op: op, State: before.State, Message: "no new attempt of this task: " + why}
	}
	v := readTask(r, c.reply.list(2))
	if v.Queue != "" && worker == "" {
		t.tellWorkers(r.shard)
		return &Created{Task: v.Task}, nil
	}
	return &Created{Task: v.Task, Envelope: t.envelope(v.Task, v.fence, v.life)}, nil
}

// Run counts the tasks of a run by state.
func (t *Tracker) Run(ctx context.Context, scope Scope, runID string) (*Run, error) {
	t = t.within(ctx, 0)
	page, err := t.ids("run", idQuery{scope: scope, run: runID, count: States, limit: 1})
	if err != nil {
		return nil, err
	}
	run := &Run{Scope: scope, ID: runID, Counts: page.counts}
	for _, n := range page.counts {
		run.Total += n
	}
	if run.Total == 0 {
		return nil, &Error{Code: RunNotFound, Op: "run", Message: "no run with this id in this tenant and workspace; a run exists as long as one of its tasks does"}
	}
	return run, nil
}

// CancelRun cancels every task of a run that is not finished and counts the run then. What a failure cuts off is
// done by the same call again. It goes on page by page, each as prompt as a request, for as many as there are.
func (t *Tracker) CancelRun(ctx context.Context, scope Scope, runID, reason string) (*Run, error) {
	q := idQuery{scope: scope, run: runID, states: []State{Queued, Dispatched, Running}, limit: 500}
	for root := t.root; ; ctx = ArrivedAt(ctx, time.Now()) {
		t := root.within(ctx, 0)
		page, err := t.ids("cancel", q)
		if err != nil {
			return nil, err
		}
		names, resolve := t.nameCalls(page.refs)
		t.store.doAll("cancel", names)
		for _, c := range names {
			if c.err != nil {
				return nil, c.err
			}
		}
		resolve()
		var calls []*call
		for _, r := range page.refs {
			if r.exists {
				calls = append(calls, t.cancelCall(r, reason))
			}
		}
		t.store.doDurably("cancel", calls...)
		told := map[int]bool{}
		for _, c := range calls {
			if c.err != nil {
				return nil, c.err
			}
			if !told[c.shard] {
				told[c.shard] = true
				t.tellWorkers(c.shard)
			}
		}
		if q.after = page.next; q.after == "" {
			return t.Run(ctx, scope, runID)
		}
	}
}
