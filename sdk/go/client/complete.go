package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"runtime/debug"
	"time"

	v1 "github.com/lubdub-io/lubdub/sdk/go/v1"
)

// ErrOutput means that an output cannot be sent: it is not JSON, or the completion exceeds the server's limit. Nothing was sent and the
// attempt continues: complete it in another way.
var ErrOutput = errors.New("lubdub: the output cannot be sent")

// maxCompletion is the limit of a completion, in bytes.
const maxCompletion = 256 << 10

// maxStack is the size of a stack that is sent, in bytes.
const maxStack = 16 << 10

// Done completes the attempt as done, with any output that encoding/json encodes; nil: none. It waits for the answer, and retries with the
// same body while no server answers, at most until the attempt's token expires.
func (a *Attempt) Done(output any) (*v1.CompletedResponse, error) {
	raw, err := rawJSON(output)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrOutput, err)
	}
	return a.Complete(a.life(), v1.CompletedRequest{Outcome: v1.OutcomeSucceeded, Output: raw})
}

// Fail completes the attempt as failed. A *Failure sets the category; every other error is USER_CODE. A SnoozeError has the outcome
// SNOOZED, a Cancelled the outcome CANCELLED with its reason, and after a cancel so has the context's own error. It waits as Done does.
func (a *Attempt) Fail(err error) (*v1.CompletedResponse, error) {
	var requested, cancelled Cancelled
	var stopped *StoppedError
	var snooze *SnoozeError
	cancelRequested := errors.As(context.Cause(a.ctx), &requested)
	switch {
	case errors.As(err, &stopped):
		return a.Stopped(stopped.Phase, stopped.Partial)
	case errors.As(err, &cancelled) && cancelled.Reason != "" && !cancelRequested:
		return a.Complete(a.life(), v1.CompletedRequest{
			Outcome: v1.OutcomeCancelled, Error: &v1.TaskError{Category: v1.CategoryCancelled, Message: cut(cancelled.Reason, maxStack)},
		})
	case errors.As(err, &cancelled), cancelRequested && errors.Is(err, context.Canceled):
		return a.Stopped("", nil)
	case errors.As(err, &snooze) && snooze.Delay <= maxDelay:
		return a.Complete(a.life(), v1.CompletedRequest{Outcome: v1.OutcomeSnoozed, DelayMs: wholeMs(snooze.Delay)})
	}
	return a.Complete(a.life(), v1.CompletedRequest{Outcome: v1.OutcomeFailed, Error: taskError(err)})
}

// maxDelay is the longest delay that a server accepts. A snooze for longer is a failure, and a retry after longer uses it.
const maxDelay = 366 * 24 * time.Hour

// wholeMs rounds a delay up, since a shorter one could be too early; one below zero is zero, and one above the longest is that.
func wholeMs(d time.Duration) *int64 {
	ms := int64((min(max(0, d), maxDelay) + time.Millisecond - 1) / time.Millisecond)
	return &ms
}

// Stopped completes the attempt as stopped after a cancel: in which phase, and the partial progress, as anything that encoding/json
// encodes; nil: not reported. It waits as Done does.
func (a *Attempt) Stopped(phase string, partial any) (*v1.CompletedResponse, error) {
	raw, err := rawJSON(partial)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrOutput, err)
	}
	return a.Complete(a.life(), v1.CompletedRequest{
		Outcome: v1.OutcomeCancelled, CancelledDuringPhase: phase, PartialProgress: raw,
	})
}

// life is the context of the completion's calls.
func (a *Attempt) life() context.Context {
	if a.holder != nil {
		return a.holder.Life()
	}
	return context.Background()
}

// Abandon stops heartbeats and sends nothing: the server will declare the attempt lost. After a completion it has no effect.
func (a *Attempt) Abandon() {
	a.mu.Lock()
	begun := a.phase != running
	if !begun {
		a.phase = over
	}
	a.mu.Unlock()
	if !begun {
		a.release(false)
		a.end(ErrEnded)
	}
}

