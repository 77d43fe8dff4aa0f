package api

import (
	"fmt"

	"github.com/valyala/fasthttp"

	v1 "github.com/lubdub-io/lubdub/api/v1"
	"github.com/lubdub-io/lubdub/tracker"
)

// cancelTask answers POST /v1/tasks/{taskId}/cancel.
func (req *request) cancelTask() (int, any, error) {
	scope, reason, err := req.cancelRequest()
	if err != nil {
		return 0, nil, err
	}
	t, err := req.s.tracker.Cancel(req.context(), scope, req.id, reason)
	if err != nil {
		return 0, nil, err
	}
	return fasthttp.StatusAccepted, taskView(t, true), nil
}

// cancelRun answers POST /v1/runs/{runId}/cancel.
func (req *request) cancelRun() (int, any, error) {
	scope, reason, err := req.cancelRequest()
	if err != nil {
		return 0, nil, err
	}
	r, err := req.s.tracker.CancelRun(req.context(), scope, req.id, reason)
	if err != nil {
		return 0, nil, err
	}
	return fasthttp.StatusAccepted, runView(r), nil
}

// cancelRequest reads the body, which may be missing.
func (req *request) cancelRequest() (tracker.Scope, string, error) {
	var body v1.CancelRequest
	if len(req.ctx.Request.Body()) > 0 {
		if err := req.strict(&body); err != nil {
			return tracker.Scope{}, "", err
		}
	}
	if len(body.Reason) > tracker.MaxReasonBytes {
		return tracker.Scope{}, "", invalidField("reason", fmt.Sprintf("reason is longer than %d bytes; say it in fewer", tracker.MaxReasonBytes))
	}
	scope, err := req.scope("", "")
	return scope, body.Reason, err
}
