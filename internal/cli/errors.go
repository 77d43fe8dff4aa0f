package cli

import (
	"context"
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

// Misuse is an error of whoever wrote the command line.
type Misuse struct{ error }

func misuse(format string, args ...any) error { return Misuse{fmt.Errorf(format, args...)} }

func (m Misuse) Unwrap() error { return m.error }

// silent ends a command with ExitFailed when all has been said.
type silent struct{}

func (silent) Error() string { return "" }

// ExitCode is what a command that ended with an error exits with.
func ExitCode(err error) int {
	var refused *client.Error
	switch {
	case err == nil:
		return ExitOK
	case errors.As(err, new(Misuse)):
		return ExitMisuse
	case errors.As(err, &refused):
		return codeOf(refused.Status)
	case errors.As(err, new(unanswered)):
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

// unanswered is an error of a call that got no answer.
type unanswered struct{ error }

func (u unanswered) Unwrap() error { return u.error }

// explain adds to an error of the client what to do about it.
func (s *session) explain(err error) error {
	var refused *client.Error
	switch {
	case err == nil:
		return nil
	case errors.Is(err, context.Canceled):
		return errors.New("interrupted")
	case !errors.As(err, &refused):
		if client.MayRetry(err) {
			return unanswered{fmt.Errorf("%s does not answer: %w", s.where(), err)}
		}
		return err
	case refused.Status == http.StatusUnauthorized:
		return fmt.Errorf("%w\n%s", said{refused}, s.token.next())
	case refused.Status == http.StatusForbidden:
		return fmt.Errorf("%w%s", said{refused}, s.token.role())
	}
	return said{refused}
}

// said is a refusal in the server's words.
type said struct{ err *client.Error }

func (e said) Unwrap() error { return e.err }

func (e said) Error() string {
	text := e.err.Message
	if text == "" {
		text = fmt.Sprintf("%s: %d %s", e.err.Operation, e.err.Status, e.err.Code)
	}
	if e.err.Status >= http.StatusInternalServerError && e.err.RequestID != "" {
		text += " (request " + e.err.RequestID + ")"
	}
	return text
}
