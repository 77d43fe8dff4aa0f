package workers

import (
	"encoding/json"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/lubdub-io/lubdub/api/convert"
	"github.com/lubdub-io/lubdub/api/httpapi"
	"github.com/lubdub-io/lubdub/api/internal/beatbody"
	v1 "github.com/lubdub-io/lubdub/sdk/go/v1"
	"github.com/lubdub-io/lubdub/tracker/holdings"
	"github.com/lubdub-io/lubdub/tracker/model"
	"github.com/lubdub-io/lubdub/tracker/workers"
)

// Heartbeat is the part of a body that every heartbeat of a worker may have.
type Heartbeat struct {
	Seq         *int64 `json:"seq"`
	ActiveCount *int   `json:"activeCount"`
	// Their presence matters, too.
	CompletedDelta *int64 `json:"completedDelta"`
	FailedDelta    *int64 `json:"failedDelta"`
}

// Beat returns the heartbeat without attempts, checked.
func (b *Heartbeat) Beat() (workers.WorkerBeat, error) {
	beat := workers.WorkerBeat{
		Active: b.ActiveCount, Seq: b.Seq, CompletedDelta: orZero(b.CompletedDelta), FailedDelta: orZero(b.FailedDelta),
		Deltas: b.CompletedDelta != nil || b.FailedDelta != nil,
	}
	return beat, beat.Validate()
}

// heartbeat answers POST /v1/workers/{workerId}/heartbeat.
func (h *Handlers) heartbeat(req *httpapi.Request) (int, any, error) {
	var body struct {
		Heartbeat
		Tasks []json.RawMessage `json:"tasks"`
	}
	if len(req.Ctx.Request.Body()) > 0 {
		if err := req.Lenient(&body); err != nil {
			return 0, nil, err
		}
	}
	b, err := body.Beat()
	if err != nil {
		return 0, nil, err
	}
	scope, err := req.Scope("", "")
	if err != nil {
		return 0, nil, err
	}
	req.API.ChargeBeats(scope.Tenant, len(body.Tasks), req.Local())
	if b.Inventory, err = beatbody.Items("tasks", body.Tasks); err != nil {
		return 0, nil, err
	}
	answer, result, err := h.Beat(req, scope, b)
	if err != nil {
		return 0, nil, err
	}
	return h.Answer(req, answer, result)
}

// Beat stores a heartbeat of the worker whose token the request has. Its checkpoints are charged; its entries have been.
func (h *Handlers) Beat(req *httpapi.Request, scope model.Scope, b workers.WorkerBeat) (
	answer *v1.WorkerHeartbeatResponse, result *holdings.WorkerBeatResponse, err error,
) {
	for _, items := range [][]holdings.InventoryItem{b.Progress, b.Inventory} {
		charged := 0
		for i := range items {
			charged += beatbody.KiB(items[i].Details)
		}
		req.API.ChargeBeats(scope.Tenant, charged, req.Local())
	}
	if err := req.AsWorker(func() (err error) {
		result, err = h.Workers.Beat(req.Context(), scope, req.ID, b)
		return err
	}); err != nil {
		return nil, nil, err
	}
	req.API.Metrics.AcceptedWorkerBeat()
	var token string
	var expires time.Time
	if !result.Ended { // no token outlives its worker's record
		token, expires = httpapi.RenewedWorker(req.API.Keys, req.Caller.Claims, req.Now)
	}
	answer = &v1.WorkerHeartbeatResponse{
		Accepted: true, ShouldDrain: result.ShouldDrain, DrainDeadline: v1.At(result.DrainDeadline),
		HeartbeatIntervalMs: result.Interval.Milliseconds(), HeartbeatTimeoutMs: result.Timeout.Milliseconds(),
		ServerTime: v1.At(result.At), WorkerToken: token, TokenExpiresAt: v1.At(expires),
	}
	notices(answer, result)
	return answer, result, nil
}

// Answer answers with a body that includes the answer to a heartbeat, or none if result is nil. Once it is written to the connection, the
// notices of the heartbeat count as delivered.
func (h *Handlers) Answer(req *httpapi.Request, body any, result *holdings.WorkerBeatResponse) (int, any, error) {
	if result == nil || len(result.Cancels)+len(result.Lost) == 0 {
		return fasthttp.StatusOK, body, nil
	}
	text, err := httpapi.Marshal(body)
	if err != nil {
		return 0, nil, err
	}
	httpapi.WriteNotified(req.Ctx, text, func() { h.Notices.Notified(result) })
	return fasthttp.StatusOK, nil, nil
}

// notices adds the notices about a worker's attempts to the answer to its beat.
func notices(answer *v1.WorkerHeartbeatResponse, result *holdings.WorkerBeatResponse) {
	answer.CancelTasks = make([]v1.CancelTask, len(result.Cancels))
	for i, n := range result.Cancels {
		answer.CancelTasks[i] = v1.CancelTask{TaskID: n.TaskID, Attempt: n.Attempt, Reason: convert.OrNull(n.Reason)}
	}
	answer.LostTasks = make([]v1.LostTask, len(result.Lost))
	for i, n := range result.Lost {
		answer.LostTasks[i] = v1.LostTask{TaskID: n.TaskID, Attempt: n.Attempt, Error: string(n.Error)}
	}
}

func orZero(n *int64) int64 {
	if n == nil {
		return 0
	}
	return *n
}
