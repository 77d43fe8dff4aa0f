package api

import (
	"time"

	"github.com/valyala/fasthttp"

	v1 "github.com/lubdub-io/lubdub/sdk/go/v1"
	"github.com/lubdub-io/lubdub/tracker/model"
	"github.com/lubdub-io/lubdub/tracker/workers"
)

// deregisterWorker answers POST /v1/workers/{workerId}/deregister.
func (h *workerHandlers) deregisterWorker(req *request) (int, any, error) {
	var body v1.DeregisterRequest
	scope, err := reasoned(req, &body, &body.Reason)
	if err != nil {
		return 0, nil, err
	}
	var w *model.Worker
	err = req.asWorker(func() (err error) {
		if body.Drain {
			w, err = h.Workers.Drain(req.context(), scope, req.id, workers.Drain{BySelf: req.who.worker(), Reason: body.Reason})
		} else {
			w, err = h.Workers.Retire(req.context(), scope, req.id, model.WorkerDeregistered, body.Reason)
		}
		return err
	})
	return oneWorker(w, err)
}

// drainWorker answers POST /v1/workers/{workerId}/drain.
func (h *workerHandlers) drainWorker(req *request) (int, any, error) {
	scope, d, err := drainRequest(req)
	if err != nil {
		return 0, nil, err
	}
	var w *model.Worker
	err = req.asWorker(func() (err error) {
		w, err = h.Workers.Drain(req.context(), scope, req.id, d)
		return err
	})
	return oneWorker(w, err)
}

// resumeWorker answers POST /v1/workers/{workerId}/resume.
func (h *workerHandlers) resumeWorker(req *request) (int, any, error) {
	var body v1.ReasonRequest
	scope, err := reasoned(req, &body, &body.Reason)
	if err != nil {
		return 0, nil, err
	}
	return oneWorker(h.Workers.Resume(req.context(), scope, req.id, body.Reason))
}

// offlineWorker answers POST /v1/workers/{workerId}/offline.
func (h *workerHandlers) offlineWorker(req *request) (int, any, error) {
	var body v1.ReasonRequest
	scope, err := reasoned(req, &body, &body.Reason)
	if err != nil {
		return 0, nil, err
	}
	return oneWorker(h.Workers.Retire(req.context(), scope, req.id, model.WorkerForced, body.Reason))
}

// drainWorkers answers POST /v1/workers:drain.
func (h *workerHandlers) drainWorkers(req *request) (int, any, error) {
	var body v1.DrainWorkersRequest
	if err := req.strict(&body); err != nil {
		return 0, nil, err
	}
	scope, err := req.scope("", "")
	if err != nil {
		return 0, nil, err
	}
	f, err := workerSelector(scope, &body.Selector, 0, false)
	if err != nil {
		return 0, nil, err
	}
	d, err := drain(req, &body.DrainRequest)
	if err != nil {
		return 0, nil, err
	}
	return drained(req, body.DryRun)(h.Workers.DrainMany(req.context(), f, d, body.DryRun))
}

func drained(req *request, dryRun bool) func(*workers.Drained, error) (int, any, error) {
	return func(d *workers.Drained, err error) (int, any, error) {
		if err != nil {
			return 0, nil, err
		}
		req.many = &many{dryRun, d.Matched, d.Draining}
		return fasthttp.StatusOK, &v1.DrainWorkersResponse{Matched: d.Matched, Draining: d.Draining, DryRun: dryRun,
			WorkerIDs: orEmpty(d.Workers)}, nil
	}
}

// drainRequest reads the body of a drain, which may be missing.
func drainRequest(req *request) (model.Scope, workers.Drain, error) {
	var body v1.DrainRequest
	scope, err := req.optional(&body)
	if err != nil {
		return scope, workers.Drain{}, err
	}
	d, err := drain(req, &body)
	return scope, d, err
}

// drain reads how to drain.
func drain(req *request, body *v1.DrainRequest) (workers.Drain, error) {
	var d durations
	drain := workers.Drain{Reason: body.Reason, Deadline: d.positive("deadlineMs", body.DeadlineMs, time.Millisecond),
		BySelf: req.who.worker()}
	if d.err != nil {
		return drain, d.err
	}
	return drain, drain.Validate()
}

// reasoned is optional for a body with a reason, which is checked.
func reasoned(req *request, body any, reason *string) (model.Scope, error) {
	if err := req.optionalBody(body); err != nil {
		return model.Scope{}, err
	}
	if err := workers.CheckReason(*reason); err != nil {
		return model.Scope{}, err
	}
	return req.scope("", "")
}

func oneWorker(w *model.Worker, err error) (int, any, error) {
	if err != nil {
		return 0, nil, err
	}
	return fasthttp.StatusOK, workerView(w), nil
}
