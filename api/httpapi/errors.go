package httpapi

import (
	"context"
	"errors"
	"log/slog"
	"strconv"
	"strings"
	"time"

	"github.com/valyala/fasthttp"

	v1 "github.com/lubdub-io/lubdub/sdk/go/v1"
	"github.com/lubdub-io/lubdub/tracker/events"
	"github.com/lubdub-io/lubdub/tracker/model"
	"github.com/lubdub-io/lubdub/tracker/queues"
	"github.com/lubdub-io/lubdub/tracker/schedules"
	"github.com/lubdub-io/lubdub/tracker/webhooks"
	"github.com/lubdub-io/lubdub/tracker/workers"
)

// Refusal is an answer other than success. It is an error, so that a handler can return it.
type Refusal struct {
	Status     int
	Body       v1.Error
	RetryAfter time.Duration // 0: no Retry-After header
	allow      string        // for 405
	close      bool          // close the connection: the bytes that follow cannot be trusted
	op         string        // for the log
	cause      error         // for the log, never sent
}

func (r *Refusal) Error() string { return r.Body.Error + ": " + r.Body.Message }

func (r *Refusal) Unwrap() error { return r.cause }

// NewRefusal returns a refusal with a status, a code of package v1 and a message.
func NewRefusal(status int, code, message string) *Refusal {
	return &Refusal{Status: status, Body: v1.Error{Error: code, Message: message}}
}

// InvalidField refuses the value of a field, header or parameter. The message must begin with its name.
func InvalidField(field, message string) *Refusal {
	r := NewRefusal(fasthttp.StatusBadRequest, v1.CodeInvalidRequest, message)
	r.Body.Field = field
	return r
}

// InvalidID refuses a field that is not a valid id.
func InvalidID(field string) *Refusal {
	r := NewRefusal(fasthttp.StatusBadRequest, v1.CodeInvalidID,
		field+" is not a valid id; use 1 to 128 letters, digits, dots, underscores and hyphens, beginning with a letter or digit")
	r.Body.Field = field
	return r
}

// ErrUnauthorized is the same for every 401, so that it gives no hint of the cause.
var ErrUnauthorized = NewRefusal(fasthttp.StatusUnauthorized, v1.CodeUnauthorized,
	"The bearer token is missing, invalid or expired; send one valid token in the Authorization header")

// Forbidden refuses what the token does not allow.
func Forbidden(message string) *Refusal {
	return NewRefusal(fasthttp.StatusForbidden, v1.CodeForbidden, message)
}

// Overloaded is the refusal when a limit of this replica is reached.
func Overloaded(message string) *Refusal {
	r := NewRefusal(fasthttp.StatusServiceUnavailable, v1.CodeOverloaded, message)
	r.RetryAfter = DefaultRetryAfter
	return r
}

// Closing makes a refusal close its connection.
func Closing(r *Refusal) *Refusal {
	r.close = true
	return r
}

// ErrStopping answers a client that has sent part of a request when the server stops.
var ErrStopping = Closing(Overloaded("The server is stopping, and the request had not arrived whole; send it again, on a new connection"))

