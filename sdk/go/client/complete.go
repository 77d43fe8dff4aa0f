package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"runtime/debug"

	v1 "github.com/lubdub-io/lubdub/sdk/go/v1"
)

// ErrOutput says that an output cannot be sent: it is not JSON, or the completion would be larger than a server takes. Nothing
// was sent and the attempt goes on: complete it otherwise.
var ErrOutput = errors.New("lubdub: the output cannot be sent")

// maxCompletion is how large a completion may be, in bytes.
const maxCompletion = 256 << 10

// maxStack is how much of a stack is sent, in bytes.
const maxStack = 16 << 10

// Done says that the work is done, with an output of any kind that encoding/json writes; nil: none. It waits until that is answered,
// asking again with the same body while no server answers, at most until the attempt's token has ended.
func (a *Attempt) Done(output any) (*v1.CompletedResponse, error) {
	raw, err := rawJSON(output)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrOutput, err)
	}
	return a.Complete(a.life(), v1.CompletedRequest{Outcome: v1.OutcomeSucceeded, Output: raw})
}

// Fail says that the work has failed; a *Failure says of which category, every other error is USER_CODE. Where err is the Cancelled
// that the context ended with, or the end of the context itself after that, the outcome is CANCELLED. It waits as Done does.
func (a *Attempt) Fail(err error) (*v1.CompletedResponse, error) {
	var cancelled Cancelled
	var stopped *StoppedError
	asked := errors.As(context.Cause(a.ctx), &cancelled)
	switch {
	case errors.As(err, &stopped):
		return a.Stopped(stopped.Phase, stopped.Partial)
	case errors.As(err, &cancelled), asked && (errors.Is(err, context.Canceled) || errors.Is(err, context.Cause(a.ctx))):
		return a.Stopped("", nil)
	}
	return a.Complete(a.life(), v1.CompletedRequest{Outcome: v1.OutcomeFailed, Error: taskError(err)})
}

// Stopped says that the work has stopped after a cancel: in which phase of it, and how far it had come, as anything that encoding/json
// writes; nil: it does not say. It waits as Done does.
func (a *Attempt) Stopped(phase string, partial any) (*v1.CompletedResponse, error) {
	raw, err := rawJSON(partial)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrOutput, err)
	}
	return a.Complete(a.life(), v1.CompletedRequest{
		Outcome: v1.OutcomeCancelled, CancelledDuringPhase: phase, PartialProgress: raw,
	})
}

// life is how long the completion is asked for.
func (a *Attempt) life() context.Context {
	if a.holder != nil {
		return a.holder.Life()
	}
	return context.Background()
}

// Abandon ends the beats and sends nothing: the server will find the attempt lost. After a completion it does nothing.
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

// Complete sends a completion; attempt, worker and time are filled in. It waits as Done does, and no longer than ctx. Once the
// completion is on its way no beat is sent any more. Where the attempt is not ours any more nothing is sent, and the error says
// why; so it is where the server refuses the completion.
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

// release ends the beats.
func (a *Attempt) release(completes bool) {
	if a.holder != nil {
		a.holder.Release(held{a}, completes)
		return
	}
	a.beater.remove(a)
}

// send sends the last progress, where no beat has brought it yet, and then the completion.
func (a *Attempt) send(ctx context.Context, body []byte) (*v1.CompletedResponse, error) {
	path := "/v1/tasks/" + seg(a.taskID)
	if beat := a.lastBeat(); beat != nil {
		k := &call{method: http.MethodPost, path: path + "/heartbeat", base: a.beater.base, token: a.token, body: beat}
		if err := a.persist(ctx, k, nil); again(err) || causeOfError(err) != nil {
			return nil, err
		}
	}
	var answer v1.CompletedResponse
	k := &call{method: http.MethodPost, path: path + "/completed", base: a.beater.base, token: a.token, body: body, out: &answer}
	err := a.persist(ctx, k, nil)
	var refused *Error
	if errors.As(err, &refused) && refused.Status == http.StatusUnauthorized && a.holder != nil {
		k.token = a.holder.Token() // opens it as well, and is newer
		err = a.persist(ctx, k, nil)
	}
	if errors.As(err, &refused) {
		a.client.set.metrics.Refused(string(refused.Code))
	}
	if err != nil {
		return nil, err
	}
	return &answer, nil
}

// lastBeat is a beat with progress that no server has acknowledged yet; nil: there is none.
func (a *Attempt) lastBeat() []byte {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.progress.version == a.progress.delivered {
		return nil
	}
	return append(a.progress.append(fmt.Appendf(nil, `{"attempt":%d`, a.number)), '}')
}

// Failure says what kind of failure an error is.
type Failure struct {
	// Category decides whether the task is tried again.
	Category v1.ErrorCategory
	// Err is what went wrong.
	Err error
	// Retryable says whether another try may help; nil: as the category has it.
	Retryable *bool
	// Stack is for people; at most 16 KiB of it are sent.
	Stack string
}

// Error is the error's.
func (f *Failure) Error() string {
	if f.Err == nil {
		return string(f.Category)
	}
	return f.Err.Error()
}

// Unwrap is the error.
func (f *Failure) Unwrap() error { return f.Err }

// Categorize makes err one of a category: DATA_QUALITY, INFRASTRUCTURE, CONFIGURATION, TIMEOUT, CANCELLED or USER_CODE.
func Categorize(c v1.ErrorCategory, err error) error { return &Failure{Category: c, Err: err} }

// Permanent makes err one that no other try can help.
func Permanent(err error) error {
	f := Failure{Category: v1.CategoryUserCode, Err: err}
	var said *Failure
	if errors.As(err, &said) {
		f.Category, f.Stack = said.Category, said.Stack
	}
	f.Retryable = new(bool)
	return &f
}

// StoppedError is what a handler returns after a cancel that wants to say how far it had come.
type StoppedError struct {
	// Phase says where the cancel met the work.
	Phase string
	// Partial is anything that encoding/json writes; nil: nothing.
	Partial any
}

func (s *StoppedError) Error() string { return "stopped in " + s.Phase }

// Panicked makes the failure of what recover returned, with the stack of the goroutine that calls it.
func Panicked(recovered any) error {
	return &Failure{Category: v1.CategoryUserCode, Err: fmt.Errorf("panic: %v", recovered), Stack: string(debug.Stack())}
}

func taskError(err error) *v1.TaskError {
	if err == nil {
		err = errors.New("it failed, and nobody said why")
	}
	e := &v1.TaskError{Category: v1.CategoryUserCode, Message: cut(err.Error(), maxStack)}
	var f *Failure
	if errors.As(err, &f) {
		e.Retryable, e.StackTrace = f.Retryable, cut(f.Stack, maxStack)
		if f.Category.Valid() {
			e.Category = f.Category
		}
	}
	return e
}

// Run tracks an attempt, does the work, and completes it: with what the work returns, as Done and Fail do; a panic is a failure
// of the category USER_CODE. Its error says that the attempt could not be tracked or completed; the work's own is not it.
func (c *Client) Run(
	ctx context.Context, e *v1.TaskEnvelope, work func(context.Context, *Attempt) (output any, err error), opts ...TrackOption,
) (*v1.CompletedResponse, error) {
	on, a, err := c.Track(ctx, e, opts...)
	if err != nil {
		return nil, err
	}
	defer a.Abandon() // where the work ends its goroutine
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
