package tasks

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/lubdub-io/lubdub/api/httpapi"
	v1 "github.com/lubdub-io/lubdub/sdk/go/v1"
	"github.com/lubdub-io/lubdub/tracker/model"
	"github.com/lubdub-io/lubdub/tracker/tasks"
)

// list answers GET /v1/tasks.
func (h *Handlers) list(req *httpapi.Request) (int, any, error) {
	p := httpapi.Parameters{Values: req.Query}
	filter, err := taskFilter(req, &p)
	if err != nil {
		return 0, nil, err
	}
	paged := filter
	if paged.PageSize, paged.After = p.Page(filter); p.Err != nil {
		return 0, nil, p.Err
	}
	page, err := h.tasks.List(req.Context(), paged)
	if err != nil {
		return 0, nil, err
	}
	list := v1.TaskList{Tasks: make([]v1.Task, len(page.Tasks)), NextPageToken: httpapi.PageToken(filter, page.Next)}
	for i, t := range page.Tasks {
		list.Tasks[i] = *taskView(t, false)
	}
	if page.Total >= 0 {
		list.TotalCount = &page.Total
	}
	return fasthttp.StatusOK, list, nil
}

// taskFilter reads the filter of a list, without its page.
func taskFilter(req *httpapi.Request, p *httpapi.Parameters) (f model.TaskFilter, err error) {
	if f.Scope, err = req.Scope("", ""); err != nil {
		return f, err
	}
	f.States = httpapi.WordsOf(p, "state", model.States...)
	f.Liveness = httpapi.WordOf(p, "liveness", model.Fresh, model.Late, model.Lost)
	f.Reason = httpapi.WordOf(p, "reason", model.Reasons...)
	f.RunID, f.WorkerID, f.Queue, f.Type = p.ID("runId"), p.ID("workerId"), p.ID("queue"), p.ID("type")
	f.MachineID, f.ScheduleID = p.ID("machineId"), p.ID("scheduleId")
	f.Claimable = p.Bool("claimable")
	f.Labels = p.Labels()
	f.FinishedAfter, f.FinishedBefore = p.Time("finishedAfter"), p.Time("finishedBefore")
	f.Descending = p.Descending()
	if f.ByEnd() {
		checkEnds(p, &f)
	}
	return f, p.Err
}

// checkEnds refuses filters that no finished task can match.
func checkEnds(p *httpapi.Parameters, f *model.TaskFilter) {
	for _, state := range f.States {
		if !state.Terminal() {
			p.Refuse(httpapi.InvalidField("state", fmt.Sprintf("state is %s, but finishedAfter and finishedBefore select finished tasks: "+
				"omit state, or use SUCCEEDED, FAILED or CANCELLED", state)))
		}
	}
	if !f.FinishedBefore.IsZero() && !f.FinishedAfter.Before(f.FinishedBefore) {
		p.Refuse(httpapi.InvalidField("finishedBefore", "finishedBefore must be later than finishedAfter"))
	}
}

// get answers GET /v1/tasks/{taskId}.
func (h *Handlers) get(req *httpapi.Request) (int, any, error) {
	scope, err := req.Scope("", "")
	if err != nil {
		return 0, nil, err
	}
	p := httpapi.Parameters{Values: req.Query}
	wait := p.Wait(tasks.MaxWait)
	if p.Err != nil {
		return 0, nil, p.Err
	}
	var t *model.Task
	if err := h.await(req, 1, wait, func(ctx context.Context) (err error) {
		t, err = h.tasks.GetWhenEnded(ctx, scope, req.ID, wait)
		return err
	}); err != nil {
		return 0, nil, err
	}
	return fasthttp.StatusOK, taskView(t, true), nil
}

// wait answers POST /v1/tasks:wait.
func (h *Handlers) wait(req *httpapi.Request) (int, any, error) {
	var body v1.WaitTasksRequest
	if err := req.Strict(&body); err != nil {
		return 0, nil, err
	}
	scope, err := req.Scope("", "")
	if err != nil {
		return 0, nil, err
	}
	var d httpapi.Durations
	r := tasks.WaitRequest{Scope: scope, TaskIDs: body.TaskIDs, Wait: d.OrDefault("waitMs", body.WaitMs, time.Millisecond, 0)}
	if d.Err != nil {
		return 0, nil, d.Err
	}
	if err := r.Validate(); err != nil {
		return 0, nil, err
	}
	var ended *tasks.Ended
	if err := h.await(req, len(r.TaskIDs), r.Wait, func(ctx context.Context) (err error) {
		ended, err = h.tasks.Wait(ctx, r)
		return err
	}); err != nil {
		return 0, nil, err
	}
	answer := v1.WaitTasksResponse{Tasks: make([]v1.Task, len(ended.Tasks)), NotFound: append([]string{}, ended.NotFound...)}
	for i, t := range ended.Tasks {
		answer.Tasks[i] = *taskView(t, false)
	}
	return fasthttp.StatusOK, answer, nil
}

