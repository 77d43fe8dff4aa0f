package worker

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/lubdub-io/lubdub/sdk/go/client"
	"github.com/lubdub-io/lubdub/sdk/go/internal/beats"
	v1 "github.com/lubdub-io/lubdub/sdk/go/v1"
)

// job is a task at work.
type job struct {
	worker   *Worker
	envelope *v1.TaskEnvelope
	attempt  atomic.Pointer[client.Attempt] // once it has started
	settling atomic.Bool                    // its completion, or that there is none, is decided
	settled  chan struct{}                  // closed when that is done
	ctx      context.Context                // the handler's, once that runs
	kept     atomic.Bool                    // it is not completed, and stays in the inventory
}

// run does the task; it ends when the handler has, which the job's place waits for.
func (j *job) run(doing context.Context) {
	defer j.leave()
	w := j.worker
	ctx, a, err := w.client.Track(doing, j.envelope, beats.Client.HeldBy(holder{w}).(client.TrackOption))
	if err != nil && doing.Err() != nil {
		w.set.log.Info("A task that was claimed is not begun, since the worker stops", "taskId", j.envelope.TaskID, "attempt", j.envelope.Attempt)
		return
	}
	if err != nil {
		w.unlist(j.envelope)
		w.set.log.Info("A task that was claimed is not begun", "taskId", j.envelope.TaskID, "attempt", j.envelope.Attempt, "error", err)
		return
	}
	defer func() {
		if !j.kept.Load() {
			a.Abandon()
		}
	}()
	j.attempt.Store(a)
	if w.keepWhere(j, func() bool { return w.given }) {
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
	j.ctx = ctx
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
	w.waiters.wake()
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
	h := j.worker.handlers.byType[t.Type()]
	if t.Type() == "" {
		h = j.worker.handlers.fallback
	}
	switch {
	case h == nil && t.Type() == "":
		returned = true
		return nil, client.Permanent(client.Categorize(v1.CategoryConfiguration, errors.New(
			"the task has no type, and this worker has no default handler; add one with HandleDefault, or create tasks with a type")))
	case h == nil:
		returned = true
		return nil, client.Categorize(v1.CategoryConfiguration, fmt.Errorf("this worker has no handler for tasks of type %q", t.Type()))
	}
	for i := len(j.worker.handlers.wraps) - 1; i >= 0; i-- {
		h = j.worker.handlers.wraps[i](h)
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
	case errors.Is(cause, ErrTaskTimeout):
		return client.Categorize(v1.CategoryTimeout, fmt.Errorf("%w: %w", ErrTaskTimeout, err))
	}
	return err
}

// stopping reports whether the handler was told that the worker stops.
func (j *job) stopping() bool { return j.ctx != nil && errors.Is(context.Cause(j.ctx), ErrStopping) }

// keepWhere keeps a task in the inventory, and has it not completed, where a condition holds, which is looked at under the mutex; else its
// completion begins.
func (w *Worker) keepWhere(j *job, holds func() bool) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !holds() {
		return false
	}
	j.kept.Store(true)
	w.kept = append(w.kept, j.attempt.Load())
	return true
}

// settle completes the task, unless that is decided already; before that it calls first, which may be nil. What fails after its handler
// was told that the worker stops, and all that ends after the hard stop, is not completed: it stays in the inventory and is given back.
func (j *job) settle(output any, err error, first func()) {
	a := j.attempt.Load()
	if a == nil || j.settling.Swap(true) {
		return
	}
	defer close(j.settled)
	w := j.worker
	if w.keepWhere(j, func() bool {
		keep := w.given || (err != nil && j.stopping())
		if !keep {
			w.completing++
		}
		return keep
	}) {
		w.set.log.Info("A task is given back, since the worker stops", "taskId", a.TaskID(), "attempt", a.Number(), "error", err)
		return
	}
	if first != nil {
		first()
	}
	answer, err, refused := complete(a, output, err)
	w.settled(a, refused)
	if refused != nil {
		w.set.log.Warn("The end of a task was not accepted", "taskId", a.TaskID(), "attempt", a.Number(), "error", refused, "failure", err)
		return
	}
	w.count(answer.FinalState)
	if answer.FinalState == v1.Failed {
		w.set.log.Warn("A task has failed", "taskId", a.TaskID(), "attempt", a.Number(), "error", err,
			"willRetry", answer.WillRetry)
		return
	}
	if w.set.log.Enabled(context.Background(), slog.LevelDebug) {
		w.set.log.Debug("A task has ended", "taskId", a.TaskID(), "attempt", a.Number(), "state", answer.FinalState)
	}
}

// settled says that a completion is on its way no more; err: why it was not accepted. One that was cut off by the stop is given back.
func (w *Worker) settled(a *client.Attempt, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.completing--
	if w.life.Err() != nil && client.MayRetry(err) {
		w.cut = append(w.cut, a.TaskID())
	}
	w.waiters.wake()
}

// complete completes an attempt; failure is what it failed of, which the output may be.
func complete(a *client.Attempt, output any, failure error) (answer *v1.CompletedResponse, _, refused error) {
	if failure == nil {
		answer, refused = a.Done(output)
		if !errors.Is(refused, client.ErrOutput) {
			return answer, nil, refused
		}
		failure = client.Permanent(refused)
	}
	answer, refused = a.Fail(failure)
	return answer, failure, refused
}

// count adds to what the next beat says.
func (w *Worker) count(end v1.State) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.totals.count(end)
}

// grace is how long a handler has to stop.
func (j *job) grace() time.Duration {
	return time.Duration(j.envelope.CancelGracePeriodMs) * time.Millisecond
}
