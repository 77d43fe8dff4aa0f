package api

import (
	"github.com/valyala/fasthttp"

	v1 "github.com/lubdub-io/lubdub/api/v1"
)

// nextAttempt answers POST /v1/tasks/{taskId}/attempts: 201 with the envelope of a pushed task, 202 with the
// task when it waits in its queue.
func (c *call) nextAttempt() (int, any, error) {
	var req v1.NextAttemptRequest
	if err := c.strict(&req); err != nil {
		return 0, nil, err
	}
	scope, err := c.scope("", "")
	if err != nil {
		return 0, nil, err
	}
	if req.FromAttempt < 1 {
		return 0, nil, invalidField("fromAttempt", "fromAttempt is missing or less than 1; send the attempt that the new one follows")
	}
	made, err := c.s.tracker.NextAttempt(c.context(), scope, c.id, req.FromAttempt)
	if err != nil {
		return 0, nil, err
	}
	body, err := c.s.created(made)
	if made.Envelope == nil {
		return fasthttp.StatusAccepted, body, err
	}
	return fasthttp.StatusCreated, body, err
}
