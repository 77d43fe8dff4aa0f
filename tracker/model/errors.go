package model

import (
	"errors"
	"fmt"
	"time"
)

// Code is the kind of an Error; the API maps it to a status in one table.
type Code string

const (
	Invalid             Code = "invalid_request"       // invalid input; nothing was changed
	NotFound            Code = "task_not_found"        // no such task in this scope
	RunNotFound         Code = "run_not_found"         // no such run in this scope
	Exists              Code = "task_exists"           // a task with this ID exists
	IdempotencyMismatch Code = "idempotency_mismatch"  // the key was used with a different body
	AttemptMismatch     Code = "attempt_mismatch"      // Expected and Received are set
	AlreadyTerminal     Code = "task_already_terminal" // State is set
	NoQueue             Code = "task_without_queue"    // a pushed task cannot be snoozed
	Expired             Code = "task_expired"          // Lubdub ended the attempt; Reason is set
	Overloaded          Code = "overloaded"            // a limit is reached; RetryAfter is set
	Unavailable         Code = "store_unavailable"     // Redis did not respond, or rejected the request; never a verdict on a task
)

// Error is a refusal: a code, a message about what happened and what to do, and the operation and cause for the log. Cause is never shown
// to a client.
type Error struct {
	Code    Code
	Message string
	Op      string

	Expected, Received int
	State              State
	Reason             Reason
	RetryAfter         time.Duration
	Worker, Machine    string // the hold of which of the two refuses a registration
	TooMany            bool   // with Overloaded: the limit is the tenant's, not this replica's

	Cause error
}

func (e *Error) Error() string {
	s := fmt.Sprintf("%s: %s: %s", e.Op, e.Code, e.Message)
	if e.Cause != nil {
		s += ": " + e.Cause.Error()
	}
	return s
}

func (e *Error) Unwrap() error { return e.Cause }

// CodeOf returns the code of a tracker error, Unavailable for any other error, and "" for nil.
func CodeOf(err error) Code {
	if err == nil {
		return ""
	}
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Code
	}
	return Unavailable
}
