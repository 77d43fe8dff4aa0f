package store

import (
	"context"
	"errors"
	"math/rand/v2"
	"net"
	"sync/atomic"
	"time"

	"github.com/lubdub-io/lubdub/tracker/model"
)

// A request that waits for Redis gets its response within one and a half redis-timeouts of its arrival, plus the wait that it asks
// for, in any lane and with any number of round trips. Internally one and a quarter are used: the rest is for this process, which may be
// busy. A call that cannot finish in time is refused at once and not sent, and so is every call to a node that is known not to respond.

type deadlines struct{ timeout time.Duration } // deadlines computes until when requests wait for Redis; timeout is that of one round trip.

// Timeout returns how long one round trip to Redis may take.
func (d deadlines) Timeout() time.Duration { return d.timeout }

// Patience returns how long a request may wait for Redis.
func (d deadlines) Patience() time.Duration { return d.timeout * 5 / 4 }

// LeastTrip returns how much time a call must have left to be sent. With less, a round trip would often be cut off although Redis
// executes it.
func (d deadlines) LeastTrip(g guarantee) time.Duration {
	if g != nil {
		return d.confirmation() + d.timeout/4
	}
	return d.timeout / 2
}

// confirmation returns how long a flush waits for the confirmation that its writes are safe. A call that arrives just after an
// unconfirmed flush has begun must have enough time left afterwards for its own.
func (d deadlines) confirmation() time.Duration { return d.timeout * 2 / 5 }

type arrivalKey struct{}

// ArrivedAt returns a context for the calls of one request that arrived at `at`: together they wait for Redis as long as one may. Without
// it each method counts from its own call.
func ArrivedAt(ctx context.Context, at time.Time) context.Context {
	return noting(context.WithValue(ctx, arrivalKey{}, at))
}

type changedKey struct{}

// noting returns a context that records whether its request has changed anything, or may have. From then on no error may state that the
// request was not begun.
func noting(ctx context.Context) context.Context {
	if changed(ctx) != nil {
		return ctx
	}
	return context.WithValue(ctx, changedKey{}, new(atomic.Bool))
}

// changed returns the record that noting has added, or nil.
func changed(ctx context.Context) *atomic.Bool {
	b, _ := ctx.Value(changedKey{}).(*atomic.Bool)
	return b
}

type untilKey struct{}

// Until returns when the request of ctx must have its response. Zero: each call counts from its own start.
func Until(ctx context.Context) time.Time {
	at, _ := ctx.Value(untilKey{}).(time.Time)
	return at
}

// Within sets when the request of ctx must have its response: a request's patience after its arrival, plus `more` for what else it waits
// for. A context that has a deadline already keeps it.
func (d deadlines) Within(ctx context.Context, more time.Duration) context.Context {
	if !Until(ctx).IsZero() {
		return ctx
	}
	at, ok := ctx.Value(arrivalKey{}).(time.Time)
	if !ok {
		at = time.Now()
	}
	return By(noting(ctx), at.Add(d.Patience()+more))
}

// By returns a context whose calls must have their results by `then`.
func By(ctx context.Context, then time.Time) context.Context {
	return context.WithValue(ctx, untilKey{}, then)
}

// Sparing returns a context with the time of one round trip less than the request has. That time is reserved for calls that others depend
// on.
func (d deadlines) Sparing(ctx context.Context) context.Context {
	if Until(ctx).IsZero() {
		return ctx
	}
	return By(ctx, Until(ctx).Add(-d.timeout*3/5))
}

// Tidy runs the clean-up of a request before its response, or after it in the background when no time is left.
func (s *Store) Tidy(ctx context.Context, do func(context.Context)) {
	if !s.IsLate(ctx, nil) {
		do(ctx)
		return
	}
	s.Go("what a request left behind", func() { do(context.Background()) })
}

// IsLate reports whether the request has no time left for one more round trip.
func (d deadlines) IsLate(ctx context.Context, g guarantee) bool {
	then := Until(ctx)
	return !then.IsZero() && time.Until(then) < d.LeastTrip(g)
}

// Deadline returns the deadline of a call that begins to wait now.
func (d deadlines) Deadline(ctx context.Context) time.Time {
	latest := time.Now().Add(d.Patience())
	if then := Until(ctx); !then.IsZero() && then.Before(latest) {
		return then
	}
	return latest
}

// tripContext returns a context that limits a round trip and those that follow it, for scripts that had to be loaded or shards that have
// moved. Its deadline is that of the most urgent call. It also ends the connection's reads and writes, so nothing is read into a call
// afterwards.
func (d deadlines) tripContext(ctx context.Context, calls []*Call) (context.Context, context.CancelFunc) {
	latest := d.Deadline(ctx)
	for _, c := range calls {
		if !c.Until.IsZero() && c.Until.Before(latest) {
			latest = c.Until
		}
	}
	return context.WithDeadline(context.Background(), latest)
}

// TooLateError returns the error of a call that was not sent because its result would have come too late.
func (d deadlines) TooLateError() *model.Error {
	return &model.Error{
		Code: model.Overloaded, RetryAfter: time.Second,
		Message: "Redis is too slow for the requests that wait on this replica, so this one was not started and has changed nothing; " +
			"repeat it after the time in Retry-After",
	}
}

// unconfirmed returns the error of a call that was not sent, for a request that has changed something before, or may have.
func unconfirmed(op string) *model.Error {
	return &model.Error{
		Code: model.Unavailable, Op: op, RetryAfter: time.Second,
		Message: "Redis is responding too slowly: a part of this may have been applied, the rest was not. It is safe to retry",
	}
}

func isTimeout(err error) bool {
	var e net.Error
	return errors.Is(err, context.DeadlineExceeded) || errors.As(err, &e) && e.Timeout()
}

// Pause waits for d. It returns false when ctx ended first.
func Pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}

// Jittered returns between half of d and one and a half of it, so that many callers do not act at the same moment.
func Jittered(d time.Duration) time.Duration { return d/2 + rand.N(d) }
