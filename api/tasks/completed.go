package tasks

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"strings"

	"github.com/valyala/fasthttp"

	"github.com/lubdub-io/lubdub/api/convert"
	"github.com/lubdub-io/lubdub/api/httpapi"
	"github.com/lubdub-io/lubdub/api/internal/jsonscan"
	v1 "github.com/lubdub-io/lubdub/sdk/go/v1"
	"github.com/lubdub-io/lubdub/tracker/beats"
	"github.com/lubdub-io/lubdub/tracker/model"
)

// completed answers POST /v1/tasks/{taskId}/completed. A repeated completion gets the same answer; a late one is logged, counted and
// changes nothing.
func (h *Handlers) completed(req *httpapi.Request) (int, any, error) {
	completion, err := completion(req)
	if err != nil {
		return 0, nil, err
	}
	one := beats.Completing{Attempt: req.Attempt, Completion: completion}
	h.attempts.CompleteMany(req.Context(), []*beats.Completing{&one})
	answer, err := h.completedAnswer(req, &one)
	return fasthttp.StatusOK, answer, err
}

// completedAnswer returns the answer to a completion, and records what there is to record about it.
func (h *Handlers) completedAnswer(req *httpapi.Request, c *beats.Completing) (*v1.CompletedResponse, error) {
	if c.Err != nil {
		h.lateResult(req, c)
		return nil, c.Err
	}
	done := &c.Completed
	req.API.Metrics.Shared().Skew.Observe(c.Completion.CompletedAt, done.At)
	return &v1.CompletedResponse{
		Acknowledged: true,
		FinalState:   v1.State(done.Outcome),
		ServerTime:   v1.At(done.At),
		WillRetry:    done.WillRetry,
		NextAttempt:  done.NextAttempt,
	}, nil
}

// lateResult records a result that came too late.
func (h *Handlers) lateResult(req *httpapi.Request, c *beats.Completing) {
	a, code := c.Attempt, model.CodeOf(c.Err)
	if code != model.AttemptMismatch && code != model.AlreadyTerminal {
		return
	}
	current := a.Number
	if e, ok := errors.AsType[*model.Error](c.Err); ok && code == model.AttemptMismatch {
		current = e.Expected
	}
	h.late.count.Inc()
	suppressed, ok := h.late.log.Allow(req.Local())
	if !ok {
		return
	}
	req.API.Logger.LogAttrs(context.Background(), slog.LevelWarn, "late result ignored",
		a.Scope.LogAttr(), slog.String("taskId", a.TaskID), slog.Int("attempt", a.Number), slog.Int("currentAttempt", current),
		slog.String("outcome", string(c.Completion.Outcome)), slog.String("code", string(code)),
		slog.Int64("moreNotLogged", suppressed))
}

// lateLines is how many late results are logged per second; further ones are only counted.
const lateLines = 10

// completedBody is the body of a completion.
type completedBody struct {
	v1.CompletedRequest
	// The error object is stored as it was sent, so it is decoded separately.
	Error json.RawMessage `json:"error"`
}

// completion decodes and checks the body.
func completion(req *httpapi.Request) (model.Completion, error) {
	var body completedBody
	if err := req.Lenient(&body); err != nil {
		return model.Completion{}, err
	}
	report, err := report(req, body.Attempt, body.WorkerID, body.CompletedAt.Time)
	if err != nil {
		return model.Completion{}, err
	}
	return body.completion(report)
}

