package tracker_test

import (
	"fmt"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/lubdub-io/lubdub/tracker/model"
)

// taskLife is everything that is known about a task, by design and without any of the store: the model with which histories are compared.
// It is a value; a step returns another one.
type taskLife struct {
	State             model.State // "": not created
	Attempt           int
	Ends              [maxLives]model.State // the outcome with which a worker, or a cancel, ended each attempt
	Retried           [maxLives]bool        // of these, those after which the task was retried
	Why               model.Reason          // of a FAILED task, and of the last end of a QUEUED one
	GivenUp           bool                  // QUEUED because the previous attempt was given up on request
	Cancel            bool                  // one was requested
	Failures          int
	Losses            int
	LastSeen          int64 // ns: the earliest possible time of the last sign of life, and of the dispatch before it
	CancelRequestedAt int64 // ns: the earliest possible time of the request for the pending cancel
}

const maxLives = 12 // attempts of a task that histories may have

// step is one operation on a task. Its kind determines which fields are used.
type step struct {
	What      string // create, start, beat, complete, cancel, next, dispatch, get, verdict
	Attempt   int    // which it is about; of next: the one to follow
	Outcome   model.State
	Retryable bool
	Starts    bool         // dispatch: the claim has started it
	Reason    model.Reason // of a verdict
	At        int64        // ns: when it began; of a verdict: the wall time of its script
}

// The response to a step.
type stepResult struct {
	Unknown  bool // no response: it may have been executed, now or later, or not
	Code     model.Code
	Retry    bool // complete: the task will be retried; verdict: the task was requeued
	Cancel   bool // start, beat: a cancel is pending
	State    model.State
	Attempt  int
	Reason   model.Reason
	Requests bool // get: a cancel is pending
}

// lifeRules are the same for all tasks of a history, except for the queue.
type lifeRules struct {
	queue  bool
	policy model.RetryPolicy
	beat   time.Duration // heartbeat timeout
	start  time.Duration // start timeout
	grace  time.Duration // of a cancel
}

// clockSlack is how much too early the time of a verdict's script may be: it is in whole ms.
const clockSlack = int64(time.Millisecond)

// model returns the life of one task in the form that porcupine needs.
func (r lifeRules) model() porcupine.Model {
	m := porcupine.NondeterministicModel{
		Init: func() []any { return []any{taskLife{}} },
		Step: func(state, input, output any) []any {
			l, s, t := state.(taskLife), input.(step), output.(stepResult)
			next, answer := r.after(l, s)
			if t.Unknown {
				if next == l {
					return []any{l}
				}
				return []any{l, next}
			}
			if !agrees(s, answer, t) {
				return nil
			}
			return []any{next}
		},
		DescribeOperation: func(input, output any) string {
			return fmt.Sprintf("%+v → %+v", input.(step), output.(stepResult))
		},
		DescribeState: func(state any) string { return fmt.Sprintf("%+v", state) },
	}
	return m.ToModel()
}

// agrees compares a response with the model in the fields that such a response has.
func agrees(s step, model, t stepResult) bool {
	if model.Code != t.Code {
		return false
	}
	if t.Code != "" {
		return true
	}
	switch s.What {
	case "start", "beat":
		return model.Cancel == t.Cancel
	case "complete", "verdict":
		return model.Retry == t.Retry
	case "dispatch":
		return model.Attempt == t.Attempt
	case "get":
		return model.State == t.State && model.Attempt == t.Attempt && model.Reason == t.Reason && model.Requests == t.Requests
	}
	return true
}

func refusedStep(l taskLife, c model.Code) (taskLife, stepResult) { return l, stepResult{Code: c} }

// after returns the next state of a life, and the expected response.
func (r lifeRules) after(l taskLife, s step) (taskLife, stepResult) {
	if l.State == "" && s.What != "create" {
		return refusedStep(l, model.NotFound)
	}
	switch s.What {
	case "create":
		if l.State != "" {
			return refusedStep(l, model.Exists)
		}
		if r.queue {
			l.State = model.Queued
			return l, stepResult{}
		}
		l = l.dispatched(s.At)
		return l, stepResult{}
	case "start", "beat":
		if c := l.callbackCode(s.Attempt, s.What == "beat"); c != "" {
			return refusedStep(l, c)
		}
		l.State, l.LastSeen = model.Running, max(l.LastSeen, s.At)
		return l, stepResult{Cancel: l.Cancel}
	case "complete":
		return r.completed(l, s)
	case "cancel":
		switch l.State {
		case model.Running:
			if !l.Cancel {
				l.Cancel, l.CancelRequestedAt = true, s.At
			}
		case model.Queued, model.Dispatched:
			if l.State == model.Dispatched {
				l.Ends[l.Attempt] = model.Cancelled
			}
			l.Cancel = true
			l = l.finished(model.Cancelled, "")
		default:
			if l.State != model.Cancelled || !l.Cancel { // whether or not it is the one that was requested
				return refusedStep(l, model.AlreadyTerminal)
			}
		}
		return l, stepResult{}
	case "next":
		return r.next(l, s)
	case "dispatch":
		if l.State != model.Queued {
			return refusedStep(l, "nothing to claim")
		}
		l = l.dispatched(s.At)
		if s.Starts {
			l.State = model.Running
		}
		return l, stepResult{Attempt: l.Attempt}
	case "get":
		t := stepResult{State: l.State, Attempt: l.Attempt, Requests: l.Cancel && l.State == model.Running}
		if l.State == model.Failed {
			t.Reason = l.Why
		}
		return l, t
	case "verdict":
		return r.verdict(l, s)
	}
	panic("no such step: " + s.What)
}

