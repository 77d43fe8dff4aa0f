package schedules

import (
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/lubdub-io/lubdub/api/convert"
	"github.com/lubdub-io/lubdub/api/httpapi"
	v1 "github.com/lubdub-io/lubdub/sdk/go/v1"
	"github.com/lubdub-io/lubdub/tracker/model"
	"github.com/lubdub-io/lubdub/tracker/schedules"
)

// create answers POST /v1/schedules.
func (h *Handlers) create(req *httpapi.Request) (int, any, error) {
	var body v1.CreateScheduleRequest
	if err := req.Strict(&body); err != nil {
		return 0, nil, err
	}
	scope, err := req.Scope(body.TenantID, body.WorkspaceID)
	if err != nil {
		return 0, nil, err
	}
	spec := schedules.Spec{Scope: scope, ID: body.ScheduleID, MaxCatchup: schedules.DefaultMaxCatchup}
	change := v1.ChangeScheduleRequest{Cron: &body.Cron, Overlap: body.Overlap, MaxCatchup: body.MaxCatchup, Task: body.Task}
	if err := changeSpec(&spec, &change, true); err != nil {
		return 0, nil, err
	}
	if err := spec.Validate(req.Now); err != nil {
		return 0, nil, err
	}
	s, err := h.Schedules.Create(req.Context(), spec)
	if err != nil {
		return 0, nil, err
	}
	return fasthttp.StatusCreated, scheduleView(s), nil
}

// changeSpec applies a request to a schedule; whole: the request must define when it fires and what it creates.
func changeSpec(spec *schedules.Spec, body *v1.ChangeScheduleRequest, whole bool) error {
	switch {
	case body.Cron != nil && (*body.Cron != "" || !whole):
		spec.Cron = *body.Cron
	case whole:
		return httpapi.InvalidField("cron", `cron is missing; say when the schedule fires, for example "0 30 9 * * MON-FRI"`)
	}
	switch body.Overlap {
	case v1.OverlapAllow, v1.OverlapSkip:
		spec.SkipOverlap = body.Overlap == v1.OverlapSkip
	case "":
	default:
		return httpapi.InvalidField("overlap", fmt.Sprintf("overlap is %q; use allow or skip", httpapi.Clip(string(body.Overlap))))
	}
	if body.MaxCatchup != nil {
		spec.MaxCatchup = *body.MaxCatchup
	}
	if body.Task == nil && whole {
		return httpapi.InvalidField("task",
			"task is missing; say what each fire creates, for example {\"queue\": \"reports\", \"type\": \"daily\"}")
	}
	if body.Task == nil {
		return nil
	}
	if body.Task.TenantID != "" || body.Task.WorkspaceID != "" {
		return httpapi.InvalidField("task.tenantId", "task.tenantId and task.workspaceId are the schedule's; leave them out of its task")
	}
	if body.Task.Traceparent != "" {
		return httpapi.InvalidField("task.traceparent",
			"task.traceparent would be the same for each task that the schedule creates; omit it")
	}
	task, err := convert.TaskOf(body.Task, spec.Scope)
	var r *httpapi.Refusal
	if errors.As(err, &r) && r.Body.Field != "" { // the message begins with the field's name
		return httpapi.InvalidField("task."+r.Body.Field, "task."+r.Body.Message)
	}
	spec.Task = task
	return err
}

// put answers PUT /v1/schedules/{scheduleId}.
func (h *Handlers) put(req *httpapi.Request) (int, any, error) {
	return h.change(req, true)
}

// patch answers PATCH /v1/schedules/{scheduleId}.
func (h *Handlers) patch(req *httpapi.Request) (int, any, error) {
	return h.change(req, false)
}

func (h *Handlers) change(req *httpapi.Request, whole bool) (int, any, error) {
	var body v1.ChangeScheduleRequest
	if err := req.Strict(&body); err != nil {
		return 0, nil, err
	}
	scope, err := req.Scope("", "")
	if err != nil {
		return 0, nil, err
	}
	return answer(h.Schedules.Change(req.Context(), scope, req.ID, func(spec *schedules.Spec) error {
		if whole {
			*spec = schedules.Spec{Scope: scope, ID: req.ID, MaxCatchup: schedules.DefaultMaxCatchup}
		}
		return changeSpec(spec, &body, whole)
	}))
}

