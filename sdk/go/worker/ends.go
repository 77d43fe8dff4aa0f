package worker

import (
	"time"

	"github.com/lubdub-io/lubdub/sdk/go/client"
)

// What a handler may return besides an output and a plain error, which is a failure that the task's retry policy decides about.

// RetryAfter is a failure after which the next attempt, if the retry policy allows one, starts after d, at most 366 days, instead of after
// the policy's backoff: for a service that says when to come back. The attempt counts as failed.
func RetryAfter(d time.Duration, err error) error {
	retryable := true
	return &client.Failure{Err: err, Retryable: &retryable, RetryAfter: &d}
}

// Snooze gives the task back to its queue for d, at most 366 days: what it waits for is not there yet. The attempt counts neither as failed
// nor as lost.
func Snooze(d time.Duration) error { return &client.SnoozeError{Delay: d} }

// Permanent is a failure that no other attempt can help.
func Permanent(err error) error { return client.Permanent(err) }

// Cancelled ends the task as CANCELLED, with a reason: its work is not wanted any more.
func Cancelled(reason string) error { return client.Cancelled{Reason: reason} }