// completion checks the fields that only completions have.
func (body *completedBody) completion(report model.Report) (none model.Completion, err error) {
	switch {
	case body.Outcome == "":
		return none, httpapi.InvalidField("outcome", "outcome is missing; send SUCCEEDED, FAILED, CANCELLED or SNOOZED")
	case !slices.Contains(v1.Outcomes, body.Outcome):
		return none, httpapi.InvalidField("outcome",
			fmt.Sprintf("outcome is %q; send SUCCEEDED, FAILED, CANCELLED or SNOOZED", httpapi.Clip(string(body.Outcome))))
	case body.Outcome == v1.OutcomeSnoozed && body.DelayMs == nil:
		return none, httpapi.InvalidField("delayMs", "delayMs is missing; a SNOOZED outcome needs the time until the next attempt")
	case body.Outcome != v1.OutcomeSnoozed && body.DelayMs != nil:
		return none, httpapi.InvalidField("delayMs", "delayMs needs the outcome SNOOZED; send error.retryAfterMs with a failure")
	}
	if len(body.CancelledDuringPhase) > model.MaxPhaseBytes {
		return none, httpapi.InvalidField("cancelledDuringPhase", fmt.Sprintf("cancelledDuringPhase is longer than %d bytes; send less",
			model.MaxPhaseBytes))
	}
	done := model.Completion{
		Report:               report,
		Outcome:              model.State(body.Outcome),
		CompletedAt:          body.CompletedAt.Time,
		Output:               convert.Compact(body.Output),
		Metrics:              convert.Compact(body.Metrics),
		Error:                convert.Compact(body.Error),
		CancelledDuringPhase: body.CancelledDuringPhase,
		PartialProgress:      convert.Compact(body.PartialProgress),
	}
	if len(done.Metrics) > 0 && done.Metrics[0] != '{' {
		return none, httpapi.InvalidField("metrics", "metrics is not an object")
	}
	if done.Outcome == model.Snoozed {
		return done, body.snooze(&done)
	}
	return done, setError(&done)
}

// snooze sets the delay of a snoozed attempt, which keeps nothing else: its task continues.
func (body *completedBody) snooze(done *model.Completion) error {
	for _, f := range []struct {
		name string
		set  bool
	}{
		{"output", done.Output != nil}, {"metrics", done.Metrics != nil}, {"error", done.Error != nil},
		{"cancelledDuringPhase", done.CancelledDuringPhase != ""}, {"partialProgress", done.PartialProgress != nil},
	} {
		if f.set {
			return httpapi.InvalidField(f.name, f.name+" is not kept of a SNOOZED attempt; leave it out, or send another outcome")
		}
	}
	var d httpapi.Durations
	done.RetryAfter = d.Delay("delayMs", body.DelayMs)
	return d.Err
}

// setError checks the error object: FAILED needs one with a category. The category determines whether a retry may help if the worker
// does not state it.
func setError(done *model.Completion) error {
	if done.Error == nil {
		if done.Outcome == model.Failed {
			return httpapi.InvalidField("error.category", "error.category is missing; a FAILED outcome needs one of "+categories())
		}
		return nil
	}
	var e v1.TaskError
	if done.Error[0] != '{' {
		return httpapi.InvalidField("error", "error is not an object")
	}
	if err := httpapi.DecodeObject("error", done.Error, &e, true); err != nil {
		return err
	}
	var d httpapi.Durations
	done.RetryAfter = d.Delay("error.retryAfterMs", e.RetryAfterMs)
	switch {
	case d.Err != nil:
		return d.Err
	case e.Category == "" && done.Outcome != model.Failed:
		return nil
	case e.Category == "":
		return httpapi.InvalidField("error.category", "error.category is missing; a FAILED outcome needs one of "+categories())
	case !e.Category.Valid():
		return httpapi.InvalidField("error.category",
			fmt.Sprintf("error.category is %q; use one of %s", httpapi.Clip(string(e.Category)), categories()))
	}
	done.Category = string(e.Category)
	done.Retryable = e.Category.Retryable()
	if e.Retryable != nil {
		done.Retryable = *e.Retryable
	} else {
		done.Error = withRetryable(done.Error, done.Retryable)
	}
	return nil
}

func categories() string {
	names := make([]string, len(v1.ErrorCategories))
	for i, k := range v1.ErrorCategories {
		names[i] = string(k)
	}
	return strings.Join(names, ", ")
}

// withRetryable returns an error object, valid and compact, that states whether a retry may help, if its worker left that
// to the category: then readers need not know the categories. Everything else stays as it was sent.
func withRetryable(object json.RawMessage, retryable bool) json.RawMessage {
	merged := make(json.RawMessage, 0, len(object)+len(`,"retryable":false`))
	merged = append(merged, '{')
	s := jsonscan.Scanner{Text: object}
	for more := s.Open('{', '}'); more; more = s.More('}') {
		from := s.Pos
		name, _ := s.Name()
		s.Skip()
		if string(name) != "retryable" { // null counts as absent
			merged = append(append(merged, object[from:s.Pos]...), ',')
		}
	}
	merged = append(merged, `"retryable":`...)
	return append(strconv.AppendBool(merged, retryable), '}')
}
