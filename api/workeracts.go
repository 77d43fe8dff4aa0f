package api

import (
	"cmp"
	"time"

	"github.com/valyala/fasthttp"

	v1 "github.com/lubdub-io/lubdub/sdk/go/v1"
	"github.com/lubdub-io/lubdub/tracker/model"
	"github.com/lubdub-io/lubdub/tracker/workers"
)

// cordonWorker answers POST /v1/workers/{workerId}/cordon.
func (h *workerHandlers) cordonWorker(req *request) (int, any, error) {
	var body v1.ReasonRequest
	scope, err := reasoned(req, &body, &body.Reason)
	if err != nil {
		return 0, nil, err
	}
	return oneWorker(h.Workers.Cordon(req.context(), scope, req.id, body.Reason))
}

// uncordonWorker answers POST /v1/workers/{workerId}/uncordon.
func (h *workerHandlers) uncordonWorker(req *request) (int, any, error) {
	var body v1.ReasonRequest
	scope, err := reasoned(req, &body, &body.Reason)
	if err != nil {
		return 0, nil, err
	}
	return oneWorker(h.Workers.Uncordon(req.context(), scope, req.id, body.Reason))
}

// cordonWorkers answers POST /v1/workers:cordon.
func (h *workerHandlers) cordonWorkers(req *request) (int, any, error) {
	return h.onWorkers(req, workers.Cordon)
}

// uncordonWorkers answers POST /v1/workers:uncordon.
func (h *workerHandlers) uncordonWorkers(req *request) (int, any, error) {
	return h.onWorkers(req, workers.Uncordon)
}

// resumeWorkers answers POST /v1/workers:resume.
func (h *workerHandlers) resumeWorkers(req *request) (int, any, error) {
	return h.onWorkers(req, workers.Resume)
}

func (h *workerHandlers) onWorkers(req *request, act workers.Act) (int, any, error) {
	var body v1.ActOnWorkersRequest
	if err := req.strict(&body); err != nil {
		return 0, nil, err
	}
	return h.actOnWorkers(req, act, &body.Selector, 0, body.Reason, body.DryRun)
}

// offlineWorkers answers POST /v1/workers:offline.
func (h *workerHandlers) offlineWorkers(req *request) (int, any, error) {
	var body v1.OfflineWorkersRequest
	if err := req.strict(&body); err != nil {
		return 0, nil, err
	}
	if body.SilentForMs != nil && body.Selector.SilentForMs != nil {
		return 0, nil, invalidField("silentForMs", "silentForMs stands in the selector and beside it; say it once")
	}
	var d durations
	field := "silentForMs"
	if body.Selector.SilentForMs != nil {
		field = "selector.silentForMs"
	}
	silent := d.positive(field, cmp.Or(body.SilentForMs, body.Selector.SilentForMs), time.Millisecond)
	if d.err != nil {
		return 0, nil, d.err
	}
	return h.actOnWorkers(req, workers.Retire, &body.Selector.WorkerSelector, silent, body.Reason, body.DryRun)
}

func (h *workerHandlers) actOnWorkers(req *request,
	act workers.Act, selector *v1.WorkerSelector, silent time.Duration, reason string, dryRun bool,
) (int, any, error) {
	scope, err := req.scope("", "")
	if err != nil {
		return 0, nil, err
	}
	f, err := workerSelector(scope, selector, silent, act == workers.Retire)
	if err != nil {
		return 0, nil, err
	}
	if err := workers.CheckReason(reason); err != nil {
		return 0, nil, err
	}
	return acted(req, dryRun)(h.Workers.ActOnMany(req.context(), act, f, reason, dryRun))
}

func acted(req *request, dryRun bool) func(*workers.Acted, error) (int, any, error) {
	return func(done *workers.Acted, err error) (int, any, error) {
		if err != nil {
			return 0, nil, err
		}
		req.many = &many{dryRun, done.Matched, done.Done}
		return fasthttp.StatusOK, &v1.ActOnWorkersResponse{Matched: done.Matched, Done: done.Done, DryRun: dryRun,
			WorkerIDs: orEmpty(done.Workers)}, nil
	}
}

// workerSelector reads which workers are meant, bySilence where that may be asked for. One that says nothing is refused: it would mean
// all of them.
func workerSelector(scope model.Scope, s *v1.WorkerSelector, silent time.Duration, bySilence bool) (workers.WorkerFilter, error) {
	f := workers.WorkerFilter{Scope: scope, Labels: s.Labels, Queue: s.Queue, Version: s.Version, MachineID: s.MachineID, SilentFor: silent}
	if len(f.Labels) == 0 && f.Queue == "" && f.Version == "" && f.MachineID == "" && silent == 0 {
		return f, invalidField("selector", "selector says nothing, which would mean every worker; name labels, queue, version or machineId"+
			map[bool]string{true: ", or say silentForMs"}[bySilence])
	}
	return f, f.ValidateSelector()
}
