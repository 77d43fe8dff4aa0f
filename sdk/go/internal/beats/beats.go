// Package beats is how a worker beats for attempts that a client tracks: what the two packages say to each other.
package beats

import (
	"context"
	"time"
)

// Holder beats for attempts by itself. It is told of each one, once that runs.
type Holder interface {
	// Hold begins to beat for an attempt.
	Hold(Attempt)
	// Release is called before an attempt's completion is sent, or when it is given up. It returns when no beat is under way that
	// names the attempt, and none will name it.
	Release(a Attempt, completes bool)
	// Settled says that the completion was answered, or that nobody asks for that any more.
	Settled(Attempt)
	// Token opens the callbacks of what is held.
	Token() string
	// Life ends when the holder has left: what is held is not its own any more, and its completions are asked for no longer.
	Life() context.Context
	// WorkerID is the worker's.
	WorkerID() string
	// Lease is how long the worker may be silent.
	Lease() time.Duration
}

// Attempt is what a holder needs of an attempt. Nothing here blocks.
type Attempt interface {
	// Name is the task's id and the attempt's number.
	Name() (taskID string, attempt int)
	// Interval is how often the attempt needs a heartbeat; 0: as often as its worker.
	Interval() time.Duration
	// AppendProgress appends the fields of its progress, each with a comma before it. They count as sent once Accepted is called
	// with what it returns.
	AppendProgress(b []byte) (out []byte, version uint64)
	// Accepted says that a beat was, which was sent at that time.
	Accepted(sent time.Time, lease time.Duration, version uint64)
	// Cancel says that its end is asked for.
	Cancel(reason string)
	// Lost says that it is not ours any more, with the code of the refusal.
	Lost(code, reason string)
	// Over reports that it is not ours any more: nothing more is sent about it, whatever its work does.
	Over() bool
	// Look ends it if its lease is over; left is how long until then, if it matters.
	Look(now time.Time) (left time.Duration, matters bool)
}
