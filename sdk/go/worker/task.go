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

// Handler runs a task. Its output is any value that encoding/json can encode; its error fails the task, as USER_CODE unless
// client.Categorize sets another category. It should return soon after ctx has ended; context.Cause returns why it ended.
type Handler func(ctx context.Context, t *Task) (output any, err error)

// Middleware wraps handlers.
type Middleware func(Handler) Handler

// Causes of the end of a handler's context, in addition to those of package client.
var (
	// ErrStopping means that the worker stops.
	ErrStopping = errors.New("worker: the worker stops")
	// ErrTaskTimeout means that the task has run longer than TaskTimeout allows.
	ErrTaskTimeout = errors.New("worker: the task has taken too long")
	// ErrStuck means that the task has reported no progress for as long as Watchdog allows. It has already failed.
	ErrStuck = errors.New("worker: the task has reported no progress for too long")
)

// Task is a claimed task. A test may call a handler with a Task that has an Envelope only, whose reports are dropped.
type Task struct {
	// Envelope is the task as the server sent it.
	Envelope *v1.TaskEnvelope

	worker  *Worker
	attempt *client.Attempt
	clock   clock.Clock
	moved   atomic.Int64 // when progress was last reported, in ns since the epoch
}

// ID returns the task's id.
func (t *Task) ID() string { return t.Envelope.TaskID }

// Attempt returns the number of this attempt, from 1.
func (t *Task) Attempt() int { return t.Envelope.Attempt }

// Type returns the task's type; empty if it has none.
func (t *Task) Type() string {
	if t.Envelope.Type == nil {
		return ""
	}
	return *t.Envelope.Type
}

// Payload decodes the payload into v, a pointer. An error has the category DATA_QUALITY.
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

// Progress reports the progress of the task, 0 to 100, with a message; it never waits. The watchdog counts it as a sign of life.
func (t *Task) Progress(pct float64, message string) error {
	if t.attempt == nil {
		return nil
	}
	t.moved.Store(t.clock.Now().UnixNano())
	return t.attempt.Progress(pct, message)
}

// LastProgress returns the last progress that the previous attempt reported, and false without one.
func (t *Task) LastProgress() (pct float64, message string, ok bool) {
	return t.Envelope.LastProgress.Reported()
}

// Checkpoint saves how far the work is, as any value but nil that encoding/json encodes in at most 16 KiB, for the next attempt's
// LastCheckpoint; it never waits. The watchdog counts it as a sign of life.
func (t *Task) Checkpoint(v any) error {
	if t.attempt == nil {
		return nil
	}
	t.moved.Store(t.clock.Now().UnixNano())
	return t.attempt.Checkpoint(v)
}

// LastCheckpoint decodes the last checkpoint that an earlier attempt of the task saved into v, a pointer. It returns false without one.
func (t *Task) LastCheckpoint(v any) (ok bool, err error) {
	return t.Envelope.LastProgress.Checkpoint(v)
}

// quiet returns for how long no progress was reported.
func (t *Task) quiet() time.Duration { return t.clock.Now().Sub(time.Unix(0, t.moved.Load())) }

type taskKey struct{}

// TaskOf returns the task of a handler's context, or nil.
func TaskOf(ctx context.Context) *Task {
	t, _ := ctx.Value(taskKey{}).(*Task)
	return t
}

// Traceparent returns the W3C trace context of the task of a handler's context; empty if it has none.
func Traceparent(ctx context.Context) string {
	if t := TaskOf(ctx); t != nil {
		return t.Envelope.Traceparent
	}
	return ""
}

// DrainDeadline returns when the server, which has requested a drain, gives the tasks that are still held to other workers, by the server's
// clock; a hint for a handler that can stop at a good place. It returns false without such a request, or if it has no deadline.
func DrainDeadline(ctx context.Context) (time.Time, bool) {
	t := TaskOf(ctx)
	if t == nil || t.worker == nil {
		return time.Time{}, false
	}
	t.worker.mu.Lock()
	defer t.worker.mu.Unlock()
	return t.worker.drainBy, !t.worker.drainBy.IsZero()
}

// HandleJSON does as Handle for a function that takes the payload and returns the output, both as Go types. TaskOf returns the task.
func HandleJSON[In, Out any](w *Worker, taskType string, f func(ctx context.Context, in In) (Out, error)) {
	w.Handle(taskType, func(ctx context.Context, t *Task) (any, error) {
		var in In
		if err := t.Payload(&in); err != nil {
			return nil, err
		}
		return f(ctx, in)
	})
}