func (l taskLife) dispatched(at int64) taskLife {
	l.State, l.Why, l.GivenUp, l.Cancel = model.Dispatched, "", false, false
	l.Attempt, l.LastSeen = l.Attempt+1, at
	return l
}

func (l taskLife) finished(s model.State, why model.Reason) taskLife {
	l.State, l.Why = s, why
	return l
}

// callbackCode returns the error of a callback of an attempt; "": it is accepted.
func (l taskLife) callbackCode(attempt int, beat bool) model.Code {
	switch {
	case attempt < l.Attempt, l.GivenUp && l.State == model.Queued:
		return model.AttemptMismatch
	case l.State == model.Dispatched || l.State == model.Running:
		return ""
	case (l.State == model.Queued || l.State == model.Failed) && l.Why != model.WorkerReported && beat:
		return model.Expired
	}
	return model.AlreadyTerminal
}

func (r lifeRules) completed(l taskLife, s step) (taskLife, stepResult) {
	if c := l.callbackCode(s.Attempt, false); c != "" {
		if l.Ends[s.Attempt] == s.Outcome {
			return l, stepResult{Retry: l.Retried[s.Attempt]}
		}
		return refusedStep(l, c)
	}
	l.Ends[s.Attempt] = s.Outcome
	if s.Outcome == model.Failed && s.Retryable && r.queue && !l.Cancel {
		if l.Failures++; l.Failures < r.policy.MaxAttempts {
			l.Retried[s.Attempt] = true
			return l.finished(model.Queued, model.WorkerReported), stepResult{Retry: true}
		}
	}
	why := model.Reason("")
	if s.Outcome == model.Failed {
		why = model.WorkerReported
	}
	return l.finished(s.Outcome, why), stepResult{}
}

func (r lifeRules) next(l taskLife, s step) (taskLife, stepResult) {
	switch {
	case l.Attempt == s.Attempt+1:
		return l, stepResult{}
	case l.Attempt != s.Attempt:
		return refusedStep(l, model.AttemptMismatch)
	case l.State == model.Succeeded || l.State == model.Cancelled, l.Cancel && l.State != model.Failed:
		return refusedStep(l, model.AlreadyTerminal)
	case !r.queue:
		return l.dispatched(s.At), stepResult{}
	case l.State == model.Failed:
		l.Cancel = false
	case l.State != model.Queued:
		l.GivenUp = true
	}
	l.State = model.Queued
	return l, stepResult{}
}

// verdict applies one of Lubdub's own verdicts from its event: it must have been due, about the current attempt, and not early.
func (r lifeRules) verdict(l taskLife, s step) (taskLife, stepResult) {
	early := func(since int64, d time.Duration) bool { return s.At+clockSlack-since < int64(d) }
	var due, retryable bool
	switch s.Reason {
	case model.HeartbeatTimeout:
		due, retryable = l.State == model.Running && !early(l.LastSeen, r.beat), true
	case model.StartTimeout:
		due, retryable = l.State == model.Dispatched && !early(l.LastSeen, r.start), true
	case model.CancelTimeout:
		due = l.State == model.Running && l.Cancel && !early(l.CancelRequestedAt, r.grace)
	case model.WorkerLost:
		due, retryable = (l.State == model.Running || l.State == model.Dispatched) && r.queue, true
	}
	if !due || s.Attempt != l.Attempt {
		return refusedStep(l, "no such verdict was due")
	}
	if retryable && r.queue && !l.Cancel {
		if l.Losses++; l.Losses <= r.policy.MaxLosses {
			return l.finished(model.Queued, s.Reason), stepResult{Retry: true}
		}
	}
	return l.finished(model.Failed, s.Reason), stepResult{}
}
