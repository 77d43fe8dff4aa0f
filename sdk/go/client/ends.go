package client

import (
	"errors"
	"fmt"
	"time"

	v1 "github.com/lubdub-io/lubdub/sdk/go/v1"
)

// Why the context of a tracked attempt ends: its cause, as context.Cause returns it, is one of these; find out with errors.As.
// After Cancelled the attempt is still ours and wants its completion; after each of the others nothing more is sent.
type (
	// Cancelled says that the task's end was asked for: stop, clean up, and complete.
	Cancelled struct {
		// Reason is what whoever cancelled said.
		Reason string
	}
	// Lost says that the attempt is not ours any more.
	Lost struct {
		// State is what became of the task; empty where that is not known.
		State v1.State
		// Reason is why, such as TERMINATED.
		Reason string
	}
	// Superseded says that a newer attempt took its place.
	Superseded struct {
		// By is the number of that attempt; 0 where that is not known.
		By int
	}
	// Expired says that Lubdub has ended the attempt.
	Expired struct {
		// Reason is why, such as HEARTBEAT_TIMEOUT.
		Reason string
	}
	// DeadlineExceeded says that the task's deadline has passed.
	DeadlineExceeded struct{}
	// LeaseEnded says that no beat was accepted for as long as the attempt may be silent; with a Strict lease only.
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

// ErrEnded is what a handle says that is used after its end, and the cause of its context once it is completed.
var ErrEnded = errors.New("lubdub: the attempt is completed or given up; make no further use of its handle")

// reasonDeadline is the reason with which the server ends attempts past their deadline.
const reasonDeadline = "DEADLINE_EXCEEDED"

// causeOf makes the cause of what a refusal says; nil: it does not end the attempt.
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

// causeOfError is causeOf for the answer to a call.
func causeOfError(err error) error {
	var e *Error
	if errors.As(err, &e) {
		return causeOf(string(e.Code), &e.Details)
	}
	return nil
}

// Lease says what becomes of tracked work while no server answers.
type Lease uint8

const (
	// Patient lets the work go on until a server says that it is over: while all servers or Redis are away their clock may stand
	// still, and an attempt that was live may be live when they come back.
	Patient Lease = iota
	// Strict stops the work when no beat was accepted for as long as the attempt may be silent, counted from when the last one
	// that was accepted left. For effects that must never overlap.
	Strict
)

// Metrics is told what happens; adapt it to what you count with. Its methods are called from many goroutines and must not block.
type Metrics interface {
	// Beat is a request with beats: ok, refused or unanswered; for how many attempts, and how long it took.
	Beat(result string, attempts int, took time.Duration)
	// Refused is a beat or completion that was refused with a code.
	Refused(code string)
	// LeaseLeft is, with each accepted beat, what was left of the lease then: 1 is all, 0 nothing.
	LeaseLeft(ratio float64)
	// Completed is a completion that was answered.
	Completed(outcome v1.Outcome)
	// Claimed is an answer to a claim: ok, refused or unanswered; with how many tasks.
	Claimed(result string, tasks int)
	// Running is how many attempts a worker works on now.
	Running(n int)
}

type noMetrics struct{}

func (noMetrics) Beat(string, int, time.Duration) {}
func (noMetrics) Refused(string)                  {}
func (noMetrics) LeaseLeft(float64)               {}
func (noMetrics) Completed(v1.Outcome)            {}
func (noMetrics) Claimed(string, int)             {}
func (noMetrics) Running(int)                     {}
