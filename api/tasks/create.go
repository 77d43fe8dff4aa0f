package tasks

import (
	"bytes"
	"cmp"
	"encoding/json"

	"github.com/valyala/fasthttp"

	"github.com/lubdub-io/lubdub/api/convert"
	"github.com/lubdub-io/lubdub/api/httpapi"
	v1 "github.com/lubdub-io/lubdub/sdk/go/v1"
	"github.com/lubdub-io/lubdub/tracker/model"
)

// create answers POST /v1/tasks.
func (h *Handlers) create(req *httpapi.Request) (int, any, error) {
	var body v1.CreateTaskRequest
	if err := req.Strict(&body); err != nil {
		return 0, nil, err
	}
	key, err := req.IdempotencyKey()
	if err != nil {
		return 0, nil, err
	}
	n, err := newTask(req, &body, key, httpapi.HeaderIdempotencyKey)
	if err != nil {
		return 0, nil, err
	}
	n.Trace = cmp.Or(n.Trace, traceHeader(req))
	made, err := h.tasks.Create(req.Context(), n)
	if err != nil {
		return 0, nil, req.SelectionRefusal(err)
	}
	answer, err := h.answer(made)
	return fasthttp.StatusCreated, answer, err
}

// traceHeader returns the trace context that tasks belong to which name none; empty: none. A header that is wrong, or that came
// twice, is ignored, as W3C has it: the caller's tracing must not fail its work.
func traceHeader(req *httpapi.Request) string {
	headers := req.Ctx.Request.Header.PeekAll("Traceparent")
	if len(headers) != 1 {
		return ""
	}
	trace, _ := model.ParseTraceparent(string(headers[0]))
	return trace
}

// newTask turns a request into what the domain takes, checked.
func newTask(req *httpapi.Request, body *v1.CreateTaskRequest, key, keyField string) (model.NewTask, error) {
	scope, err := req.Scope(body.TenantID, body.WorkspaceID)
	if err != nil {
		return model.NewTask{}, err
	}
	n, err := convert.TaskOf(body, scope)
	if err != nil {
		return n, err
	}
	if key != "" {
		n.IdempotencyKey = key
		if n.IdempotencyHash, err = requestHash(body, scope); err != nil {
			return n, err
		}
	}
	if err := n.Validate(req.Now); err != nil {
		return n, fieldNamed(err, "idempotencyKey", keyField)
	}
	return n, nil
}

// fieldNamed has an error about the key name the field or header that it came from.
func fieldNamed(err error, from, to string) error {
	r := httpapi.RefusalOf("createTask", err)
	if r.Body.Field == from {
		r.Body.Field = to
	}
	return r
}

// requestHash is the same for requests that mean the same: white space, the order of fields and the spelling
// of times do not count.
func requestHash(body *v1.CreateTaskRequest, scope model.Scope) (string, error) {
	r := *body
	r.TenantID, r.WorkspaceID = scope.Tenant, scope.Workspace
	r.Traceparent = "" // each attempt may have its own span
	for _, raw := range []*json.RawMessage{&r.Payload, &r.Resources} {
		if len(*raw) == 0 {
			continue
		}
		dec := json.NewDecoder(bytes.NewReader(*raw))
		dec.UseNumber() // large numbers stay apart
		var v any
		if err := dec.Decode(&v); err != nil {
			return "", err
		}
		sorted, err := json.Marshal(v)
		if err != nil {
			return "", err
		}
		*raw = sorted
	}
	return httpapi.HashOf(r)
}

// answer returns the body for a created task or attempt: the envelope of what was dispatched, else the task
// that waits.
func (h *Handlers) answer(made *model.Created) (any, error) {
	if made.Envelope == nil {
		return taskView(made.Task, true), nil
	}
	return h.envelopes.Of(made.Envelope)
}
