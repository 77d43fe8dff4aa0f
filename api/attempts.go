package api

import (
	"github.com/valyala/fasthttp"

	v1 "github.com/lubdub-io/lubdub/api/v1"
)

// nextAttempt answers POST /v1/tasks/{taskId}/attempts: 201 with the envelope of a pushed task, 202 with the
// task when it waits in its queue.
func (req *request) nextAttempt() (int, any, error) {
	var body v1.NextAttemptRequest
	if err := req.strict(&body); err != nil {
		return 0, nil, err
	}
	scope, err := req.scope("", "")
	if err != nil {
		return 0, nil, err
	}
	if body.FromAttempt < 1 {
		return 0, nil, invalidField("fromAttempt", "fromAttempt is missing or less than 1; send the attempt that the new one follows")
	}
	made, err := req.s.tracker.NextAttempt(req.context(), scope, req.id, body.FromAttempt)
	if err != nil {
		return 0, nil, err
	}
	answer, err := req.s.created(made)
	if made.Envelope == nil {
		return fasthttp.StatusAccepted, answer, err
	}
	return fasthttp.StatusCreated, answer, err
}
