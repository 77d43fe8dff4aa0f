package api

import (
	"time"

	"github.com/valyala/fasthttp"

	v1 "github.com/lubdub-io/lubdub/api/v1"
	"github.com/lubdub-io/lubdub/tracker"
)

// started answers POST /v1/tasks/{taskId}/started. Again on the running attempt it gives the same answer.
func (c *call) started() (int, any, error) {
	var req v1.StartedRequest
	if err := c.lenient(&req); err != nil {
		return 0, nil, err
	}
	report, err := c.report(req.Attempt, req.WorkerID, req.StartedAt.Time)
	if err != nil {
		return 0, nil, err
	}
	ack, err := c.s.tracker.Start(c.context(), c.attempt, report)
	if err != nil {
		return 0, nil, err
	}
	c.s.metrics.hot.stripes[0].skew.observe(req.StartedAt.Time, ack.At)
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
	c.s.writeDelivery(c.ctx, b, c.attempt)
	return fasthttp.StatusOK, nil, nil
}

// report checks what every callback says about itself.
func (c *call) report(attempt int, worker string, at time.Time) (tracker.Report, error) {
	if attempt < 1 {
		return tracker.Report{}, invalidField("attempt", "attempt is missing or less than 1; send the attempt of the task's envelope")
	}
	if worker != "" && !tracker.ValidID(worker) {
		return tracker.Report{}, invalidID("workerId")
	}
	if c.attempt == nil {
		a, r := c.s.ownAttempt(c.ctx, c.route.op, c.who, c.id, attempt)
		if r != nil {
			return tracker.Report{}, r
		}
		c.attempt = a
	}
	if r := checkAttempt(c.attempt, attempt); r != nil {
		return tracker.Report{}, r
	}
	return tracker.Report{WorkerID: worker, ReportedAt: at}, nil
}
