package fleet

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	v1 "github.com/lubdub-io/lubdub/sdk/go/v1"
)

// behaviour is a script: what a worker does with its task, and the result that is expected.
type behaviour struct {
	name  string
	cards int // in one deck
	play  func(context.Context, *play) error
}

// behaviours is the deck that tasks are drawn from: mostly healthy workers, and each kind of failure.
var behaviours = []behaviour{
	{"steady", 5, steady},
	{"in batches", 2, inBatches},
	{"slow beats", 2, slowBeats},
	{"short", 1, short},
	{"fails", 3, fails},
	{"honours cancel", 2, honoursCancel},
	{"ignores cancel", 2, ignoresCancel},
	{"cancelled before start", 1, cancelledBeforeStart},
	{"crashes", 4, crashes},
	{"comes back too late", 1, comesBack},
	{"crashes, tried again", 1, triedAgain},
	{"never starts", 1, neverStarts},
	{"hangs", 1, hangs},
	{"misses its deadline", 1, missesDeadline},
}

// steady starts, beats, reports progress and succeeds.
func steady(ctx context.Context, p *play) error {
	p.expectEnd(v1.Succeeded, "")
	r, err := p.create(ctx, nil)
	if err != nil {
		return err
	}
	return p.work(ctx, r, 3+p.random.IntN(6), r.interval())
}

// work is the whole life of a healthy worker.
func (p *play) work(ctx context.Context, r *runner, beats int, every time.Duration) error {
	if err := r.start(ctx); err != nil {
		return fmt.Errorf("started: %w", err)
	}
	if err := p.beats(ctx, r, beats, every); err != nil {
		return err
	}
	return p.end(ctx, r, v1.CompletedRequest{
		Outcome: v1.OutcomeSucceeded, Output: json.RawMessage(`{"rows":42}`), Metrics: json.RawMessage(`{"cpuTimeMs":7}`),
	})
}

// inBatches beats through the batch endpoint.
func inBatches(ctx context.Context, p *play) error {
	p.expectEnd(v1.Succeeded, "")
	r, err := p.create(ctx, nil)
	if err != nil {
		return err
	}
	r.inBatch = true
	return p.work(ctx, r, 3+p.random.IntN(6), r.interval())
}

// slowBeats stays alive, though it uses most of its timeout.
func slowBeats(ctx context.Context, p *play) error {
	p.expectEnd(v1.Succeeded, "")
	r, err := p.create(ctx, nil)
	if err != nil {
		return err
	}
	return p.work(ctx, r, 3, r.timeout()*3/4)
}

// short completes without having reported its start.
func short(ctx context.Context, p *play) error {
	p.expectEnd(v1.Succeeded, "")
	r, err := p.create(ctx, nil)
	if err != nil {
		return err
	}
	return p.end(ctx, r, v1.CompletedRequest{Outcome: v1.OutcomeSucceeded})
}

// fails reports a failure of each category in turn.
func fails(ctx context.Context, p *play) error {
	p.expectEnd(v1.Failed, "WORKER_REPORTED")
	p.expect.Category = v1.ErrorCategories[p.number%len(v1.ErrorCategories)]
	r, err := p.create(ctx, nil)
	if err != nil {
		return err
	}
	if err := r.start(ctx); err != nil {
		return fmt.Errorf("started: %w", err)
	}
	if err := p.beats(ctx, r, 1+p.random.IntN(3), r.interval()); err != nil {
		return err
	}
	return p.end(ctx, r, v1.CompletedRequest{
		Outcome: v1.OutcomeFailed, Error: &v1.TaskError{Category: p.expect.Category, Message: "simulated failure"},
	})
}

