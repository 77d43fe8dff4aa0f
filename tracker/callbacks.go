package tracker

import (
	"context"
	"fmt"
	"strconv"
)

// Attempt completes the name of an attempt with what the batcher wants. Do it once and keep the result.
func (t *Tracker) Attempt(a Attempt) *Attempt {
	a.member = memberName(a.Scope, a.TaskID, a.Number, a.Fence)
	a.shard = t.store.shardOf(a.Scope, a.TaskID)
	a.beatsKey = t.store.keys[a.shard].sharedBeats(a.Timeout)
	// The names inside the member are its slices: a beat then reads one string instead of three, from memory
	// that is in no cache.
	tenant, workspace := len(a.Scope.Tenant), len(a.Scope.Workspace)
	a.Scope.Tenant = a.member[:tenant]
	a.Scope.Workspace = a.member[tenant+1 : tenant+1+workspace]
	a.TaskID = a.member[tenant+workspace+2 : tenant+workspace+2+len(a.TaskID)]
	a.Fence = a.member[len(a.member)-len(a.Fence):]
	return &a
}

// Start hears that a worker has begun an attempt. Again on the running attempt it is a beat.
func (t *Tracker) Start(ctx context.Context, a *Attempt, r Report) (Acknowledged, error) {
	t = t.within(ctx, 0)
	c := t.startCall(a, r.WorkerID, r.pack())
	t.store.doAll("start", []*call{c})
	return heard("start", a, c)
}

func (t *Tracker) startCall(a *Attempt, worker, report string) *call {
	return newCall(a.shard, t.store.scripts.Get("start"), t.callbackKeys(a), append(t.callbackArgs(a), worker, report, ms(t.opts.FinishedRetention), t.sweeperID())...)
}

// callbackKeys needs no look-up: the token names everything that the keys are made of.
func (t *Tracker) callbackKeys(a *Attempt) []string {
	k := t.store.keys[a.shard]
	keys := make([]string, 0, len(k.fixed)+6)
	keys = append(keys, k.fixed...)
	return append(k.ofTask(keys, a.Scope, a.TaskID, a.RunID, strconv.FormatInt(ms(a.Timeout), 10)), k.fences)
}

func (t *Tracker) callbackArgs(a *Attempt) []any {
	run := a.RunID
	if run == runOf(a.TaskID) {
		run = ""
	}
	return []any{a.Scope.String(), a.TaskID, a.Number, a.Fence, ms(a.Timeout), ms(a.Interval), a.IssuedAt.UnixMilli(), run, a.WorkerID, a.Deadline}
}

// heard reads the answer of start.lua. For a beat, an attempt that Lubdub ended is Expired; for the others it
// is AlreadyTerminal.
func heard(op string, a *Attempt, c *call) (Acknowledged, error) {
	if c.err != nil {
		return Acknowledged{}, c.err
	}
	if code := c.reply.int(0); code != codeOK {
		return Acknowledged{}, refuse(op, a, code, c.reply.str(2))
	}
	return Acknowledged{At: c.reply.time(1), Cancel: parseCancel(c.reply.str(3))}, nil
}

func refuse(op string, a *Attempt, code int64, detail string) error {
	e := &Error{Op: op}
	switch code {
	case codeMismatch:
		e.Code, e.Received = AttemptMismatch, a.Number
		e.Expected, _ = strconv.Atoi(detail)
		if e.Expected == a.Number {
			e.Message = "another attempt with this number is current: the store lost the one that this token was made for; stop this attempt"
		} else {
			e.Message = fmt.Sprintf("attempt %d is current; a newer attempt has taken over from attempt %d: stop this one", e.Expected, a.Number)
		}
	case codeEnded:
		e.Reason, e.State = Reason(detail), Failed
		e.Code = AlreadyTerminal
		if op == "beat" {
			e.Code = Expired
		}
		e.Message = endedMessage(e.Reason)
	case codeTerminal:
		e.Code, e.State = AlreadyTerminal, stateOf(detail)
		e.Message = fmt.Sprintf("the attempt is already over, its task is %s: stop this attempt", e.State)
		if e.State == Cancelled && op == "start" {
			e.Message = "Task was cancelled before worker started"
		}
	default:
		e.Code, e.Message = Unavailable, "the store gave an answer that this version does not know; are all replicas of one version?"
	}
	return e
}

func endedMessage(r Reason) string {
	switch r {
	case HeartbeatTimeout:
		return "Task exceeded heartbeat timeout"
	case CancelTimeout:
		return "Task did not stop within its cancel grace period"
	case DeadlineExceeded:
		return "Task exceeded its deadline"
	case RunTimeout:
		return "Task exceeded its run timeout"
	case StartTimeout:
		return "Task was not started in time"
	case WorkerLost:
		return "Task's worker was lost"
	}
	return "Task was ended by the control plane"
}

// Complete ends an attempt as its worker reports.
func (t *Tracker) Complete(ctx context.Context, a *Attempt, c Completion) (Completed, error) {
	t = t.within(ctx, 0)
	retryable := ""
	if c.Retryable {
		retryable = "1"
	}
	args := append(t.callbackArgs(a), c.WorkerID, string(c.Outcome), retryable, ms(t.opts.FinishedRetention), keptError(c.Error), string(c.Error),
		msOrEmpty(c.CompletedAt), keptMetrics(c.Metrics))
	args = appendDoc(args, "output", string(c.Output))
	args = appendDoc(args, "metrics", string(c.Metrics))
	args = appendDoc(args, "phase", c.CancelledDuringPhase)
	args = appendDoc(args, "partial", string(c.PartialProgress))
	call := newCall(a.shard, t.store.scripts.Get("complete"), t.callbackKeys(a), args...)
	t.store.doDurably("complete", call)
	if call.err != nil {
		return Completed{}, call.err
	}
	r := call.reply
	if code := r.int(0); code != codeOK && code != codeRepeated {
		return Completed{}, refuse("complete", a, code, r.str(2))
	}
	done := Completed{At: r.time(1), Outcome: c.Outcome, WillRetry: r.int(3) == 1}
	if done.WillRetry {
		done.NextAttempt = a.Number + 1
	}
	return done, nil
}

// appendDoc adds a field of the task's document unless it is empty.
func appendDoc(args []any, field, value string) []any {
	if value == "" {
		return args
	}
	return append(args, field, value)
}

// CancelDelivered records that a reply which carried a pending cancel was handed to the worker's connection:
// the grace period begins. It does not wait; a delivery that is lost is recorded by the next reply.
func (t *Tracker) CancelDelivered(a *Attempt) {
	k := t.store.keys[a.shard]
	c := newCall(a.shard, t.store.scripts.Get("deliver"), []string{k.clock, k.cancels, k.timers}, a.member)
	c.wait = &waiter{ch: make(chan struct{}, 1)}
	c.wait.left.Store(1) // nobody waits; the channel holds the one signal
	c.until = t.store.deadline()
	_ = t.store.node(a.shard).calls.put(c)
}