// Complete sends a completion; attempt, worker and time are filled in. It waits as Done does, but no longer than ctx. From then on no
// heartbeat is sent. If the attempt is no longer ours nothing is sent, and it fails with the reason; so does a refusal.
func (a *Attempt) Complete(ctx context.Context, r v1.CompletedRequest) (*v1.CompletedResponse, error) {
	r.Attempt, r.CompletedAt = a.number, v1.At(a.client.set.clock.Now())
	if a.holder != nil {
		r.WorkerID = a.holder.WorkerID()
	}
	body, err := json.Marshal(&r)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrOutput, err)
	}
	if len(body) > maxCompletion {
		return nil, fmt.Errorf("%w: the completion has %d bytes, and a server takes %d; put the output elsewhere and send where it is",
			ErrOutput, len(body), maxCompletion)
	}
	a.mu.Lock()
	err = a.ended()
	if err == nil {
		a.phase = ending
	}
	a.mu.Unlock()
	if err != nil {
		if err != ErrEnded {
			a.Abandon()
		}
		return nil, err
	}
	a.release(true)
	answer, err := a.send(ctx, body)
	if a.holder != nil {
		a.holder.Settled(held{a})
	}
	a.mu.Lock()
	a.phase = over
	a.mu.Unlock()
	if cause := causeOfError(err); cause != nil {
		err = errors.Join(cause, err)
	}
	a.end(ErrEnded)
	if err == nil {
		a.client.set.metrics.Completed(r.Outcome)
	}
	return answer, err
}

// release stops the heartbeats.
func (a *Attempt) release(completes bool) {
	if a.holder != nil {
		a.holder.Release(held{a}, completes)
		return
	}
	a.beater.remove(a)
}

// send sends the last progress and checkpoint if no heartbeat has, and then the completion.
func (a *Attempt) send(ctx context.Context, body []byte) (*v1.CompletedResponse, error) {
	path := "/v1/tasks/" + seg(a.taskID)
	if k := a.lastBeat(); k != nil {
		err := a.persist(ctx, k, nil)
		if a.tryWorkersToken(k, err) {
			err = a.persist(ctx, k, nil)
		}
		if again(err) || causeOfError(err) != nil {
			return nil, err
		}
	}
	var answer v1.CompletedResponse
	k := &call{method: http.MethodPost, path: path + "/completed", base: a.beater.base, token: a.token, body: body, out: &answer, tries: 1}
	shared := a.holder != nil && a.holder.Exchanges() && len(body) <= longCompletion
	err := a.repeat(ctx, k.operation(), nil, func() error {
		if !shared {
			return a.client.do(ctx, k)
		}
		shared = false // a repeat has the token of the task, which proves the attempt to a store that has lost it
		err := a.beater.exchanger.complete(ctx, &exchanged{worker: a.holder.WorkerID(), token: a.holder.Token(), answer: &answer,
			item: append([]byte(`{"taskId":"`+a.taskID+`",`), body[1:]...)}) // ids need no quoting
		if err == errAlone {
			err = a.client.do(ctx, k)
		}
		return err
	})
	if a.tryWorkersToken(k, err) {
		err = a.persist(ctx, k, nil)
	}
	if refused := new(Error); errors.As(err, &refused) {
		a.client.set.metrics.Refused(string(refused.Code))
	}
	if err != nil {
		return nil, err
	}
	return &answer, nil
}

// tryWorkersToken reports whether a call was refused with the task's token, and sets the worker's, which is valid for it as well.
func (a *Attempt) tryWorkersToken(k *call, err error) bool {
	var refused *Error
	if !errors.As(err, &refused) || refused.Status != http.StatusUnauthorized || a.holder == nil {
		return false
	}
	k.token = a.holder.Token()
	return true
}

// lastBeat is a heartbeat with the progress and checkpoint that no server has acknowledged; nil: none.
func (a *Attempt) lastBeat() *call {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.progress.unsent() {
		return nil
	}
	return &call{method: http.MethodPost, path: "/v1/tasks/" + seg(a.taskID) + "/heartbeat", base: a.beater.base, token: a.token,
		body: append(a.progress.append(fmt.Appendf(nil, `{"attempt":%d`, a.number)), '}')}
}

