package api

import (
	"context"
	"slices"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/lubdub-io/lubdub/internal/shares"
	v1 "github.com/lubdub-io/lubdub/sdk/go/v1"
	"github.com/lubdub-io/lubdub/tracker/model"
	"github.com/lubdub-io/lubdub/tracker/queues"
)

// listQueues answers GET /v1/queues.
func (h *queueHandlers) listQueues(req *request) (int, any, error) {
	scope, err := req.scope("", "")
	if err != nil {
		return 0, nil, err
	}
	p := parameters{Values: req.query}
	descending := p.descending()
	if p.err != nil {
		return 0, nil, p.err
	}
	queues, err := h.Queues.List(req.context(), scope)
	if err != nil {
		return 0, nil, err
	}
	if descending {
		slices.Reverse(queues)
	}
	list := v1.QueueList{Queues: make([]v1.Queue, len(queues))}
	for i, q := range queues {
		list.Queues[i] = queueView(scope, q)
	}
	return fasthttp.StatusOK, list, nil
}

// getQueue answers GET /v1/queues/{queue}.
func (h *queueHandlers) getQueue(req *request) (int, any, error) {
	scope, err := req.scope("", "")
	if err != nil {
		return 0, nil, err
	}
	q, err := h.Queues.Get(req.context(), scope, req.id)
	if err != nil {
		return 0, nil, err
	}
	return fasthttp.StatusOK, queueView(scope, q), nil
}

// pauseQueue answers POST /v1/queues/{queue}/pause.
func (h *queueHandlers) pauseQueue(req *request) (int, any, error) {
	scope, err := req.optional(&struct{}{})
	if err != nil {
		return 0, nil, err
	}
	created, err := h.Queues.Pause(req.context(), scope, req.id)
	return h.oneQueue(req, scope, created, err)
}

// resumeQueue answers POST /v1/queues/{queue}/resume.
func (h *queueHandlers) resumeQueue(req *request) (int, any, error) {
	scope, err := req.optional(&struct{}{})
	if err != nil {
		return 0, nil, err
	}
	return h.oneQueue(req, scope, false, h.Queues.Resume(req.context(), scope, req.id))
}

// oneQueue answers with the queue as it is now.
func (h *queueHandlers) oneQueue(req *request, scope model.Scope, created bool, err error) (int, any, error) {
	if err != nil {
		return 0, nil, err
	}
	q, err := h.Queues.Get(req.context(), scope, req.id)
	switch {
	case model.CodeOf(err) == queues.QueueNotFound:
		q = &queues.Queue{Name: req.id} // it goes on, and nothing else is known of it
	case err != nil:
		return 0, nil, err
	}
	v := queueView(scope, q)
	v.Created = created
	return fasthttp.StatusOK, v, nil
}

// claimTasks answers POST /v1/queues/{queue}/claim. It may wait for as long as the request says; a server that shuts
// down ends the wait.
func (h *queueHandlers) claimTasks(req *request) (int, any, error) {
	var body v1.ClaimRequest
	if len(req.ctx.Request.Body()) > 0 {
		if err := req.lenient(&body); err != nil {
			return 0, nil, err
		}
	}
	scope, err := req.scope("", "")
	if err != nil {
		return 0, nil, err
	}
	if req.who.claims.Queue != req.id {
		return 0, nil, forbidden("The worker registered for the queue " + req.who.claims.Queue + "; it claims from that one only")
	}
	r := queues.ClaimRequest{Scope: scope, WorkerID: req.who.claims.Worker, Queue: req.id, Types: body.Types, Max: 1, ClaimID: body.ClaimID}
	if body.Max != nil {
		r.Max = *body.Max
	}
	var d durations
	r.Wait = d.some("waitMs", body.WaitMs, time.Millisecond, 0)
	if d.err != nil {
		return 0, nil, d.err
	}
	leave, full := h.enterClaim(req, r.Wait)
	if full != nil {
		return 0, nil, full
	}
	defer leave()
	var tasks []*model.Envelope
	if err := req.whileValid(r.Wait > 0, func(ctx context.Context) error {
		return req.asWorker(func() (err error) {
			tasks, err = h.Queues.Claim(ctx, r)
			return err
		})
	}); err != nil {
		return 0, nil, err
	}
	answer := v1.ClaimResponse{Tasks: make([]v1.TaskEnvelope, len(tasks))}
	for i, e := range tasks {
		v, err := h.Envelopes.Of(e)
		if err != nil {
			return 0, nil, err
		}
		answer.Tasks[i] = *v
	}
	return fasthttp.StatusOK, answer, nil
}

// enterClaim takes a place for a claim, or refuses. One that waits for work takes no time, so it has none of the control plane's.
func (h *queueHandlers) enterClaim(req *request, wait time.Duration) (leave func(), r *refusal) {
	if wait < shortWait {
		return func() { req.api.Control.leave(req.who) }, req.api.Control.enter(req.who)
	}
	if level := h.Waiting.Take(req.who.holder(), 1); level != shares.Granted {
		h.Refused()
		return nil, overShare(level, h.Waiting, "waiting claims", "max-connections")
	}
	return func() { h.Waiting.Give(req.who.holder(), 1) }, nil
}
