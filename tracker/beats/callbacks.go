package beats

import (
	"context"
	"fmt"
	"strconv"

	"github.com/lubdub-io/lubdub/tracker/model"
	"github.com/lubdub-io/lubdub/tracker/schema"
	"github.com/lubdub-io/lubdub/tracker/store"
)

// Attempt returns the attempt with the names that the batcher needs. Call it once and keep the result.
func (s *Service) Attempt(a model.Attempt) *model.Attempt {
	a.Member = schema.MemberName(a.Scope, a.TaskID, a.Number, a.Fence)
	a.Shard = s.store.ShardOf(a.Scope, a.TaskID)
	a.BeatsKey = s.store.Keys[a.Shard].SharedBeats(a.Timeout)
	// The names are slices of the member: a beat then reads one string instead of three, which would not be in a CPU cache.
	tenant, workspace := len(a.Scope.Tenant), len(a.Scope.Workspace)
	a.Scope.Tenant = a.Member[:tenant]
	a.Scope.Workspace = a.Member[tenant+1 : tenant+1+workspace]
	a.TaskID = a.Member[tenant+workspace+2 : tenant+workspace+2+len(a.TaskID)]
	a.Fence = a.Member[len(a.Member)-len(a.Fence):]
	return &a
}

// Start records that a worker has started an attempt. For an attempt that runs already it counts as a beat. It fails when the attempt is
// not current or has ended.
func (s *Service) Start(ctx context.Context, a *model.Attempt, r model.Report) (model.Acknowledged, error) {
	ctx = s.store.Within(ctx, 0)
	c := s.startCall(a, r.WorkerID, schema.PackReport(r), "")
	s.store.DoAll(ctx, "start", []*store.Call{c})
	return acknowledgement("start", a, c)
}

// acknowledgement converts the reply of start.lua to an acknowledgement. A beat of an attempt that Lubdub ended gets Expired, any other
// operation AlreadyTerminal.
func acknowledgement(op string, a *model.Attempt, c *store.Call) (model.Acknowledged, error) {
	if c.Err != nil {
		return model.Acknowledged{}, c.Err
	}
	r := readStart(c.Reply)
	if r.code != schema.CodeOK {
		return model.Acknowledged{}, refuse(op, a, r.code, r.detail)
	}
	return model.Acknowledged{At: r.at, Cancel: r.cancel}, nil
}

// refuse returns the error for replies of start.lua and complete.lua that changed nothing.
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
		if e.Reason == model.Terminated {
			e.State = model.Cancelled
		}
		e.Code = model.AlreadyTerminal
		if op == "beat" {
			e.Code = model.Expired
		}
		e.Message = EndedMessage(e.Reason)
	case schema.CodeTerminal:
		e.Code, e.State = model.AlreadyTerminal, schema.StateOf(detail)
		e.Message = fmt.Sprintf("the attempt is over, since its task is %s: stop working on it", e.State)
		if e.State == model.Cancelled && op == "start" {
			e.Message = "Task was cancelled before worker started"
		}
	case schema.CodeRefused:
		e.Code, e.Message = model.NoQueue, "only a task of a queue can be snoozed: it would be claimed again from there; complete this one with "+
			"another outcome"
	default:
		e.Code, e.Message = model.Unavailable, "the store gave an answer that this version does not know; are all replicas of one version?"
	}
	return e
}

// EndedMessage returns the message about why Lubdub ended an attempt.
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
	case model.Terminated:
		return "Task was cancelled without a grace period"
	}
	return "Task was ended by the control plane"
}

// Complete ends an attempt with the outcome that its worker reports. It fails when the attempt is not current or has already ended
// differently, or when the write is not confirmed.
func (s *Service) Complete(ctx context.Context, a *model.Attempt, c model.Completion) (model.Completed, error) {
	one := Completing{Attempt: a, Completion: c}
	s.CompleteMany(ctx, []*Completing{&one})
	return one.Completed, one.Err
}

// Completing is one attempt of CompleteMany, with its result.
type Completing struct {
	Attempt    *model.Attempt
	Completion model.Completion

	Completed model.Completed
	Err       error
}

// CompleteMany ends attempts as Complete does, in as many round trips as one takes, and sets the result of each.
func (s *Service) CompleteMany(ctx context.Context, all []*Completing) {
	ctx = s.store.Within(ctx, 0)
	calls := store.CallEach(all, func(c *Completing) *store.Call { return s.completeCall(c.Attempt, c.Completion) })
	s.store.DoDurably(ctx, "complete", calls...)
	for i, c := range all {
		if c.Err = calls[i].Err; c.Err != nil {
			continue
		}
		r := readComplete(calls[i].Reply)
		if r.code != schema.CodeOK && r.code != schema.CodeRepeated {
			c.Err = refuse("complete", c.Attempt, r.code, r.detail)
			continue
		}
		if r.code == schema.CodeOK {
			s.metrics.completed.WithLabelValues(string(c.Completion.Outcome)).Inc()
		}
		c.Completed = model.Completed{At: r.at, Outcome: c.Completion.Outcome, WillRetry: r.willRetry}
		if r.willRetry {
			c.Completed.NextAttempt = c.Attempt.Number + 1
		}
	}
}

// CancelDelivered records that a response with a pending cancel was written to the worker's connection: the grace period begins. It does
// not wait; if the record is lost, the next response makes it.
func (s *Service) CancelDelivered(a *model.Attempt) {
	s.store.Post(s.deliverCall(a))
}

// CancelsDelivered does the same for many attempts, of which Member and Shard are enough, and waits for it.
func (s *Service) CancelsDelivered(ctx context.Context, op string, attempts []*model.Attempt) error {
	calls := store.CallEach(attempts, s.deliverCall)
	s.store.DoAll(ctx, op, calls)
	return store.FirstError(calls)
}
