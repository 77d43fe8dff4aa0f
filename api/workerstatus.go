package api

import (
	"time"

	"github.com/valyala/fasthttp"

	v1 "github.com/lubdub-io/lubdub/api/v1"
	"github.com/lubdub-io/lubdub/tracker"
)

// deregisterWorker answers POST /v1/workers/{workerId}/deregister.
func (c *call) deregisterWorker() (int, any, error) {
	var req v1.DeregisterRequest
	scope, err := c.reasoned(&req, &req.Reason)
	if err != nil {
		return 0, nil, err
	}
	var w *tracker.Worker
	err = c.asWorker(func() (err error) {
		if req.Drain {
			w, err = c.s.tracker.DrainWorker(c.context(), scope, c.id, tracker.Drain{BySelf: c.who.worker(), Reason: req.Reason})
		} else {
			w, err = c.s.tracker.RetireWorker(c.context(), scope, c.id, tracker.WorkerDeregistered, req.Reason)
		}
		return err
	})
	return c.oneWorker(w, err)
}

// drainWorker answers POST /v1/workers/{workerId}/drain.
func (c *call) drainWorker() (int, any, error) {
	var req v1.DrainRequest
	scope, err := c.optional(&req)
	if err != nil {
		return 0, nil, err
	}
	d, err := c.drain(&req)
	if err != nil {
		return 0, nil, err
	}
	var w *tracker.Worker
	err = c.asWorker(func() (err error) {
		w, err = c.s.tracker.DrainWorker(c.context(), scope, c.id, d)
		return err
	})
	return c.oneWorker(w, err)
}

// resumeWorker answers POST /v1/workers/{workerId}/resume.
func (c *call) resumeWorker() (int, any, error) {
	var req v1.ReasonRequest
	scope, err := c.reasoned(&req, &req.Reason)
	if err != nil {
		return 0, nil, err
	}
	return c.oneWorker(c.s.tracker.ResumeWorker(c.context(), scope, c.id, req.Reason))
}

// offlineWorker answers POST /v1/workers/{workerId}/offline.
func (c *call) offlineWorker() (int, any, error) {
	var req v1.ReasonRequest
	scope, err := c.reasoned(&req, &req.Reason)
	if err != nil {
		return 0, nil, err
	}
	return c.oneWorker(c.s.tracker.RetireWorker(c.context(), scope, c.id, tracker.WorkerForced, req.Reason))
}

// drainWorkers answers POST /v1/workers:drain.
func (c *call) drainWorkers() (int, any, error) {
	var req v1.DrainWorkersRequest
	if err := c.strict(&req); err != nil {
		return 0, nil, err
	}
	scope, err := c.scope("", "")
	if err != nil {
		return 0, nil, err
	}
	f := tracker.WorkerFilter{Scope: scope, Labels: req.Selector.Labels, Queue: req.Selector.Queue, Version: req.Selector.Version, MachineID: req.Selector.MachineID}
	if len(f.Labels) == 0 && f.Queue == "" && f.Version == "" && f.MachineID == "" {
		return 0, nil, invalidField("selector", "selector says nothing, which would drain every worker; name labels, queue, version or machineId")
	}
	if err := f.ValidateSelector(); err != nil {
		return 0, nil, err
	}
	d, err := c.drain(&req.DrainRequest)
	if err != nil {
		return 0, nil, err
	}
	return drainedBody(req.DryRun)(c.s.tracker.DrainWorkers(c.context(), f, d, req.DryRun))
}

func drainedBody(dryRun bool) func(*tracker.Drained, error) (int, any, error) {
	return func(d *tracker.Drained, err error) (int, any, error) {
		if err != nil {
			return 0, nil, err
		}
		return fasthttp.StatusOK, &v1.DrainWorkersResponse{Matched: d.Matched, Draining: d.Draining, DryRun: dryRun, WorkerIDs: orEmpty(d.Workers)}, nil
	}
}

// drain reads how to drain.
func (c *call) drain(req *v1.DrainRequest) (tracker.Drain, error) {
	var d durations
	drain := tracker.Drain{Reason: req.Reason, Deadline: d.positive("deadlineMs", req.DeadlineMs, time.Millisecond), BySelf: c.who.worker()}
	if d.err != nil {
		return drain, d.err
	}
	return drain, drain.Validate()
}

// optional reads a body that may be missing, and the scope.
func (c *call) optional(req any) (tracker.Scope, error) {
	if err := c.optionalBody(req); err != nil {
		return tracker.Scope{}, err
	}
	return c.scope("", "")
}

// reasoned is optional for a body with a reason, which is checked.
func (c *call) reasoned(req any, reason *string) (tracker.Scope, error) {
	if err := c.optionalBody(req); err != nil {
		return tracker.Scope{}, err
	}
	if err := tracker.CheckReason(*reason); err != nil {
		return tracker.Scope{}, err
	}
	return c.scope("", "")
}

func (c *call) optionalBody(req any) error {
	if len(c.ctx.Request.Body()) == 0 {
		return nil
	}
	return c.strict(req)
}

func (c *call) oneWorker(w *tracker.Worker, err error) (int, any, error) {
	if err != nil {
		return 0, nil, err
	}
	return fasthttp.StatusOK, workerView(w), nil
}