// await runs a request that may wait for the ends of n tasks.
func (h *Handlers) await(req *httpapi.Request, n int, wait time.Duration, do func(context.Context) error) error {
	if wait > 0 {
		leave, r := req.EnterWait(h.Awaited, n, "awaited tasks", "fixed", h.refused)
		if r != nil {
			return r
		}
		defer leave()
	}
	err := req.WhileValid(wait > 0, do)
	if errors.Is(err, context.Canceled) {
		return httpapi.Overloaded("This replica is shutting down, or the connection was closed for writing; send the request again")
	}
	return err
}

// getRun answers GET /v1/runs/{runId}.
func (h *Handlers) getRun(req *httpapi.Request) (int, any, error) {
	scope, err := req.Scope("", "")
	if err != nil {
		return 0, nil, err
	}
	r, err := h.tasks.Run(req.Context(), scope, req.ID)
	if err != nil {
		return 0, nil, err
	}
	return fasthttp.StatusOK, runView(r), nil
}

// cancel answers POST /v1/tasks/{taskId}/cancel.
func (h *Handlers) cancel(req *httpapi.Request) (int, any, error) {
	scope, how, err := cancelRequest(req)
	if err != nil {
		return 0, nil, err
	}
	t, err := h.tasks.Cancel(req.Context(), scope, req.ID, how)
	if err != nil {
		return 0, nil, err
	}
	return fasthttp.StatusAccepted, taskView(t, true), nil
}

// cancelRun answers POST /v1/runs/{runId}/cancel.
func (h *Handlers) cancelRun(req *httpapi.Request) (int, any, error) {
	scope, how, err := cancelRequest(req)
	if err != nil {
		return 0, nil, err
	}
	r, err := h.tasks.CancelRun(req.Context(), scope, req.ID, how)
	if err != nil {
		return 0, nil, err
	}
	return fasthttp.StatusAccepted, runView(r), nil
}

// cancelRequest decodes the optional body.
func cancelRequest(req *httpapi.Request) (model.Scope, model.CancelRequest, error) {
	var body v1.CancelRequest
	if err := req.OptionalBody(&body); err != nil {
		return model.Scope{}, model.CancelRequest{}, err
	}
	how, err := howToCancel(&body)
	if err != nil {
		return model.Scope{}, how, err
	}
	scope, err := req.Scope("", "")
	return scope, how, err
}

func howToCancel(body *v1.CancelRequest) (how model.CancelRequest, err error) {
	if len(body.Reason) > model.MaxReasonBytes {
		return how, httpapi.InvalidField("reason", fmt.Sprintf("reason is longer than %d bytes; say it in fewer", model.MaxReasonBytes))
	}
	var d httpapi.Durations
	how = model.CancelRequest{Reason: body.Reason, Grace: d.OrDefault("gracePeriodMs", body.GracePeriodMs, time.Millisecond, 0),
		Now: body.GracePeriodMs != nil && *body.GracePeriodMs == 0}
	if d.Err != nil {
		return how, d.Err
	}
	return how, how.Validate()
}

// nextAttempt answers POST /v1/tasks/{taskId}/attempts: 201 with the envelope of a pushed task, 202 with the task if it waits in its
// queue.
func (h *Handlers) nextAttempt(req *httpapi.Request) (int, any, error) {
	var body v1.NextAttemptRequest
	if err := req.Strict(&body); err != nil {
		return 0, nil, err
	}
	scope, err := req.Scope("", "")
	if err != nil {
		return 0, nil, err
	}
	if body.FromAttempt < 1 {
		return 0, nil, httpapi.InvalidField("fromAttempt", "fromAttempt is missing or less than 1; send the attempt that the new one follows")
	}
	made, err := h.tasks.NextAttempt(req.Context(), scope, req.ID, body.FromAttempt)
	if err != nil {
		return 0, nil, err
	}
	if made.Envelope != nil && httpapi.Permitted[req.Caller.Claims.Role]&httpapi.MayDispatch == 0 {
		// An operator may retry a task, but not run it: the envelope's token is for a dispatcher, which gets it by repeating the request.
		_, task, err := h.get(req)
		return fasthttp.StatusAccepted, task, err
	}
	answer, err := h.answer(made)
	if made.Envelope == nil {
		return fasthttp.StatusAccepted, answer, err
	}
	return fasthttp.StatusCreated, answer, err
}
