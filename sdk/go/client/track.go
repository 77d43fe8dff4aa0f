package client

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/lubdub-io/lubdub/sdk/go/internal/clock"
	v1 "github.com/lubdub-io/lubdub/sdk/go/v1"
)

// TrackOption configures how one attempt is tracked.
type TrackOption func(*Attempt)

// LeaseOf sets the lease of this attempt; DefaultLease sets that of all others.
func LeaseOf(l Lease) TrackOption { return func(a *Attempt) { a.lease = l } }

// OnEnd calls f, in a separate goroutine, when the context of the attempt ends for another reason than its completion.
func OnEnd(f func(cause error)) TrackOption { return func(a *Attempt) { a.onEnd = f } }

// Told is OnEnd.
//
// Deprecated: use OnEnd.
func Told(f func(cause error)) TrackOption { return OnEnd(f) }

// Track reports the start of an attempt, unless its claim has started it, and sends heartbeats until its handle is completed (Done, Fail,
// Complete) or abandoned (Abandon): one of these must be called, even if the context has ended. The returned context is derived from ctx
// and also ends with a cause: Cancelled, Lost, Superseded, Expired, DeadlineExceeded or LeaseEnded.
//
// It waits until a server has answered the start. It fails with the error of ctx, a refusal, or what is wrong with the envelope; then there
// is no handle and the work must not begin. The end of ctx alone does not stop the heartbeats.
func (c *Client) Track(ctx context.Context, e *v1.TaskEnvelope, opts ...TrackOption) (context.Context, *Attempt, error) {
	a, err := c.newAttempt(e)
	if err != nil {
		return nil, nil, err
	}
	for _, opt := range opts {
		opt(a)
	}
	if a.holder != nil && !a.own {
		a.timeout = a.holder.Lease()
	}
	sent, answer := c.set.clock.Now(), new(v1.StartedResponse)
	if err = ctx.Err(); e.State != v1.Running {
		sent, answer, err = c.start(ctx, a)
	}
	if err != nil {
		if cause := causeOfError(err); cause != nil {
			err = errors.Join(cause, err)
		}
		return nil, nil, err
	}
	a.accepted = sent
	a.ctx, a.end = context.WithCancelCause(ctx)
	if answer.ShouldCancel {
		held{a}.Cancel(answer.CancelReason)
	}
	if a.holder != nil {
		a.holder.Hold(held{a})
		return a.Within(a.ctx), a, nil
	}
	if !a.beater.add(a) {
		a.end(ErrClosed)
		return nil, nil, ErrClosed
	}
	return a.Within(a.ctx), a, nil
}

func (c *Client) newAttempt(e *v1.TaskEnvelope) (*Attempt, error) {
	if e == nil || e.TaskID == "" || e.Attempt < 1 || e.TaskToken == "" {
		return nil, errors.New("lubdub: this is not a task envelope: it needs taskId, attempt and taskToken, " +
			"as creations and claims return them")
	}
	b, err := c.beaterFor(e.CallbackBaseURL)
	if err != nil {
		return nil, err
	}
	a := &Attempt{
		client: c, beater: b, taskID: e.TaskID, number: e.Attempt, last: e.LastProgress, lease: c.set.lease, token: e.TaskToken,
		interval: time.Duration(e.HeartbeatIntervalMs) * time.Millisecond,
	}
	if !e.TokenExpiresAt.IsZero() && !e.EnqueuedAt.IsZero() { // by our own clock, since the two may differ
		a.expires = c.set.clock.Now().Add(e.TokenExpiresAt.Sub(e.EnqueuedAt.Time))
	}
	if a.interval <= 0 {
		a.interval = 30 * time.Second
	}
	a.timeout = 3 * a.interval
	if ms := e.HeartbeatTimeoutMs; ms != nil && *ms > 0 {
		a.timeout, a.own = time.Duration(*ms)*time.Millisecond, true
	}
	if a.timeout < 2*a.interval {
		return nil, fmt.Errorf("lubdub: task %s: a heartbeat timeout of %v is less than twice its interval of %v, so that one lost heartbeat "+
			"would end it; create it with a longer timeout", a.taskID, a.timeout, a.interval)
	}
	if a.timeout < leastTimeout {
		c.set.log.Warn("a heartbeat timeout this short leaves no room for one Retry-After", "taskId", a.taskID, "timeout", a.timeout)
	}
	return a, nil
}

// leastTimeout leaves room for one retry when a server is briefly in trouble.
const leastTimeout = 3 * time.Second

// start reports the start of the attempt until it is answered; sent is when the answered request was sent.
func (c *Client) start(ctx context.Context, a *Attempt) (sent time.Time, answer *v1.StartedResponse, err error) {
	answer = new(v1.StartedResponse)
	k := &call{method: http.MethodPost, path: "/v1/tasks/" + seg(a.taskID) + "/started", base: a.beater.base, token: a.token,
		in: v1.StartedRequest{Attempt: a.number, WorkerID: a.workerID(), StartedAt: v1.At(c.set.clock.Now())}, out: answer}
	err = a.persist(ctx, k, &sent)
	return sent, answer, err
}

// longestPause is the longest pause between two tries of a call of the attempt. An attempt that is being completed gets no heartbeats, and
// is not in its worker's inventory: after an outage the completion must arrive before two inventories.
func (a *Attempt) longestPause() time.Duration {
	a.mu.Lock()
	defer a.mu.Unlock()
	return min(maxPause, max(firstPause, a.timeout/12))
}

// persist retries a call of the attempt until it is answered, no token is valid any more, or ctx ends.
func (a *Attempt) persist(ctx context.Context, k *call, sent *time.Time) error {
	k.tries = 1
	return a.repeat(ctx, k.operation(), sent, func() error { return a.client.do(ctx, k) })
}

func (a *Attempt) repeat(ctx context.Context, operation string, sent *time.Time, do func() error) error {
	c, until, most := a.client, a.expires, a.longestPause()
	for n := 0; ; n++ {
		now := c.set.clock.Now()
		if sent != nil {
			*sent = now
		}
		err := do()
		if !again(err) || ctx.Err() != nil {
			return err
		}
		pause := backoff(n, most, err)
		if !until.IsZero() && c.set.clock.Now().Add(pause).After(until) {
			return fmt.Errorf("lubdub: %s: abandoned, since its token has expired: %w", operation, err)
		}
		if !c.sleep(ctx, pause) {
			return err
		}
	}
}

// sleep waits; it returns false if ctx has ended, or the client is closed.
func (c *Client) sleep(ctx context.Context, d time.Duration) bool {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(c.closing, cancel)()
	return clock.Sleep(c.set.clock, d, ctx.Done())
}

// beaterFor returns the beater for an envelope's callbacks, which go to its own address first, then to the client's.
func (c *Client) beaterFor(callback string) (*beater, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if b := c.beaters[callback]; b != nil {
		return b, nil
	}
	if c.closing.Err() != nil {
		return nil, ErrClosed
	}
	base := c.base
	if callback != "" {
		own, err := newEndpoints(append([]string{callback}, c.base.urls...), c.set)
		if err != nil {
			return nil, fmt.Errorf("lubdub: the envelope's callbackBaseUrl: %w", err)
		}
		if err := own.checkSecrecy(); err != nil {
			return nil, fmt.Errorf("lubdub: the envelope's callbackBaseUrl: %w", err)
		}
		base = own
	}
	b := newBeater(c, base)
	c.beaters[callback] = b
	return b, nil
}
