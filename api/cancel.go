package api

import (
	"fmt"

	"github.com/valyala/fasthttp"

	v1 "github.com/lubdub-io/lubdub/api/v1"
	"github.com/lubdub-io/lubdub/tracker"
)

// cancelTask answers POST /v1/tasks/{taskId}/cancel.
func (c *call) cancelTask() (int, any, error) {
	scope, reason, err := c.cancelRequest()
	if err != nil {
		return 0, nil, err
	}
	t, err := c.s.tracker.Cancel(c.context(), scope, c.id, reason)
	if err != nil {
		return 0, nil, err
	}
	return fasthttp.StatusAccepted, taskView(t, true), nil
}

// cancelRun answers POST /v1/runs/{runId}/cancel.
func (c *call) cancelRun() (int, any, error) {
	scope, reason, err := c.cancelRequest()
	if err != nil {
		return 0, nil, err
	}
	r, err := c.s.tracker.CancelRun(c.context(), scope, c.id, reason)
	if err != nil {
		return 0, nil, err
	}
	return fasthttp.StatusAccepted, runView(r), nil
}

// cancelRequest reads the body, which may be missing.
func (c *call) cancelRequest() (tracker.Scope, string, error) {
	var req v1.CancelRequest
	if len(c.ctx.Request.Body()) > 0 {
		if err := c.strict(&req); err != nil {
			return tracker.Scope{}, "", err
		}
	}
	if len(req.Reason) > tracker.MaxReasonBytes {
		return tracker.Scope{}, "", invalidField("reason", fmt.Sprintf("reason is longer than %d bytes; say it in fewer", tracker.MaxReasonBytes))
	}
	scope, err := c.scope("", "")
	return scope, req.Reason, err
}
