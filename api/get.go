package api

import "github.com/valyala/fasthttp"

// getTask answers GET /v1/tasks/{taskId}.
func (c *call) getTask() (int, any, error) {
	scope, err := c.scope("", "")
	if err != nil {
		return 0, nil, err
	}
	t, err := c.s.tracker.Get(c.context(), scope, c.id)
	if err != nil {
		return 0, nil, err
	}
	return fasthttp.StatusOK, taskView(t, true), nil
}

// getRun answers GET /v1/runs/{runId}.
func (c *call) getRun() (int, any, error) {
	scope, err := c.scope("", "")
	if err != nil {
		return 0, nil, err
	}
	r, err := c.s.tracker.Run(c.context(), scope, c.id)
	if err != nil {
		return 0, nil, err
	}
	return fasthttp.StatusOK, runView(r), nil
}
