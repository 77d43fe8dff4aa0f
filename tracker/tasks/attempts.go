package tasks

import (
	"context"
	"fmt"
	"time"

	"github.com/lubdub-io/lubdub/tracker/model"
	"github.com/lubdub-io/lubdub/tracker/schema"
	"github.com/lubdub-io/lubdub/tracker/store"
)

// NextAttempt creates the attempt after `from` and fences `from` at once. A pushed task is dispatched and returned with its
// envelope; a queue task returns to its queue. A repeated call gets the same result.
func (s *Service) NextAttempt(ctx context.Context, scope model.Scope, id string, from int) (*model.Created, error) {
	const op = "attempt"
	ctx, r := s.store.Within(ctx, 0), s.store.Ref(scope, id)
	before, err := s.get(ctx, op, r, Listed)
	if err != nil {
		return nil, err
	}
	c := s.attemptAfter(r, before.Task, from)
	s.store.DoDurably(ctx, op, c)
	if c.Err != nil {
		return nil, c.Err
	}
	reply := readNextAttempt(r, c.Reply)
	if reply.task == nil {
		return nil, reply.refusal(op, from, before.State)
	}
	v := reply.task
	if v.Queue != "" {
		s.holdings.NotifyWorkers(ctx, r.Shard)
		return &model.Created{Task: v.Task}, nil
	}
	return &model.Created{Task: v.Task, Envelope: s.Envelope(v.Task, v.Fence, v.Life)}, nil
}

// attemptAfter returns the call that creates the attempt after `from` of a task that was read before.
func (s *Service) attemptAfter(r *schema.TaskRef, before *model.Task, from int) *store.Call {
	life := tokenLife(before.TokenTTL, before.Deadline, time.Now())
	return s.nextAttemptCall(r, &attemptArgs{
		from: from, fence: model.NewFence(), tokenLife: life, startTimeout: startTimeout(before.Queue, before.StartTimeout, life),
	})
}

// refusal returns why there is no attempt after `from`, given the task's previous state.
func (r *attemptReply) refusal(op string, from int, before model.State) error {
	switch r.code {
	case schema.CodeNotFound:
		return noTask(op)
	case schema.CodeMismatch:
		return &model.Error{Code: model.AttemptMismatch, Op: op, Expected: r.current, Received: from,
			Message: fmt.Sprintf("attempt %d is current, not %d; read the task and ask again from its attempt", r.current, from)}
	case schema.CodeTerminal:
		return &model.Error{Code: model.AlreadyTerminal, Op: op, State: r.state,
			Message: fmt.Sprintf("the task is %s and stays so; create a new task instead", r.state)}
	}
	why := "a cancel is pending; wait until the task has ended"
	if r.deadline {
		why = "its deadline has passed; create a new task instead"
	}
	return &model.Error{Code: model.AlreadyTerminal, Op: op, State: before, Message: "no new attempt of this task: " + why}
}

// Envelope returns the current attempt of a dispatched task.
func (s *Service) Envelope(task *model.Task, fence string, life time.Duration) *model.Envelope {
	e := &model.Envelope{
		Task: task, TokenTTL: life, RenewToken: !task.NoRenewToken,
		Attempt: s.beats.Attempt(model.Attempt{
			Scope: task.Scope, TaskID: task.ID, RunID: task.RunID, Number: task.Attempt, Fence: fence,
			Timeout: task.HeartbeatTimeout, Interval: task.HeartbeatInterval, IssuedAt: task.DispatchedAt, WorkerID: claimedBy(task),
			Deadline: deadlineMs(task.Deadline),
		}),
	}
	var last model.Progress
	if n := len(task.History); n > 0 {
		last = task.History[n-1].LastProgress
	}
	if task.Attempt > 1 { // else they are its own
		last.Details = string(task.Details)
	}
	if last != (model.Progress{}) {
		e.LastProgress = &last
	}
	return e
}

func deadlineMs(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMilli()
}

// claimedBy returns the worker that a queue task was handed to; a pushed task belongs to the client that gets its envelope.
func claimedBy(task *model.Task) string {
	if task.Queue == "" {
		return ""
	}
	return task.WorkerID
}

// tokenLife returns the lifetime of the token of an attempt that is dispatched now.
func tokenLife(requested time.Duration, deadline, now time.Time) time.Duration {
	if requested != 0 {
		return requested
	}
	life := model.DefaultTokenTTL
	if !deadline.IsZero() {
		need := deadline.Sub(now).Truncate(time.Second) + time.Second
		life = min(max(life, need), model.MaxTokenTTL)
	}
	return life
}

// startTimeout returns how long a dispatched attempt may take to start.
func startTimeout(queue string, requested, tokenLife time.Duration) time.Duration {
	switch {
	case requested != 0:
		return requested
	case queue != "":
		return model.DefaultClaimStartTimeout
	}
	return tokenLife
}