// honoursCancel receives a cancel with a beat, cleans up and reports that.
func honoursCancel(ctx context.Context, p *play) error {
	p.expectEnd(v1.Cancelled, "")
	grace := int64(10_000) // ample: how fast the worker cleans up is not tested here
	r, err := p.create(ctx, func(r *v1.CreateTaskRequest) { r.CancelGracePeriodMs = &grace })
	if err != nil {
		return err
	}
	if err := p.awaitCancel(ctx, r); err != nil {
		return err
	}
	if err := p.beats(ctx, r, 1, r.interval()); err != nil {
		return err
	}
	return p.end(ctx, r, v1.CompletedRequest{
		Outcome: v1.OutcomeCancelled, CancelledDuringPhase: "processing", PartialProgress: json.RawMessage(`{"steps":3}`),
	})
}

// awaitCancel plays a worker until a beat's answer requests the cancel.
func (p *play) awaitCancel(ctx context.Context, r *runner) error {
	if err := r.start(ctx); err != nil {
		return fmt.Errorf("started: %w", err)
	}
	if err := p.beats(ctx, r, 1+p.random.IntN(3), r.interval()); err != nil {
		return err
	}
	if !r.cancelAt.IsZero() {
		p.complainf("a beat requested a stop before the cancel")
	}
	if err := p.cancel(ctx, "simulated"); err != nil {
		return fmt.Errorf("cancel: %w", err)
	}
	if err := p.beats(ctx, r, 1, r.interval()); err != nil {
		return err
	}
	if r.cancelAt.IsZero() {
		p.complainf("the beat after the cancel did not request a stop")
	}
	return nil
}

// ignoresCancel receives a cancel, and continues to beat until it is cut off.
func ignoresCancel(ctx context.Context, p *play) error {
	grace := int64(1000)
	r, err := p.create(ctx, func(r *v1.CreateTaskRequest) { r.CancelGracePeriodMs = &grace })
	if err != nil {
		return err
	}
	if err := p.awaitCancel(ctx, r); err != nil {
		return err
	}
	g := time.Duration(grace) * time.Millisecond
	p.expectVerdict(r, "TIMED_OUT", "CANCEL_TIMEOUT", r.cancelAt.Add(g), g)
	return p.beatUntilRefused(ctx, r)
}

// cancelledBeforeStart is cancelled before its worker has started it, and a worker that starts it anyway is refused.
func cancelledBeforeStart(ctx context.Context, p *play) error {
	p.expectEnd(v1.Cancelled, "")
	r, err := p.create(ctx, nil)
	if err != nil {
		return err
	}
	if err := p.cancel(ctx, "simulated"); err != nil {
		return fmt.Errorf("cancel: %w", err)
	}
	if err := r.start(ctx); refusedWith(err) != http.StatusConflict {
		p.complainf("a start after the cancel was answered with %s, and not with 409", answer(err))
	}
	return nil
}

// crashes falls silent in the middle of its work.
func crashes(ctx context.Context, p *play) error {
	r, err := p.create(ctx, nil)
	if err != nil {
		return err
	}
	return p.crash(ctx, r)
}

// crash starts, beats a few times or never, and then sends nothing more.
func (p *play) crash(ctx context.Context, r *runner) error {
	if err := r.start(ctx); err != nil {
		return fmt.Errorf("started: %w", err)
	}
	if err := p.beats(ctx, r, p.random.IntN(4), r.interval()); err != nil {
		return err
	}
	r.dead = true
	p.expectVerdict(r, "ZOMBIE", "HEARTBEAT_TIMEOUT", r.lastAcked.Add(r.timeout()), r.timeout())
	return nil
}

// comesBack is silent for too long, then continues as if nothing had happened, and must be stopped.
func comesBack(ctx context.Context, p *play) error {
	r, err := p.create(ctx, nil)
	if err != nil {
		return err
	}
	if err := p.crash(ctx, r); err != nil {
		return err
	}
	if s, err := p.settle(ctx); err != nil || s.Task == nil || s.Task.State != v1.Failed {
		return err // the judge will find it unfinished
	}
	if err := r.beat(ctx, 99, "back again"); refusedWith(err) != http.StatusGone {
		p.complainf("a beat after the verdict was answered with %s, and not with 410", answer(err))
	}
	if _, err := r.complete(ctx, v1.CompletedRequest{Outcome: v1.OutcomeSucceeded}); refusedWith(err) != http.StatusConflict {
		p.complainf("a completion after the verdict was answered with %s, and not with 409", answer(err))
	}
	return nil
}

