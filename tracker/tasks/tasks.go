package tasks

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/lubdub-io/lubdub/tracker/model"
	"github.com/lubdub-io/lubdub/tracker/schema"
	"github.com/lubdub-io/lubdub/tracker/store"
)

// Get reads one task.
func (t *Service) Get(ctx context.Context, scope model.Scope, id string) (*model.Task, error) {
	ctx = t.store.Within(ctx, 0)
	v, err := t.get(ctx, "get", t.store.Ref(scope, id), Whole)
	if err != nil {
		return nil, err
	}
	return v.Task, t.liveByWorkers(ctx, "get", []*model.Task{v.Task})
}

func (t *Service) get(ctx context.Context, op string, r *schema.TaskRef, p part) (*View, error) {
	if err := t.lookUp(ctx, op, r); err != nil {
		return nil, err
	}
	reply, err := t.store.Do(ctx, op, t.GetCall(r, p))
	if err != nil {
		return nil, err
	}
	v := ReadTask(r, reply)
	if v == nil {
		return nil, NoTask(op)
	}
	return v, nil
}

// Cancel asks a task to stop: at once when no worker has begun it, else cooperatively with the next beat. It
// is idempotent; a finished task is AlreadyTerminal.
func (t *Service) Cancel(ctx context.Context, scope model.Scope, id, reason string) (*model.Task, error) {
	ctx = t.store.Within(ctx, 0)
	r := t.store.Ref(scope, id)
	if err := t.lookUp(ctx, "cancel", r); err != nil {
		return nil, err
	}
	c := t.cancelCall(r, reason)
	t.store.DoDurably(ctx, "cancel", c)
	if err := cancelled(c); err != nil {
		return nil, err
	}
	task, err := t.Get(ctx, scope, id)
	if err == nil && task.Queue != "" {
		t.holdings.TellWorkers(ctx, r.Shard)
	}
	return task, err
}

func (t *Service) cancelCall(r *schema.TaskRef, reason string) *store.Call {
	text := ""
	if reason != "" {
		b, _ := json.Marshal(reason) // a string: cannot fail
		text = string(b)
	}
	return store.NewCall(r.Shard, t.store.Scripts.Get("cancel"), t.KeysOf(r), r.Scope.String(), r.ID, text,
		model.Millis(model.DefaultCancelGrace), model.Millis(t.opts.FinishedRetention))
}

func cancelled(c *store.Call) error {
	if c.Err != nil {
		return c.Err
	}
	switch c.Reply.Int(0) {
	case schema.CodeOK:
		return nil
	case schema.CodeNotFound:
		return NoTask("cancel")
	}
	state := schema.StateOf(c.Reply.Str(1))
	return &model.Error{Code: model.AlreadyTerminal, Op: "cancel", State: state, Message: fmt.Sprintf("the task is already %s; there is nothing left to cancel", state)}
}

// NextAttempt makes the attempt after `from` and fences that one at once. A pushed task is dispatched and comes
// with its envelope; a queue task goes back to its queue. The same call again gets the same answer.
func (t *Service) NextAttempt(ctx context.Context, scope model.Scope, id string, from int) (*model.Created, error) {
	ctx = t.store.Within(ctx, 0)
	return t.nextAttempt(ctx, "attempt", t.store.Ref(scope, id), from, "")
}

// Dispatch hands a queued task to a worker: its next attempt, counted from the one that ended last (0: none).
func (t *Service) Dispatch(ctx context.Context, scope model.Scope, id string, from int, workerID string) (*model.Created, error) {
	ctx = t.store.Within(ctx, 0)
	return t.nextAttempt(ctx, "dispatch", t.store.Ref(scope, id), from, workerID)
}

