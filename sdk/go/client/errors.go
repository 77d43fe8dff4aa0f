package client

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	v1 "github.com/lubdub-io/lubdub/sdk/go/v1"
)

// Error is a refusal: an answer other than 2xx. Check it with errors.Is and one of the codes below, and get its fields with errors.As. It
// never contains a token.
type Error struct {
	// Status is the HTTP status.
	Status int
	// Code is the error code, such as task_expired; empty if the answer is not Lubdub's, as with a proxy.
	Code Code
	// Message describes what happened and what to do about it.
	Message string
	// Details are the other fields of the answer, those that apply.
	Details v1.Error
	// Body is the whole answer; nil if it is not JSON.
	Body json.RawMessage
	// RequestID identifies the call in the server's log.
	RequestID string
	// RetryAfter is how long the server requests to wait; 0: not given.
	RetryAfter time.Duration
	// Operation is the method and path of the call.
	Operation string
}

// Error returns operation, status, code, message and request id.
func (e *Error) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "lubdub: %s: %d %s", e.Operation, e.Status, e.Code)
	if e.Message != "" {
		b.WriteString(": " + e.Message)
	}
	if e.RequestID != "" {
		b.WriteString(" (request " + e.RequestID + ")")
	}
	return b.String()
}

// Is reports whether target is this error's code.
func (e *Error) Is(target error) bool {
	code, ok := target.(Code)
	return ok && e.Code == code
}

// Code is the error code of a refusal, and an error itself, for errors.Is.
type Code string

// Error returns the code.
func (c Code) Error() string { return string(c) }

// The error codes of the API.
const (
	ErrInvalidRequest      Code = v1.CodeInvalidRequest
	ErrInvalidID           Code = v1.CodeInvalidID
	ErrInvalidCursor       Code = v1.CodeInvalidCursor
	ErrInvalidJSON         Code = v1.CodeInvalidJSON
	ErrUnknownField        Code = v1.CodeUnknownField
	ErrUnauthorized        Code = v1.CodeUnauthorized
	ErrForbidden           Code = v1.CodeForbidden
	ErrNotFound            Code = v1.CodeNotFound
	ErrTaskNotFound        Code = v1.CodeTaskNotFound
	ErrRunNotFound         Code = v1.CodeRunNotFound
	ErrWorkerNotFound      Code = v1.CodeWorkerNotFound
	ErrMachineNotFound     Code = v1.CodeMachineNotFound
	ErrScheduleNotFound    Code = v1.CodeScheduleNotFound
	ErrScheduleExists      Code = v1.CodeScheduleExists
	ErrNoWorkersMatch      Code = v1.CodeNoWorkersMatch
	ErrWebhookNotFound     Code = v1.CodeWebhookNotFound
	ErrDeliveryNotFound    Code = v1.CodeDeliveryNotFound
	ErrMethodNotAllowed    Code = v1.CodeMethodNotAllowed
	ErrRequestTimeout      Code = v1.CodeRequestTimeout
	ErrTaskExists          Code = v1.CodeTaskExists
	ErrIdempotencyMismatch Code = v1.CodeIdempotencyMismatch
	ErrAttemptMismatch     Code = v1.CodeAttemptMismatch
	ErrTaskAlreadyTerminal Code = v1.CodeTaskAlreadyTerminal
	ErrTaskWithoutQueue    Code = v1.CodeTaskWithoutQueue
	ErrWorkerHeld          Code = v1.CodeWorkerHeld
	ErrWorkerDraining      Code = v1.CodeWorkerDraining
	ErrNoFreshWorkers      Code = v1.CodeNoFreshWorkers
	ErrNoMatchingWorkers   Code = v1.CodeNoMatchingWorkers
	ErrNoCapacity          Code = v1.CodeNoCapacity
	ErrWebhookExists       Code = v1.CodeWebhookExists
	ErrWebhookManaged      Code = v1.CodeWebhookManaged
	ErrWebhookDisabled     Code = v1.CodeWebhookDisabled
	ErrWorkerOffline       Code = v1.CodeWorkerOffline
	ErrTaskExpired         Code = v1.CodeTaskExpired
	ErrBodyTooLarge        Code = v1.CodeBodyTooLarge
	ErrUnsupportedMedia    Code = v1.CodeUnsupportedMedia
	ErrMisdirected         Code = v1.CodeMisdirected
	ErrHeadersTooLarge     Code = v1.CodeHeadersTooLarge
	ErrInternal            Code = v1.CodeInternal
	ErrOverloaded          Code = v1.CodeOverloaded
	ErrStoreUnavailable    Code = v1.CodeStoreUnavailable
	ErrIssuerUnavailable   Code = v1.CodeIssuerUnavailable
)

// Errors of the client itself.
var (
	// ErrClosed is the error of calls on a closed client, and the cause of contexts that it ended.
	ErrClosed = errors.New("lubdub: the client is closed")
	// ErrAnswer means that an answer did not follow the API; the call is not retried.
	ErrAnswer = errors.New("lubdub: the answer does not follow the API")
)

// refusal builds the error for an answer other than 2xx.
func refusal(operation string, res *http.Response, body []byte) *Error {
	e := &Error{
		Status: res.StatusCode, Operation: operation, RequestID: res.Header.Get("X-Request-Id"),
		RetryAfter: retryAfter(res.Header.Get("Retry-After")),
	}
	if json.Unmarshal(body, &e.Details) == nil { // a proxy's page is not an error of Lubdub, and its status is enough
		e.Code, e.Message, e.Body = Code(e.Details.Error), e.Details.Message, body
	}
	if e.Code == "" {
		e.Message = http.StatusText(res.StatusCode)
		if at := res.Header.Get("Location"); at != "" {
			e.Message += ": redirects are not followed, since a token is for the host that it was given for; use the address itself"
		}
	}
	return e
}

// retryAfter parses Retry-After. Lubdub sends seconds; a proxy may send a date, which counts as not given.
func retryAfter(header string) time.Duration {
	seconds, err := strconv.Atoi(header)
	if err != nil || seconds < 0 {
		return 0
	}
	return time.Duration(min(seconds, maxRetryAfter)) * time.Second
}

// maxRetryAfter is the longest Retry-After that is honoured, in seconds.
const maxRetryAfter = 3600

// MayRetry reports whether the call may succeed later: there was no answer, or the server requests a retry.
func MayRetry(err error) bool { return again(err) }

// again reports whether the same call may succeed later: there was no answer, or the server requests a retry.
func again(err error) bool {
	var e *Error
	var over finalCause
	if errors.As(err, &over) || errors.Is(err, ErrEnded) {
		return false
	}
	if !errors.As(err, &e) {
		return err != nil && !errors.Is(err, ErrAnswer) && !errors.Is(err, ErrClosed) && !errors.Is(err, errNotSent)
	}
	switch e.Status {
	case http.StatusTooManyRequests, http.StatusRequestTimeout, http.StatusBadGateway, http.StatusServiceUnavailable,
		http.StatusGatewayTimeout:
		return true
	}
	return false
}

// RetryAfter returns how long the server requests to wait; 0: not given.
func RetryAfter(err error) time.Duration {
	var e *Error
	if errors.As(err, &e) {
		return e.RetryAfter
	}
	return 0
}
