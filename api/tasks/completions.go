package tasks

import (
	"encoding/json"
	"fmt"

	"github.com/valyala/fasthttp"

	"github.com/lubdub-io/lubdub/api/httpapi"
	"github.com/lubdub-io/lubdub/api/internal/beatbody"
	v1 "github.com/lubdub-io/lubdub/sdk/go/v1"
	"github.com/lubdub-io/lubdub/tracker/beats"
	"github.com/lubdub-io/lubdub/tracker/holdings"
	"github.com/lubdub-io/lubdub/tracker/model"
)

// Completions are completions of one worker's attempts. An error in one is that completion's result, and does not affect the others.
type Completions struct {
	results []v1.CompletionResult
	valid   []validCompletion
	// Reported has the attempts that the completions name, with the progress that was sent with them.
	Reported []holdings.InventoryItem
}

type validCompletion struct {
	name   holdings.OwnedAttempt
	result *v1.CompletionResult
	beats.Completing
}

// DecodeCompletions decodes and checks completions. progress: whether they may have progress.
func DecodeCompletions(req *httpapi.Request, raws []json.RawMessage, progress bool) *Completions {
	c := &Completions{results: make([]v1.CompletionResult, len(raws))}
	for i, raw := range raws {
		item, done, err := decodeCompletion(req, raw, progress)
		c.results[i].TaskID = item.TaskID
		if err != nil {
			item.Report, item.Details = "", "" // as nothing of it is stored
		}
		if item.Number > 0 {
			c.Reported = append(c.Reported, item)
		}
		if err != nil {
			refuse(req, &c.results[i], err)
			continue
		}
		c.valid = append(c.valid, validCompletion{item.OwnedAttempt, &c.results[i], beats.Completing{Completion: done}})
	}
	return c
}

// Complete stores completions and returns their results in order.
func (h *Handlers) Complete(req *httpapi.Request, c *Completions) ([]v1.CompletionResult, error) {
	names := make([]holdings.OwnedAttempt, len(c.valid))
	for i := range c.valid {
		names[i] = c.valid[i].name
	}
	owned, err := req.Owned(names)
	if err != nil {
		return nil, err
	}
	var known []*beats.Completing
	for i, a := range owned {
		if r := httpapi.NotOpened(a); r != nil {
			refuse(req, c.valid[i].result, r)
			continue
		}
		c.valid[i].Attempt = a
		known = append(known, &c.valid[i].Completing)
	}
	h.attempts.CompleteMany(req.Context(), known)
	for i := range c.valid {
		if c.valid[i].Attempt == nil {
			continue
		}
		to := c.valid[i].result
		answer, err := h.completedAnswer(req, &c.valid[i].Completing)
		if err != nil {
			refuse(req, to, err)
			continue
		}
		to.Status, to.Acknowledged, to.FinalState, to.ServerTime = fasthttp.StatusOK, true, answer.FinalState, answer.ServerTime
		to.WillRetry, to.NextAttempt = answer.WillRetry, answer.NextAttempt
	}
	return c.results, nil
}

// Ended returns the attempts whose end is recorded, by these completions or before. It is called after Complete.
func (c *Completions) Ended() (names []holdings.OwnedAttempt) {
	for i := range c.valid {
		if s := c.valid[i].result.Status; s == fasthttp.StatusOK || s == fasthttp.StatusConflict {
			names = append(names, c.valid[i].name)
		}
	}
	return names
}

// refuse sets a completion's result to a refusal.
func refuse(req *httpapi.Request, to *v1.CompletionResult, err error) {
	r := req.Refusal(err)
	to.Status, to.RetryAfterMs = r.Status, r.RetryAfter.Milliseconds()
	to.Error, to.Message, to.Field = r.Body.Error, r.Body.Message, r.Body.Field
	to.State, to.Reason, to.ExpectedAttempt, to.ReceivedAttempt = r.Body.State, r.Body.Reason, r.Body.ExpectedAttempt, r.Body.ReceivedAttempt
}

func decodeCompletion(req *httpapi.Request, raw json.RawMessage, progress bool) (
	of holdings.InventoryItem, c model.Completion, err error,
) {
	var item struct {
		TaskID   string          `json:"taskId"`
		Progress json.RawMessage `json:"progress"`
		completedBody
	}
	if len(raw) > httpapi.LimitCallback {
		return of, c, errCompletionTooLarge
	}
	if len(raw) == 0 || raw[0] != '{' {
		return of, c, errCompletionNotObject
	}
	if err := httpapi.DecodeObject("", raw, &item, true); err != nil {
		return of, c, err
	}
	if !model.ValidID(item.TaskID) {
		return of, c, httpapi.InvalidID("taskId")
	}
	of.TaskID = item.TaskID
	if err := checkReport(item.Attempt, item.WorkerID); err != nil {
		return of, c, err
	}
	of.Number = item.Attempt
	if r := req.API.TakeBeat(req.Caller, req.Caller.Claims.Tenant, req.Local()); r != nil { // as for a single completion
		return of, c, r
	}
	if len(item.Progress) > 0 && string(item.Progress) != "null" {
		if !progress {
			return of, c, httpapi.InvalidField("progress", "progress needs the seq of the exchange, which makes it a heartbeat")
		}
		reported, err := beatbody.Progress(item.Progress, of.OwnedAttempt)
		if err != nil {
			return of, c, err
		}
		of = reported
	}
	c, err = item.completion(model.Report{WorkerID: item.WorkerID, ReportedAt: item.CompletedAt.Time})
	return of, c, err
}

var errCompletionTooLarge = httpapi.NewRefusal(fasthttp.StatusRequestEntityTooLarge, v1.CodeBodyTooLarge,
	fmt.Sprintf("The completion is larger than %d bytes; store the output elsewhere and send a reference to it", httpapi.LimitCallback))

var errCompletionNotObject = httpapi.NewRefusal(fasthttp.StatusBadRequest, v1.CodeInvalidRequest,
	"The entry is not an object; send what POST /v1/tasks/{taskId}/completed takes, plus a taskId")
