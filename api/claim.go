package api

import (
	"time"

	"github.com/valyala/fasthttp"

	v1 "github.com/lubdub-io/lubdub/api/v1"
	"github.com/lubdub-io/lubdub/tracker"
)

// claimTasks answers POST /v1/queues/{queue}/claim. It may wait for as long as the request says; a server that shuts
// down ends the wait.
func (c *call) claimTasks() (int, any, error) {
	var req v1.ClaimRequest
	if len(c.ctx.Request.Body()) > 0 {
		if err := c.lenient(&req); err != nil {
			return 0, nil, err
		}
	}
	scope, err := c.scope("", "")
	if err != nil {
		return 0, nil, err
	}
	if c.who.claims.Queue != c.id {
		return 0, nil, forbidden("The worker registered for the queue " + c.who.claims.Queue + "; it claims from that one only")
	}
	r := tracker.ClaimRequest{Scope: scope, WorkerID: c.who.claims.Worker, Queue: c.id, Types: req.Types, Max: 1, ClaimID: req.ClaimID}
	if req.Max != nil {
		r.Max = *req.Max
	}
	var d durations
	r.Wait = d.some("waitMs", req.WaitMs, time.Millisecond, 0)
	if d.err != nil {
		return 0, nil, d.err
	}
	if r.Wait < shortWait {
		if full := c.s.control.enter(); full != nil {
			return 0, nil, full
		}
		defer c.s.control.leave()
	}
	var tasks []*tracker.Envelope
	if err := c.asWorker(func() (err error) {
		tasks, err = c.s.tracker.Claim(arrived(c.s.running, c.ctx), r)
		return err
	}); err != nil {
		return 0, nil, err
	}
	answer := v1.ClaimResponse{Tasks: make([]v1.TaskEnvelope, len(tasks))}
	for i, e := range tasks {
		v, err := c.s.envelope(e)
		if err != nil {
			return 0, nil, err
		}
		answer.Tasks[i] = *v
	}
	return fasthttp.StatusOK, answer, nil
}
