package fleet

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"time"

	v1 "github.com/lubdub-io/lubdub/api/v1"
)

// worker plays one attempt. It is used by one goroutine.
type worker struct {
	fleet    *Fleet
	envelope v1.TaskEnvelope
	id       string
	token    string
	inBatch  bool // beats go through POST /v1/heartbeats
	dead     bool // it plays dead: its silence is meant

	// What is known of when its callbacks landed. `sent` is when the last acknowledged one left, so it cannot
	// have landed earlier; `longest` is the longest time that two neighbours may lie apart. While that is
	// shorter than the timeout the worker is alive beyond doubt, however slow the machine or the network.
	sent    time.Time
	took    time.Duration // from then until its answer
	longest time.Duration

	heard       time.Time // the server's clock at the last acknowledged callback
	cancelHeard time.Time // the server's clock at the first one that asked to stop; zero: none did
}

func (w *worker) timeout() time.Duration {
	if w.envelope.HeartbeatTimeoutMs == nil {
		return 0
	}
	return time.Duration(*w.envelope.HeartbeatTimeoutMs) * time.Millisecond
}

func (w *worker) interval() time.Duration {
	return time.Duration(w.envelope.HeartbeatIntervalMs) * time.Millisecond
}

// start says that the attempt runs.
func (w *worker) start(ctx context.Context) error {
	var a v1.StartedResponse
	err := w.callback(ctx, "started", &v1.StartedRequest{Attempt: w.envelope.Attempt, WorkerID: w.id, StartedAt: v1.At(time.Now())}, &a)
	if err == nil {
		w.note(a.ServerTime, a.ShouldCancel)
	}
	return err
}

// beat says "I am alive", and how far it has come.
func (w *worker) beat(ctx context.Context, pct float64, message string) error {
	w.fleet.tally.beats.Add(1)
	b := v1.HeartbeatRequest{Attempt: w.envelope.Attempt, WorkerID: w.id, HeartbeatAt: v1.At(time.Now()), ProgressPct: &pct, Message: &message}
	if w.inBatch {
		return w.beatInBatch(ctx, b)
	}
	var a v1.HeartbeatResponse
	err := w.callback(ctx, "heartbeat", &b, &a)
	if err == nil {
		w.note(a.ServerTime, a.ShouldCancel)
		w.renew(a.TaskToken)
	}
	return err
}

func (w *worker) beatInBatch(ctx context.Context, b v1.HeartbeatRequest) error {
	request := &v1.HeartbeatsRequest{Heartbeats: []v1.HeartbeatItem{{TaskID: w.envelope.TaskID, TaskToken: w.token, HeartbeatRequest: b}}}
	return w.timed(ctx, func() error {
		var a v1.HeartbeatsResponse
		if err := w.fleet.wire.call(ctx, http.MethodPost, "/v1/heartbeats", "", request, &a); err != nil {
			return err
		}
		if len(a.Results) != 1 {
			return fmt.Errorf("%w: %d results for one beat", errAnswer, len(a.Results))
		}
		r := a.Results[0]
		if r.Status != http.StatusOK {
			return &refusal{Status: r.Status, RetryAfter: time.Duration(r.RetryAfterMs) * time.Millisecond,
				Body: v1.Error{Error: r.Error, Message: r.Message, State: r.State, Reason: r.Reason}}
		}
		w.note(r.ServerTime, r.ShouldCancel != nil && *r.ShouldCancel)
		w.renew(r.TaskToken)
		return nil
	})
}

// complete reports the attempt's end.
func (w *worker) complete(ctx context.Context, c v1.CompletedRequest) (v1.CompletedResponse, error) {
	c.Attempt, c.WorkerID = w.envelope.Attempt, w.id
	if c.CompletedAt.IsZero() {
		c.CompletedAt = v1.At(time.Now())
	}
	var a v1.CompletedResponse
	err := w.callback(ctx, "completed", &c, &a)
	if err == nil {
		w.heard = a.ServerTime.Time
	}
	return a, err
}

func (w *worker) note(serverTime v1.Time, shouldCancel bool) {
	w.heard = serverTime.Time
	if shouldCancel && w.cancelHeard.IsZero() {
		w.cancelHeard = serverTime.Time
	}
}

func (w *worker) renew(token string) {
	if token != "" {
		w.token = token
	}
}

func (w *worker) callback(ctx context.Context, name string, in, out any) error {
	return w.timed(ctx, func() error {
		return w.fleet.wire.call(ctx, http.MethodPost, "/v1/tasks/"+w.envelope.TaskID+"/"+name, w.token, in, out)
	})
}

// timed makes a call, again and again while that may help, as the contract asks of workers, and keeps count of
// the silence around it.
func (w *worker) timed(ctx context.Context, call func() error) error {
	for wait := firstRetry; ; wait = min(2*wait, lastRetry) {
		sent := time.Now()
		err := call()
		if !again(err) || ctx.Err() != nil {
			w.lateBy(time.Now())
			if err == nil {
				w.sent, w.took = sent, time.Since(sent)
			}
			return err
		}
		w.fleet.tally.retries.Add(1)
		var r *refusal
		if errors.As(err, &r) && r.RetryAfter > 0 {
			wait = min(wait, r.RetryAfter)
		}
		if !pause(ctx, wait) {
			return ctx.Err()
		}
	}
}

// lateBy counts the silence since the last sign of life of a worker that means to live.
func (w *worker) lateBy(now time.Time) {
	if !w.sent.IsZero() && !w.dead {
		w.longest = max(w.longest, now.Sub(w.sent))
	}
}

const (
	firstRetry = 20 * time.Millisecond
	lastRetry  = 500 * time.Millisecond
)

// pause waits, and tells whether the context lives on.
func pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// jitter spreads a duration over 0.8 to 1 of itself, so that workers do not march in step.
func jitter(r *rand.Rand, d time.Duration) time.Duration {
	return time.Duration(float64(d) * (0.8 + 0.2*r.Float64()))
}