func answer(s *schedules.Schedule, err error) (int, any, error) {
	if err != nil {
		return 0, nil, err
	}
	return fasthttp.StatusOK, scheduleView(s), nil
}

// get answers GET /v1/schedules/{scheduleId}.
func (h *Handlers) get(req *httpapi.Request) (int, any, error) {
	scope, err := req.Scope("", "")
	if err != nil {
		return 0, nil, err
	}
	return answer(h.Schedules.Get(req.Context(), scope, req.ID))
}

// list answers GET /v1/schedules.
func (h *Handlers) list(req *httpapi.Request) (int, any, error) {
	scope, err := req.Scope("", "")
	if err != nil {
		return 0, nil, err
	}
	p := httpapi.Parameters{Values: req.Query}
	filter := schedules.Filter{Scope: scope, Descending: p.Descending()}
	paged := filter
	if paged.PageSize, paged.After = p.Page(filter); p.Err != nil {
		return 0, nil, p.Err
	}
	page, err := h.Schedules.List(req.Context(), paged)
	if err != nil {
		return 0, nil, err
	}
	list := v1.ScheduleList{
		Schedules: make([]v1.Schedule, len(page.Schedules)), NextPageToken: httpapi.PageToken(filter, page.Next), TotalCount: page.Total,
	}
	for i, s := range page.Schedules {
		list.Schedules[i] = *scheduleView(s)
	}
	return fasthttp.StatusOK, list, nil
}

// remove answers DELETE /v1/schedules/{scheduleId}.
func (h *Handlers) remove(req *httpapi.Request) (int, any, error) {
	scope, err := req.Scope("", "")
	if err != nil {
		return 0, nil, err
	}
	if err := h.Schedules.Delete(req.Context(), scope, req.ID); err != nil {
		return 0, nil, err
	}
	return fasthttp.StatusOK, v1.DeletedSchedule{ScheduleID: req.ID, Deleted: true}, nil
}

// pause answers POST /v1/schedules/{scheduleId}/pause.
func (h *Handlers) pause(req *httpapi.Request) (int, any, error) {
	scope, err := req.Optional(&struct{}{})
	if err != nil {
		return 0, nil, err
	}
	return answer(h.Schedules.Pause(req.Context(), scope, req.ID))
}

// resume answers POST /v1/schedules/{scheduleId}/resume.
func (h *Handlers) resume(req *httpapi.Request) (int, any, error) {
	scope, err := req.Optional(&struct{}{})
	if err != nil {
		return 0, nil, err
	}
	return answer(h.Schedules.Resume(req.Context(), scope, req.ID))
}

const defaultNextFires = 10

// nextFires answers GET /v1/schedules/{scheduleId}/next.
func (h *Handlers) nextFires(req *httpapi.Request) (int, any, error) {
	scope, err := req.Scope("", "")
	if err != nil {
		return 0, nil, err
	}
	count := defaultNextFires
	if text := req.Query.Get("count"); req.Query.Has("count") {
		if count, err = strconv.Atoi(text); err != nil || count < 1 || count > schedules.MaxNext {
			return 0, nil, httpapi.InvalidField("count", fmt.Sprintf("count is %q; use 1 to %d", httpapi.Clip(text), schedules.MaxNext))
		}
	}
	var next []time.Time
	if req.Query.Has("cron") {
		next, err = schedules.PreviewFires(req.Query.Get("cron"), req.Now, count)
	} else {
		next, err = h.Schedules.NextFires(req.Context(), scope, req.ID, count)
	}
	if err != nil {
		return 0, nil, err
	}
	answer := v1.NextFires{ScheduleID: req.ID, Next: make([]v1.Time, len(next))}
	for i, at := range next {
		answer.Next[i] = v1.At(at)
	}
	return fasthttp.StatusOK, answer, nil
}

// fire answers POST /v1/schedules/{scheduleId}/fire.
func (h *Handlers) fire(req *httpapi.Request) (int, any, error) {
	scope, err := req.Optional(&struct{}{})
	if err != nil {
		return 0, nil, err
	}
	f, err := h.Schedules.Fire(req.Context(), scope, req.ID)
	if err != nil {
		return 0, nil, req.SelectionRefusal(err)
	}
	return fasthttp.StatusAccepted, v1.FiredResponse{ScheduleID: req.ID, AskedFire: v1.AskedFire{FireAt: v1.At(f.At), TaskID: f.TaskID}}, nil
}

