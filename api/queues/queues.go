package queues

import (
	"context"
	"slices"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/lubdub-io/lubdub/api/convert"
	"github.com/lubdub-io/lubdub/api/httpapi"
	"github.com/lubdub-io/lubdub/api/token"
	v1 "github.com/lubdub-io/lubdub/sdk/go/v1"
	"github.com/lubdub-io/lubdub/tracker/model"
	"github.com/lubdub-io/lubdub/tracker/queues"
)

// list answers GET /v1/queues.
func (h *Handlers) list(req *httpapi.Request) (int, any, error) {
	scope, err := req.Scope("", "")
	if err != nil {
		return 0, nil, err
	}
	p := httpapi.Parameters{Values: req.Query}
	descending := p.Descending()
	if p.Err != nil {
		return 0, nil, p.Err
	}
	queues, err := h.Queues.List(req.Context(), scope)
	if err != nil {
		return 0, nil, err
	}
	if descending {
		slices.Reverse(queues)
	}
	list := v1.QueueList{Queues: make([]v1.Queue, len(queues))}
	for i, q := range queues {
		list.Queues[i] = convert.Queue(scope, q)
	}
	return fasthttp.StatusOK, list, nil
}

// get answers GET /v1/queues/{queue}.
func (h *Handlers) get(req *httpapi.Request) (int, any, error) {
	scope, err := req.Scope("", "")
	if err != nil {
		return 0, nil, err
	}
	q, err := h.Queues.Get(req.Context(), scope, req.ID)
	if err != nil {
		return 0, nil, err
	}
	return fasthttp.StatusOK, convert.Queue(scope, q), nil
}

// pause answers POST /v1/queues/{queue}/pause.
func (h *Handlers) pause(req *httpapi.Request) (int, any, error) {
	var body v1.PauseQueueRequest
	scope, err := req.Optional(&body)
	if err != nil {
		return 0, nil, err
	}
	created, err := h.Queues.Pause(req.Context(), scope, req.ID, body.Reason)
	return h.answer(req, scope, created, err)
}

// resume answers POST /v1/queues/{queue}/resume.
func (h *Handlers) resume(req *httpapi.Request) (int, any, error) {
	scope, err := req.Optional(&struct{}{})
	if err != nil {
		return 0, nil, err
	}
	return h.answer(req, scope, false, h.Queues.Resume(req.Context(), scope, req.ID))
}

// answer answers with the queue's current state.
func (h *Handlers) answer(req *httpapi.Request, scope model.Scope, created bool, err error) (int, any, error) {
	if err != nil {
		return 0, nil, err
	}
	q, err := h.Queues.Get(req.Context(), scope, req.ID)
	switch {
	case model.CodeOf(err) == queues.QueueNotFound:
		q = &queues.Queue{Name: req.ID} // nothing else is known of the resumed queue
	case err != nil:
		return 0, nil, err
	}
	v := convert.Queue(scope, q)
	v.Created = created
	return fasthttp.StatusOK, v, nil
}

// claim answers POST /v1/queues/{queue}/claim. It may wait as long as the request allows; a server that shuts down ends the wait.
func (h *Handlers) claim(req *httpapi.Request) (int, any, error) {
	var body v1.ClaimRequest
	if len(req.Ctx.Request.Body()) > 0 {
		if err := req.Lenient(&body); err != nil {
			return 0, nil, err
		}
	}
	if own := req.Caller.Claims.Queue; own != req.ID {
		return 0, nil, httpapi.Forbidden("The worker registered for the queue " + own + "; it claims from that one only")
	}
	r, err := ClaimOf(&body, req.Caller.Claims)
	if err != nil {
		return 0, nil, err
	}
	answer, err := h.Claim(req, r)
	return fasthttp.StatusOK, answer, err
}

// ClaimOf returns the claim of a worker from its queue that a body describes, checked.
func ClaimOf(body *v1.ClaimRequest, worker *token.Claims) (queues.ClaimRequest, error) {
	r := queues.ClaimRequest{
		WorkerID: worker.Worker, Queue: worker.Queue, Types: body.Types, Max: 1, ClaimID: body.ClaimID, Start: body.Start,
	}
	if body.Max != nil {
		r.Max = *body.Max
	}
	var d httpapi.Durations
	r.Wait = d.OrDefault("waitMs", body.WaitMs, time.Millisecond, 0)
	if d.Err != nil {
		return r, d.Err
	}
	return r, r.Validate()
}

// Claim makes a claim for the worker whose token the request has.
func (h *Handlers) Claim(req *httpapi.Request, r queues.ClaimRequest) (answer *v1.ClaimResponse, err error) {
	if r.Scope, err = req.Scope("", ""); err != nil {
		return nil, err
	}
	leave, full := h.enterClaim(req, r.Wait)
	if full != nil {
		return nil, full
	}
	defer leave()
	var tasks []*model.Envelope
	if err := req.WhileValid(r.Wait > 0, func(ctx context.Context) error {
		return req.AsWorker(func() (err error) {
			tasks, err = h.Queues.Claim(ctx, r)
			return err
		})
	}); err != nil {
		return nil, err
	}
	answer = &v1.ClaimResponse{Tasks: make([]v1.TaskEnvelope, len(tasks))}
	for i, e := range tasks {
		v, err := h.Envelopes.Of(e)
		if err != nil {
			return nil, err
		}
		if r.Start && e.Task.State == model.Running {
			v.State = v1.Running
		}
		answer.Tasks[i] = *v
	}
	return answer, nil
}

// enterClaim takes a place for a claim, or refuses it. A claim that waits uses no CPU, so it takes no place of the control plane.
func (h *Handlers) enterClaim(req *httpapi.Request, wait time.Duration) (leave func(), r *httpapi.Refusal) {
	if wait < httpapi.ShortWait {
		return func() { req.API.Control.Leave(req.Caller) }, req.API.Control.Enter(req.Caller)
	}
	return req.EnterWait(h.Waiting, 1, "waiting claims", "max-connections", h.Refused)
}