func (t *Service) nextAttempt(ctx context.Context, op string, r *schema.TaskRef, from int, worker string) (*model.Created, error) {
	before, err := t.get(ctx, op, r, Listed)
	if err != nil {
		return nil, err
	}
	life := tokenLife(before.TokenTTL, before.Deadline, time.Now())
	c := store.NewCall(r.Shard, t.store.Scripts.Get("next_attempt"), t.KeysOf(r), r.Scope.String(), r.ID, from,
		model.NewFence(), int64(life/time.Second), model.Millis(startTimeout(before.Queue, before.StartTimeout, life)), worker)
	t.store.DoDurably(ctx, op, c)
	if c.Err != nil {
		return nil, c.Err
	}
	switch reply, code := c.Reply, c.Reply.Int(0); code {
	case schema.CodeOK, schema.CodeRepeated:
	case schema.CodeNotFound:
		return nil, NoTask(op)
	case schema.CodeMismatch:
		current := int(reply.Int(2))
		return nil, &model.Error{Code: model.AttemptMismatch, Op: op, Expected: current, Received: from,
			Message: fmt.Sprintf("attempt %d is current, not %d; read the task and ask again from its attempt", current, from)}
	case schema.CodeTerminal:
		state := schema.StateOf(reply.Str(2))
		return nil, &model.Error{Code: model.AlreadyTerminal, Op: op, State: state,
			Message: fmt.Sprintf("the task is %s and stays so; create a new task instead", state)}
	default:
		why := "a cancel is pending; wait until the task has ended"
		if reply.Str(2) == "deadline" {
			why = "its deadline has passed; create a new task instead"
		}
		return nil, &model.Error{Code: model.AlreadyTerminal, Op: op, State: before.State, Message: "no new attempt of this task: " + why}
	}
	v := ReadTask(r, c.Reply.List(2))
	if v.Queue != "" && worker == "" {
		t.holdings.TellWorkers(ctx, r.Shard)
		return &model.Created{Task: v.Task}, nil
	}
	return &model.Created{Task: v.Task, Envelope: t.Envelope(v.Task, v.Fence, v.Life)}, nil
}

// Run counts the tasks of a run by state.
func (t *Service) Run(ctx context.Context, scope model.Scope, runID string) (*model.Run, error) {
	ctx = t.store.Within(ctx, 0)
	page, err := t.ids(ctx, "run", idQuery{scope: scope, run: runID, count: model.States, limit: 1})
	if err != nil {
		return nil, err
	}
	run := &model.Run{Scope: scope, ID: runID, Counts: page.counts}
	for _, n := range page.counts {
		run.Total += n
	}
	if run.Total == 0 {
		return nil, &model.Error{Code: model.RunNotFound, Op: "run", Message: "no run with this id in this tenant and workspace; a run exists as long as one of its tasks does"}
	}
	return run, nil
}

// CancelRun cancels every task of a run that is not finished and counts the run then. What a failure cuts off is
// done by the same call again. It goes on page by page, each as prompt as a request, for as many as there are.
func (t *Service) CancelRun(ctx context.Context, scope model.Scope, runID, reason string) (*model.Run, error) {
	q := idQuery{scope: scope, run: runID, states: []model.State{model.Queued, model.Dispatched, model.Running}, limit: 500}
	for of := ctx; ; of = store.ArrivedAt(of, time.Now()) {
		ctx := t.store.Within(of, 0)
		page, err := t.ids(ctx, "cancel", q)
		if err != nil {
			return nil, err
		}
		names, resolve := t.NameCalls(page.refs)
		t.store.DoAll(ctx, "cancel", names)
		for _, c := range names {
			if c.Err != nil {
				return nil, c.Err
			}
		}
		resolve()
		var calls []*store.Call
		for _, r := range page.refs {
			if r.Exists {
				calls = append(calls, t.cancelCall(r, reason))
			}
		}
		t.store.DoDurably(ctx, "cancel", calls...)
		told := map[int]bool{}
		for _, c := range calls {
			if c.Err != nil {
				return nil, c.Err
			}
			if !told[c.Shard] {
				told[c.Shard] = true
				t.holdings.TellWorkers(ctx, c.Shard)
			}
		}
		if q.after = page.next; q.after == "" {
			return t.Run(ctx, scope, runID)
		}
	}
}
