package api

import (
	"sync/atomic"

	"github.com/valyala/fasthttp"

	"github.com/lubdub-io/lubdub/api/token"
	v1 "github.com/lubdub-io/lubdub/api/v1"
	"github.com/lubdub-io/lubdub/tracker"
)

// A worker may show its own token instead of an attempt's, for attempts that were dispatched to it.

// errNotTask refuses a good token of another kind; a worker's gets a second look.
var errNotTask = forbidden("The token is not a task's; use the taskToken of the task's envelope")

// errInDoubt is for attempts that the store may have lost: no verdict, since another replica may know of them.
var errInDoubt = &refusal{
	status: fasthttp.StatusServiceUnavailable, retryAfter: defaultRetryAfter,
	body: v1.Error{Error: v1.CodeStoreUnavailable, Message: "The store has lost writes a moment ago, this attempt perhaps among them; send the request again, or with the taskToken of the attempt's envelope, which proves it"},
}

var errNotOwned = forbidden("The worker's token does not open this attempt: it was not dispatched to this worker; use the taskToken of the attempt's envelope")

// ownToken gives what a task's token would be for an attempt of the worker whose token the request shows.
func (c *call) ownToken(taskID string, attempt int) (*taskToken, *refusal) {
	k, err := c.claims()
	switch {
	case err != nil:
		return nil, errUnauthorized
	case k.Kind != token.KindWorker:
		return nil, errNotTask
	case !tracker.ValidID(taskID):
		return nil, invalidID("taskId")
	}
	if r := c.s.tenantBeats.take(k.Tenant, nil, c.local()); r != nil { // for the look-up too, whatever comes of it
		return nil, r
	}
	found, err := c.s.tracker.Owned(c.context(), scopeOf(k), k.Worker, []tracker.OwnedAttempt{{TaskID: taskID, Number: attempt}})
	if err != nil {
		return nil, refusalOf(c.route.op, err)
	}
	switch found[0] {
	case nil:
		return nil, errNotOwned
	case tracker.AttemptInDoubt:
		return nil, errInDoubt
	}
	return tokenOf(found[0]), nil
}

func scopeOf(k *token.Claims) tracker.Scope {
	return tracker.Scope{Tenant: k.Tenant, Workspace: k.Workspace}
}

// tokenOf stands in for the token of an attempt. It is not renewed: the worker has its own.
func tokenOf(a *tracker.Attempt) *taskToken {
	t := &taskToken{attempt: a, next: a.Interval.Milliseconds()}
	if a.Timeout > 0 {
		t.next = min(t.next, a.Timeout.Milliseconds()/2)
	}
	return t
}

// ownBeat is the beat of one task with its worker's token.
func (s *Server) ownBeat(ctx *fasthttp.RequestCtx, w *wire, id []byte, b *beatBody) (*taskToken, *refusal) {
	if r := checkContentType(&ctx.Request.Header); r != nil {
		return nil, r
	}
	if !decodeBeat(ctx.Request.Body(), b) {
		return nil, syntaxOf(ctx.Request.Body())
	}
	if r := b.check(); r != nil {
		return nil, r
	}
	c := call{s: s, ctx: ctx, wire: *w, now: s.now(ctx), route: &route{op: opHeartbeat}}
	return c.ownToken(string(id), b.attempt)
}

// ownItems opens the items of a batch that bring no token with the worker's token of the request, all in one go.
func (c *call) ownItems(b *batchCall, bare []int) {
	k, err := c.claims()
	var names []tracker.OwnedAttempt
	var asked []*batchItem
	var at atomic.Pointer[bucket]
	for _, i := range bare {
		it := &b.items[i]
		switch r := it.body.check(); {
		case err != nil:
			it.refusal = errUnauthorized
		case k.Kind != token.KindWorker:
			it.refusal = errNotWorker
		case it.body.seen&fieldTaskID == 0:
			it.refusal = invalidField("taskId", "taskId is missing")
		case !tracker.ValidID(it.body.taskID):
			it.refusal = invalidID("taskId")
		case r != nil:
			it.refusal = r
		default:
			if it.refusal = c.s.tenantBeats.take(k.Tenant, &at, c.local()); it.refusal != nil {
				continue
			}
			names = append(names, tracker.OwnedAttempt{TaskID: string(it.body.taskID), Number: it.body.attempt})
			asked = append(asked, it)
		}
	}
	if len(asked) == 0 {
		return
	}
	found, err := c.s.tracker.Owned(c.context(), scopeOf(k), k.Worker, names)
	for i, it := range asked {
		switch {
		case err != nil:
			it.refusal = refusalOf(opHeartbeats, err)
		case found[i] == nil:
			it.refusal = errNotOwned
		case found[i] == tracker.AttemptInDoubt:
			it.refusal = errInDoubt
		default:
			it.token = tokenOf(found[i])
		}
	}
}
