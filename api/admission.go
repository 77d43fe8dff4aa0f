package api

import (
	"fmt"
	"sync/atomic"
	"time"
)

// admission bounds how many requests of the control plane are under way at a time: creations, lists, claims and the
// like. What does not fit is refused before its token is verified or its body is read as JSON, for little more than
// an empty answer costs. Heartbeats and the other callbacks of workers are not counted: in an overload everything else
// gives way to them.
type admission struct {
	limit    int64
	underWay atomic.Int64
	refused  func()
}

// enter lets one in, or returns the refusal when there is no room. Who was let in must leave.
func (a *admission) enter() *refusal {
	if a.underWay.Add(1) <= a.limit {
		return nil
	}
	a.underWay.Add(-1)
	a.refused()
	return overloaded(fmt.Sprintf("%d requests of the control plane are under way on this replica, which is its limit (max-control-requests), "+
		"so that heartbeats keep their room; wait as Retry-After says, then retry, or add replicas", a.limit))
}

func (a *admission) leave() { a.underWay.Add(-1) }

// yields reports whether a route gives way to heartbeats. A claim judges itself: one that waits for work takes no time.
func (r *route) yields() bool {
	return r.access == forControl || r.access == forWorker && r.op != opWorkerHeartbeat && r.op != opClaim
}

// shortWait is less than what a claim must be ready to wait to be no burden.
const shortWait = time.Second
