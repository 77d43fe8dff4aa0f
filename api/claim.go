package api

import (
	"time"

	"github.com/valyala/fasthttp"

	v1 "github.com/lubdub-io/lubdub/api/v1"
	"github.com/lubdub-io/lubdub/tracker"
)

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
	r := tracker.ClaimRequest{Scope: scope, WorkerID: req.who.claims.Worker, Queue: req.id, Types: body.Types, Max: 1, ClaimID: body.ClaimID}
	if body.Max != nil {
		r.Max = *body.Max
	}
	var d durations
	r.Wait = d.some("waitMs", body.WaitMs, time.Millisecond, 0)
	if d.err != nil {
		return 0, nil, d.err
	}
	if r.Wait < shortWait {
		if full := req.s.control.enter(); full != nil {
			return 0, nil, full
		}
		defer req.s.control.leave()
	}
	var tasks []*tracker.Envelope
	if err := req.asWorker(func() (err error) {
		tasks, err = req.s.tracker.Claim(arrived(req.s.running, req.ctx), r)
		return err
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
