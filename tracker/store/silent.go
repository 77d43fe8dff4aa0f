package store

import (
	"context"
	"time"

	"github.com/lubdub-io/lubdub/tracker/model"
)

// silent returns the error of a call that was not sent because its node does not respond.
func (s *runner) silent(n *Node) *model.Error {
	return &model.Error{
		Code: model.Unavailable, RetryAfter: time.Second, Cause: errSilent{n.client.Options().Addr},
		Message: "Redis is not responding, so nothing was changed. Try again",
	}
}

// refusesAll returns a function for the error of every call to a node, or nil when calls may be sent.
func (s *runner) refusesAll(n *Node) func() *model.Error {
	switch {
	case s.breakdown.isBroken():
		return s.breakdown.Bug
	case n.silent.Load():
		return func() *model.Error { return s.silent(n) }
	}
	return nil
}

type errSilent struct{ addr string }

func (e errSilent) Error() string {
	return "redis at " + e.addr + " did not answer within redis-timeout, and has not since"
}

// noteSilence marks a node as silent when a round trip with enough time has timed out. The node gets no more calls until it answers a
// probe.
func (s *topology) noteSilence(n *Node, g guarantee, took time.Duration, err error) {
	if !isTimeout(err) || took < s.deadlines.LeastTrip(g)*9/10 || !n.silent.CompareAndSwap(false, true) {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if n.life.Err() == nil {
		s.probes.Go(s.breakdown.Guard("the probe of a silent node", func() { s.probe(n) }))
	}
}

// probePause is the pause between two probes when the first failed at once.
const probePause = 20 * time.Millisecond

// probe pings a silent node until it answers or is retired.
func (s *topology) probe(n *Node) {
	s.silentNow.Inc()
	defer func() {
		n.silent.Store(false)
		s.silentNow.Dec()
	}()
	for n.life.Err() == nil {
		ctx, cancel := context.WithTimeout(n.life, s.deadlines.timeout)
		err := n.client.Ping(ctx).Err()
		cancel()
		if !IsNetwork(err) {
			return // any reply will do, even an error
		}
		if s.servers.cluster != nil {
			s.remap() // its shards may have been promoted elsewhere
		}
		Pause(n.life, probePause)
	}
}
