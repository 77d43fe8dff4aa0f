package api

import (
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/valyala/fasthttp"

	v1 "github.com/lubdub-io/lubdub/sdk/go/v1"
	"github.com/lubdub-io/lubdub/tracker/model"
	"github.com/lubdub-io/lubdub/tracker/schedules"
)

// createSchedule answers POST /v1/schedules.
func (h *scheduleHandlers) createSchedule(req *request) (int, any, error) {
	var body v1.CreateScheduleRequest
	if err := req.strict(&body); err != nil {
		return 0, nil, err
	}
	scope, err := req.scope(body.TenantID, body.WorkspaceID)
	if err != nil {
		return 0, nil, err
	}
	spec := schedules.Spec{Scope: scope, ID: body.ScheduleID, MaxCatchup: schedules.DefaultMaxCatchup}
	change := v1.ChangeScheduleRequest{Cron: &body.Cron, Overlap: body.Overlap, MaxCatchup: body.MaxCatchup, Task: body.Task}
	if err := changeSpec(&spec, &change, true); err != nil {
		return 0, nil, err
	}
	if err := spec.Validate(req.now); err != nil {
		return 0, nil, err
	}
	s, err := h.Schedules.Create(req.context(), spec)
	if err != nil {
		return 0, nil, err
	}
	return fasthttp.StatusCreated, scheduleView(s), nil
}

// changeSpec has a schedule say what a request says; whole: the request must say when it fires and what it creates.
func changeSpec(spec *schedules.Spec, body *v1.ChangeScheduleRequest, whole bool) error {
	switch {
	case body.Cron != nil && (*body.Cron != "" || !whole):
		spec.Cron = *body.Cron
	case whole:
		return invalidField("cron", `cron is missing; say when the schedule fires, for example "0 30 9 * * MON-FRI"`)
	}
	switch body.Overlap {
	case v1.OverlapAllow, v1.OverlapSkip:
		spec.SkipOverlap = body.Overlap == v1.OverlapSkip
	case "":
	default:
		return invalidField("overlap", fmt.Sprintf("overlap is %q; use allow or skip", clip(string(body.Overlap))))
	}
	if body.MaxCatchup != nil {
		spec.MaxCatchup = *body.MaxCatchup
	}
	if body.Task == nil && whole {
		return invalidField("task", "task is missing; say what each fire creates, for example {\"queue\": \"reports\", \"type\": \"daily\"}")
	}
	if body.Task == nil {
		return nil
	}
	if body.Task.TenantID != "" || body.Task.WorkspaceID != "" {
		return invalidField("task.tenantId", "task.tenantId and task.workspaceId are the schedule's; leave them out of its task")
	}
	if body.Task.Traceparent != "" {
		return invalidField("task.traceparent", "task.traceparent would be the same for each task that the schedule creates; leave it out")
	}
	task, err := taskOf(body.Task, spec.Scope)
	var r *refusal
	if errors.As(err, &r) && r.body.Field != "" { // the message begins with the field's name
		return invalidField("task."+r.body.Field, "task."+r.body.Message)
	}
	spec.Task = task
	return err
}

// putSchedule answers PUT /v1/schedules/{scheduleId}.
func (h *scheduleHandlers) putSchedule(req *request) (int, any, error) {
	return h.changeSchedule(req, true)
}

// patchSchedule answers PATCH /v1/schedules/{scheduleId}.
func (h *scheduleHandlers) patchSchedule(req *request) (int, any, error) {
	return h.changeSchedule(req, false)
}

func (h *scheduleHandlers) changeSchedule(req *request, whole bool) (int, any, error) {
	var body v1.ChangeScheduleRequest
	if err := req.strict(&body); err != nil {
		return 0, nil, err
	}
	scope, err := req.scope("", "")
	if err != nil {
		return 0, nil, err
	}
	return oneSchedule(h.Schedules.Change(req.context(), scope, req.id, func(spec *schedules.Spec) error {
		if whole {
			*spec = schedules.Spec{Scope: scope, ID: req.id, MaxCatchup: schedules.DefaultMaxCatchup}
		}
		return changeSpec(spec, &body, whole)
	}))
}

func oneSchedule(s *schedules.Schedule, err error) (int, any, error) {
	if err != nil {
		return 0, nil, err
	}
	return fasthttp.StatusOK, scheduleView(s), nil
}

// getSchedule answers GET /v1/schedules/{scheduleId}.
func (h *scheduleHandlers) getSchedule(req *request) (int, any, error) {
	scope, err := req.scope("", "")
	if err != nil {
		return 0, nil, err
	}
	return oneSchedule(h.Schedules.Get(req.context(), scope, req.id))
}

