package beats

import (
	"context"
	"fmt"
	"strconv"

	"github.com/lubdub-io/lubdub/tracker/model"
	"github.com/lubdub-io/lubdub/tracker/schema"
	"github.com/lubdub-io/lubdub/tracker/store"
)

// Attempt completes the name of an attempt with what the batcher wants. Do it once and keep the result.
func (s *Service) Attempt(a model.Attempt) *model.Attempt {
	a.Member = schema.MemberName(a.Scope, a.TaskID, a.Number, a.Fence)
	a.Shard = s.store.ShardOf(a.Scope, a.TaskID)
	a.BeatsKey = s.store.Keys[a.Shard].SharedBeats(a.Timeout)
	// The names inside the member are its slices: a beat then reads one string instead of three, from memory
	// that is in no cache.
	tenant, workspace := len(a.Scope.Tenant), len(a.Scope.Workspace)
	a.Scope.Tenant = a.Member[:tenant]
	a.Scope.Workspace = a.Member[tenant+1 : tenant+1+workspace]
	a.TaskID = a.Member[tenant+workspace+2 : tenant+workspace+2+len(a.TaskID)]
	a.Fence = a.Member[len(a.Member)-len(a.Fence):]
	return &a
}

// Start hears that a worker has begun an attempt. Again on the running attempt it is a beat.
func (s *Service) Start(ctx context.Context, a *model.Attempt, r model.Report) (model.Acknowledged, error) {
	ctx = s.store.Within(ctx, 0)
	c := s.startCall(a, r.WorkerID, schema.PackReport(r))
	s.store.DoAll(ctx, "start", []*store.Call{c})
	return heard("start", a, c)
}

func (s *Service) startCall(a *model.Attempt, worker, report string) *store.Call {
	return store.NewCall(a.Shard, s.store.Scripts.Get("start"), s.callbackKeys(a), append(s.callbackArgs(a), worker, report, model.Millis(s.opts.FinishedRetention), s.store.SweeperID())...)
}

// callbackKeys needs no look-up: the token names everything that the keys are made of.
func (s *Service) callbackKeys(a *model.Attempt) []string {
	k := s.store.Keys[a.Shard]
	keys := make([]string, 0, len(k.Fixed)+6)
	keys = append(keys, k.Fixed...)
	return append(k.OfTask(keys, a.Scope, a.TaskID, a.RunID, strconv.FormatInt(model.Millis(a.Timeout), 10)), k.Fences)
}

func (s *Service) callbackArgs(a *model.Attempt) []any {
	run := a.RunID
	if run == schema.RunOf(a.TaskID) {
		run = ""
	}
	return []any{a.Scope.String(), a.TaskID, a.Number, a.Fence, model.Millis(a.Timeout), model.Millis(a.Interval), a.IssuedAt.UnixMilli(), run, a.WorkerID, a.Deadline}
}

// heard reads the answer of start.lua. For a beat, an attempt that Lubdub ended is Expired; for the others it
// is AlreadyTerminal.
func heard(op string, a *model.Attempt, c *store.Call) (model.Acknowledged, error) {
	if c.Err != nil {
		return model.Acknowledged{}, c.Err
	}
	if code := c.Reply.Int(0); code != schema.CodeOK {
		return model.Acknowledged{}, refuse(op, a, code, c.Reply.Str(2))
	}
	return model.Acknowledged{At: c.Reply.Time(1), Cancel: parseCancel(c.Reply.Str(3))}, nil
}

func refuse(op string, a *model.Attempt, code int64, detail string) error {
	e := &model.Error{Op: op}
	switch code {
	case schema.CodeMismatch:
		e.Code, e.Received = model.AttemptMismatch, a.Number
		e.Expected, _ = strconv.Atoi(detail)
		if e.Expected == a.Number {
			e.Message = "another attempt with this number is current: the store lost the one that this token was made for; stop this attempt"
		} else {
			e.Message = fmt.Sprintf("attempt %d is current; a newer attempt has taken over from attempt %d: stop this one", e.Expected, a.Number)
		}
	case schema.CodeEnded:
		e.Reason, e.State = model.Reason(detail), model.Failed
		e.Code = model.AlreadyTerminal
		if op == "beat" {
			e.Code = model.Expired
		}
		e.Message = EndedMessage(e.Reason)
	case schema.CodeTerminal:
		e.Code, e.State = model.AlreadyTerminal, schema.StateOf(detail)
		e.Message = fmt.Sprintf("the attempt is already over, its task is %s: stop this attempt", e.State)
		if e.State == model.Cancelled && op == "start" {
			e.Message = "Task was cancelled before worker started"
		}
	default:
		e.Code, e.Message = model.Unavailable, "the store gave an answer that this version does not know; are all replicas of one version?"
	}
	return e
}

func EndedMessage(r model.Reason) string {
	switch r {
	case model.HeartbeatTimeout:
		return "Task exceeded heartbeat timeout"
	case model.CancelTimeout:
		return "Task did not stop within its cancel grace period"
	case model.DeadlineExceeded:
		return "Task exceeded its deadline"
	case model.RunTimeout:
		return "Task exceeded its run timeout"
	case model.StartTimeout:
		return "Task was not started in time"
	case model.WorkerLost:
		return "Task's worker was lost"
	}
	return "Task was ended by the control plane"
}

// Complete ends an attempt as its worker reports.
func (s *Service) Complete(ctx context.Context, a *model.Attempt, c model.Completion) (model.Completed, error) {
	ctx = s.store.Within(ctx, 0)
	retryable := ""
	if c.Retryable {
		retryable = "1"
	}
	args := append(s.callbackArgs(a), c.WorkerID, string(c.Outcome), retryable, model.Millis(s.opts.FinishedRetention), schema.KeptError(c.Error), string(c.Error),
		schema.MillisOrEmpty(c.CompletedAt), schema.KeptMetrics(c.Metrics))
	args = AppendDoc(args, "output", string(c.Output))
	args = AppendDoc(args, "metrics", string(c.Metrics))
	args = AppendDoc(args, "phase", c.CancelledDuringPhase)
	args = AppendDoc(args, "partial", string(c.PartialProgress))
	call := store.NewCall(a.Shard, s.store.Scripts.Get("complete"), s.callbackKeys(a), args...)
	s.store.DoDurably(ctx, "complete", call)
	if call.Err != nil {
		return model.Completed{}, call.Err
	}
	r := call.Reply
	if code := r.Int(0); code != schema.CodeOK && code != schema.CodeRepeated {
		return model.Completed{}, refuse("complete", a, code, r.Str(2))
	}
	done := model.Completed{At: r.Time(1), Outcome: c.Outcome, WillRetry: r.Int(3) == 1}
	if done.WillRetry {
		done.NextAttempt = a.Number + 1
	}
	return done, nil
}

// AppendDoc adds a field of the task's document unless it is empty.
func AppendDoc(args []any, field, value string) []any {
	if value == "" {
		return args
	}
	return append(args, field, value)
}

// CancelDelivered records that a reply which carried a pending cancel was handed to the worker's connection:
// the grace period begins. It does not wait; a delivery that is lost is recorded by the next reply.
func (s *Service) CancelDelivered(a *model.Attempt) {
	k := s.store.Keys[a.Shard]
	s.store.Post(store.NewCall(a.Shard, s.store.Scripts.Get("deliver"), []string{k.Clock, k.Cancels, k.Timers}, a.Member))
}
