package api

import (
	"bytes"
	"strings"

	"github.com/lubdub-io/lubdub/api/token"
	"github.com/lubdub-io/lubdub/tracker/model"
)

// bearer returns the one token of a request, nil when there is none or more than one.
func (w *wire) bearer() []byte {
	const scheme = "bearer "
	a := w.authorization
	if w.authorized != 1 || len(a) <= len(scheme) || len(a) > len(scheme)+token.MaxBytes {
		return nil
	}
	if !bytes.EqualFold(a[:len(scheme)], []byte(scheme)) {
		return nil
	}
	return bytes.TrimLeft(a[len(scheme):], " ")
}

// checkTask compares a task id with the one that a task token is for.
func checkTask(a *model.Attempt, id []byte) *refusal {
	switch {
	case a.TaskID == string(id):
		return nil
	case !model.ValidID(id):
		return invalidID("taskId")
	}
	return forbidden("The token is another task's; use the taskToken of this task's envelope")
}

// checkAttempt compares the attempt of a body with the token's.
func checkAttempt(a *model.Attempt, number int) *refusal {
	if a.Number == number {
		return nil
	}
	return forbidden("The token is another attempt's; send the attempt of the envelope that the token came with")
}

// authorize lets the request in or answers 401 or 403.
func (req *request) authorize() error {
	if req.route.access == forAll || req.route.access == forItems || req.route.access == forBeat {
		return nil
	}
	if r := req.authenticate(); r != nil {
		return r
	}
	switch req.route.access {
	case forTask:
		return req.authorizeTask()
	case forWorker:
		return req.authorizeWorker()
	}
	return req.authorizeControl()
}

// authorizeTask lets in the token of the path's task. A worker's token is judged once the body has named the attempt.
func (req *request) authorizeTask() error {
	a := req.who.task()
	if a == nil {
		return nil
	}
	if r := checkTask(a, []byte(req.id)); r != nil {
		return r
	}
	if r := req.api.TakeBeat(req.who, a.Scope.Tenant, req.local()); r != nil {
		return r
	}
	req.attempt = a
	return nil
}

// authorizeWorker lets in the token of the path's worker, or, where the route has roles, a control token.
func (req *request) authorizeWorker() error {
	switch {
	case req.who.control() && req.route.needs != 0:
		return req.authorizeControl()
	case !req.who.worker():
		return forbidden("The token is not a worker's; use the workerToken of the registration")
	case !model.ValidID(req.id):
		return invalidID(req.route.idField())
	case req.route.idField() == "workerId" && req.who.claims.Worker != req.id:
		return forbidden("The token is another worker's; use the workerToken of this worker's registration")
	}
	return nil
}

func (req *request) authorizeControl() error {
	if !req.who.control() {
		return forbidden("The token is not a control token; make one with: lubdub token --role viewer")
	}
	role := req.who.claims.Role
	if permitted[role]&req.route.needs == 0 {
		return forbidden("The role " + string(role) + " may not do this; it takes " + rolesFor(req.route.needs))
	}
	if req.id != "" {
		return invalidIDUnless(req.route.idField(), req.id)
	}
	return nil
}

func invalidIDUnless(field, id string) error {
	if model.ValidID(id) {
		return nil
	}
	return invalidID(field)
}

// scope determines the scope of a request: what the body says (empty for those without), else the query, else the token. What
// the token does not open is 403, what is more than the tenant may send 429: a request counts once for each scope that it
// determines, so each task of a batch does.
func (req *request) scope(bodyTenant, bodyWorkspace string) (model.Scope, error) {
	tenant, err := req.half("tenantId", bodyTenant, req.who.claims.Tenant)
	if err != nil {
		return model.Scope{}, err
	}
	workspace, err := req.half("workspaceId", bodyWorkspace, req.who.claims.Workspace)
	if err != nil {
		return model.Scope{}, err
	}
	limit := req.api.tenantCalls
	if req.route.beats != "" {
		limit = req.api.tenantBeats
	}
	if r := limit.take(tenant, nil, req.local()); r != nil {
		return model.Scope{}, r
	}
	return model.Scope{Tenant: tenant, Workspace: workspace}, nil
}

func (req *request) half(field, body, own string) (string, error) {
	asked := req.query.Get(field)
	switch {
	case req.query.Has(field) && !model.ValidID(asked), body != "" && !model.ValidID(body):
		return "", invalidID(field)
	case asked != "" && body != "" && asked != body:
		return "", invalidField(field, field+" differs between the query and the body; say it once")
	case body != "":
		asked = body
	}
	switch {
	case asked == "" && own == token.Wildcard:
		return "", invalidField(field, field+" is missing; the token opens every one, so the request must say which it is about")
	case asked == "":
		return own, nil
	case own != token.Wildcard && asked != own:
		return "", forbidden("The token does not open this " + strings.TrimSuffix(field, "Id"))
	}
	return asked, nil
}

// openScope is the scope of a request that may be about several. A half that the token leaves open may be left open, "".
func (req *request) openScope() (tenant, workspace string, err error) {
	half := func(field, own string) (string, error) {
		if own == token.Wildcard && !req.query.Has(field) {
			return "", nil
		}
		return req.half(field, "", own)
	}
	if tenant, err = half("tenantId", req.who.claims.Tenant); err != nil {
		return "", "", err
	}
	if workspace, err = half("workspaceId", req.who.claims.Workspace); err != nil {
		return "", "", err
	}
	if tenant != "" {
		if r := req.takeCall(tenant); r != nil {
			return "", "", r
		}
	}
	return tenant, workspace, nil
}
