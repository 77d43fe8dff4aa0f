package worker

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/lubdub-io/lubdub/sdk/go/client"
	v1 "github.com/lubdub-io/lubdub/sdk/go/v1"
)

// job is a task at work.
type job struct {
	worker   *Worker
	envelope *v1.TaskEnvelope
	attempt  atomic.Pointer[client.Attempt] // once it has started
	settling atomic.Bool                    // somebody completes it
	settled  chan struct{}                  // closed when they have
}

// run does the task; it ends when the handler has, which the job's place waits for.
func (j *job) run(doing context.Context) {
	defer j.leave()
	w := j.worker
	ctx, a, err := w.client.Track(doing, j.envelope, client.HeldBy(holder{w}))
	if err != nil {
		w.unlist(j.envelope)
		w.set.log.Info("A task that was claimed is not begun", "taskId", j.envelope.TaskID, "attempt", j.envelope.Attempt, "error", err)
		return
	}
	defer a.Abandon()
	j.attempt.Store(a)
	if j.settling.Load() { // its worker has given it back
		return
	}
	if errors.As(context.Cause(ctx), new(client.Cancelled)) { // asked for before it has started
		j.settle(nil, context.Cause(ctx), nil)
		<-j.settled
		return
	}
	t := &Task{Envelope: j.envelope, worker: w, attempt: a, clock: w.clock}
	t.moved.Store(w.clock.Now().UnixNano())
	ctx, end := context.WithCancelCause(context.WithValue(ctx, taskKey{}, t))
	defer end(nil)
	watch := j.watch(ctx, end, t)
	defer watch.end()
	output, err := j.handle(a.Within(ctx), t)
	watch.end()
	if ctx.Err() != nil && err != nil {
		err = j.explain(context.Cause(ctx), err)
	}
	j.settle(output, err, nil)
	<-j.settled // by whoever does it: before that the attempt must not be given up
}

// leave gives the place back.
func (j *job) leave() {
	w := j.worker
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.jobs, j)
	w.client.Metrics().Running(len(w.jobs))
	w.change()
}

// handle calls the handler. Its panic is its failure, and so is the end of its goroutine.
func (j *job) handle(ctx context.Context, t *Task) (output any, err error) {
	returned := false
	defer func() {
		if r := recover(); r != nil {
			output, err = nil, client.Panicked(r)
		} else if !returned { // runtime.Goexit: nobody gets what is returned from here
			j.settle(nil, errors.New("the handler has ended its goroutine"), nil)
			<-j.settled
		}
	}()
	h := j.worker.handlers[t.Type()]
	if h == nil {
		returned = true
		return nil, client.Categorize(v1.CategoryConfiguration, fmt.Errorf("this worker has no handler for tasks of type %q", t.Type()))
	}
	for i := len(j.worker.wraps) - 1; i >= 0; i-- {
		h = j.worker.wraps[i](h)
	}
	output, err = h(ctx, t)
	returned = true
	return output, err
}

// explain says of which kind a failure is that comes of the end of the context.
func (j *job) explain(cause, err error) error {
	var said *client.Failure
	switch {
	case errors.As(err, &said):
	case errors.Is(cause, ErrStopping):
		return client.Categorize(v1.CategoryInfrastructure, fmt.Errorf("%w: %w", ErrStopping, err))
	case errors.Is(cause, ErrTaskTimeout):
		return client.Categorize(v1.CategoryTimeout, fmt.Errorf("%w: %w", ErrTaskTimeout, err))
	}
	return err
}

// settle completes the task, unless somebody else does; before that it calls first, which may be nil.
func (j *job) settle(output any, err error, first func()) {
	a := j.attempt.Load()
	if a == nil || j.settling.Swap(true) {
		return
	}
	defer close(j.settled)
	if first != nil {
		first()
	}
	w := j.worker
	answer, refused := complete(a, output, err)
	if refused != nil {
		w.set.log.Warn("The end of a task was not accepted", "taskId", a.TaskID(), "attempt", a.Number(), "error", refused)
		return
	}
	w.count(answer.FinalState)
	if w.set.log.Enabled(context.Background(), slog.LevelDebug) {
		w.set.log.Debug("A task has ended", "taskId", a.TaskID(), "attempt", a.Number(), "state", answer.FinalState,
			"willRetry", answer.WillRetry, "error", err)
	}
}

func complete(a *client.Attempt, output any, err error) (*v1.CompletedResponse, error) {
	if err != nil {
		return a.Fail(err)
	}
	answer, err := a.Done(output)
	if errors.Is(err, client.ErrOutput) {
		return a.Fail(client.Permanent(err))
	}
	return answer, err
}

// count adds to what the next beat says.
func (w *Worker) count(end v1.State) {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch end {
	case v1.Succeeded:
		w.completed++
	case v1.Failed:
		w.failed++
	}
}

// grace is how long a handler has to stop.
func (j *job) grace() time.Duration {
	return time.Duration(j.envelope.CancelGracePeriodMs) * time.Millisecond
}
