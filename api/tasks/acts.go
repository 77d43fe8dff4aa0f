package tasks

import (
	"net/url"

	"github.com/valyala/fasthttp"

	"github.com/lubdub-io/lubdub/api/httpapi"
	v1 "github.com/lubdub-io/lubdub/sdk/go/v1"
	"github.com/lubdub-io/lubdub/tracker/model"
	"github.com/lubdub-io/lubdub/tracker/tasks"
)

// cancelMany answers POST /v1/tasks:cancel.
func (h *Handlers) cancelMany(req *httpapi.Request) (int, any, error) {
	var body v1.CancelTasksRequest
	if err := req.Strict(&body); err != nil {
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
	return actedOnTasks(req, token, body.DryRun)(h.tasks.CancelMany(req.Context(), f, how, body.DryRun))
}

// retryMany answers POST /v1/tasks:retry.
func (h *Handlers) retryMany(req *httpapi.Request) (int, any, error) {
	var body v1.RetryTasksRequest
	if err := req.Strict(&body); err != nil {
		return 0, nil, err
	}
	f, token, err := taskSelector(req, &body.Selector, body.PageToken)
	if err != nil {
		return 0, nil, err
	}
	return actedOnTasks(req, token, body.DryRun)(h.tasks.RetryMany(req.Context(), f, body.DryRun))
}

func actedOnTasks(req *httpapi.Request, token func(next string) string, dryRun bool) func(*tasks.Acted, error) (int, any, error) {
	return func(a *tasks.Acted, err error) (int, any, error) {
		if err != nil {
			return 0, nil, err
		}
		req.Bulk = &httpapi.BulkResult{DryRun: dryRun, Matched: a.Matched, Done: a.Done}
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

// taskSelector reads the selector, in the same way as the filter of a list, and where to begin. It also returns the function that creates
// the token of the next part, which is valid only for the same operation and selector.
func taskSelector(req *httpapi.Request, s *v1.TaskSelector, from string) (
	f model.TaskFilter, token func(next string) string, err error,
) {
	p := httpapi.Parameters{Values: url.Values{}}
	for name, value := range map[string]string{"state": s.State, "queue": s.Queue, "type": s.Type, "runId": s.RunID, "workerId": s.WorkerID,
		"machineId": s.MachineID, "scheduleId": s.ScheduleID, "reason": s.Reason} {
		if value != "" {
			p.Set(name, value)
		}
	}
	if len(p.Values) == 0 && len(s.Labels) == 0 && s.FinishedAfter.IsZero() {
		return f, nil, httpapi.InvalidField("selector",
			"selector is empty, which would select every task: set at least one of state, queue, type, runId, workerId, "+
				"machineId, scheduleId, labels, reason or finishedAfter")
	}
	if f, err = taskFilter(req, &p); err != nil && p.Err == nil {
		return f, nil, err
	}
	f.Labels, f.FinishedAfter = s.Labels, s.FinishedAfter.Time
	if f.ByEnd() {
		checkEnds(&p, &f)
	}
	if len(f.Labels) > model.MaxLabels {
		p.Refuse(httpapi.InvalidField("labels", "labels has too many entries: no task has so many"))
	}
	if p.Err != nil {
		return f, nil, inSelector(p.Err)
	}
	act := struct {
		Op     string
		Filter model.TaskFilter
	}{req.Route.Op, f}
	if from != "" {
		after, r := httpapi.AfterOf(act, from)
		if r != nil {
			return f, nil, r
		}
		f.After = after
	}
	return f, func(next string) string { return httpapi.PageToken(act, next) }, nil
}

// inSelector changes the field of a refusal to its name within the selector.
func inSelector(err error) error {
	r, ok := err.(*httpapi.Refusal)
	if ok {
		r.Body.Field, r.Body.Message = "selector."+r.Body.Field, "selector."+r.Body.Message
	}
	return err
}
