package api

import (
	"context"

	"github.com/valyala/fasthttp"

	v1 "github.com/lubdub-io/lubdub/sdk/go/v1"
	"github.com/lubdub-io/lubdub/tracker/beats"
	"github.com/lubdub-io/lubdub/tracker/holdings"
	"github.com/lubdub-io/lubdub/tracker/model"
	"github.com/lubdub-io/lubdub/tracker/workers"
)

// A worker may show its own token instead of an attempt's, for attempts that were dispatched to it.

// errNotTask refuses a good token of another kind; a worker's is then examined once more.
var errNotTask = forbidden("The token is not a task's; use the taskToken of the task's envelope")

// errInDoubt is for attempts that the store may have lost: no verdict, since another replica may know of them.
var errInDoubt = &refusal{
	status: fasthttp.StatusServiceUnavailable, retryAfter: defaultRetryAfter,
	body: v1.Error{Error: v1.CodeStoreUnavailable,
		Message: "The store has lost writes a moment ago, this attempt perhaps among them; send the request again, or with the taskToken of " +
			"the attempt's envelope, which proves it"},
}

var errNotOwned = forbidden("The worker's token does not open this attempt: it was not dispatched to this worker; use the taskToken of " +
	"the attempt's envelope")

// ownAttempt returns an attempt of the worker whose token the request shows.
func (a *API) ownAttempt(ctx *fasthttp.RequestCtx, op string, who *principal, task string, number int) (*model.Attempt, *refusal) {
	switch {
	case !who.worker():
		return nil, errNotTask
	case !model.ValidID(task):
		return nil, invalidID("taskId")
	}
	k := who.claims
	if r := a.TakeBeat(who, k.Tenant, a.Local(ctx)); r != nil { // for the look-up too, whatever comes of it
		return nil, r
	}
	names := []holdings.OwnedAttempt{{TaskID: task, Number: number}}
	found, err := a.cfg.Owners.Owned(arrived(context.Background(), ctx), scopeOf(k), k.Worker, names)
	if err != nil {
		return nil, refusalOf(op, err)
	}
	return found[0], notOpened(found[0])
}

// notOpened returns why an attempt that was looked up is not opened, nil when it is.
func notOpened(a *model.Attempt) *refusal {
	switch a {
	case nil:
		return errNotOwned
	case beats.AttemptInDoubt:
		return errInDoubt
	}
	return nil
}

// asWorker does what a worker asks for. If the store has lost the worker's record, it is adopted from its token first.
func (req *request) asWorker(do func() error) error {
	err := do()
	if model.CodeOf(err) != workers.WorkerNotFound || !req.who.worker() || len(req.who.claims.Record) == 0 {
		return err
	}
	k := req.who.claims
	if err := req.api.cfg.Registry.Adopt(req.context(), scopeOf(k), k.Worker, k.Record); err != nil {
		return err
	}
	return do()
}

// owned looks up attempts of the worker whose token the request shows.
func (req *request) owned(names []holdings.OwnedAttempt) ([]*model.Attempt, error) {
	k := req.who.claims
	return req.api.cfg.Owners.Owned(req.context(), scopeOf(k), k.Worker, names)
}
