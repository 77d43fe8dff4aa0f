package httpapi

import (
	"context"

	"github.com/valyala/fasthttp"

	v1 "github.com/lubdub-io/lubdub/sdk/go/v1"
	"github.com/lubdub-io/lubdub/tracker/beats"
	"github.com/lubdub-io/lubdub/tracker/holdings"
	"github.com/lubdub-io/lubdub/tracker/model"
	"github.com/lubdub-io/lubdub/tracker/workers"
)

// A worker may send its own token instead of an attempt's, for attempts that were dispatched to it.

// ErrNotTask refuses a valid token of another kind; a worker's token is then checked again.
var ErrNotTask = Forbidden("This request needs a task token: use taskToken from the task's envelope")

// errInDoubt is for attempts that the store may have lost: no verdict, since another replica may know them.
var errInDoubt = &Refusal{
	Status: fasthttp.StatusServiceUnavailable, RetryAfter: DefaultRetryAfter,
	Body: v1.Error{Error: v1.CodeStoreUnavailable,
		Message: "The store has lost writes a moment ago, this attempt perhaps among them; send the request again, or with the taskToken of " +
			"the attempt's envelope, which proves it"},
}

var errNotOwned = Forbidden("The worker's token does not open this attempt: it was not dispatched to this worker; use the taskToken of " +
	"the attempt's envelope")

// OwnAttempt returns an attempt of the worker whose token the request has.
func (a *API) OwnAttempt(ctx *fasthttp.RequestCtx, op string, who *Principal, task string, number int) (*model.Attempt, *Refusal) {
	switch {
	case !who.Worker():
		return nil, ErrNotTask
	case !model.ValidID(task):
		return nil, InvalidID("taskId")
	}
	k := who.Claims
	if r := a.TakeBeat(who, k.Tenant, a.Local(ctx)); r != nil { // counted for the look-up too, whatever its result
		return nil, r
	}
	names := []holdings.OwnedAttempt{{TaskID: task, Number: number}}
	found, err := a.cfg.Owners.Owned(arrived(context.Background(), ctx), scopeOf(k), k.Worker, names)
	if err != nil {
		return nil, RefusalOf(op, err)
	}
	return found[0], NotOpened(found[0])
}

// NotOpened returns why the worker's token does not authorize an attempt that was looked up, or nil if it does.
func NotOpened(a *model.Attempt) *Refusal {
	switch a {
	case nil:
		return errNotOwned
	case beats.AttemptInDoubt:
		return errInDoubt
	}
	return nil
}

// AsWorker runs a worker's operation. If the store has lost the worker's record, the worker is first adopted from its token.
func (req *Request) AsWorker(do func() error) error {
	err := do()
	if model.CodeOf(err) != workers.WorkerNotFound || !req.Caller.Worker() || len(req.Caller.Claims.Record) == 0 {
		return err
	}
	k := req.Caller.Claims
	if err := req.API.cfg.Registry.Adopt(req.Context(), scopeOf(k), k.Worker, k.Record); err != nil {
		return err
	}
	return do()
}

// Owned looks up attempts of the worker whose token the request has.
func (req *Request) Owned(names []holdings.OwnedAttempt) ([]*model.Attempt, error) {
	k := req.Caller.Claims
	return req.API.cfg.Owners.Owned(req.Context(), scopeOf(k), k.Worker, names)
}
