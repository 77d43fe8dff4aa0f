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
func (req *request) listQueues() (int, any, error) {
	scope, err := req.scope("", "")
	if err != nil {
		return 0, nil, err
	}
	p := parameters{Values: req.query}
	descending := p.descending()
	if p.err != nil {
		return 0, nil, p.err
	}
	queues, err := req.s.services.Queues.List(req.context(), scope)
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
func (req *request) getQueue() (int, any, error) {
	scope, err := req.scope("", "")
	if err != nil {
		return 0, nil, err
	}
	q, err := req.s.services.Queues.Get(req.context(), scope, req.id)
	if err != nil {
		return 0, nil, err
	}
	return fasthttp.StatusOK, queueView(scope, q), nil
}

// pauseQueue answers POST /v1/queues/{queue}/pause.
func (req *request) pauseQueue() (int, any, error) {
	scope, err := req.optional(&struct{}{})
	if err != nil {
		return 0, nil, err
	}
	created, err := req.s.services.Queues.Pause(req.context(), scope, req.id)
	return req.oneQueue(scope, created, err)
}

// resumeQueue answers POST /v1/queues/{queue}/resume.
func (req *request) resumeQueue() (int, any, error) {
	scope, err := req.optional(&struct{}{})
	if err != nil {
		return 0, nil, err
	}
	return req.oneQueue(scope, false, req.s.services.Queues.Resume(req.context(), scope, req.id))
}

// oneQueue answers with the queue as it is now.
func (req *request) oneQueue(scope model.Scope, created bool, err error) (int, any, error) {
	if err != nil {
		return 0, nil, err
	}
	q, err := req.s.services.Queues.Get(req.context(), scope, req.id)
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

func queueView(scope model.Scope, q *queues.Queue) v1.Queue {
	v := v1.Queue{
		Queue: q.Name, TenantID: scope.Tenant, WorkspaceID: scope.Workspace, Paused: q.Paused, Depth: q.Depth(),
		Running: q.Running, Outstanding: q.Outstanding(), Types: make([]v1.QueueType, len(q.Kinds)),
		Workers: v1.QueueWorkers{Online: q.Workers[model.Online], Draining: q.Workers[model.Draining], Offline: q.Workers[model.Offline]},
	}
	if v.Depth > 0 {
		oldest := q.OldestWait().Milliseconds()
		v.OldestWaitMs = &oldest
	}
	for i, k := range q.Kinds {
		v.Types[i] = v1.QueueType{Type: orNull(k.Type), Depth: k.Depth, OldestWaitMs: k.OldestWait.Milliseconds(), Unrunnable: k.Unrunnable}
	}
	return v
}

// claimTasks answers POST /v1/queues/{queue}/claim. It may wait for as long as the request says; a server that shuts
// down ends the wait.
func (req *request) claimTasks() (int, any, error) {
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
	leave, full := req.enterClaim(r.Wait)
	if full != nil {
		return 0, nil, full
	}
	defer leave()
	var tasks []*model.Envelope
	if err := req.whileValid(r.Wait > 0, func(ctx context.Context) error {
		return req.asWorker(func() (err error) {
			tasks, err = req.s.services.Queues.Claim(ctx, r)
			return err
		})
	}); err != nil {
		return 0, nil, err
	}
	answer := v1.ClaimResponse{Tasks: make([]v1.TaskEnvelope, len(tasks))}
	for i, e := range tasks {
		v, err := req.s.envelope(e)
		if err != nil {
			return 0, nil, err
		}
		answer.Tasks[i] = *v
	}
	return fasthttp.StatusOK, answer, nil
}

// enterClaim takes a place for a claim, or refuses. One that waits for work takes no time, so it has none of the control plane's.
func (req *request) enterClaim(wait time.Duration) (leave func(), r *refusal) {
	if wait < shortWait {
		return func() { req.s.control.leave(req.who) }, req.s.control.enter(req.who)
	}
	if level := req.s.claims.Take(req.who.holder(), 1); level != shares.Granted {
		req.s.metrics.overloaded.WithLabelValues("waiting_claims").Inc()
		return nil, overShare(level, req.s.claims, "waiting claims", "max-connections")
	}
	return func() { req.s.claims.Give(req.who.holder(), 1) }, nil
}