// listSchedules answers GET /v1/schedules.
func (h *scheduleHandlers) listSchedules(req *request) (int, any, error) {
	scope, err := req.scope("", "")
	if err != nil {
		return 0, nil, err
	}
	p := parameters{Values: req.query}
	filter := schedules.Filter{Scope: scope, Descending: p.descending()}
	paged := filter
	if paged.PageSize, paged.After = p.page(filter); p.err != nil {
		return 0, nil, p.err
	}
	page, err := h.Schedules.List(req.context(), paged)
	if err != nil {
		return 0, nil, err
	}
	list := v1.ScheduleList{
		Schedules: make([]v1.Schedule, len(page.Schedules)), NextPageToken: pageToken(filter, page.Next), TotalCount: page.Total,
	}
	for i, s := range page.Schedules {
		list.Schedules[i] = *scheduleView(s)
	}
	return fasthttp.StatusOK, list, nil
}

// deleteSchedule answers DELETE /v1/schedules/{scheduleId}.
func (h *scheduleHandlers) deleteSchedule(req *request) (int, any, error) {
	scope, err := req.scope("", "")
	if err != nil {
		return 0, nil, err
	}
	if err := h.Schedules.Delete(req.context(), scope, req.id); err != nil {
		return 0, nil, err
	}
	return fasthttp.StatusOK, v1.DeletedSchedule{ScheduleID: req.id, Deleted: true}, nil
}

// pauseSchedule answers POST /v1/schedules/{scheduleId}/pause.
func (h *scheduleHandlers) pauseSchedule(req *request) (int, any, error) {
	scope, err := req.optional(&struct{}{})
	if err != nil {
		return 0, nil, err
	}
	return oneSchedule(h.Schedules.Pause(req.context(), scope, req.id))
}

// resumeSchedule answers POST /v1/schedules/{scheduleId}/resume.
func (h *scheduleHandlers) resumeSchedule(req *request) (int, any, error) {
	scope, err := req.optional(&struct{}{})
	if err != nil {
		return 0, nil, err
	}
	return oneSchedule(h.Schedules.Resume(req.context(), scope, req.id))
}

const defaultNextFires = 10

// nextFires answers GET /v1/schedules/{scheduleId}/next.
func (h *scheduleHandlers) nextFires(req *request) (int, any, error) {
	scope, err := req.scope("", "")
	if err != nil {
		return 0, nil, err
	}
	count := defaultNextFires
	if text := req.query.Get("count"); req.query.Has("count") {
		if count, err = strconv.Atoi(text); err != nil || count < 1 || count > schedules.MaxNext {
			return 0, nil, invalidField("count", fmt.Sprintf("count is %q; use 1 to %d", clip(text), schedules.MaxNext))
		}
	}
	next, err := h.Schedules.NextFires(req.context(), scope, req.id, count)
	if err != nil {
		return 0, nil, err
	}
	answer := v1.NextFires{ScheduleID: req.id, Next: make([]v1.Time, len(next))}
	for i, at := range next {
		answer.Next[i] = v1.At(at)
	}
	return fasthttp.StatusOK, answer, nil
}

// fireSchedule answers POST /v1/schedules/{scheduleId}/fire.
func (h *scheduleHandlers) fireSchedule(req *request) (int, any, error) {
	scope, err := req.optional(&struct{}{})
	if err != nil {
		return 0, nil, err
	}
	f, err := h.Schedules.Fire(req.context(), scope, req.id)
	if err != nil {
		return 0, nil, req.selectionRefusal(err)
	}
	return fasthttp.StatusAccepted, v1.FiredResponse{ScheduleID: req.id, AskedFire: v1.AskedFire{FireAt: v1.At(f.At), TaskID: f.TaskID}}, nil
}

// backfillSchedule answers POST /v1/schedules/{scheduleId}/backfill.
func (h *scheduleHandlers) backfillSchedule(req *request) (int, any, error) {
	var body v1.BackfillRequest
	if err := req.strict(&body); err != nil {
		return 0, nil, err
	}
	for _, end := range []struct {
		field string
		at    time.Time
	}{{"from", body.From.Time}, {"to", body.To.Time}} {
		if end.at.IsZero() {
			return 0, nil, invalidField(end.field, end.field+" is missing; name the time, for example 2025-01-15T10:00:00Z")
		}
	}
	scope, err := req.scope("", "")
	if err != nil {
		return 0, nil, err
	}
	asked, err := h.Schedules.Backfill(req.context(), scope, req.id, body.From.Time, body.To.Time)
	if err != nil {
		return 0, nil, err
	}
	req.api.OweCalls(scope.Tenant, len(asked.Fires), req.local())
	answer := v1.AskedFires{ScheduleID: req.id, Fires: make([]v1.AskedFire, len(asked.Fires)), Skipped: asked.Skipped}
	for i, f := range asked.Fires {
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

// taskSpecView shows what tasks are created from, as it was checked and completed.
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

// some returns nil for 0, which stands for what was not said.
func some(n int64) *int64 {
	if n == 0 {
		return nil
	}
	return &n
}
