package workers

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/lubdub-io/lubdub/api/convert"
	"github.com/lubdub-io/lubdub/api/httpapi"
	"github.com/lubdub-io/lubdub/api/internal/beatbody"
	"github.com/lubdub-io/lubdub/api/internal/jsonscan"
	v1 "github.com/lubdub-io/lubdub/sdk/go/v1"
	"github.com/lubdub-io/lubdub/tracker/holdings"
	"github.com/lubdub-io/lubdub/tracker/model"
	"github.com/lubdub-io/lubdub/tracker/schema"
	"github.com/lubdub-io/lubdub/tracker/workers"
)

// heartbeat answers POST /v1/workers/{workerId}/heartbeat.
func (h *Handlers) heartbeat(req *httpapi.Request) (int, any, error) {
	var body struct {
		v1.WorkerHeartbeatRequest
		// Their presence matters, too.
		CompletedDelta *int64 `json:"completedDelta"`
		FailedDelta    *int64 `json:"failedDelta"`
		// Each entry is decoded as a beat is.
		Tasks []json.RawMessage `json:"tasks"`
	}
	if len(req.Ctx.Request.Body()) > 0 {
		if err := req.Lenient(&body); err != nil {
			return 0, nil, err
		}
	}
	b := workers.WorkerBeat{
		Active: body.ActiveCount, Seq: body.Seq, CompletedDelta: orZero(body.CompletedDelta), FailedDelta: orZero(body.FailedDelta),
		Deltas: body.CompletedDelta != nil || body.FailedDelta != nil,
	}
	if err := b.Validate(); err != nil {
		return 0, nil, err
	}
	scope, err := req.Scope("", "")
	if err != nil {
		return 0, nil, err
	}
	req.API.ChargeBeats(scope.Tenant, len(body.Tasks), req.Local())
	if b.Inventory, err = inventory(body.Tasks); err != nil {
		return 0, nil, err
	}
	for _, item := range b.Inventory {
		req.API.ChargeBeats(scope.Tenant, beatbody.KiB(item.Details), req.Local())
	}
	var result *holdings.WorkerBeatResponse
	if err := req.AsWorker(func() (err error) {
		result, err = h.Workers.Beat(req.Context(), scope, req.ID, b)
		return err
	}); err != nil {
		return 0, nil, err
	}
	var token string
	var expires time.Time
	if !result.Ended { // no token outlives its worker's record
		token, expires = httpapi.RenewedWorker(req.API.Keys, req.Caller.Claims, req.Now)
	}
	answer := &v1.WorkerHeartbeatResponse{
		Accepted: true, ShouldDrain: result.ShouldDrain, DrainDeadline: v1.At(result.DrainDeadline),
		HeartbeatIntervalMs: result.Interval.Milliseconds(), HeartbeatTimeoutMs: result.Timeout.Milliseconds(),
		ServerTime: v1.At(result.At), WorkerToken: token, TokenExpiresAt: v1.At(expires),
	}
	notices(answer, result)
	if len(result.Cancels)+len(result.Lost) == 0 {
		return fasthttp.StatusOK, answer, nil
	}
	text, err := httpapi.Marshal(answer)
	if err != nil {
		return 0, nil, err
	}
	httpapi.WriteNotified(req.Ctx, text, func() { h.Notices.Notified(result) })
	return fasthttp.StatusOK, nil, nil
}

// inventory decodes the tasks that a worker lists; nil if it has no list. Each entry is decoded as a beat is.
func inventory(tasks []json.RawMessage) ([]holdings.InventoryItem, error) {
	if tasks == nil {
		return nil, nil
	}
	items := make([]holdings.InventoryItem, len(tasks))
	for i, raw := range tasks {
		var b beatbody.Body
		field := func(name string) string { return fmt.Sprintf("tasks[%d].%s", i, name) }
		s := jsonscan.Scanner{Text: raw}
		switch {
		case s.Peek() != '{' || !b.Decode(&s, true):
			return nil, httpapi.InvalidField(fmt.Sprintf("tasks[%d]", i), fmt.Sprintf("tasks[%d] is not an object", i))
		case b.Seen&beatbody.FieldTaskID == 0 || !model.ValidID(b.TaskID):
			return nil, httpapi.InvalidID(field("taskId"))
		}
		if r := b.Check(); r != nil {
			return nil, httpapi.InvalidField(field(r.Body.Field), fmt.Sprintf("tasks[%d]: %s", i, r.Body.Message))
		}
		items[i] = holdings.InventoryItem{
			OwnedAttempt: holdings.OwnedAttempt{TaskID: string(b.TaskID), Number: b.Attempt},
			Report:       string(schema.AppendReport(nil, b.ReportedMs, nil, b.Pct, b.Message)),
			Details:      string(b.Details),
		}
	}
	return items, nil
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
