package cli

import (
	"errors"
	"fmt"
	"net/http"

	"github.com/lubdub-io/lubdub/sdk/go/client"
)

// Exit codes of all commands.
const (
	ExitOK          = 0
	ExitFailed      = 1 // it went wrong, or what was asked for is not so
	ExitMisuse      = 2 // the command line is wrong; nothing was begun
	ExitNotFound    = 3 // there is nothing of that id
	ExitNotAllowed  = 4 // no token, one that has ended, or one of another role
	ExitUnavailable = 5 // no server answers, or it cannot reach its store
)

type (
	misuseError     struct{ error }
	reportedError   struct{ error }
	unansweredError struct{ error }
	refusedError    struct{ err *client.Error }
)

func (e misuseError) Unwrap() error     { return e.error }
func (e reportedError) Unwrap() error   { return e.error }
func (e unansweredError) Unwrap() error { return e.error }
func (e refusedError) Unwrap() error    { return e.err }

// misused marks an error as a mistake in the command line.
func misused(err error) error { return misuseError{err} }

// misusef returns a mistake in the command line.
func misusef(format string, args ...any) error { return misuseError{fmt.Errorf(format, args...)} }

// unanswered marks an error of a call that got no answer.
func unanswered(err error) error { return unansweredError{err} }

// reported marks an error that the command has printed already; only its exit code matters.
func reported(err error) error { return reportedError{err} }

// errFailed ends a command with ExitFailed when its output has said why.
var errFailed = reported(errors.New("failed"))

// IsReported reports whether an error has been printed already.
func IsReported(err error) bool { return errors.As(err, new(reportedError)) }

// refusal returns a refusal in the server's words.
func refusal(err *client.Error) error { return refusedError{err} }

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

// ExitCode is what a command that ended with an error exits with.
func ExitCode(err error) int {
	var refused *client.Error
	switch {
	case err == nil:
		return ExitOK
	case errors.As(err, new(misuseError)):
		return ExitMisuse
	case errors.As(err, &refused):
		return codeOf(refused.Status)
	case errors.As(err, new(unansweredError)):
		return ExitUnavailable
	}
	return ExitFailed
}

func codeOf(status int) int {
	switch status {
	case http.StatusBadRequest, http.StatusRequestEntityTooLarge:
		return ExitMisuse
	case http.StatusNotFound:
		return ExitNotFound
	case http.StatusUnauthorized, http.StatusForbidden:
		return ExitNotAllowed
	case http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return ExitUnavailable
	}
	return ExitFailed
}
