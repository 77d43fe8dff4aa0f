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

// Whatever waits for Redis is answered within one and a half redis-timeouts of the arrival of its request, a claim's own
// wait aside, in whichever lane it waits and however many round trips it takes. Inside, one and a quarter are counted: the
// rest is for this process, which may be busy. What cannot be in time any more is not sent but refused at once, and so is
// all that goes to a node which is known not to answer.

// deadlines computes until when requests wait for Redis.
type deadlines struct{ timeout time.Duration } // of one round trip

// Timeout is what one round trip to Redis may take.
func (d deadlines) Timeout() time.Duration { return d.timeout }

// Patience is how long a request may wait for Redis.
func (d deadlines) Patience() time.Duration { return d.timeout * 5 / 4 }

// LeastTrip is how much of its time a call must have left to be sent: a round trip that is given less would often be cut
// off though Redis does what it is told.
func (d deadlines) LeastTrip(g guarantee) time.Duration {
	if g != nil {
		return d.confirmation() + d.timeout/4
	}
	return d.timeout / 2
}

// confirmation is how long a flush waits for what makes its writes safe. Whoever comes just after one that gets no confirmation
// has begun must have enough time left at its end for another.
func (d deadlines) confirmation() time.Duration { return d.timeout * 2 / 5 }

type arrivalKey struct{}

// ArrivedAt returns a context for the calls of one request, which arrived at `at`: together they wait for Redis no longer than
// one may. Without it each method counts from when it is called.
func ArrivedAt(ctx context.Context, at time.Time) context.Context {
	return noting(context.WithValue(ctx, arrivalKey{}, at))
}

type changedKey struct{}

// noting has ctx note whether its request has changed anything, or may have: from then on nothing says that it was not begun.
func noting(ctx context.Context) context.Context {
	if changed(ctx) != nil {
		return ctx
	}
	return context.WithValue(ctx, changedKey{}, new(atomic.Bool))
}

// changed is what noting has put there; nil: nothing.
func changed(ctx context.Context) *atomic.Bool {
	b, _ := ctx.Value(changedKey{}).(*atomic.Bool)
	return b
}

type untilKey struct{}

// Until returns when the request that ctx belongs to must have its answer; zero: each call counts from when it is made.
func Until(ctx context.Context) time.Time {
	at, _ := ctx.Value(untilKey{}).(time.Time)
	return at
}

// Within binds ctx to the moment by which its request must have its answer, plus `more` for what it waits for besides Redis. A
// part of a request that is already bound keeps its moment.
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

// By returns ctx for what must have its answers by then.
func By(ctx context.Context, then time.Time) context.Context {
	return context.WithValue(ctx, untilKey{}, then)
}

// Sparing returns a context with one round trip less time than the request has, which is kept for what others depend on.
func (d deadlines) Sparing(ctx context.Context) context.Context {
	if Until(ctx).IsZero() {
		return ctx
	}
	return By(ctx, Until(ctx).Add(-d.timeout*3/5))
}

// Tidy does what a request leaves behind: before its answer, or after it when there is no time left for that.
func (s *Store) Tidy(ctx context.Context, do func(context.Context)) {
	if !s.IsLate(ctx, nil) {
		do(ctx)
		return
	}
	s.Beside("what a request left behind", func() { do(context.Background()) })
}

// IsLate reports whether the request has no time left for one more round trip.
func (d deadlines) IsLate(ctx context.Context, g guarantee) bool {
	then := Until(ctx)
	return !then.IsZero() && time.Until(then) < d.LeastTrip(g)
}

// Deadline returns that of what begins to wait now.
func (d deadlines) Deadline(ctx context.Context) time.Time {
	latest := time.Now().Add(d.Patience())
	if then := Until(ctx); !then.IsZero() && then.Before(latest) {
		return then
	}
	return latest
}

// tripContext bounds all that a round trip takes: the trip itself, which the client's timeouts bound as well, and those after it
// for scripts that were not known or shards that are elsewhere. They have what the most urgent of the calls has left. Its end is
// that of the connection's reads and writes too, so nothing is read into a call after it.
func (d deadlines) tripContext(ctx context.Context, calls []*Call) (context.Context, context.CancelFunc) {
	latest := d.Deadline(ctx)
	for _, c := range calls {
		if !c.Until.IsZero() && c.Until.Before(latest) {
			latest = c.Until
		}
	}
	return context.WithDeadline(context.Background(), latest)
}

// Late is the error of what was not sent, since its answer would not have been in time.
func (d deadlines) Late() *model.Error {
	return &model.Error{
		Code: model.Overloaded, RetryAfter: time.Second,
		Message: "Redis answers too slowly for what waits for it on this replica, so this was not begun; " +
			"wait as Retry-After says, then send it again",
	}
}

// unconfirmed is the error of what was not sent for a request that has changed something before, or may have.
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

// Pause waits for d, and reports whether that was over before ctx was.
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

// Jittered returns between half of d and one and a half of it, so that what many do does not happen at once.
func Jittered(d time.Duration) time.Duration { return d/2 + rand.N(d) }
