package api

import (
	"strings"

	"github.com/valyala/fasthttp"

	v1 "github.com/lubdub-io/lubdub/api/v1"
	"github.com/lubdub-io/lubdub/tracker"
)

// listTasks answers GET /v1/tasks.
func (req *request) listTasks() (int, any, error) {
	f, err := req.taskFilter()
	if err != nil {
		return 0, nil, err
	}
	page, err := req.s.tracker.List(req.context(), f)
	if err != nil {
		return 0, nil, err
	}
	list := v1.TaskList{Tasks: make([]v1.Task, len(page.Tasks))}
	for i, t := range page.Tasks {
		list.Tasks[i] = *taskView(t, false)
	}
	if page.Next != "" {
		list.NextPageToken = pageToken(f, page.Next)
	}
	if page.Total >= 0 {
		list.TotalCount = &page.Total
	}
	return fasthttp.StatusOK, list, nil
}

func (req *request) taskFilter() (f tracker.TaskFilter, err error) {
	if f.Scope, err = req.scope("", ""); err != nil {
		return f, err
	}
	if f.State, err = oneOf(req, "state", tracker.States...); err != nil {
		return f, err
	}
	if f.Liveness, err = oneOf(req, "liveness", tracker.Fresh, tracker.Late, tracker.Lost); err != nil {
		return f, err
	}
	for _, p := range []struct {
		name string
		to   *string
	}{{"runId", &f.RunID}, {"workerId", &f.WorkerID}, {"queue", &f.Queue}, {"type", &f.Type}} {
		if *p.to, err = req.queryID(p.name); err != nil {
			return f, err
		}
	}
	if f.Labels, err = req.queryLabels(); err != nil {
		return f, err
	}
	if f.PageSize, err = req.pageSize(); err != nil {
		return f, err
	}
	if req.query.Has("pageToken") {
		f.After, err = afterOf(f, req.query.Get("pageToken"))
	}
	return f, err
}

// queryLabels reads the label parameters, each key=value; nil when there are none.
func (req *request) queryLabels() (map[string]string, error) {
	var labels map[string]string
	for _, l := range req.query["label"] {
		key, value, found := strings.Cut(l, "=")
		if !found || key == "" {
			return nil, invalidField("label", "label must be key=value, with the value percent-encoded where needed")
		}
		if _, twice := labels[key]; twice {
			return nil, invalidField("label", "label names "+clip(key)+" twice; nothing has two values for one label")
		}
		if labels == nil {
			labels = map[string]string{}
		}
		labels[key] = value
	}
	if len(labels) > tracker.MaxLabels {
		return nil, invalidField("label", "label is given too often; nothing has so many labels")
	}
	return labels, nil
}
