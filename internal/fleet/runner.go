package fleet

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"time"

	"github.com/lubdub-io/lubdub/sdk/go/client"
	v1 "github.com/lubdub-io/lubdub/sdk/go/v1"
)

// runner plays one attempt, as its worker. Only one goroutine uses it.
type runner struct {
	fleet    *Fleet
	envelope v1.TaskEnvelope
	id       string
	token    string
	inBatch  bool // beats go through POST /v1/heartbeats
	dead     bool // it plays dead: its silence is intended

	// What is known of when its callbacks were stored. `sent` is when the last acknowledged one was sent, so it cannot have been stored
	// earlier; `longest` is the longest time that may lie between two consecutive ones. While that is shorter than the timeout, the
	// worker is certainly alive, however slow the machine or the network.
	sent    time.Time
	took    time.Duration // from then until its answer
	longest time.Duration

	lastAcked time.Time // the server's clock at the last acknowledged callback
	cancelAt  time.Time // the server's clock at the first one that requested a cancel; zero: none did
}

func (r *runner) timeout() time.Duration {
	if r.envelope.HeartbeatTimeoutMs == nil {
		return 0
	}
	return time.Duration(*r.envelope.HeartbeatTimeoutMs) * time.Millisecond
}

func (r *runner) interval() time.Duration {
	return time.Duration(r.envelope.HeartbeatIntervalMs) * time.Millisecond
}

// start reports that the attempt runs.
func (r *runner) start(ctx context.Context) error {
	started := v1.StartedRequest{Attempt: r.envelope.Attempt, WorkerID: r.id, StartedAt: v1.At(time.Now())}
	return r.timed(ctx, func() error {
		a, err := r.fleet.api.Started(ctx, r.envelope.TaskID, r.token, started)
		if err == nil {
			r.note(a.ServerTime, a.ShouldCancel)
		}
		return err
	})
}

// beat sends a heartbeat with progress.
func (r *runner) beat(ctx context.Context, pct float64, message string) error {
	r.fleet.tally.beats.Add(1)
	b := v1.HeartbeatRequest{Attempt: r.envelope.Attempt, WorkerID: r.id, HeartbeatAt: v1.At(time.Now()), ProgressPct: &pct, Message: &message}
	if r.inBatch {
		return r.beatInBatch(ctx, b)
	}
	return r.timed(ctx, func() error {
		a, err := r.fleet.api.Heartbeat(ctx, r.envelope.TaskID, r.token, b)
		if err == nil {
			r.note(a.ServerTime, a.ShouldCancel)
			r.renew(a.TaskToken)
		}
		return err
	})
}

func (r *runner) beatInBatch(ctx context.Context, b v1.HeartbeatRequest) error {
	request := v1.HeartbeatsRequest{Heartbeats: []v1.HeartbeatItem{{TaskID: r.envelope.TaskID, TaskToken: r.token, HeartbeatRequest: b}}}
	return r.timed(ctx, func() error {
		a, err := r.fleet.api.Heartbeats(ctx, "", request)
		if err != nil {
			return err
		}
		if len(a.Results) != 1 {
			return fmt.Errorf("%w: %d results for one beat", errAnswer, len(a.Results))
		}
		result := a.Results[0]
		if result.Status != http.StatusOK {
			return &client.Error{
				Operation: "POST /v1/heartbeats", Status: result.Status, Code: client.Code(result.Error), Message: result.Message,
				RetryAfter: time.Duration(result.RetryAfterMs) * time.Millisecond,
				Details:    v1.Error{State: result.State, Reason: result.Reason},
			}
		}
		r.note(result.ServerTime, result.ShouldCancel != nil && *result.ShouldCancel)
		r.renew(result.TaskToken)
		return nil
	})
}

// complete reports the attempt's end.
func (r *runner) complete(ctx context.Context, c v1.CompletedRequest) (v1.CompletedResponse, error) {
	c.Attempt, c.WorkerID = r.envelope.Attempt, r.id
	if c.CompletedAt.IsZero() {
		c.CompletedAt = v1.At(time.Now())
	}
	var a v1.CompletedResponse
	err := r.timed(ctx, func() error {
		answer, err := r.fleet.api.Completed(ctx, r.envelope.TaskID, r.token, c)
		if err == nil {
			a, r.lastAcked = *answer, answer.ServerTime.Time
		}
		return err
	})
	return a, err
}

func (r *runner) note(serverTime v1.Time, shouldCancel bool) {
	r.lastAcked = serverTime.Time
	if shouldCancel && r.cancelAt.IsZero() {
		r.cancelAt = serverTime.Time
	}
}

func (r *runner) renew(token string) {
	if token != "" {
		r.token = token
	}
}

// timed makes a call, and retries it while that may help, as the contract requires of workers, and measures the silence around it.
func (r *runner) timed(ctx context.Context, call func() error) error {
	for wait := firstRetry; ; wait = min(2*wait, lastRetry) {
		sent := time.Now()
		err := call()
		if !again(err) || ctx.Err() != nil {
			r.recordSilence(time.Now())
			if err == nil {
				r.sent, r.took = sent, time.Since(sent)
			}
			return err
		}
		r.fleet.tally.retries.Add(1)
		if after := client.RetryAfter(err); after > 0 {
			wait = min(wait, after)
		}
		if !pause(ctx, wait) {
			return ctx.Err()
		}
	}
}

// recordSilence counts the silence since the last sign of life of a worker that is meant to live.
func (r *runner) recordSilence(now time.Time) {
	if !r.sent.IsZero() && !r.dead {
		r.longest = max(r.longest, now.Sub(r.sent))
	}
}

const (
	firstRetry = 20 * time.Millisecond
	lastRetry  = 500 * time.Millisecond
)

// pause waits, and returns false if the context has ended.
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

// jitter returns 0.8 to 1 times a duration, so that workers do not beat in step.
func jitter(r *rand.Rand, d time.Duration) time.Duration {
	return time.Duration(float64(d) * (0.8 + 0.2*r.Float64()))
}
