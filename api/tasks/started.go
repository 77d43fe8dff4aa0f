package tasks

import (
	"errors"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/lubdub-io/lubdub/api/httpapi"
	v1 "github.com/lubdub-io/lubdub/sdk/go/v1"
	"github.com/lubdub-io/lubdub/tracker/model"
)

// started answers POST /v1/tasks/{taskId}/started. Repeated calls for the running attempt get the same answer.
func (h *Handlers) started(req *httpapi.Request) (int, any, error) {
	var body v1.StartedRequest
	if err := req.Lenient(&body); err != nil {
		return 0, nil, err
	}
	report, err := report(req, body.Attempt, body.WorkerID, body.StartedAt.Time)
	if err != nil {
		return 0, nil, err
	}
	ack, err := h.attempts.Start(req.Context(), req.Attempt, report)
	if err != nil {
		return 0, nil, cancelledBeforeStart(err)
	}
	req.API.Metrics.Shared().Skew.Observe(body.StartedAt.Time, ack.At)
	answer := v1.StartedResponse{Acknowledged: true, ServerTime: v1.At(ack.At)}
	if ack.Cancel == nil {
		return fasthttp.StatusOK, answer, nil
	}
	answer.ShouldCancel, answer.CancelReason = true, ack.Cancel.Reason
	if ack.Cancel.Delivered {
		return fasthttp.StatusOK, answer, nil
	}
	b, err := httpapi.Marshal(answer)
	if err != nil {
		return 0, nil, err
	}
	httpapi.WriteNotified(req.Ctx, b, func() { h.attempts.CancelDelivered(req.Attempt) })
	return fasthttp.StatusOK, nil, nil
}

// cancelledBeforeStart returns the contract's message for a task that was cancelled first.
func cancelledBeforeStart(err error) error {
	if e, ok := errors.AsType[*model.Error](err); ok && e.Code == model.AlreadyTerminal && e.State == model.Cancelled {
		reworded := *e
		reworded.Message = "Task was cancelled before worker started"
		return &reworded
	}
	return err
}

func checkReport(attempt int, worker string) error {
	if attempt < 1 {
		return httpapi.InvalidField("attempt", "attempt is missing or less than 1; send the attempt of the task's envelope")
	}
	if worker != "" && !model.ValidID(worker) {
		return httpapi.InvalidID("workerId")
	}
	return nil
}

// report checks the fields that all callbacks have.
func report(req *httpapi.Request, attempt int, worker string, at time.Time) (model.Report, error) {
	if err := checkReport(attempt, worker); err != nil {
		return model.Report{}, err
	}
	if req.Attempt == nil {
		a, r := req.API.OwnAttempt(req.Ctx, req.Route.Op, req.Caller, req.ID, attempt)
		if r != nil {
			return model.Report{}, r
		}
		req.Attempt = a
	}
	if r := httpapi.CheckAttempt(req.Attempt, attempt); r != nil {
		return model.Report{}, r
	}
	return model.Report{WorkerID: worker, ReportedAt: at}, nil
}