// statusOf maps the domain's codes to HTTP statuses.
var statusOf = map[model.Code]int{
	model.Invalid:             fasthttp.StatusBadRequest,
	model.InvalidID:           fasthttp.StatusBadRequest,
	events.InvalidCursor:      fasthttp.StatusBadRequest,
	model.NotFound:            fasthttp.StatusNotFound,
	model.RunNotFound:         fasthttp.StatusNotFound,
	model.Exists:              fasthttp.StatusConflict,
	model.IdempotencyMismatch: fasthttp.StatusConflict,
	model.AttemptMismatch:     fasthttp.StatusConflict,
	model.AlreadyTerminal:     fasthttp.StatusConflict,
	model.NoQueue:             fasthttp.StatusConflict,
	model.Expired:             fasthttp.StatusGone,
	workers.WorkerNotFound:    fasthttp.StatusNotFound,
	workers.MachineNotFound:   fasthttp.StatusNotFound,
	workers.NoWorkersMatch:    fasthttp.StatusNotFound,
	queues.Forbidden:          fasthttp.StatusForbidden,
	workers.WorkerDraining:    fasthttp.StatusConflict,
	workers.WorkerOffline:     fasthttp.StatusGone,
	workers.WorkerHeld:        fasthttp.StatusConflict,
	model.NoFreshWorkers:      fasthttp.StatusConflict,
	model.NoMatchingWorkers:   fasthttp.StatusConflict,
	model.NoCapacity:          fasthttp.StatusConflict,
	queues.QueueNotFound:      fasthttp.StatusNotFound,
	schedules.NotFound:        fasthttp.StatusNotFound,
	schedules.Exists:          fasthttp.StatusConflict,
	webhooks.NotFound:         fasthttp.StatusNotFound,
	webhooks.DeliveryNotFound: fasthttp.StatusNotFound,
	webhooks.Exists:           fasthttp.StatusConflict,
	webhooks.Managed:          fasthttp.StatusConflict,
	webhooks.Disabled:         fasthttp.StatusConflict,
	model.Overloaded:          fasthttp.StatusServiceUnavailable,
	model.Unavailable:         fasthttp.StatusServiceUnavailable,
}

// defaultMessage is for errors of the domain without a message.
var defaultMessage = map[model.Code]string{
	model.Invalid: "The request is not valid",
	model.NotFound: "There is no such task in this scope; check the id, tenantId and workspaceId. Finished tasks are forgotten " +
		"after their retention",
	model.RunNotFound:         "There is no such run in this scope; check the id, tenantId and workspaceId",
	model.Exists:              "A task with this id exists; choose another id, or use Idempotency-Key to repeat a creation safely",
	model.IdempotencyMismatch: "This Idempotency-Key was used with another body; use a new key for a new request",
	model.AttemptMismatch:     "A newer attempt is current; stop this one",
	model.AlreadyTerminal:     "The task is finished; stop",
	model.Expired:             "The attempt was ended; stop at once",
	workers.WorkerNotFound:    "There is no such worker in this scope; check the id, tenantId and workspaceId, or register again",
	workers.MachineNotFound:   "There is no such machine in this scope; check the id, tenantId and workspaceId",
	workers.NoWorkersMatch:    "No worker matches; check the selector",
	workers.WorkerDraining:    "The worker is draining and gets no new tasks",
	workers.WorkerOffline:     "The worker is OFFLINE; register again",
	model.NoFreshWorkers:      "No workers with fresh heartbeats available",
	model.NoMatchingWorkers:   "No worker has the requested type, runtime and labels",
	model.NoCapacity:          "All matching workers are at capacity",
	queues.QueueNotFound:      "There is no such queue in this scope; check the name, tenantId and workspaceId",
	schedules.NotFound:        "There is no such schedule in this scope; check the id, tenantId and workspaceId",
	schedules.Exists:          "A schedule with this id exists; change that one, or choose another id",
	model.Overloaded:          "The server has reached one of its limits. Retry after the time in Retry-After",
	model.Unavailable:         "Redis did not confirm the request; it may or may not have been applied. Retry after the time in Retry-After",
}

// DefaultRetryAfter is when a client should retry unless a better time is known.
const DefaultRetryAfter = time.Second

// RefusalOf converts any error to a refusal. op is the operation, as in the route table.
func RefusalOf(op string, err error) *Refusal {
	var r *Refusal
	if errors.As(err, &r) {
		return r
	}
	var e *model.Error
	if !errors.As(err, &e) {
		e = &model.Error{Code: model.Unavailable, Op: op, Cause: err}
		if !errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, context.Canceled) {
			// The domain promises *Error. Any other error is a bug there, but still no verdict about a task.
			e.Op = op + " (an error without a code)"
		}
	}
	status, known := statusOf[e.Code]
	if e.TooMany {
		status = fasthttp.StatusTooManyRequests
	}
	if !known {
		status = fasthttp.StatusInternalServerError
		e = &model.Error{Code: v1.CodeInternal, Op: e.Op, Cause: e}
	}
	r = NewRefusal(status, string(e.Code), messageOf(e))
	r.Body.State = v1.State(e.State)
	r.Body.Reason = string(e.Reason)
	if e.Code == workers.WorkerHeld {
		r.Body.WorkerID, r.Body.MachineID, r.Body.Remedy = e.Worker, e.Machine, "lubdub worker resume "+e.Worker
		if e.Worker == "" {
			r.Body.Remedy = "lubdub machine resume " + e.Machine
		}
	}
	r.Body.ExpectedAttempt, r.Body.ReceivedAttempt = e.Expected, e.Received
	r.op, r.cause = e.Op, e.Cause
	var f *model.FieldError
	if status == fasthttp.StatusBadRequest && errors.As(e.Cause, &f) {
		r.Body.Field = f.Field
	}
	if status == fasthttp.StatusServiceUnavailable || status == fasthttp.StatusTooManyRequests {
		r.RetryAfter = max(e.RetryAfter, DefaultRetryAfter)
	}
	return r
}

