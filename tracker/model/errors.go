package model

import (
	"errors"
	"fmt"
	"time"
)

// Code says what kind of refusal an Error is; the API turns it into a status by one table.
type Code string

const (
	Invalid             Code = "invalid_request"       // bad input; nothing was changed
	NotFound            Code = "task_not_found"        // no such task in this scope
	RunNotFound         Code = "run_not_found"         // no such run in this scope
	Exists              Code = "task_exists"           // a task with this id exists
	IdempotencyMismatch Code = "idempotency_mismatch"  // the key was used with another body
	AttemptMismatch     Code = "attempt_mismatch"      // Expected and Received are set
	AlreadyTerminal     Code = "task_already_terminal" // State is set
	Expired             Code = "task_expired"          // Lubdub ended the attempt; Reason is set
	Overloaded          Code = "overloaded"            // a bound is reached; RetryAfter is set
	Unavailable         Code = "store_unavailable"     // Redis did not answer, or refused; never a verdict about a task
)

// Error is a refusal: a code, a sentence that says what happened and what to do, and the operation and cause
// for the log. Cause is never shown to a client.
type Error struct {
	Code    Code
	Message string
	Op      string

	Expected, Received int
	State              State
	Reason             Reason
	RetryAfter         time.Duration
	Worker, Machine    string // by whose hold a registration is refused: one of them
	TooMany            bool   // with Overloaded: the caller's tenant has as much as it may, not this replica

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

// CodeOf returns the code of a tracker error, or Unavailable for any other non-nil error.
func CodeOf(err error) Code {
	if err == nil {
		return ""
	}
	var e *Error
	if errors.As(err, &e) {
		return e.Code
	}
	return Unavailable
}
