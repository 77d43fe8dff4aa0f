package beats

import (
	"github.com/lubdub-io/lubdub/api/httpapi"
	"github.com/lubdub-io/lubdub/api/internal/beatbody"
	"github.com/lubdub-io/lubdub/api/internal/conn"
	"github.com/lubdub-io/lubdub/tracker/holdings"
	"github.com/lubdub-io/lubdub/tracker/model"
)

// authorizeItems verifies the token of each item and checks the item, in the order of a single beat. Items without a token are authorized
// by the worker's token of the request.
func authorizeItems(req *httpapi.Request, b *batchRequest) {
	var bare []int // items without a token
	valid := 0     // items whose token is valid
	for i := range b.items {
		it := &b.items[i]
		if (it.body.Seen|it.body.Bad)&beatbody.FieldTaskToken == 0 {
			bare = append(bare, i)
			continue
		}
		it.refusal = authorizeItem(req, it, &valid)
	}
	if bare != nil {
		authorizeByWorker(req, b, bare)
	}
}

func authorizeItem(req *httpapi.Request, it *batchItem, valid *int) *httpapi.Refusal {
	if it.body.Twice&beatbody.FieldTaskToken != 0 {
		return httpapi.DuplicateField("taskToken")
	}
	if it.body.Bad&beatbody.FieldTaskToken != 0 {
		return httpapi.InvalidField("taskToken", "taskToken is not a string")
	}
	who, r := req.API.Authenticate(it.body.TaskToken, req.Now, req.API.Metrics.Shared())
	if r != nil {
		return r
	}
	if *valid++; *valid == 1 { // the connection belongs to the first valid token
		conn.Known(req.Ctx.Conn(), who.Holder())
	}
	a := who.Task()
	if a == nil {
		return httpapi.ErrNotTask
	}
	if it.body.Seen&beatbody.FieldTaskID == 0 {
		return httpapi.InvalidField("taskId", "taskId is missing")
	}
	if r := httpapi.CheckTask(a, it.body.TaskID); r != nil {
		return r
	}
	if r := it.body.Check(); r != nil {
		return r
	}
	if r := httpapi.CheckAttempt(a, it.body.Attempt); r != nil {
		return r
	}
	it.who, it.attempt = who, a
	return req.API.TakeBeat(who, a.Scope.Tenant, req.Local())
}

var errNotWorker = httpapi.Forbidden("The token in the Authorization header does not open this item; give the item its taskToken")

// authorizeByWorker authorizes the items without a token by the worker's token of the request, all in one call.
func authorizeByWorker(req *httpapi.Request, b *batchRequest, bare []int) {
	bad := req.Authenticate()
	var names []holdings.OwnedAttempt
	var pending []*batchItem
	for _, i := range bare {
		it := &b.items[i]
		switch r := it.body.Check(); {
		case bad != nil:
			it.refusal = bad
		case !req.Caller.Worker():
			it.refusal = errNotWorker
		case it.body.Seen&beatbody.FieldTaskID == 0:
			it.refusal = httpapi.InvalidField("taskId", "taskId is missing")
		case !model.ValidID(it.body.TaskID):
			it.refusal = httpapi.InvalidID("taskId")
		case r != nil:
			it.refusal = r
		default:
			if it.refusal = req.API.TakeBeat(req.Caller, req.Caller.Claims.Tenant, req.Local()); it.refusal != nil {
				continue
			}
			names = append(names, holdings.OwnedAttempt{TaskID: string(it.body.TaskID), Number: it.body.Attempt})
			pending = append(pending, it)
		}
	}
	if len(pending) == 0 {
		return
	}
	found, err := req.Owned(names)
	for i, it := range pending {
		if err != nil {
			it.refusal = httpapi.RefusalOf(req.Route.Op, err)
			continue
		}
		it.who, it.attempt, it.refusal = req.Caller, found[i], httpapi.NotOpened(found[i])
	}
}
