package client

import (
	"errors"
	"fmt"
	"time"

	v1 "github.com/lubdub-io/lubdub/sdk/go/v1"
)

// Why the context of a tracked attempt ends: its cause, from context.Cause, is one of these; check with errors.As. After Cancelled the
// attempt is still ours and needs a completion; after the others nothing more is sent.
type (
	// Cancelled means that cancellation was requested: stop, clean up, and complete.
	Cancelled struct {
		// Reason is the reason given for the cancel.
		Reason string
	}
	// Lost means that the attempt is no longer ours.
	Lost struct {
		// State is the state of the task; empty if unknown.
		State v1.State
		// Reason is the reason, such as TERMINATED.
		Reason string
	}
	// Superseded means that a newer attempt took its place.
	Superseded struct {
		// By is the number of that attempt; 0 if unknown.
		By int
	}
	// Expired means that Lubdub ended the attempt.
	Expired struct {
		// Reason is the reason, such as HEARTBEAT_TIMEOUT.
		Reason string
	}
	// DeadlineExceeded means that the task's deadline has passed.
	DeadlineExceeded struct{}
	// LeaseEnded means that no heartbeat was accepted for the heartbeat timeout; with a Strict lease only.
	LeaseEnded struct {
		// Silent is how long that was.
		Silent time.Duration
	}
)

// finalCause is a cause after which nothing more is sent about the attempt.
type finalCause interface {
	error
	final()
}

func (Lost) final()             {}
func (Superseded) final()       {}
func (Expired) final()          {}
func (DeadlineExceeded) final() {}
func (LeaseEnded) final()       {}

func (c Cancelled) Error() string {
	if c.Reason == "" {
		return "lubdub: the task is cancelled"
	}
	return "lubdub: the task is cancelled: " + c.Reason
}

func (l Lost) Error() string {
	return fmt.Sprintf("lubdub: the attempt is not ours any more: %s %s", l.State, l.Reason)
}

func (s Superseded) Error() string {
	if s.By == 0 {
		return "lubdub: a newer attempt took this one's place"
	}
	return fmt.Sprintf("lubdub: attempt %d took this one's place", s.By)
}

func (e Expired) Error() string { return "lubdub: the attempt was ended: " + e.Reason }

func (DeadlineExceeded) Error() string { return "lubdub: the task's deadline has passed" }

func (l LeaseEnded) Error() string {
	return fmt.Sprintf("lubdub: no beat was accepted for %v, which ends the lease", l.Silent)
}

// ErrEnded is returned by a handle that is used after its end, and is the cause of its context once it is completed.
var ErrEnded = errors.New("lubdub: the attempt is completed or abandoned; do not use its handle any more")

// reasonDeadline is the reason with which the server ends attempts past their deadline.
const reasonDeadline = "DEADLINE_EXCEEDED"

// causeOf returns the cause that a refusal means; nil: it does not end the attempt.
func causeOf(code string, details *v1.Error) error {
	switch code {
	case v1.CodeAttemptMismatch:
		return Superseded{By: details.ExpectedAttempt}
	case v1.CodeTaskAlreadyTerminal:
		if details.Reason == reasonDeadline {
			return DeadlineExceeded{}
		}
		return Lost{State: details.State, Reason: details.Reason}
	case v1.CodeTaskExpired:
		if details.Reason == reasonDeadline {
			return DeadlineExceeded{}
		}
		return Expired{Reason: details.Reason}
	}
	return nil
}

// causeOfError is causeOf for the error of a call.
func causeOfError(err error) error {
	var e *Error
	if errors.As(err, &e) {
		return causeOf(string(e.Code), &e.Details)
	}
	return nil
}

// Lease is what happens to tracked work while no server answers.
type Lease uint8

const (
	// Patient lets the work continue until a server reports its end: timeouts are paused while all servers or Redis are down, and an
	// attempt that was live may still be live afterwards.
	Patient Lease = iota
	// Strict stops the work when no heartbeat was accepted for the heartbeat timeout, counted from when the last accepted one was sent. For
	// effects that must never overlap.
	Strict
)
