package api

import (
	"time"

	"github.com/valyala/fasthttp"

	v1 "github.com/lubdub-io/lubdub/sdk/go/v1"
	"github.com/lubdub-io/lubdub/tracker/model"
	"github.com/lubdub-io/lubdub/tracker/workers"
)

// deregisterWorker answers POST /v1/workers/{workerId}/deregister.
func (req *request) deregisterWorker() (int, any, error) {
	var body v1.DeregisterRequest
	scope, err := req.reasoned(&body, &body.Reason)
	if err != nil {
		return 0, nil, err
	}
	var w *model.Worker
	err = req.asWorker(func() (err error) {
		if body.Drain {
			w, err = req.s.services.Workers.Drain(req.context(), scope, req.id, workers.Drain{BySelf: req.who.worker(), Reason: body.Reason})
		} else {
			w, err = req.s.services.Workers.Retire(req.context(), scope, req.id, model.WorkerDeregistered, body.Reason)
		}
		return err
	})
	return req.oneWorker(w, err)
}

// drainWorker answers POST /v1/workers/{workerId}/drain.
func (req *request) drainWorker() (int, any, error) {
	scope, d, err := req.drainRequest()
	if err != nil {
		return 0, nil, err
	}
	var w *model.Worker
	err = req.asWorker(func() (err error) {
		w, err = req.s.services.Workers.Drain(req.context(), scope, req.id, d)
		return err
	})
	return req.oneWorker(w, err)
}

// resumeWorker answers POST /v1/workers/{workerId}/resume.
func (req *request) resumeWorker() (int, any, error) {
	var body v1.ReasonRequest
	scope, err := req.reasoned(&body, &body.Reason)
	if err != nil {
		return 0, nil, err
	}
	return req.oneWorker(req.s.services.Workers.Resume(req.context(), scope, req.id, body.Reason))
}

// offlineWorker answers POST /v1/workers/{workerId}/offline.
func (req *request) offlineWorker() (int, any, error) {
	var body v1.ReasonRequest
	scope, err := req.reasoned(&body, &body.Reason)
	if err != nil {
		return 0, nil, err
	}
	return req.oneWorker(req.s.services.Workers.Retire(req.context(), scope, req.id, model.WorkerForced, body.Reason))
}

// drainWorkers answers POST /v1/workers:drain.
func (req *request) drainWorkers() (int, any, error) {
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
	d, err := req.drain(&body.DrainRequest)
	if err != nil {
		return 0, nil, err
	}
	return req.drained(body.DryRun)(req.s.services.Workers.DrainMany(req.context(), f, d, body.DryRun))
}

func (req *request) drained(dryRun bool) func(*workers.Drained, error) (int, any, error) {
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
func (req *request) drainRequest() (model.Scope, workers.Drain, error) {
	var body v1.DrainRequest
	scope, err := req.optional(&body)
	if err != nil {
		return scope, workers.Drain{}, err
	}
	d, err := req.drain(&body)
	return scope, d, err
}

// drain reads how to drain.
func (req *request) drain(body *v1.DrainRequest) (workers.Drain, error) {
	var d durations
	drain := workers.Drain{Reason: body.Reason, Deadline: d.positive("deadlineMs", body.DeadlineMs, time.Millisecond),
		BySelf: req.who.worker()}
	if d.err != nil {
		return drain, d.err
	}
	return drain, drain.Validate()
}

// optional reads a body that may be missing, and the scope.
func (req *request) optional(body any) (model.Scope, error) {
	if err := req.optionalBody(body); err != nil {
		return model.Scope{}, err
	}
	return req.scope("", "")
}

// reasoned is optional for a body with a reason, which is checked.
func (req *request) reasoned(body any, reason *string) (model.Scope, error) {
	if err := req.optionalBody(body); err != nil {
		return model.Scope{}, err
	}
	if err := workers.CheckReason(*reason); err != nil {
		return model.Scope{}, err
	}
	return req.scope("", "")
}

func (req *request) optionalBody(body any) error {
	if len(req.ctx.Request.Body()) == 0 {
		return nil
	}
	return req.strict(body)
}

func (req *request) oneWorker(w *model.Worker, err error) (int, any, error) {
	if err != nil {
		return 0, nil, err
	}
	return fasthttp.StatusOK, workerView(w), nil
}
