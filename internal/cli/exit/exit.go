// Package exit has the exit codes of commands, and the errors that lead to them.
package exit

import (
	"errors"
	"fmt"
	"net/http"

	"github.com/lubdub-io/lubdub/sdk/go/client"
)

// Exit codes of all commands.
const (
	OK          = 0
	Failed      = 1 // an error, or the requested condition is false
	Misuse      = 2 // the command line is wrong; nothing was started
	NotFound    = 3 // nothing has that id
	NotAllowed  = 4 // no token, an expired one, or one with an insufficient role
	Unavailable = 5 // no server answers, or it cannot reach its store
)

type (
	misuseError     struct{ error }
	reportedError   struct{ error }
	unansweredError struct{ error }
	refusedError    struct{ err *client.Error }
)

func (e misuseError) Unwrap() error { return e.error }

func (e reportedError) Unwrap() error { return e.error }

func (e unansweredError) Unwrap() error { return e.error }

func (e refusedError) Unwrap() error { return e.err }

// Misused marks an error as a mistake in the command line.
func Misused(err error) error { return misuseError{err} }

// Misusef returns a mistake in the command line.
func Misusef(format string, args ...any) error { return misuseError{fmt.Errorf(format, args...)} }

// Unanswered marks an error of a call that got no answer.
func Unanswered(err error) error { return unansweredError{err} }

// Reported marks an error that the command has printed already; only its exit code matters.
func Reported(err error) error { return reportedError{err} }

// ErrFailed ends a command with Failed when its output has shown why.
var ErrFailed = Reported(errors.New("failed"))

// ErrUnavailable ends a command with Unavailable when its output has shown why.
var ErrUnavailable = Reported(Unanswered(errors.New("unavailable")))

// IsReported reports whether an error has been printed already.
func IsReported(err error) bool { return errors.As(err, new(reportedError)) }

// Refusal returns a refusal in the server's words.
func Refusal(err *client.Error) error { return refusedError{err} }

func (e refusedError) Error() string {
	text := e.err.Message
	if text == "" {
		text = fmt.Sprintf("%s: %d %s", e.err.Operation, e.err.Status, e.err.Code)
	}
	if e.err.Status >= http.StatusInternalServerError && e.err.RequestID != "" {
		text += " (request " + e.err.RequestID + ")"
	}
	return text
}

// Code is what a command that ended with an error exits with.
func Code(err error) int {
	var refused *client.Error
	switch {
	case err == nil:
		return OK
	case errors.As(err, new(misuseError)):
		return Misuse
	case errors.As(err, &refused):
		return codeOf(refused.Status)
	case errors.As(err, new(unansweredError)):
		return Unavailable
	}
	return Failed
}

func codeOf(status int) int {
	switch status {
	case http.StatusBadRequest, http.StatusRequestEntityTooLarge:
		return Misuse
	case http.StatusNotFound:
		return NotFound
	case http.StatusUnauthorized, http.StatusForbidden:
		return NotAllowed
	case http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return Unavailable
	}
	return Failed
}
