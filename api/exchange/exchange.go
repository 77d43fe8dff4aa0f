package exchange

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/lubdub-io/lubdub/api/httpapi"
	"github.com/lubdub-io/lubdub/api/internal/beatbody"
	"github.com/lubdub-io/lubdub/api/internal/conn"
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
	if err := b.check(); err != nil {
		return 0, nil, err
	}
	if b.Seq != nil {
		tenant := req.Caller.Claims.Tenant
		if r := req.API.TakeBeat(req.Caller, tenant, req.Local()); r != nil {
			return 0, nil, refused(req, r)
		}
		req.API.ChargeBeats(tenant, len(b.Progress)+len(b.Inventory), req.Local())
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
	completions := tasks.DecodeCompletions(req, b.Completed, beat != nil) // nothing has changed yet

	answer := v1.ExchangeResponse{Tasks: []v1.TaskEnvelope{}, ClaimID: claim.ClaimID}
	var notices *holdings.WorkerBeatResponse
	if beat != nil {
		report(beat, completions.Reported)
		if answer.Heartbeat, notices, err = h.Workers.Beat(req, req.Caller.Scope(), *beat); err != nil {
			return 0, nil, refused(req, err)
		}
	}
	if answer.Completed, err = h.Tasks.Complete(req, completions); err != nil {
		return 0, nil, err
	}
	if beat != nil {
		omit(answer.Heartbeat, completions.Ended())
		limitWait(&claim, answer.Heartbeat)
	}
	if len(req.Ctx.Request.Body()) > conn.SmallBody { // which keeps its memory until the answer
		claim.Wait = 0
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

// refused counts a heartbeat that was refused.
func refused(req *httpapi.Request, err error) error {
	req.API.Metrics.RefusedBeatOf(httpapi.KindWorker, httpapi.RefusalOf(req.Route.Op, err))
	return err
}

// limitWait limits how long the claim of an exchange waits: until the next heartbeat is due, and not at all if there is something that the
// worker must know now.
func limitWait(claim *domainqueues.ClaimRequest, h *v1.WorkerHeartbeatResponse) {
	claim.Wait = min(claim.Wait, time.Duration(h.HeartbeatIntervalMs)*time.Millisecond)
	if h.ShouldDrain || len(h.CancelTasks)+len(h.LostTasks) > 0 {
		claim.Wait = 0
	}
}

// check checks which fields the body has.
func (b *body) check() error {
	switch {
	case len(b.Completed) > maxCompleted:
		return tooMany("completed", len(b.Completed), maxCompleted)
	case len(b.Progress) > maxProgress:
		return tooMany("progress", len(b.Progress), maxProgress)
	case b.Seq == nil && (b.ActiveCount != nil || b.Progress != nil || b.Inventory != nil):
		return httpapi.InvalidField("seq", "seq is missing; activeCount, progress and inventory are part of a heartbeat, which needs it")
	case b.Seq == nil && len(b.Completed) == 0 && b.Claim == nil:
		return httpapi.InvalidField("seq", "seq, completed and claim are missing; send seq for a heartbeat, or one of the others")
	}
	return nil
}

// beat returns the checked heartbeat of a body; nil if it has no seq.
func (b *body) beat() (*domainworkers.WorkerBeat, error) {
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

// report adds completed attempts to a heartbeat, with the progress that was sent with them. Its inventory does not miss them.
func report(beat *domainworkers.WorkerBeat, completed []holdings.InventoryItem) {
	var reported []holdings.InventoryItem
	for _, item := range completed {
		if !item.Bare() || beat.Inventory != nil {
			reported = append(reported, item)
		}
	}
	beat.Progress = append(reported, beat.Progress...) // the first item of an attempt that reports something counts
}

// omit removes notices about attempts whose end was recorded from the answer to a heartbeat: the results of their completions say more, and
// a repeated exchange gets the same answer.
func omit(answer *v1.WorkerHeartbeatResponse, ended []holdings.OwnedAttempt) {
	answer.CancelTasks = slices.DeleteFunc(answer.CancelTasks, func(n v1.CancelTask) bool {
		return slices.Contains(ended, holdings.OwnedAttempt{TaskID: n.TaskID, Number: n.Attempt})
	})
	answer.LostTasks = slices.DeleteFunc(answer.LostTasks, func(n v1.LostTask) bool {
		return slices.Contains(ended, holdings.OwnedAttempt{TaskID: n.TaskID, Number: n.Attempt})
	})
}
