package api

import (
	"github.com/lubdub-io/lubdub/api/internal/conn"
	"github.com/lubdub-io/lubdub/tracker/holdings"
	"github.com/lubdub-io/lubdub/tracker/model"
)

// authorizeItems opens each item with its own token and judges it, in the order of a single beat; the others by the
// worker's token of the request.
func (h *beatHandlers) authorizeItems(req *request, b *batchRequest) {
	var bare []int // items without a token
	valid := 0     // items whose token is valid
	for i := range b.items {
		it := &b.items[i]
		if (it.body.seen|it.body.bad)&fieldTaskToken == 0 {
			bare = append(bare, i)
			continue
		}
		it.refusal = h.judge(req, it, &valid)
	}
	if bare != nil {
		h.ownItems(req, b, bare)
	}
}

func (h *beatHandlers) judge(req *request, it *batchItem, valid *int) *refusal {
	if it.body.twice&fieldTaskToken != 0 {
		return saidTwice("taskToken")
	}
	if it.body.bad&fieldTaskToken != 0 {
		return invalidField("taskToken", "taskToken is not a string")
	}
	who, r := req.api.authenticate(it.body.taskToken, req.now, req.api.Metrics.Shared())
	if r != nil {
		return r
	}
	if *valid++; *valid == 1 { // the connection belongs to the first valid token
		conn.Known(req.ctx.Conn(), who.holder())
	}
	a := who.task()
	if a == nil {
		return errNotTask
	}
	if it.body.seen&fieldTaskID == 0 {
		return invalidField("taskId", "taskId is missing")
	}
	if r := checkTask(a, it.body.taskID); r != nil {
		return r
	}
	if r := it.body.check(); r != nil {
		return r
	}
	if r := checkAttempt(a, it.body.attempt); r != nil {
		return r
	}
	it.who, it.attempt = who, a
	return req.api.TakeBeat(who, a.Scope.Tenant, req.local())
}

var errNotWorker = forbidden("The token in the Authorization header does not open this item; give the item its taskToken")

// ownItems opens the items of a batch that bring no token with the worker's token of the request, all in one go.
func (h *beatHandlers) ownItems(req *request, b *batchRequest, bare []int) {
	bad := req.authenticate()
	var names []holdings.OwnedAttempt
	var asked []*batchItem
	for _, i := range bare {
		it := &b.items[i]
		switch r := it.body.check(); {
		case bad != nil:
			it.refusal = bad
		case !req.who.worker():
			it.refusal = errNotWorker
		case it.body.seen&fieldTaskID == 0:
			it.refusal = invalidField("taskId", "taskId is missing")
		case !model.ValidID(it.body.taskID):
			it.refusal = invalidID("taskId")
		case r != nil:
			it.refusal = r
		default:
			if it.refusal = req.api.TakeBeat(req.who, req.who.claims.Tenant, req.local()); it.refusal != nil {
				continue
			}
			names = append(names, holdings.OwnedAttempt{TaskID: string(it.body.taskID), Number: it.body.attempt})
			asked = append(asked, it)
		}
	}
	if len(asked) == 0 {
		return
	}
	found, err := req.owned(names)
	for i, it := range asked {
		if err != nil {
			it.refusal = refusalOf(req.route.op, err)
			continue
		}
		it.who, it.attempt, it.refusal = req.who, found[i], notOpened(found[i])
	}
}