// Failure is an error with a failure category.
type Failure struct {
	// Category decides whether the task is retried.
	Category v1.ErrorCategory
	// Err is the cause.
	Err error
	// Retryable reports whether another attempt may help; nil: the category decides.
	Retryable *bool
	// RetryAfter is how long to wait before the next attempt, at most 366 days; nil: the backoff of the task's retry policy.
	RetryAfter *time.Duration
	// Stack is a readable stack trace; at most 16 KiB of it are sent.
	Stack string
}

// Error returns the cause's text.
func (f *Failure) Error() string {
	if f.Err == nil {
		return string(f.Category)
	}
	return f.Err.Error()
}

// Unwrap returns the cause.
func (f *Failure) Unwrap() error { return f.Err }

// Categorize gives err a category: DATA_QUALITY, INFRASTRUCTURE, CONFIGURATION, TIMEOUT, CANCELLED or USER_CODE.
func Categorize(c v1.ErrorCategory, err error) error { return &Failure{Category: c, Err: err} }

// Permanent marks err as an error that no other attempt can help.
func Permanent(err error) error { return &Failure{Err: err, Retryable: new(bool)} }

// SnoozeError is returned by a handler that gives its task back to the queue for a time. The attempt counts neither as failed nor as
// lost.
type SnoozeError struct {
	// Delay is how long the task waits for its next attempt, at most 366 days.
	Delay time.Duration
}

func (s *SnoozeError) Error() string { return "snoozed for " + s.Delay.String() }

// StoppedError is returned by a handler after a cancel to report the partial progress.
type StoppedError struct {
	// Phase is the phase that was interrupted.
	Phase string
	// Partial is anything that encoding/json encodes; nil: nothing.
	Partial any
}

func (s *StoppedError) Error() string { return "stopped in " + s.Phase }

// Panicked returns the failure for a value from recover, with the stack of the calling goroutine.
func Panicked(recovered any) error {
	return &Failure{Category: v1.CategoryUserCode, Err: fmt.Errorf("panic: %v", recovered), Stack: string(debug.Stack())}
}

func taskError(err error) *v1.TaskError {
	if err == nil {
		err = errors.New("it failed without an error")
	}
	e := &v1.TaskError{Category: v1.CategoryUserCode, Message: cut(err.Error(), maxStack)}
	var f *Failure
	for category := v1.ErrorCategory(""); errors.As(err, &f); err = f.Err { // what an outer failure leaves open, an inner one sets
		if category == "" && f.Category.Valid() {
			category, e.Category = f.Category, f.Category
		}
		if e.Retryable == nil {
			e.Retryable = f.Retryable
		}
		if e.RetryAfterMs == nil && f.RetryAfter != nil {
			e.RetryAfterMs = wholeMs(*f.RetryAfter)
		}
		if e.StackTrace == "" {
			e.StackTrace = cut(f.Stack, maxStack)
		}
	}
	return e
}

// Run tracks an attempt, does the work, and completes it with the result, as Done and Fail do; a panic is a failure of the category
// USER_CODE. It fails if the attempt could not be tracked or completed, but not with the error of the work.
func (c *Client) Run(
	ctx context.Context, e *v1.TaskEnvelope, work func(context.Context, *Attempt) (output any, err error), opts ...TrackOption,
) (*v1.CompletedResponse, error) {
	on, a, err := c.Track(ctx, e, opts...)
	if err != nil {
		return nil, err
	}
	defer a.Abandon() // if the work ends its goroutine
	output, err := guarded(on, a, work)
	if err != nil {
		return a.Fail(err)
	}
	answer, err := a.Done(output)
	if errors.Is(err, ErrOutput) {
		return a.Fail(Permanent(err))
	}
	return answer, err
}

func guarded(ctx context.Context, a *Attempt, work func(context.Context, *Attempt) (any, error)) (output any, err error) {
	defer func() {
		if r := recover(); r != nil {
			output, err = nil, Panicked(r)
		}
	}()
	return work(ctx, a)
}
