package exchange

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/lubdub-io/lubdub/api/httpapi"
	"github.com/lubdub-io/lubdub/api/internal/beatbody"
	"github.com/lubdub-io/lubdub/api/queues"
	"github.com/lubdub-io/lubdub/api/tasks"
	"github.com/lubdub-io/lubdub/api/workers"
	v1 "github.com/lubdub-io/lubdub/sdk/go/v1"
	"github.com/lubdub-io/lubdub/tracker/holdings"
	domainqueues "github.com/lubdub-io/lubdub/tracker/queues"
	domainworkers "github.com/lubdub-io/lubdub/tracker/workers"
)

// Bounds of one exchange.
const (
	maxCompleted = 100
	maxProgress  = 1000 // as many as a batch of heartbeats has
)

// Handlers answer the exchange with the handlers of the calls that it combines.
type Handlers struct {
	Tasks   *tasks.Handlers
	Workers *workers.Handlers
	Queues  *queues.Handlers
}

// body is the body of an exchange.
type body struct {
	workers.Heartbeat
	Progress  []json.RawMessage `json:"progress"`
	Inventory []json.RawMessage `json:"inventory"`
	Completed []json.RawMessage `json:"completed"`
	Claim     *v1.ClaimRequest  `json:"claim"`
}

// exchange answers POST /v1/workers/{workerId}/exchange. The heartbeat comes first, so that nothing changes if the worker is OFFLINE, then
// the completions, then the claim, which may wait. An error in one completion, or in the claim, does not affect the rest.
func (h *Handlers) exchange(req *httpapi.Request) (int, any, error) {
	var b body
	if err := req.Lenient(&b); err != nil {
		return 0, nil, err
	}
	beat, err := b.beat()
	if err != nil {
		return 0, nil, err
	}
	var claim domainqueues.ClaimRequest
	if b.Claim != nil {
		if claim, err = queues.ClaimOf(b.Claim, req.Caller.Claims); err != nil {
			return 0, nil, err
		}
	}
	if beat != nil {
		if refused := req.API.TakeBeat(req.Caller, req.Caller.Claims.Tenant, req.Local()); refused != nil {
			return 0, nil, refused
		}
	}
	completions := tasks.DecodeCompletions(req, b.Completed, beat != nil) // nothing has changed yet

	answer := v1.ExchangeResponse{Tasks: []v1.TaskEnvelope{}, ClaimID: claim.ClaimID}
	var notices *holdings.WorkerBeatResponse
	if beat != nil {
		report(beat, completions.Reported)
		if answer.Heartbeat, notices, err = h.Workers.Beat(req, req.Caller.Scope(), *beat); err != nil {
			return 0, nil, err
		}
		omit(answer.Heartbeat, completions.Reported)
	}
	if answer.Completed, err = h.Tasks.Complete(req, completions); err != nil {
		return 0, nil, err
	}
	if b.Claim != nil {
		claimed, err := h.Queues.Claim(req, claim)
		if err != nil {
			r := req.Refusal(err)
			answer.ClaimError = &v1.ClaimError{Status: r.Status, Error: r.Body.Error, Message: r.Body.Message, Field: r.Body.Field,
				Reason: r.Body.Reason, RetryAfterMs: r.RetryAfter.Milliseconds()}
		} else {
			answer.Tasks = claimed.Tasks
		}
	}
	return h.Workers.Answer(req, answer, notices)
}

// beat returns the heartbeat in a body, checked; nil if there is none.
func (b *body) beat() (*domainworkers.WorkerBeat, error) {
	switch {
	case len(b.Completed) > maxCompleted:
		return nil, tooMany("completed", len(b.Completed), maxCompleted)
	case len(b.Progress) > maxProgress:
		return nil, tooMany("progress", len(b.Progress), maxProgress)
	case b.Seq == nil && (b.ActiveCount != nil || b.Progress != nil || b.Inventory != nil):
		return nil, httpapi.InvalidField("seq", "seq is missing; activeCount, progress and inventory are part of a heartbeat, which needs it")
	case b.Seq == nil && len(b.Completed) == 0 && b.Claim == nil:
		return nil, httpapi.InvalidField("seq", "seq, completed and claim are missing; send seq for a heartbeat, or one of the others")
	}
	beat, err := b.Beat()
	if b.Seq == nil || err != nil {
		return nil, err
	}
	if beat.Progress, err = beatbody.Items("progress", b.Progress); err != nil {
		return nil, err
	}
	beat.Inventory, err = beatbody.Items("inventory", b.Inventory)
	return &beat, err
}

func tooMany(field string, n, most int) error {
	return httpapi.InvalidField(field, fmt.Sprintf("%s has %d entries; send at most %d", field, n, most))
}

// report adds the progress of completed attempts to a heartbeat. Its inventory does not miss them.
func report(beat *domainworkers.WorkerBeat, completed []holdings.InventoryItem) {
	for _, item := range completed {
		if item.Report != "" || item.Details != "" || beat.Inventory != nil {
			beat.Progress = append(beat.Progress, item)
		}
	}
}

// omit removes notices about completed attempts from the answer to a heartbeat: their results say more, and a repeated exchange gets the
// same answer.
func omit(answer *v1.WorkerHeartbeatResponse, completed []holdings.InventoryItem) {
	names := make(map[holdings.OwnedAttempt]bool, len(completed))
	for _, item := range completed {
		names[item.OwnedAttempt] = true
	}
	answer.CancelTasks = slices.DeleteFunc(answer.CancelTasks, func(n v1.CancelTask) bool {
		return names[holdings.OwnedAttempt{TaskID: n.TaskID, Number: n.Attempt}]
	})
	answer.LostTasks = slices.DeleteFunc(answer.LostTasks, func(n v1.LostTask) bool {
		return names[holdings.OwnedAttempt{TaskID: n.TaskID, Number: n.Attempt}]
	})
}
