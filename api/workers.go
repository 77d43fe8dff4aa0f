package api

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"time"

	"github.com/valyala/fasthttp"

	v1 "github.com/lubdub-io/lubdub/api/v1"
	"github.com/lubdub-io/lubdub/tracker"
)

// registerWorker answers POST /v1/workers.
func (c *call) registerWorker() (int, any, error) {
	var req v1.RegisterWorkerRequest
	if err := c.strict(&req); err != nil {
		return 0, nil, err
	}
	key, err := c.registrationKey(&req)
	if err != nil {
		return 0, nil, err
	}
	scope, err := c.scope("", "")
	if err != nil {
		return 0, nil, err
	}
	n := tracker.NewWorker{
		Scope: scope, Queue: req.Queue, Types: req.Types, Runtimes: req.Runtimes, Name: req.Name,
		MachineID: req.MachineID, Hostname: req.Hostname, PID: req.PID, Version: req.Version,
		MaxConcurrent: tracker.DefaultMaxConcurrent, Labels: req.Labels, ProbeURL: req.ProbeURL, IdempotencyKey: key,
	}
	if key != "" {
		if n.IdempotencyHash, err = registrationHash(req); err != nil {
			return 0, nil, err
		}
	}
	if req.MaxConcurrent != nil {
		n.MaxConcurrent = *req.MaxConcurrent
	}
	if err := n.Validate(); err != nil {
		return 0, nil, err
	}
	if own := c.who.claims.Queue; own != "" && own != n.Queue {
		return 0, nil, forbidden("The token registers workers of the queue " + own + " only")
	}
	r, err := c.s.tracker.Register(c.context(), n)
	if err != nil {
		return 0, nil, err
	}
	token, expires, err := mintWorker(c.s.keys, scope, r, r.At) // a repeat gets the same
	if err != nil {
		return 0, nil, err
	}
	return fasthttp.StatusCreated, &v1.RegisterWorkerResponse{
		WorkerID: r.WorkerID, MachineID: r.MachineID, WorkerToken: token, TokenExpiresAt: v1.At(expires),
		HeartbeatIntervalMs: r.Interval.Milliseconds(), HeartbeatTimeoutMs: r.Timeout.Milliseconds(), Superseded: r.Superseded,
	}, nil
}

// registrationKey gives what makes a registration repeatable: the header or the field, empty when neither is there.
func (c *call) registrationKey(req *v1.RegisterWorkerRequest) (string, error) {
	key, err := c.idempotencyKey()
	switch id := req.RegistrationID; {
	case err != nil, id == "":
		return key, err
	case !tracker.ValidID(id):
		return "", invalidID("registrationId")
	case key != "" && key != id:
		return "", invalidField("registrationId", "registrationId differs from the Idempotency-Key; say it once")
	default:
		return id, nil
	}
}

// registrationHash is the same for registrations that say the same.
func registrationHash(req v1.RegisterWorkerRequest) (string, error) {
	req.RegistrationID = "" // it may have come as a header before
	b, err := json.Marshal(req)
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:]), nil
}

// workerHeartbeat answers POST /v1/workers/{workerId}/heartbeat.
func (c *call) workerHeartbeat() (int, any, error) {
	var req struct {
		v1.WorkerHeartbeatRequest
		// Whether they are there counts, too.
		CompletedDelta *int64 `json:"completedDelta"`
		FailedDelta    *int64 `json:"failedDelta"`
		// Each entry is read as a beat is.
		Tasks []json.RawMessage `json:"tasks"`
	}
	if len(c.ctx.Request.Body()) > 0 {
		if err := c.lenient(&req); err != nil {
			return 0, nil, err
		}
	}
	b := tracker.WorkerBeat{
		Active: req.ActiveCount, Seq: req.Seq, CompletedDelta: orZero(req.CompletedDelta), FailedDelta: orZero(req.FailedDelta),
		Deltas: req.CompletedDelta != nil || req.FailedDelta != nil,
	}
	if err := b.Validate(); err != nil {
		return 0, nil, err
	}
	scope, err := c.scope("", "")
	if err != nil {
		return 0, nil, err
	}
	c.s.tenantBeats.owe(scope.Tenant, len(req.Tasks), c.local())
	if b.Inventory, err = inventory(req.Tasks); err != nil {
		return 0, nil, err
	}
	var heard *tracker.WorkerHeard
	if err := c.asWorker(func() (err error) {
		heard, err = c.s.tracker.BeatWorker(c.context(), scope, c.id, b)
		return err
	}); err != nil {
		return 0, nil, err
	}
	var token string
	var expires time.Time
	if !heard.Ended { // no token outlives its worker's record
		token, expires = renewedWorker(c.s.keys, c.who.claims, c.now)
	}
	answer := &v1.WorkerHeartbeatResponse{
		Accepted: true, ShouldDrain: heard.ShouldDrain, DrainDeadline: v1.At(heard.DrainDeadline),
		HeartbeatIntervalMs: heard.Interval.Milliseconds(), HeartbeatTimeoutMs: heard.Timeout.Milliseconds(),
		ServerTime: v1.At(heard.At), WorkerToken: token, TokenExpiresAt: v1.At(expires),
	}
	notices(answer, heard)
	if len(heard.Cancels)+len(heard.Lost) == 0 {
		return fasthttp.StatusOK, answer, nil
	}
	body, err := marshal(answer)
	if err != nil {
		return 0, nil, err
	}
	writeTold(c.ctx, body, func() { c.s.tracker.Notified(heard) })
	return fasthttp.StatusOK, nil, nil
}

