package workers

import (
	"time"

	"github.com/valyala/fasthttp"

	"github.com/lubdub-io/lubdub/api/convert"
	"github.com/lubdub-io/lubdub/api/httpapi"
	v1 "github.com/lubdub-io/lubdub/sdk/go/v1"
	"github.com/lubdub-io/lubdub/tracker/model"
	"github.com/lubdub-io/lubdub/tracker/workers"
)

// deregister answers POST /v1/workers/{workerId}/deregister.
func (h *Handlers) deregister(req *httpapi.Request) (int, any, error) {
	var body v1.DeregisterRequest
	scope, err := reasoned(req, &body, &body.Reason)
	if err != nil {
		return 0, nil, err
	}
	var w *model.Worker
	err = req.AsWorker(func() (err error) {
		if body.Drain {
			w, err = h.Workers.Drain(req.Context(), scope, req.ID, workers.Drain{BySelf: req.Caller.Worker(), Reason: body.Reason})
		} else {
			w, err = h.Workers.Retire(req.Context(), scope, req.ID, model.WorkerDeregistered, body.Reason)
		}
		return err
	})
	return answer(w, err)
}

// drain answers POST /v1/workers/{workerId}/drain.
func (h *Handlers) drain(req *httpapi.Request) (int, any, error) {
	scope, d, err := drainRequest(req)
	if err != nil {
		return 0, nil, err
	}
	var w *model.Worker
	err = req.AsWorker(func() (err error) {
		w, err = h.Workers.Drain(req.Context(), scope, req.ID, d)
		return err
	})
	return answer(w, err)
}

// resume answers POST /v1/workers/{workerId}/resume.
func (h *Handlers) resume(req *httpapi.Request) (int, any, error) {
	var body v1.ReasonRequest
	scope, err := reasoned(req, &body, &body.Reason)
	if err != nil {
		return 0, nil, err
	}
	return answer(h.Workers.Resume(req.Context(), scope, req.ID, body.Reason))
}

// offline answers POST /v1/workers/{workerId}/offline.
func (h *Handlers) offline(req *httpapi.Request) (int, any, error) {
	var body v1.ReasonRequest
	scope, err := reasoned(req, &body, &body.Reason)
	if err != nil {
		return 0, nil, err
	}
	return answer(h.Workers.Retire(req.Context(), scope, req.ID, model.WorkerForced, body.Reason))
}

// drainMany answers POST /v1/workers:drain.
func (h *Handlers) drainMany(req *httpapi.Request) (int, any, error) {
	var body v1.DrainWorkersRequest
	if err := req.Strict(&body); err != nil {
		return 0, nil, err
	}
	scope, err := req.Scope("", "")
	if err != nil {
		return 0, nil, err
	}
	f, err := workerSelector(scope, &body.Selector, 0, false)
	if err != nil {
		return 0, nil, err
	}
	d, err := readDrain(req, &body.DrainRequest)
	if err != nil {
		return 0, nil, err
	}
	return drained(req, body.DryRun)(h.Workers.DrainMany(req.Context(), f, d, body.DryRun))
}

func drained(req *httpapi.Request, dryRun bool) func(*workers.Drained, error) (int, any, error) {
	return func(d *workers.Drained, err error) (int, any, error) {
		if err != nil {
			return 0, nil, err
		}
		req.Bulk = &httpapi.BulkResult{DryRun: dryRun, Matched: d.Matched, Done: d.Draining}
		return fasthttp.StatusOK, &v1.DrainWorkersResponse{Matched: d.Matched, Draining: d.Draining, DryRun: dryRun,
			WorkerIDs: convert.OrEmpty(d.Workers)}, nil
	}
}

// drainRequest decodes the optional body of a drain.
func drainRequest(req *httpapi.Request) (model.Scope, workers.Drain, error) {
	var body v1.DrainRequest
	scope, err := req.Optional(&body)
	if err != nil {
		return scope, workers.Drain{}, err
	}
	d, err := readDrain(req, &body)
	return scope, d, err
}

// readDrain converts the body of a drain.
func readDrain(req *httpapi.Request, body *v1.DrainRequest) (workers.Drain, error) {
	var d httpapi.Durations
	drain := workers.Drain{Reason: body.Reason, Deadline: d.Positive("deadlineMs", body.DeadlineMs, time.Millisecond),
		BySelf: req.Caller.Worker()}
	if d.Err != nil {
		return drain, d.Err
	}
	return drain, drain.Validate()
}

// reasoned decodes an optional body, and checks its reason.
func reasoned(req *httpapi.Request, body any, reason *string) (model.Scope, error) {
	if err := req.OptionalBody(body); err != nil {
		return model.Scope{}, err
	}
	if err := workers.CheckReason(*reason); err != nil {
		return model.Scope{}, err
	}
	return req.Scope("", "")
}

func answer(w *model.Worker, err error) (int, any, error) {
	if err != nil {
		return 0, nil, err
	}
	return fasthttp.StatusOK, workerView(w), nil
}