// messageOf returns the contract's sentence if there is one, else the domain's, else a default.
func messageOf(e *model.Error) string {
	switch {
	case e.Code == model.Expired && e.Reason == model.HeartbeatTimeout:
		return "Task exceeded heartbeat timeout"
	case e.Code == model.AttemptMismatch && e.State.Terminal():
		return "A newer attempt has already completed"
	case e.Code == v1.CodeInternal:
		return "Something went wrong here that is not your fault; please report it with the request id"
	case e.Message == "":
		return defaultMessage[e.Code]
	case e.Code == model.Invalid || e.Code == model.InvalidID || e.Code == events.InvalidCursor: // begins with a field's name
		return e.Message
	}
	return strings.ToUpper(e.Message[:1]) + e.Message[1:]
}

// Refusal returns the refusal for an error of a part of the request, such as one task of a batch, and logs the cause that it does not
// show.
func (req *Request) Refusal(err error) *Refusal {
	r := RefusalOf(req.Route.Op, err)
	req.API.LogCause(r, req.Ctx.Response.Header.Peek(HeaderRequestID))
	return r
}

// LogCause logs the cause that a refusal does not show.
func (a *API) LogCause(r *Refusal, requestID []byte) {
	if r.cause == nil || r.Status < fasthttp.StatusInternalServerError {
		return
	}
	if suppressed, ok := a.logFailures.Allow(time.Now()); ok {
		a.Logger.LogAttrs(context.Background(), slog.LevelError, "request failed",
			slog.String("op", r.op), slog.Int("status", r.Status), slog.String("code", r.Body.Error),
			slog.String("requestId", string(requestID)), slog.Any("error", r.cause), slog.Int64("moreNotLogged", suppressed))
	}
}

// WriteRefusal writes the refusal to the response and logs its cause.
func (a *API) WriteRefusal(ctx *fasthttp.RequestCtx, r *Refusal) {
	requestID := ctx.Response.Header.Peek(HeaderRequestID)
	body := r.Body
	if r.Status == fasthttp.StatusInternalServerError {
		body.RequestID = string(requestID)
	}
	a.LogCause(r, requestID)
	h := &ctx.Response.Header
	switch r.Status {
	case fasthttp.StatusUnauthorized:
		h.Set(fasthttp.HeaderWWWAuthenticate, "Bearer")
	case fasthttp.StatusMethodNotAllowed:
		h.Set(fasthttp.HeaderAllow, r.allow)
	}
	if r.RetryAfter > 0 {
		h.Set(fasthttp.HeaderRetryAfter, strconv.FormatInt(int64((r.RetryAfter+time.Second-1)/time.Second), 10))
	}
	if r.close {
		ctx.SetConnectionClose()
	}
	WriteJSON(ctx, r.Status, body)
}

// AppendItemRefusal appends the status and fields of a refusal and closes the object.
func AppendItemRefusal(dst []byte, r *Refusal) []byte {
	dst = strconv.AppendInt(dst, int64(r.Status), 10)
	if r.RetryAfter > 0 {
		dst = append(dst, `,"retryAfterMs":`...)
		dst = strconv.AppendInt(dst, r.RetryAfter.Milliseconds(), 10)
	}
	body, err := Marshal(r.Body)
	if err != nil {
		panic(err) // cannot fail: the type is ours
	}
	dst = append(dst, ',')
	return append(dst, body[1:]...)
}
