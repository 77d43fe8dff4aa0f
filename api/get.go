package api

import "github.com/valyala/fasthttp"

// getTask answers GET /v1/tasks/{taskId}.
func (req *request) getTask() (int, any, error) {
	scope, err := req.scope("", "")
	if err != nil {
		return 0, nil, err
	}
	t, err := req.s.tracker.Get(req.context(), scope, req.id)
	if err != nil {
		return 0, nil, err
	}
	return fasthttp.StatusOK, taskView(t, true), nil
}

// getRun answers GET /v1/runs/{runId}.
func (req *request) getRun() (int, any, error) {
	scope, err := req.scope("", "")
	if err != nil {
		return 0, nil, err
	}
	r, err := req.s.tracker.Run(req.context(), scope, req.id)
	if err != nil {
		return 0, nil, err
	}
	return fasthttp.StatusOK, runView(r), nil
}
