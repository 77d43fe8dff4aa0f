package worker

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/lubdub-io/lubdub/sdk/go/client"
	"github.com/lubdub-io/lubdub/sdk/go/internal/clock"
	v1 "github.com/lubdub-io/lubdub/sdk/go/v1"
)

// Handler does a task. Its output is anything that encoding/json writes; its error fails the task, as USER_CODE unless
// client.Categorize says otherwise. It should return soon after ctx has ended; context.Cause says why that did.
type Handler func(ctx context.Context, t *Task) (output any, err error)

// Middleware wraps handlers.
type Middleware func(Handler) Handler

// Why a handler's context ends, besides the causes of package client.
var (
	// ErrStopping says that the worker stops.
	ErrStopping = errors.New("worker: the worker stops")
	// ErrTaskTimeout says that the task takes longer than TaskTimeout allows.
	ErrTaskTimeout = errors.New("worker: the task has taken too long")
	// ErrStuck says that the task has reported no progress for as long as Watchdog allows. It has failed already.
	ErrStuck = errors.New("worker: the task has reported no progress for too long")
)

// Task is a task that was claimed.
type Task struct {
	// Envelope is what the server said of it.
	Envelope *v1.TaskEnvelope

	worker  *Worker
	attempt *client.Attempt
	clock   clock.Clock
	moved   atomic.Int64 // when progress was reported last, in ns since the epoch
}

// ID is the task's.
func (t *Task) ID() string { return t.Envelope.TaskID }

// Attempt counts the tries at the task from 1.
func (t *Task) Attempt() int { return t.Envelope.Attempt }

// Type is the task's; empty where it has none.
func (t *Task) Type() string {
	if t.Envelope.Type == nil {
		return ""
	}
	return *t.Envelope.Type
}

// Payload reads what the creator has given into v, a pointer. What cannot be read is a failure of the category DATA_QUALITY.
func (t *Task) Payload(v any) error {
	payload := t.Envelope.Payload
	if len(payload) == 0 {
		payload = json.RawMessage("null")
	}
	if err := json.Unmarshal(payload, v); err != nil {
		return client.Categorize(v1.CategoryDataQuality, fmt.Errorf("the payload: %w", err))
	}
	return nil
}

// Progress says how far the work has come, 0 to 100, and in words; it never waits. The watchdog takes it for a sign of life.
func (t *Task) Progress(pct float64, message string) error {
	t.moved.Store(t.clock.Now().UnixNano())
	return t.attempt.Progress(pct, message)
}

// LastProgress is what the attempt before this one reported last, and false where there was none.
func (t *Task) LastProgress() (pct float64, message string, ok bool) { return t.attempt.LastProgress() }

// quiet is for how long nothing was reported.
func (t *Task) quiet() time.Duration { return t.clock.Now().Sub(time.Unix(0, t.moved.Load())) }

type taskKey struct{}

// TaskOf returns the task that a handler's context is of; nil: none.
func TaskOf(ctx context.Context) *Task {
	t, _ := ctx.Value(taskKey{}).(*Task)
	return t
}

// Traceparent is the W3C trace context of the task that a handler's context is of; empty: it has none.
func Traceparent(ctx context.Context) string {
	if t := TaskOf(ctx); t != nil {
		return t.Envelope.Traceparent
	}
	return ""
}

// DrainDeadline is when the server, which has asked the worker to drain, hands to others what is still held, by the server's clock; a
// hint for a handler that can stop at a good place. False: it has not asked, or has not said until when.
func DrainDeadline(ctx context.Context) (time.Time, bool) {
	t := TaskOf(ctx)
	if t == nil {
		return time.Time{}, false
	}
	t.worker.mu.Lock()
	defer t.worker.mu.Unlock()
	return t.worker.drainBy, !t.worker.drainBy.IsZero()
}

// HandleJSON is Handle for a function that takes the payload and returns the output, both as Go types. TaskOf has the task.
func HandleJSON[In, Out any](w *Worker, taskType string, f func(ctx context.Context, in In) (Out, error)) {
	w.Handle(taskType, func(ctx context.Context, t *Task) (any, error) {
		var in In
		if err := t.Payload(&in); err != nil {
			return nil, err
		}
		return f(ctx, in)
	})
}
