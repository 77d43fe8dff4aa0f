package tracker

import (
	"context"
	"errors"
	"net"
	"time"
)

// Whatever waits for Redis is answered within one and a half redis-timeouts of the arrival of its request, a claim's own
// wait aside, in whichever lane it waits and however many round trips it takes. Inside, one and a quarter are counted: the
// rest is for this process, which may be busy. What cannot be in time any more is not sent but refused at once, and so is
// all that goes to a node which is known not to answer.

// patience is how long a request may wait for Redis.
func (o *Options) patience() time.Duration { return o.RedisTimeout * 5 / 4 }

// leastTrip is how much of its time a call must have left to be sent: a round trip that is given less would often be cut
// off though Redis does what it is told.
func (s *store) leastTrip(g guarantee) time.Duration {
	if g != nil {
		return s.confirmation() + s.opts.RedisTimeout/4
	}
	return s.opts.RedisTimeout / 2
}

// confirmation is how long a flush waits for what makes its writes safe. Who comes when one that gets no confirmation has
// just begun must have enough time left at its end for another.
func (s *store) confirmation() time.Duration { return s.opts.RedisTimeout * 2 / 5 }

type arrivalKey struct{}

// ArrivedAt gives a context for the calls that one request makes, which arrived at `at`: together they wait for Redis no
// longer than one may. Without it each method counts from when it is called.
func ArrivedAt(ctx context.Context, at time.Time) context.Context {
	return context.WithValue(ctx, arrivalKey{}, at)
}

// within gives the tracker as one request uses it: bound to the moment by which that must have its answer, `more` for
// what it waits for besides Redis. What outlives the request uses the root.
func (t *Tracker) within(ctx context.Context, more time.Duration) *Tracker {
	if !t.store.until.IsZero() {
		return t // a part of a request that is bound already
	}
	at, ok := ctx.Value(arrivalKey{}).(time.Time)
	if !ok {
		at = time.Now()
	}
	return &Tracker{core: t.core, store: t.store.by(at.Add(t.opts.patience() + more))}
}

// sparing leaves the request the time for one more round trip than it gives away: for what others will go on with.
func (t *Tracker) sparing() *Tracker {
	if t.store.until.IsZero() {
		return t
	}
	return &Tracker{core: t.core, store: t.store.by(t.store.until.Add(-t.opts.RedisTimeout * 3 / 5))}
}

// tidy does what a request leaves behind before its answer, or, when there is no time left for that, after it.
func (t *Tracker) tidy(do func(*Tracker)) {
	if !t.store.isLate(nil) {
		do(t)
		return
	}
	t.background.Go(t.store.guard("what a request left behind", func() { do(t.root) }))
}

// isLate tells whether the time of the request is over for one more round trip.
func (s *store) isLate(g guarantee) bool {
	return !s.until.IsZero() && time.Until(s.until) < s.leastTrip(g)
}

// by gives the store as those use it who must have their answers by then.
func (s *store) by(until time.Time) *store { return &store{storage: s.storage, until: until} }

// deadline is that of what begins to wait now.
func (s *store) deadline() time.Time {
	until := time.Now().Add(s.opts.patience())
	if !s.until.IsZero() && s.until.Before(until) {
		return s.until
	}
	return until
}

// tripContext bounds what is sent together with all that this takes: a round trip, which the client's timeouts bound as
// well, and those after it for scripts that were not known or shards that are elsewhere. They have what the most urgent of
// the calls has left. Its end is that of the connection's reads and writes too, so nothing is read into a call after it.
func (s *store) tripContext(calls []*call) (context.Context, context.CancelFunc) {
	until := s.deadline()
	for _, c := range calls {
		if !c.until.IsZero() && c.until.Before(until) {
			until = c.until
		}
	}
	return context.WithDeadline(context.Background(), until)
}

// late is the fate of what was not sent, since its answer would not have been in time.
func (s *store) late() *Error {
	return &Error{
		Code: Overloaded, RetryAfter: time.Second,
		Message: "Redis answers too slowly for what waits for it on this replica, so this was not begun; wait as Retry-After says, then send it again",
	}
}

// silent is the fate of what was not sent, since its node does not answer.
func (s *store) silent(n *node) *Error {
	return &Error{
		Code: Unavailable, RetryAfter: time.Second, Cause: errSilent{n.client.Options().Addr},
		Message: "the store does not answer just now, so this was not begun; nothing is known to be wrong with the task: send it again",
	}
}

// refusesAll gives the fate of all that would go to a node, nil when it may.
func (s *store) refusesAll(n *node) func() *Error {
	switch {
	case s.isBroken():
		return s.bug
	case n.silent.Load():
		return func() *Error { return s.silent(n) }
	}
	return nil
}

type errSilent struct{ addr string }

func (e errSilent) Error() string {
	return "redis at " + e.addr + " did not answer within redis-timeout, and has not since"
}

// heardNothing is told how a round trip ended. A node that let one time out which had its time gets no more until it
// answers again.
func (s *store) heardNothing(n *node, g guarantee, took time.Duration, err error) {
	if !isTimeout(err) || took < s.leastTrip(g)*9/10 || !n.silent.CompareAndSwap(false, true) {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if n.life.Err() == nil {
		s.probes.Go(s.guard("the probe of a silent node", func() { s.probe(n) }))
	}
}

func isTimeout(err error) bool {
	var e net.Error
	return errors.Is(err, context.DeadlineExceeded) || errors.As(err, &e) && e.Timeout()
}

// probePause is between two probes of which the first failed at once.
const probePause = 20 * time.Millisecond

// probe asks a silent node until it answers or is not in use any more.
func (s *store) probe(n *node) {
	defer n.silent.Store(false)
	for n.life.Err() == nil {
		ctx, cancel := context.WithTimeout(n.life, s.opts.RedisTimeout)
		err := n.client.Ping(ctx).Err()
		cancel()
		if !isNetwork(err) {
			return // an answer, though it may be an error
		}
		if s.cluster != nil {
			s.remap() // its shards may have been promoted elsewhere
		}
		pause(n.life, probePause)
	}
}