// backfill answers POST /v1/schedules/{scheduleId}/backfill.
func (h *Handlers) backfill(req *httpapi.Request) (int, any, error) {
	var body v1.BackfillRequest
	if err := req.Strict(&body); err != nil {
		return 0, nil, err
	}
	for _, end := range []struct {
		field string
		at    time.Time
	}{{"from", body.From.Time}, {"to", body.To.Time}} {
		if end.at.IsZero() {
			return 0, nil, httpapi.InvalidField(end.field, end.field+" is missing; name the time, for example 2025-01-15T10:00:00Z")
		}
	}
	scope, err := req.Scope("", "")
	if err != nil {
		return 0, nil, err
	}
	backfill, err := h.Schedules.Backfill(req.Context(), scope, req.ID, body.From.Time, body.To.Time)
	if err != nil {
		return 0, nil, err
	}
	req.API.ChargeCalls(scope.Tenant, len(backfill.Fires), req.Local())
	answer := v1.AskedFires{ScheduleID: req.ID, Fires: make([]v1.AskedFire, len(backfill.Fires)), Skipped: backfill.Skipped}
	for i, f := range backfill.Fires {
		answer.Fires[i] = v1.AskedFire{FireAt: v1.At(f.At), TaskID: f.TaskID}
	}
	return fasthttp.StatusAccepted, answer, nil
}

func scheduleView(s *schedules.Schedule) *v1.Schedule {
	v := &v1.Schedule{
		ScheduleID: s.ID, TenantID: s.Scope.Tenant, WorkspaceID: s.Scope.Workspace, Cron: s.Cron, Overlap: v1.OverlapAllow,
		MaxCatchup: s.MaxCatchup, Task: taskSpecView(&s.Task), Paused: !s.PausedAt.IsZero(), PausedAt: v1.At(s.PausedAt),
		CreatedAt: v1.At(s.CreatedAt), UpdatedAt: v1.At(s.ChangedAt), Last: v1.At(s.Last), Next: v1.At(s.Next), Fired: s.Fires,
		Skipped: s.Skipped, Pending: s.Waiting, Fires: make([]v1.ScheduleFire, len(s.Recent)),
	}
	if s.SkipOverlap {
		v.Overlap = v1.OverlapSkip
	}
	for i, f := range s.Recent {
		v.Fires[i] = v1.ScheduleFire{
			FireAt: v1.At(f.At), Kind: string(f.Kind), Outcome: string(f.Outcome), TaskID: f.TaskID, State: v1.State(f.State),
			Reason: string(f.Reason), Error: f.Error, NotedAt: v1.At(f.NotedAt),
		}
	}
	return v
}

// taskSpecView returns the template of the tasks, as it was checked and completed.
func taskSpecView(n *model.NewTask) *v1.CreateTaskRequest {
	v := &v1.CreateTaskRequest{
		RunID: n.RunID, TaskKey: n.Key, AssetID: n.Asset, Type: n.Type, Queue: n.Queue, Runtime: n.Runtime, WorkerLabels: n.WorkerLabels,
		WorkerID: n.WorkerID, Payload: n.Payload, Resources: n.Resources, Labels: n.Labels,
		StartTimeoutMs: some(n.StartTimeout.Milliseconds()), RunTimeoutMs: some(n.RunTimeout.Milliseconds()),
		HeartbeatIntervalMs: some(n.HeartbeatInterval.Milliseconds()), HeartbeatTimeoutMs: some(n.HeartbeatTimeout.Milliseconds()),
		CancelGracePeriodMs: some(n.CancelGrace.Milliseconds()), TokenTTLSeconds: some(int64(n.TokenTTL / time.Second)),
	}
	if n.Placement != "" {
		v.Placement = &v1.Placement{Strategy: n.Placement}
	}
	if renew := false; n.NoRenewToken {
		v.RenewToken = &renew
	}
	if p := n.Retry; p != nil {
		initial, most := p.InitialBackoff.Milliseconds(), p.MaxBackoff.Milliseconds()
		v.Retry = &v1.RetryPolicy{
			MaxAttempts: &p.MaxAttempts, MaxLosses: &p.MaxLosses, InitialBackoffMs: &initial, Multiplier: &p.Multiplier, MaxBackoffMs: &most,
		}
	}
	return v
}

// some returns nil for 0, which means "absent".
func some(n int64) *int64 {
	if n == 0 {
		return nil
	}
	return &n
}
