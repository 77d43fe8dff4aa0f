package workers

import (
	"cmp"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/lubdub-io/lubdub/api/convert"
	"github.com/lubdub-io/lubdub/api/httpapi"
	v1 "github.com/lubdub-io/lubdub/sdk/go/v1"
	"github.com/lubdub-io/lubdub/tracker/model"
	"github.com/lubdub-io/lubdub/tracker/workers"
)

// cordon answers POST /v1/workers/{workerId}/cordon.
func (h *Handlers) cordon(req *httpapi.Request) (int, any, error) {
	var body v1.ReasonRequest
	scope, err := reasoned(req, &body, &body.Reason)
	if err != nil {
		return 0, nil, err
	}
	return answer(h.Workers.Cordon(req.Context(), scope, req.ID, body.Reason))
}

// uncordon answers POST /v1/workers/{workerId}/uncordon.
func (h *Handlers) uncordon(req *httpapi.Request) (int, any, error) {
	var body v1.ReasonRequest
	scope, err := reasoned(req, &body, &body.Reason)
	if err != nil {
		return 0, nil, err
	}
	return answer(h.Workers.Uncordon(req.Context(), scope, req.ID, body.Reason))
}

// cordonMany answers POST /v1/workers:cordon.
func (h *Handlers) cordonMany(req *httpapi.Request) (int, any, error) {
	return h.onMany(req, workers.Cordon)
}

// uncordonMany answers POST /v1/workers:uncordon.
func (h *Handlers) uncordonMany(req *httpapi.Request) (int, any, error) {
	return h.onMany(req, workers.Uncordon)
}

// resumeMany answers POST /v1/workers:resume.
func (h *Handlers) resumeMany(req *httpapi.Request) (int, any, error) {
	return h.onMany(req, workers.Resume)
}

func (h *Handlers) onMany(req *httpapi.Request, act workers.Act) (int, any, error) {
	var body v1.ActOnWorkersRequest
	if err := req.Strict(&body); err != nil {
		return 0, nil, err
	}
	return h.actOnWorkers(req, act, &body.Selector, 0, body.Reason, body.DryRun)
}

// offlineMany answers POST /v1/workers:offline.
func (h *Handlers) offlineMany(req *httpapi.Request) (int, any, error) {
	var body v1.OfflineWorkersRequest
	if err := req.Strict(&body); err != nil {
		return 0, nil, err
	}
	if body.SilentForMs != nil && body.Selector.SilentForMs != nil {
		return 0, nil, httpapi.InvalidField("silentForMs", "silentForMs is in the selector and in the request; set it once")
	}
	var d httpapi.Durations
	field := "silentForMs"
	if body.Selector.SilentForMs != nil {
		field = "selector.silentForMs"
	}
	silent := d.Positive(field, cmp.Or(body.SilentForMs, body.Selector.SilentForMs), time.Millisecond)
	if d.Err != nil {
		return 0, nil, d.Err
	}
	return h.actOnWorkers(req, workers.Retire, &body.Selector.WorkerSelector, silent, body.Reason, body.DryRun)
}

func (h *Handlers) actOnWorkers(req *httpapi.Request,
	act workers.Act, selector *v1.WorkerSelector, silent time.Duration, reason string, dryRun bool,
) (int, any, error) {
	scope, err := req.Scope("", "")
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
	return acted(req, dryRun)(h.Workers.ActOnMany(req.Context(), act, f, reason, dryRun))
}

func acted(req *httpapi.Request, dryRun bool) func(*workers.Acted, error) (int, any, error) {
	return func(done *workers.Acted, err error) (int, any, error) {
		if err != nil {
			return 0, nil, err
		}
		req.Bulk = &httpapi.BulkResult{DryRun: dryRun, Matched: done.Matched, Done: done.Done}
		return fasthttp.StatusOK, &v1.ActOnWorkersResponse{Matched: done.Matched, Done: done.Done, DryRun: dryRun,
			WorkerIDs: convert.OrEmpty(done.Workers)}, nil
	}
}

// workerSelector reads the selector, with bySilence also by silence. An empty one is refused, because it would select all workers.
func workerSelector(scope model.Scope, s *v1.WorkerSelector, silent time.Duration, bySilence bool) (workers.WorkerFilter, error) {
	f := workers.WorkerFilter{Scope: scope, Labels: s.Labels, Queue: s.Queue, Version: s.Version, MachineID: s.MachineID, SilentFor: silent}
	if len(f.Labels) == 0 && f.Queue == "" && f.Version == "" && f.MachineID == "" && silent == 0 {
		return f, httpapi.InvalidField("selector",
			"selector is empty, which would select every worker: set at least one of labels, queue, version or machineId"+
				map[bool]string{true: ", or say silentForMs"}[bySilence])
	}
	return f, f.ValidateSelector()
}
