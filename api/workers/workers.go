package workers

import (
	"github.com/valyala/fasthttp"

	"github.com/lubdub-io/lubdub/api/convert"
	"github.com/lubdub-io/lubdub/api/httpapi"
	v1 "github.com/lubdub-io/lubdub/sdk/go/v1"
	"github.com/lubdub-io/lubdub/tracker/model"
	"github.com/lubdub-io/lubdub/tracker/workers"
)

// register answers POST /v1/workers.
func (h *Handlers) register(req *httpapi.Request) (int, any, error) {
	var body v1.RegisterWorkerRequest
	if err := req.Strict(&body); err != nil {
		return 0, nil, err
	}
	key, err := registrationKey(req, &body)
	if err != nil {
		return 0, nil, err
	}
	scope, err := req.Scope("", "")
	if err != nil {
		return 0, nil, err
	}
	n := model.NewWorker{
		Scope: scope, Queue: body.Queue, Types: body.Types, Runtimes: body.Runtimes, Name: body.Name,
		MachineID: body.MachineID, Hostname: body.Hostname, PID: body.PID, Version: body.Version,
		MaxConcurrent: model.DefaultMaxConcurrent, Labels: body.Labels, ProbeURL: body.ProbeURL, IdempotencyKey: key,
	}
	if key != "" {
		if n.IdempotencyHash, err = registrationHash(body); err != nil {
			return 0, nil, err
		}
	}
	if body.MaxConcurrent != nil {
		n.MaxConcurrent = *body.MaxConcurrent
	}
	if err := n.Validate(); err != nil {
		return 0, nil, err
	}
	if own := req.Caller.Claims.Queue; own != "" && own != n.Queue {
		return 0, nil, httpapi.Forbidden("The token registers workers of the queue " + own + " only")
	}
	r, err := h.Workers.Register(req.Context(), n)
	if err != nil {
		return 0, nil, err
	}
	token, expires, err := httpapi.MintWorker(req.API.Keys, scope, r, r.At) // a repeat gets the same
	if err != nil {
		return 0, nil, err
	}
	return fasthttp.StatusCreated, &v1.RegisterWorkerResponse{
		WorkerID: r.WorkerID, MachineID: r.MachineID, WorkerToken: token, TokenExpiresAt: v1.At(expires),
		HeartbeatIntervalMs: r.Interval.Milliseconds(), HeartbeatTimeoutMs: r.Timeout.Milliseconds(), Superseded: r.Superseded,
		ShouldDrain: r.ShouldDrain, Capabilities: []string{"exchange"},
	}, nil
}

// registrationKey returns the key that makes a registration repeatable: the header or the field, empty if both are absent.
func registrationKey(req *httpapi.Request, body *v1.RegisterWorkerRequest) (string, error) {
	key, err := req.IdempotencyKey()
	switch id := body.RegistrationID; {
	case err != nil, id == "":
		return key, err
	case !model.ValidID(id):
		return "", httpapi.InvalidID("registrationId")
	case key != "" && key != id:
		return "", httpapi.InvalidField("registrationId", "registrationId differs from the Idempotency-Key; say it once")
	default:
		return id, nil
	}
}

// registrationHash is the same for registrations with the same content.
func registrationHash(body v1.RegisterWorkerRequest) (string, error) {
	body.RegistrationID = "" // it may have been sent as the header before
	return httpapi.HashOf(body)
}

// get answers GET /v1/workers/{workerId}.
func (h *Handlers) get(req *httpapi.Request) (int, any, error) {
	scope, err := req.Scope("", "")
	if err != nil {
		return 0, nil, err
	}
	return answer(h.Workers.Get(req.Context(), scope, req.ID))
}

// list answers GET /v1/workers.
func (h *Handlers) list(req *httpapi.Request) (int, any, error) {
	p := httpapi.Parameters{Values: req.Query}
	filter, err := workerFilter(req, &p)
	if err != nil {
		return 0, nil, err
	}
	paged := filter
	if paged.PageSize, paged.After = p.Page(filter); p.Err != nil {
		return 0, nil, p.Err
	}
	page, err := h.Workers.List(req.Context(), paged)
	if err != nil {
		return 0, nil, err
	}
	list := v1.WorkerList{
		Workers: make([]v1.Worker, len(page.Workers)), TotalCount: page.Total, NextPageToken: httpapi.PageToken(filter, page.Next),
	}
	for i, w := range page.Workers {
		list.Workers[i] = *workerView(w)
	}
	return fasthttp.StatusOK, list, nil
}

