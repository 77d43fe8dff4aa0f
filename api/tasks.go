package api

import (
	"fmt"
	"time"

	"github.com/valyala/fasthttp"

	v1 "github.com/lubdub-io/lubdub/sdk/go/v1"
	"github.com/lubdub-io/lubdub/tracker/model"
)

// listTasks answers GET /v1/tasks.
func (h *taskHandlers) listTasks(req *request) (int, any, error) {
	p := parameters{Values: req.query}
	filter, err := taskFilter(req, &p)
	if err != nil {
		return 0, nil, err
	}
	paged := filter
	if paged.PageSize, paged.After = p.page(filter); p.err != nil {
		return 0, nil, p.err
	}
	page, err := h.tasks.List(req.context(), paged)
	if err != nil {
		return 0, nil, err
	}
	list := v1.TaskList{Tasks: make([]v1.Task, len(page.Tasks)), NextPageToken: pageToken(filter, page.Next)}
	for i, t := range page.Tasks {
		list.Tasks[i] = *taskView(t, false)
	}
	if page.Total >= 0 {
		list.TotalCount = &page.Total
	}
	return fasthttp.StatusOK, list, nil
}

// taskFilter reads the filter of a list, without its page.
func taskFilter(req *request, p *parameters) (f model.TaskFilter, err error) {
	if f.Scope, err = req.scope("", ""); err != nil {
		return f, err
	}
	f.States = wordsOf(p, "state", model.States...)
	f.Liveness = wordOf(p, "liveness", model.Fresh, model.Late, model.Lost)
	f.Reason = wordOf(p, "reason", model.Reasons...)
	f.RunID, f.WorkerID, f.Queue, f.Type = p.id("runId"), p.id("workerId"), p.id("queue"), p.id("type")
	f.MachineID, f.ScheduleID = p.id("machineId"), p.id("scheduleId")
	f.Claimable = p.bool("claimable")
	f.Labels = p.labels()
	f.FinishedAfter, f.FinishedBefore = p.time("finishedAfter"), p.time("finishedBefore")
	f.Descending = p.descending()
	if f.ByEnd() {
		checkEnds(p, &f)
	}
	return f, p.err
}

// checkEnds refuses what no finished task can match.
func checkEnds(p *parameters, f *model.TaskFilter) {
	for _, state := range f.States {
		if !state.Terminal() {
			p.refuse(invalidField("state", fmt.Sprintf("state is %s, and finishedAfter and finishedBefore ask for finished tasks; "+
				"leave it out, or use SUCCEEDED, FAILED or CANCELLED", state)))
		}
	}
	if !f.FinishedBefore.IsZero() && !f.FinishedAfter.Before(f.FinishedBefore) {
		p.refuse(invalidField("finishedBefore", "finishedBefore is not later than finishedAfter; nothing ends between them"))
	}
}

// getTask answers GET /v1/tasks/{taskId}.
func (h *taskHandlers) getTask(req *request) (int, any, error) {
	scope, err := req.scope("", "")
	if err != nil {
		return 0, nil, err
	}
	t, err := h.tasks.Get(req.context(), scope, req.id)
	if err != nil {
		return 0, nil, err
	}
	return fasthttp.StatusOK, taskView(t, true), nil
}

// getRun answers GET /v1/runs/{runId}.
func (h *taskHandlers) getRun(req *request) (int, any, error) {
	scope, err := req.scope("", "")
	if err != nil {
		return 0, nil, err
	}
	r, err := h.tasks.Run(req.context(), scope, req.id)
	if err != nil {
		return 0, nil, err
	}
	return fasthttp.StatusOK, runView(r), nil
}

// cancelTask answers POST /v1/tasks/{taskId}/cancel.
func (h *taskHandlers) cancelTask(req *request) (int, any, error) {
	scope, how, err := cancelRequest(req)
	if err != nil {
		return 0, nil, err
	}
	t, err := h.tasks.Cancel(req.context(), scope, req.id, how)
	if err != nil {
		return 0, nil, err
	}
	return fasthttp.StatusAccepted, taskView(t, true), nil
}

// cancelRun answers POST /v1/runs/{runId}/cancel.
func (h *taskHandlers) cancelRun(req *request) (int, any, error) {
	scope, how, err := cancelRequest(req)
	if err != nil {
		return 0, nil, err
	}
	r, err := h.tasks.CancelRun(req.context(), scope, req.id, how)
	if err != nil {
		return 0, nil, err
	}
	return fasthttp.StatusAccepted, runView(r), nil
}

// cancelRequest reads the body, which may be missing.
func cancelRequest(req *request) (model.Scope, model.CancelRequest, error) {
	var body v1.CancelRequest
	if err := req.optionalBody(&body); err != nil {
		return model.Scope{}, model.CancelRequest{}, err
	}
	how, err := howToCancel(&body)
	if err != nil {
		return model.Scope{}, how, err
	}
	scope, err := req.scope("", "")
	return scope, how, err
}

func howToCancel(body *v1.CancelRequest) (how model.CancelRequest, err error) {
	if len(body.Reason) > model.MaxReasonBytes {
		return how, invalidField("reason", fmt.Sprintf("reason is longer than %d bytes; say it in fewer", model.MaxReasonBytes))
	}
	var d durations
	how = model.CancelRequest{Reason: body.Reason, Grace: d.some("gracePeriodMs", body.GracePeriodMs, time.Millisecond, 0),
		Now: body.GracePeriodMs != nil && *body.GracePeriodMs == 0}
	if d.err != nil {
		return how, d.err
	}
	return how, how.Validate()
}

// nextAttempt answers POST /v1/tasks/{taskId}/attempts: 201 with the envelope of a pushed task, 202 with the
// task when it waits in its queue.
func (h *taskHandlers) nextAttempt(req *request) (int, any, error) {
	var body v1.NextAttemptRequest
	if err := req.strict(&body); err != nil {
		return 0, nil, err
	}
	scope, err := req.scope("", "")
	if err != nil {
		return 0, nil, err
	}
	if body.FromAttempt < 1 {
		return 0, nil, invalidField("fromAttempt", "fromAttempt is missing or less than 1; send the attempt that the new one follows")
	}
	made, err := h.tasks.NextAttempt(req.context(), scope, req.id, body.FromAttempt)
	if err != nil {
		return 0, nil, err
	}
	if made.Envelope != nil && permitted[req.who.claims.Role]&mayDispatch == 0 {
		// An operator may retry a task, but not run it: the envelope's token is for a dispatcher, which gets it by asking again.
		_, task, err := h.getTask(req)
		return fasthttp.StatusAccepted, task, err
	}
	answer, err := h.answer(made)
	if made.Envelope == nil {
		return fasthttp.StatusAccepted, answer, err
	}
	return fasthttp.StatusCreated, answer, err
}
