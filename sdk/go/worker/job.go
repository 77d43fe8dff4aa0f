package worker

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync/atomic"
	"time"

	"github.com/lubdub-io/lubdub/sdk/go/client"
	"github.com/lubdub-io/lubdub/sdk/go/internal/beats"
	v1 "github.com/lubdub-io/lubdub/sdk/go/v1"
)

// job is a claimed task that the worker runs.
type job struct {
	worker   *Worker
	envelope *v1.TaskEnvelope
	attempt  atomic.Pointer[client.Attempt] // once it has started
	settling atomic.Bool                    // whether to complete it is decided
	settled  chan struct{}                  // closed when its completion has ended, or was omitted
	ctx      context.Context                // of the handler, once it runs
	kept     atomic.Bool                    // it is not completed, and stays in the inventory
	began    time.Time                      // when it was tracked
	measured atomic.Bool                    // its end
}

// run runs the task until its handler has returned; the job keeps its place until then.
func (j *job) run(doing context.Context) {
	defer j.leave()
	w := j.worker
	ctx, a, err := w.client.Track(doing, j.envelope, beats.Client.HeldBy(holder{w}).(client.TrackOption), client.OnEnd(j.lost))
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
	j.began = w.clock.Now()
	j.attempt.Store(a)
	if j.envelope.Attempt > 1 {
		w.set.log.Info("A task is tried again", j.named()...)
	}
	if w.keepWhere(j, func() bool { return w.gaveBack }) {
		return
	}
	if errors.As(context.Cause(ctx), new(client.Cancelled)) { // requested before it has started
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
	<-j.settled // before that the attempt must not be released
}

// lost logs that the attempt is not the worker's any more.
func (j *job) lost(cause error) {
	if !errors.As(cause, new(client.Cancelled)) {
		j.worker.set.log.Warn("Task "+j.envelope.TaskID+" is lost", j.named("error", cause)...)
	}
}

// named returns fields of the log that name the attempt, and others.
func (j *job) named(more ...any) []any {
	named := []any{"taskId", j.envelope.TaskID, "attempt", j.envelope.Attempt}
	if j.envelope.Type != nil {
		named = append(named, "type", *j.envelope.Type)
	}
	return append(named, more...)
}

// measure reports the end of the attempt, once.
func (j *job) measure(outcome v1.Outcome, willRetry bool, now time.Time) {
	if j.measured.Swap(true) {
		return
	}
	if outcome == client.OutcomeReturned && beats.Client.Over(j.attempt.Load()) {
		outcome = client.OutcomeLost // there is nothing to give back
	}
	e := client.AttemptEnd{Attempt: j.envelope.Attempt, Outcome: outcome, WillRetry: willRetry, Duration: now.Sub(j.began)}
	if j.envelope.Type != nil {
		e.Type = *j.envelope.Type
	}
	if j.envelope.Queue != nil {
		e.Queue = *j.envelope.Queue
	}
	if ready := j.envelope.ReadyAt; !ready.IsZero() {
		wait := max(0, j.envelope.EnqueuedAt.Sub(ready.Time))
		e.QueueWait = &wait
	}
	if first := beats.Client.FirstAnswer(j.attempt.Load()); !first.IsZero() {
		after := max(0, first.Sub(j.began))
		e.FirstHeartbeat = &after
	}
	j.worker.client.Metrics().Ended(e)
}

// measureLeft reports the ends of attempts whose handlers are still running when the worker stops to wait for them.
func (w *Worker) measureLeft(outcome v1.Outcome) {
	w.mu.Lock()
	left := slices.Collect(maps.Keys(w.jobs))
	w.mu.Unlock()
	for _, j := range left {
		if j.attempt.Load() != nil && !j.settling.Load() {
			j.measure(outcome, false, w.clock.Now())
		}
	}
}

// leave frees the place.
func (j *job) leave() {
	w := j.worker
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.jobs, j)
	w.client.Metrics().Running(len(w.jobs))
	w.waiters.wake()
}

// handle calls the handler. A panic of the handler, or the end of its goroutine, is returned as its failure.
func (j *job) handle(ctx context.Context, t *Task) (output any, err error) {
	returned := false
	defer func() {
		if r := recover(); r != nil {
			output, err = nil, client.Panicked(r)
		} else if !returned { // runtime.Goexit: the returned values are discarded
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

// explain sets the category of a failure that follows from the end of the context.
func (j *job) explain(cause, err error) error {
	var failure *client.Failure
	switch {
	case errors.As(err, &failure):
	case errors.Is(cause, ErrTaskTimeout):
		return client.Categorize(v1.CategoryTimeout, fmt.Errorf("%w: %w", ErrTaskTimeout, err))
	}
	return err
}

// stopping reports whether the handler's context ended because the worker stops.
func (j *job) stopping() bool { return j.ctx != nil && errors.Is(context.Cause(j.ctx), ErrStopping) }

// keepWhere keeps a task in the inventory without completing it if a condition holds, which is checked under the mutex. It returns
// false if the task is to be completed.
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

// settle completes the task, unless that is already decided, and calls first, which may be nil, before it does. A task that fails because
// the worker stops, or ends after the hard stop, is not completed: it stays in the inventory and is given back.
func (j *job) settle(output any, err error, first func()) {
	a := j.attempt.Load()
	if a == nil || j.settling.Swap(true) {
		return
	}
	defer close(j.settled)
	w := j.worker
	now := w.clock.Now()
	if w.keepWhere(j, func() bool {
		keep := w.gaveBack || (err != nil && j.stopping())
		if !keep {
			w.completing++
		}
		return keep
	}) {
		w.set.log.Info("A task is given back, since the worker stops", j.named("error", err)...)
		j.measure(client.OutcomeReturned, false, now)
		return
	}
	if first != nil {
		first()
	}
	answer, err, refused := complete(a, output, err)
	if returned := w.settled(a, refused); refused != nil {
		w.set.log.Warn("The end of a task was not accepted", j.named("error", refused, "failure", err)...)
		outcome := client.OutcomeLost
		if returned {
			outcome = client.OutcomeReturned
		}
		j.measure(outcome, false, now)
		return
	}
	j.measure(v1.Outcome(answer.FinalState), answer.WillRetry, now)
	w.count(answer.FinalState)
	switch {
	case answer.FinalState == v1.Failed && answer.WillRetry:
		w.set.log.Warn("A task has failed and will be retried", j.named("error", err)...)
	case answer.FinalState == v1.Failed:
		w.set.log.Error("A task has failed and will not be retried", j.named("error", err)...)
	case w.set.log.Enabled(context.Background(), slog.LevelDebug):
		w.set.log.Debug("A task has ended", j.named("state", answer.FinalState)...)
	}
}

// settled records the end of a completion; err is why it was not accepted. A task whose completion the stop cut off is given back.
func (w *Worker) settled(a *client.Attempt, err error) (givenBack bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.completing--
	if givenBack = w.life.Err() != nil && client.MayRetry(err); givenBack {
		w.cut = append(w.cut, a.TaskID())
	}
	w.waiters.wake()
	return givenBack
}

// complete completes an attempt; failure is the handler's error, which the output may also be.
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

// count adds a completed or failed task to the next beat.
func (w *Worker) count(end v1.State) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.totals.count(end)
}

// grace returns how long a handler has to stop.
func (j *job) grace() time.Duration {
	return time.Duration(j.envelope.CancelGracePeriodMs) * time.Millisecond
}
