// Package beats is the interface between workers, which send heartbeats, and the attempts that a client tracks.
package beats

import (
	"context"
	"time"
)

// Holder sends heartbeats for attempts. It gets each attempt once it runs.
type Holder interface {
	// Hold starts heartbeats for an attempt.
	Hold(Attempt)
	// Release is called before an attempt's completion is sent, or when it is abandoned. It returns when no heartbeat in flight includes
	// the attempt, and none will.
	Release(a Attempt, completes bool)
	// Settled is called when the completion was answered or abandoned.
	Settled(Attempt)
	// Token is valid for the callbacks of the holder's attempts.
	Token() string
	// Exchanges reports whether the server takes the completions of several attempts in one request.
	Exchanges() bool
	// Life ends when the holder has deregistered: it no longer holds its attempts, and their completions are not retried.
	Life() context.Context
	// WorkerID is the id of the worker.
	WorkerID() string
	// Lease is the worker's heartbeat timeout.
	Lease() time.Duration
}

// MaxReports is the length at which a heartbeat's body takes no more progress and checkpoints; they are sent with the next.
const MaxReports = 1 << 20

// Attempt is what a holder needs of an attempt. Its methods do not block.
type Attempt interface {
	// Name is the task's id and the attempt's number.
	Name() (taskID string, attempt int)
	// Interval is how often the attempt needs a heartbeat; 0: as often as its worker.
	Interval() time.Duration
	// AppendProgress appends the fields of its progress and checkpoint, each with a comma before it. They count as sent once Accepted is
	// called with the returned version.
	AppendProgress(b []byte) (out []byte, version uint64)
	// Deliver sends the progress and checkpoint that no accepted heartbeat has sent, if there are any. It retries until ctx ends.
	Deliver(ctx context.Context) error
	// Accepted is called when a heartbeat that was sent at that time was accepted.
	Accepted(sent time.Time, lease time.Duration, version uint64)
	// Cancel is called when cancellation was requested.
	Cancel(reason string)
	// Lost is called with the code of a refusal when the attempt is no longer ours.
	Lost(code, reason string)
	// Over reports that the attempt is no longer ours: nothing more is sent about it, whatever its work does.
	Over() bool
	// Look ends it if its lease has expired; left is how long until then, if it matters.
	Look(now time.Time) (left time.Duration, matters bool)
}