// triedAgain crashes; once that is known it requests another attempt, which takes over and succeeds.
func triedAgain(ctx context.Context, p *play) error {
	r, err := p.create(ctx, nil)
	if err != nil {
		return err
	}
	if err := r.start(ctx); err != nil {
		return fmt.Errorf("started: %w", err)
	}
	if err := p.beats(ctx, r, 1, r.interval()); err != nil {
		return err
	}
	r.dead = true
	p.expectVerdict(r, "ZOMBIE", "HEARTBEAT_TIMEOUT", r.lastAcked.Add(r.timeout()), r.timeout())
	if s, err := p.settle(ctx); err != nil || s.Task == nil || s.Task.State != v1.Failed {
		return err // the judge will find it unfinished
	}
	p.verdictDue = time.Time{}
	second, e, err := p.next(ctx, 1)
	if err != nil {
		return fmt.Errorf("next attempt: %w", err)
	}
	if e.Attempt != 2 {
		p.complainf("the attempt after the first is number %d", e.Attempt)
	}
	if e.LastProgress == nil || string(e.LastProgress.ProgressPct) != "50" {
		p.complainf("the last progress of the lost attempt was not handed on")
	}
	p.expectEnd(v1.Succeeded, "")
	return p.work(ctx, second, 2, second.interval())
}

// neverStarts is dispatched and never started.
func neverStarts(ctx context.Context, p *play) error {
	limit := int64(1000)
	r, err := p.create(ctx, func(r *v1.CreateTaskRequest) { r.StartTimeoutMs = &limit })
	if err != nil {
		return err
	}
	l := time.Duration(limit) * time.Millisecond
	r.lastAcked = r.envelope.EnqueuedAt.Time
	p.expectVerdict(r, "TIMED_OUT", "START_TIMEOUT", r.lastAcked.Add(l), l)
	return nil
}

// hangs beats forever and never completes.
func hangs(ctx context.Context, p *play) error {
	limit := int64(1500)
	r, err := p.create(ctx, func(r *v1.CreateTaskRequest) { r.RunTimeoutMs = &limit })
	if err != nil {
		return err
	}
	if err := r.start(ctx); err != nil {
		return fmt.Errorf("started: %w", err)
	}
	l := time.Duration(limit) * time.Millisecond
	p.expectVerdict(r, "TIMED_OUT", "RUN_TIMEOUT", r.lastAcked.Add(l), l)
	return p.beatUntilRefused(ctx, r)
}

// missesDeadline continues to work past its deadline.
func missesDeadline(ctx context.Context, p *play) error {
	deadline := time.Now().Add(2 * time.Second).Truncate(time.Millisecond)
	r, err := p.create(ctx, func(r *v1.CreateTaskRequest) { r.Deadline = v1.At(deadline) })
	if refusedWith(err) == http.StatusBadRequest && time.Now().After(deadline) {
		return fmt.Errorf("it came too late for its deadline: %v", err) // %v: the error is not a refusal any more, so it proves nothing
	} else if err != nil {
		return err
	}
	r.lastAcked = r.envelope.EnqueuedAt.Time
	p.expectVerdict(r, "TIMED_OUT", "DEADLINE_EXCEEDED", deadline, 0)
	if err := r.start(ctx); refusedWith(err) == http.StatusConflict && time.Now().After(deadline) {
		return nil // the fleet itself was late, and the verdict is already there
	} else if err != nil {
		return fmt.Errorf("started: %w", err)
	}
	return p.beatUntilRefused(ctx, r)
}

func answer(err error) string {
	if err == nil {
		return "200"
	}
	return err.Error()
}
