package store

import (
	"context"
	"sync/atomic"
	"time"
)

// giveWay has a node's bulk lane rest between two round trips, the longer the more of the time beats of attempts are under way: bulk
// calls get the share of the time that beats leave them. Without beats there is no rest. A list that another follows at once would
// else keep Redis, and the cores that it shares with the server, as busy as beats let it, and beats would wait in both queues.
type giveWay struct {
	beats atomic.Int64 // ns for which flushes of beats were under way; each counts where some are beside each other

	// What follows belongs to the lane's one flusher.
	since  time.Time     // when this window began
	before int64         // beats then
	share  float64       // of the window before that beats were under way
	owed   time.Duration // of rest, that was too short to be taken when the last round trip began
	next   time.Time     // when the rest that is owed would be over
}

const (
	shareWindow  = 20 * time.Millisecond // for which a share is measured at least
	longestRests = 4                     // round trips that a rest lasts at most, so that one in five of the time is left for bulk calls
	longestRest  = 50 * time.Millisecond // after a round trip that took long for other reasons
	// A timer of an idle process is a millisecond late: what is shorter is owed until it adds up to that.
	leastRest = time.Millisecond
)

// Beating says that a flush of beats was under way for so long.
func (n *Node) Beating(took time.Duration) { n.way.beats.Add(int64(took)) }

// await returns when the next round trip may begin, at the latest at a time, and how long that took. A nil one gives way to nobody.
func (w *giveWay) await(life context.Context, latest time.Time) time.Duration {
	if w == nil {
		return 0
	}
	start := time.Now()
	w.owed = max(0, w.next.Sub(start))
	rest := min(w.owed, latest.Sub(start))
	if rest <= 0 { // whoever has waited for so long does not give way any more
		w.owed = 0
	}
	if w.owed < leastRest {
		return 0
	}
	over := time.NewTimer(rest)
	defer over.Stop()
	select {
	case <-over.C:
	case <-life.Done(): // what waits is to have its fate soon
	}
	w.owed = 0
	return time.Since(start)
}

// restUntil is until when what waits for a call may rest: for the first quarter of the time in which it must have its answer. What
// is left is for a lane in which much waits, or whose machine is too busy.
func (s *Store) restUntil(c *Call) time.Time { return c.Until.Add(-s.Patience() * 3 / 4) }

// tripped says when a round trip began and ended.
func (w *giveWay) tripped(start, end time.Time) {
	if w == nil {
		return
	}
	if window := end.Sub(w.since); window >= shareWindow {
		beats := w.beats.Load()
		w.share = float64(beats-w.before) / float64(window)
		w.since, w.before = end, beats
	}
	w.next = end.Add(w.owed + restAfter(end.Sub(start), w.share))
}

// restAfter returns how long the lane rests after a round trip when beats are under way for a share of the time.
func restAfter(trip time.Duration, share float64) time.Duration {
	times := float64(longestRests)
	if share < 1 {
		times = min(times, share/(1-share))
	}
	return min(time.Duration(times*float64(trip)), longestRest)
}
