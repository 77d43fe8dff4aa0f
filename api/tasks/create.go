package tasks

import (
	"bytes"
	"cmp"
	"encoding/json"
	"strings"

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

// traceHeader returns the trace context for tasks that have none in the body; empty: none. An invalid or repeated header is ignored,
// as W3C specifies: an error in the caller's tracing must not make its request fail.
func traceHeader(req *httpapi.Request) string {
	headers := req.Ctx.Request.Header.PeekAll("Traceparent")
	if len(headers) != 1 {
		return ""
	}
	trace, _ := model.ParseTraceparent(string(headers[0]))
	return trace
}

// newTask converts a request to the domain's type, and checks it.
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
		if !body.NotBefore.IsZero() {
			err = fieldNamed(err, "runAt", "notBefore")
		}
		return n, fieldNamed(err, "idempotencyKey", keyField)
	}
	return n, nil
}

// fieldNamed changes the field of an error to the field or header that contained the value.
func fieldNamed(err error, from, to string) error {
	r := httpapi.RefusalOf("createTask", err)
	if r.Body.Field == from {
		r.Body.Field, r.Body.Message = to, strings.ReplaceAll(r.Body.Message, from, to)
	}
	return r
}

// requestHash is the same for equivalent requests: white space, the order of fields and the notation of times do not matter.
func requestHash(body *v1.CreateTaskRequest, scope model.Scope) (string, error) {
	r := *body
	r.TenantID, r.WorkspaceID = scope.Tenant, scope.Workspace
	r.Traceparent = "" // each attempt may have its own span
	for _, raw := range []*json.RawMessage{&r.Payload, &r.Resources} {
		if len(*raw) == 0 {
			continue
		}
		dec := json.NewDecoder(bytes.NewReader(*raw))
		dec.UseNumber() // large numbers keep all digits
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

// answer returns the body for a created task or attempt: the envelope if it was dispatched, else the task that waits.
func (h *Handlers) answer(made *model.Created) (any, error) {
	if made.Envelope == nil {
		return taskView(made.Task, true), nil
	}
	return h.envelopes.Of(made.Envelope)
}
