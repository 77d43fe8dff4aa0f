package api

import (
	"net/url"

	"github.com/valyala/fasthttp"

	v1 "github.com/lubdub-io/lubdub/sdk/go/v1"
	"github.com/lubdub-io/lubdub/tracker/model"
	"github.com/lubdub-io/lubdub/tracker/tasks"
)

// cancelTasks answers POST /v1/tasks:cancel.
func (h *taskHandlers) cancelTasks(req *request) (int, any, error) {
	var body v1.CancelTasksRequest
	if err := req.strict(&body); err != nil {
		return 0, nil, err
	}
	how, err := howToCancel(&body.CancelRequest)
	if err != nil {
		return 0, nil, err
	}
	f, token, err := taskSelector(req, &body.Selector, body.PageToken)
	if err != nil {
		return 0, nil, err
	}
	return actedOnTasks(req, token, body.DryRun)(h.tasks.CancelMany(req.context(), f, how, body.DryRun))
}

// retryTasks answers POST /v1/tasks:retry.
func (h *taskHandlers) retryTasks(req *request) (int, any, error) {
	var body v1.RetryTasksRequest
	if err := req.strict(&body); err != nil {
		return 0, nil, err
	}
	f, token, err := taskSelector(req, &body.Selector, body.PageToken)
	if err != nil {
		return 0, nil, err
	}
	return actedOnTasks(req, token, body.DryRun)(h.tasks.RetryMany(req.context(), f, body.DryRun))
}

func actedOnTasks(req *request, token func(next string) string, dryRun bool) func(*tasks.Acted, error) (int, any, error) {
	return func(a *tasks.Acted, err error) (int, any, error) {
		if err != nil {
			return 0, nil, err
		}
		req.many = &many{dryRun, a.Matched, a.Done}
		r := &v1.ActOnTasksResponse{Matched: a.Matched, Done: a.Done, Refused: map[string]int{}, NextPageToken: token(a.Next)}
		if dryRun {
			r.WouldDo = &a.WouldDo
		}
		for code, n := range a.Refused {
			r.Refused[string(code)] = n
		}
		return fasthttp.StatusOK, r, nil
	}
}

// taskSelector reads which tasks are meant, as the filter of a list is read, and where to begin. It also returns how the token of
// the next part is made, which holds for the same operation and selector only.
func taskSelector(req *request, s *v1.TaskSelector, from string) (
	f model.TaskFilter, token func(next string) string, err error,
) {
	p := parameters{Values: url.Values{}}
	for name, value := range map[string]string{"state": s.State, "queue": s.Queue, "type": s.Type, "runId": s.RunID, "workerId": s.WorkerID,
		"machineId": s.MachineID, "scheduleId": s.ScheduleID, "reason": s.Reason} {
		if value != "" {
			p.Set(name, value)
		}
	}
	if len(p.Values) == 0 && len(s.Labels) == 0 && s.FinishedAfter.IsZero() {
		return f, nil, invalidField("selector", "selector says nothing, which would mean every task; name state, queue, type, runId, workerId, "+
			"machineId, scheduleId, labels, reason or finishedAfter")
	}
	if f, err = taskFilter(req, &p); err != nil && p.err == nil {
		return f, nil, err
	}
	f.Labels, f.FinishedAfter = s.Labels, s.FinishedAfter.Time
	if f.ByEnd() {
		checkEnds(&p, &f)
	}
	if len(f.Labels) > model.MaxLabels {
		p.refuse(invalidField("labels", "labels has too many; nothing has so many labels"))
	}
	if p.err != nil {
		return f, nil, inSelector(p.err)
	}
	act := struct {
		Op     string
		Filter model.TaskFilter
	}{req.route.op, f}
	if from != "" {
		after, r := afterOf(act, from)
		if r != nil {
			return f, nil, r
		}
		f.After = after
	}
	return f, func(next string) string { return pageToken(act, next) }, nil
}

// inSelector says that the field of a refusal stands in the selector.
func inSelector(err error) error {
	r, ok := err.(*refusal)
	if ok {
		r.body.Field, r.body.Message = "selector."+r.body.Field, "selector."+r.body.Message
	}
	return err
}