// workerFilter reads the filter of a list, without its page.
func workerFilter(req *httpapi.Request, p *httpapi.Parameters) (f workers.WorkerFilter, err error) {
	if f.Scope, err = req.Scope("", ""); err != nil {
		return f, err
	}
	f.Statuses = httpapi.WordsOf(p, "status", model.WorkerStatuses...)
	f.Liveness = httpapi.WordOf(p, "liveness", model.Fresh, model.Late, model.Lost)
	f.Queue, f.Type, f.Runtime, f.MachineID = p.ID("queue"), p.ID("type"), p.ID("runtime"), p.ID("machineId")
	f.Name, f.Version = p.Text("name"), p.Text("version")
	const lastHeartbeat = "lastHeartbeat" // the older name of the order by lastHeartbeatAt
	f.Sort = httpapi.WordOf(p, "sort", workers.ByLastHeartbeat, workers.ByStaleCount, workers.ByUptime, lastHeartbeat)
	if f.Sort == lastHeartbeat {
		f.Sort = workers.ByLastHeartbeat
	}
	f.Descending = p.Descending()
	f.Schedulable, f.Flapping = p.Bool("schedulable"), p.Bool("flapping")
	f.Labels = p.Labels()
	return f, p.Err
}

// selectOne answers POST /v1/workers:select.
func (h *Handlers) selectOne(req *httpapi.Request) (int, any, error) {
	var body v1.SelectWorkerRequest
	scope, err := req.Optional(&body)
	if err != nil {
		return 0, nil, err
	}
	s := model.Selector{Scope: scope, Queue: body.Queue, Type: body.Type, Runtime: body.Runtime, Labels: body.Labels,
		Strategy: body.Strategy}
	if err := s.Validate(); err != nil {
		return 0, nil, err
	}
	found, err := h.Workers.Select(req.Context(), s)
	if err != nil {
		return 0, nil, req.SelectionRefusal(err)
	}
	return fasthttp.StatusOK, &v1.SelectWorkerResponse{Worker: *workerView(found.Worker), Considered: found.Considered,
		Rejected: httpapi.Rejected(found.Rejected)}, nil
}

// workerView converts a worker to its wire type.
func workerView(w *model.Worker) *v1.Worker {
	v := &v1.Worker{
		WorkerID: w.ID, Name: convert.OrNull(w.Name), TenantID: w.Scope.Tenant, WorkspaceID: w.Scope.Workspace,
		Queue: w.Queue, MachineID: w.MachineID, Hostname: convert.OrNull(w.Hostname), Version: convert.OrNull(w.Version),
		Types: convert.OrEmpty(w.Types), Runtimes: convert.OrEmpty(w.Runtimes), Labels: w.Labels,
		Status: v1.WorkerStatus(w.Status), StatusReason: convert.OrNull(w.StatusReason), EndReason: convert.OrNull(string(w.EndReason)),
		Liveness:    v1.Liveness(w.Liveness),
		Schedulable: len(w.Unschedulable) == 0, UnschedulableReasons: make([]string, len(w.Unschedulable)),
		MaxConcurrent: w.MaxConcurrent, ActiveCount: w.ActiveCount, HeldCount: w.Held, PlacedCount: w.Placed,
		TotalCompleted: w.TotalCompleted, TotalFailed: w.TotalFailed,
		RegisteredAt: v1.At(w.RegisteredAt), LastHeartbeatAt: v1.At(w.LastHeartbeatAt),
		DeregisteredAt: v1.At(w.DeregisteredAt), DrainDeadline: v1.At(w.DrainDeadline),
		UptimePct24h: w.Uptime, StaleCount24h: w.StaleCount, Flapping: w.Flapping,
		HeartbeatIntervalMs: w.Interval.Milliseconds(), HeartbeatTimeoutMs: w.Timeout.Milliseconds(),
	}
	for i, f := range w.Unschedulable {
		v.UnschedulableReasons[i] = string(f)
	}
	if c := w.Cordon; c != nil {
		v.Cordon = &v1.WorkerCordon{Since: v1.At(c.Since), Reason: convert.OrNull(c.Reason)}
	}
	v.Hold = holdView(w.Hold)
	if w.PID != 0 {
		v.PID = &w.PID
	}
	if v.Labels == nil {
		v.Labels = map[string]string{}
	}
	if !w.LastHeartbeatAt.IsZero() {
		age := w.Silent.Milliseconds()
		v.LastHeartbeatAgeMs = &age
	}
	return v
}