// getWorker answers GET /v1/workers/{workerId}.
func (c *call) getWorker() (int, any, error) {
	scope, err := c.scope("", "")
	if err != nil {
		return 0, nil, err
	}
	return c.oneWorker(c.s.tracker.Worker(c.context(), scope, c.id))
}

// listWorkers answers GET /v1/workers.
func (c *call) listWorkers() (int, any, error) {
	f, err := c.workerFilter()
	if err != nil {
		return 0, nil, err
	}
	page, err := c.s.tracker.Workers(c.context(), f)
	if err != nil {
		return 0, nil, err
	}
	list := v1.WorkerList{Workers: make([]v1.Worker, len(page.Workers)), TotalCount: page.Total}
	for i, w := range page.Workers {
		list.Workers[i] = *workerView(w)
	}
	if page.Next != "" {
		list.NextPageToken = pageTokenOf(filterOf(f), page.Next)
	}
	return fasthttp.StatusOK, list, nil
}

// filterOf is what a page token of a filter is bound to.
func filterOf(f tracker.WorkerFilter) tracker.WorkerFilter {
	f.PageSize, f.After = 0, ""
	return f
}

func (c *call) workerFilter() (f tracker.WorkerFilter, err error) {
	if f.Scope, err = c.scope("", ""); err != nil {
		return f, err
	}
	if f.Status, err = oneOf(c, "status", tracker.WorkerStatuses...); err != nil {
		return f, err
	}
	if f.Liveness, err = oneOf(c, "liveness", tracker.Fresh, tracker.Late, tracker.Lost); err != nil {
		return f, err
	}
	for _, p := range []struct {
		name string
		to   *string
	}{{"queue", &f.Queue}, {"type", &f.Type}, {"runtime", &f.Runtime}, {"machineId", &f.MachineID}} {
		if *p.to, err = c.queryID(p.name); err != nil {
			return f, err
		}
	}
	schedulable, err := oneOf(c, "schedulable", "true", "false")
	if err != nil {
		return f, err
	}
	if schedulable != "" {
		yes := schedulable == "true"
		f.Schedulable = &yes
	}
	if f.Labels, err = c.queryLabels(); err != nil {
		return f, err
	}
	if f.PageSize, err = c.pageSize(); err != nil {
		return f, err
	}
	if c.query.Has("pageToken") {
		f.After, err = afterIn(filterOf(f), c.query.Get("pageToken"))
	}
	return f, err
}

// selectWorker answers POST /v1/workers:select.
func (c *call) selectWorker() (int, any, error) {
	var req v1.SelectWorkerRequest
	scope, err := c.optional(&req)
	if err != nil {
		return 0, nil, err
	}
	s := tracker.Selector{Scope: scope, Queue: req.Queue, Type: req.Type, Runtime: req.Runtime, Labels: req.Labels, Strategy: req.Strategy}
	if err := s.Validate(); err != nil {
		return 0, nil, err
	}
	found, err := c.s.tracker.Select(c.context(), s)
	if err != nil {
		return 0, nil, selectionRefusal(err)
	}
	return fasthttp.StatusOK, &v1.SelectWorkerResponse{Worker: *workerView(found.Worker), Considered: found.Considered, Rejected: rejectedView(found.Rejected)}, nil
}

// selectionRefusal adds the counts to the refusal of a selection that left nobody.
func selectionRefusal(err error) error {
	var nobody *tracker.SelectionError
	if !errors.As(err, &nobody) {
		return err
	}
	r := refusalOf("select", err)
	rejected := rejectedView(nobody.Rejected)
	r.body.Considered, r.body.Rejected = &nobody.Considered, &rejected
	return r
}

func rejectedView(n map[tracker.Filter]int) v1.Rejected {
	return v1.Rejected{
		Runtime: n[tracker.ByRuntime], Type: n[tracker.ByType], Labels: n[tracker.ByLabels],
		Status: n[tracker.ByStatus], Stale: n[tracker.ByFreshness], Full: n[tracker.ByCapacity],
	}
}

// workerView gives a worker as the wire has it.
func workerView(w *tracker.Worker) *v1.Worker {
	v := &v1.Worker{
		WorkerID: w.ID, Name: orNull(w.Name), TenantID: w.Scope.Tenant, WorkspaceID: w.Scope.Workspace,
		Queue: w.Queue, MachineID: w.MachineID, Hostname: orNull(w.Hostname), Version: orNull(w.Version),
		Types: orEmpty(w.Types), Runtimes: orEmpty(w.Runtimes), Labels: w.Labels,
		Status: v1.WorkerStatus(w.Status), StatusReason: orNull(w.StatusReason), EndReason: orNull(string(w.EndReason)), Liveness: v1.Liveness(w.Liveness),
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

func orZero(n *int64) int64 {
	if n == nil {
		return 0
	}
	return *n
}

func orEmpty(s []string) []string {
	if s == nil {
		return []string{}
	}
	return s
}
