package api

import (
	"errors"
	"time"

	"github.com/valyala/fasthttp"

	v1 "github.com/lubdub-io/lubdub/sdk/go/v1"
	"github.com/lubdub-io/lubdub/tracker/model"
)

// started answers POST /v1/tasks/{taskId}/started. Called again for the running attempt it gives the same answer.
func (h *taskHandlers) started(req *request) (int, any, error) {
	var body v1.StartedRequest
	if err := req.lenient(&body); err != nil {
		return 0, nil, err
	}
	report, err := h.report(req, body.Attempt, body.WorkerID, body.StartedAt.Time)
	if err != nil {
		return 0, nil, err
	}
	ack, err := h.attempts.Start(req.context(), req.attempt, report)
	if err != nil {
		return 0, nil, cancelledBeforeStart(err)
	}
	req.api.Metrics.Shared().skew.observe(body.StartedAt.Time, ack.At)
	answer := v1.StartedResponse{Acknowledged: true, ServerTime: v1.At(ack.At)}
	if ack.Cancel == nil {
		return fasthttp.StatusOK, answer, nil
	}
	answer.ShouldCancel, answer.CancelReason = true, ack.Cancel.Reason
	if ack.Cancel.Delivered {
		return fasthttp.StatusOK, answer, nil
	}
	b, err := marshal(answer)
	if err != nil {
		return 0, nil, err
	}
	writeNotified(req.ctx, b, func() { h.attempts.CancelDelivered(req.attempt) })
	return fasthttp.StatusOK, nil, nil
}

// cancelledBeforeStart says in the contract's words that the task was cancelled first.
func cancelledBeforeStart(err error) error {
	if e, ok := errors.AsType[*model.Error](err); ok && e.Code == model.AlreadyTerminal && e.State == model.Cancelled {
		said := *e
		said.Message = "Task was cancelled before worker started"
		return &said
	}
	return err
}

// report checks what every callback reports about itself.
func (h *taskHandlers) report(req *request, attempt int, worker string, at time.Time) (model.Report, error) {
	if attempt < 1 {
		return model.Report{}, invalidField("attempt", "attempt is missing or less than 1; send the attempt of the task's envelope")
	}
	if worker != "" && !model.ValidID(worker) {
		return model.Report{}, invalidID("workerId")
	}
	if req.attempt == nil {
		a, r := req.api.ownAttempt(req.ctx, req.route.op, req.who, req.id, attempt)
		if r != nil {
			return model.Report{}, r
		}
		req.attempt = a
	}
	if r := checkAttempt(req.attempt, attempt); r != nil {
		return model.Report{}, r
	}
	return model.Report{WorkerID: worker, ReportedAt: at}, nil
}
