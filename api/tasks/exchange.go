package tasks

import (
	"encoding/json"
	"fmt"

	"github.com/valyala/fasthttp"

	"github.com/lubdub-io/lubdub/api/httpapi"
	v1 "github.com/lubdub-io/lubdub/sdk/go/v1"
	"github.com/lubdub-io/lubdub/tracker/beats"
	"github.com/lubdub-io/lubdub/tracker/holdings"
	"github.com/lubdub-io/lubdub/tracker/model"
)

// maxExchanged is the maximum number of completions of an exchange.
const maxExchanged = 100

// exchange answers POST /v1/workers/{workerId}/exchange. An error in one completion is that completion's result, and does not affect
// the others.
func (h *Handlers) exchange(req *httpapi.Request) (int, any, error) {
	var body struct {
		Completions []json.RawMessage `json:"completions"`
	}
	if err := req.Lenient(&body); err != nil {
		return 0, nil, err
	}
	if n := len(body.Completions); n < 1 || n > maxExchanged {
		return 0, nil, httpapi.InvalidField("completions", fmt.Sprintf("completions has %d entries; send 1 to %d", n, maxExchanged))
	}
	results := make([]v1.CompletionResult, len(body.Completions))
	var all []*beats.Completing
	var names []holdings.OwnedAttempt
	var places []int // places[i] is the index of all[i] in results
	for i, raw := range body.Completions {
		taskID, attempt, c, err := exchanged(req, raw)
		if results[i].TaskID = taskID; err != nil {
			refuse(req, &results[i], err)
			continue
		}
		all, places = append(all, &beats.Completing{Completion: c}), append(places, i)
		names = append(names, holdings.OwnedAttempt{TaskID: taskID, Number: attempt})
	}
	owned, err := req.Owned(names)
	if err != nil {
		return 0, nil, err
	}
	var known []*beats.Completing
	for i, c := range all {
		if r := httpapi.NotOpened(owned[i]); r != nil {
			refuse(req, &results[places[i]], r)
			continue
		}
		c.Attempt = owned[i]
		known = append(known, c)
	}
	h.attempts.CompleteMany(req.Context(), known)
	for i, c := range all {
		if c.Attempt == nil {
			continue
		}
		to := &results[places[i]]
		answer, err := h.completedAnswer(req, c)
		if err != nil {
			refuse(req, to, err)
			continue
		}
		to.Status, to.Acknowledged, to.FinalState, to.ServerTime = fasthttp.StatusOK, true, answer.FinalState, answer.ServerTime
		to.WillRetry, to.NextAttempt = answer.WillRetry, answer.NextAttempt
	}
	return fasthttp.StatusOK, v1.ExchangeResponse{Results: results}, nil
}

// refuse sets a completion's result to a refusal.
func refuse(req *httpapi.Request, to *v1.CompletionResult, err error) {
	r := httpapi.RefusalOf(req.Route.Op, err)
	req.API.LogCause(r, req.Ctx.Response.Header.Peek(httpapi.HeaderRequestID))
	to.Status, to.RetryAfterMs = r.Status, r.RetryAfter.Milliseconds()
	to.Error, to.Message, to.Field = r.Body.Error, r.Body.Message, r.Body.Field
	to.State, to.Reason, to.ExpectedAttempt, to.ReceivedAttempt = r.Body.State, r.Body.Reason, r.Body.ExpectedAttempt, r.Body.ReceivedAttempt
}

// exchanged decodes and checks one completion of an exchange.
func exchanged(req *httpapi.Request, raw json.RawMessage) (taskID string, attempt int, c model.Completion, err error) {
	var item struct {
		TaskID string `json:"taskId"`
		completedBody
	}
	if len(raw) > httpapi.LimitCallback {
		return "", 0, c, errCompletionTooLarge
	}
	if len(raw) == 0 || raw[0] != '{' {
		return "", 0, c, errCompletionNotObject
	}
	if err := httpapi.DecodeObject("", raw, &item, true); err != nil {
		return "", 0, c, err
	}
	if !model.ValidID(item.TaskID) {
		return "", 0, c, httpapi.InvalidID("taskId")
	}
	if err := checkReport(item.Attempt, item.WorkerID); err != nil {
		return item.TaskID, 0, c, err
	}
	if r := req.API.TakeBeat(req.Caller, req.Caller.Claims.Tenant, req.Local()); r != nil { // as for a single completion
		return item.TaskID, 0, c, r
	}
	c, err = item.completion(model.Report{WorkerID: item.WorkerID, ReportedAt: item.CompletedAt.Time})
	return item.TaskID, item.Attempt, c, err
}

var errCompletionTooLarge = httpapi.NewRefusal(fasthttp.StatusRequestEntityTooLarge, v1.CodeBodyTooLarge,
	fmt.Sprintf("The completion is larger than %d bytes; store the output elsewhere and send a reference to it", httpapi.LimitCallback))

var errCompletionNotObject = httpapi.NewRefusal(fasthttp.StatusBadRequest, v1.CodeInvalidRequest,
	"The entry is not an object; send what POST /v1/tasks/{taskId}/completed takes, plus a taskId")
