package httpapi

import (
	"bytes"
	"strings"

	"github.com/lubdub-io/lubdub/api/token"
	"github.com/lubdub-io/lubdub/tracker/model"
)

// Bearer returns the token of a request, or nil if it has none or more than one.
func (w *Wire) Bearer() []byte {
	const scheme = "bearer "
	a := w.authorization
	if w.authorized != 1 || len(a) <= len(scheme) || len(a) > len(scheme)+token.MaxForeignBytes {
		return nil
	}
	if !bytes.EqualFold(a[:len(scheme)], []byte(scheme)) {
		return nil
	}
	return bytes.TrimLeft(a[len(scheme):], " ")
}

// CheckTask refuses a task id that is not the one in the task token.
func CheckTask(a *model.Attempt, id []byte) *Refusal {
	switch {
	case a.TaskID == string(id):
		return nil
	case !model.ValidID(id):
		return InvalidID("taskId")
	}
	return Forbidden("The token belongs to another task; use the taskToken that was issued for this task")
}

// CheckAttempt refuses an attempt number that is not the token's.
func CheckAttempt(a *model.Attempt, number int) *Refusal {
	if a.Number == number {
		return nil
	}
	return Forbidden("The token belongs to another attempt; send the attempt number and the taskToken that were issued together")
}

// authorize checks the request's token, and returns a 401 or 403 if it is not sufficient.
func (req *Request) authorize() error {
	if req.Route.Access == ForAll || req.Route.Access == ForItems || req.Route.Access == ForBeat {
		return nil
	}
	if r := req.Authenticate(); r != nil {
		return r
	}
	switch req.Route.Access {
	case ForTask:
		return req.authorizeTask()
	case ForWorker:
		return req.authorizeWorker()
	}
	return req.authorizeControl()
}

// authorizeTask accepts the token of the path's task. A worker's token is checked once the body has named the attempt.
func (req *Request) authorizeTask() error {
	a := req.Caller.Task()
	if a == nil {
		return nil
	}
	if r := CheckTask(a, []byte(req.ID)); r != nil {
		return r
	}
	if r := req.API.TakeBeat(req.Caller, a.Scope.Tenant, req.Local()); r != nil {
		return r
	}
	req.Attempt = a
	return nil
}

// authorizeWorker accepts the token of the path's worker or, if the route has roles, a control token.
func (req *Request) authorizeWorker() error {
	switch {
	case req.Caller.control() && req.Route.Needs != 0:
		return req.authorizeControl()
	case !req.Caller.Worker():
		return Forbidden("The token is not a worker's; use the workerToken of the registration")
	case !model.ValidID(req.ID):
		return InvalidID(req.Route.IDField())
	case req.Route.IDField() == "workerId" && req.Caller.Claims.Worker != req.ID:
		return Forbidden("The token belongs to another worker; use the workerToken of this worker's registration")
	}
	return nil
}

func (req *Request) authorizeControl() error {
	if !req.Caller.control() {
		return Forbidden("The token is not a control token; make one with: lubdub token --role viewer")
	}
	role := req.Caller.Claims.Role
	if Permitted[role]&req.Route.Needs == 0 {
		return Forbidden("The role " + string(role) + " may not do this; it takes " + RolesFor(req.Route.Needs))
	}
	if req.ID != "" {
		return invalidIDUnless(req.Route.IDField(), req.ID)
	}
	return nil
}

func invalidIDUnless(field, id string) error {
	if model.ValidID(id) {
		return nil
	}
	return InvalidID(field)
}

// Scope determines the scope of a request from the body (empty for requests without one), else the query, else the token. A scope that
// the token does not allow is refused with 403, and requests above the tenant's rate with 429: a request counts once for each
// scope that it determines, so each task of a batch counts.
func (req *Request) Scope(bodyTenant, bodyWorkspace string) (model.Scope, error) {
	tenant, err := req.ScopePart("tenantId", bodyTenant, req.Caller.Claims.Tenant)
	if err != nil {
		return model.Scope{}, err
	}
	workspace, err := req.ScopePart("workspaceId", bodyWorkspace, req.Caller.Claims.Workspace)
	if err != nil {
		return model.Scope{}, err
	}
	limit := req.API.tenantCalls
	if req.Route.Beats != "" {
		limit = req.API.tenantBeats
	}
	if r := limit.take(tenant, nil, req.Local()); r != nil {
		return model.Scope{}, r
	}
	return model.Scope{Tenant: tenant, Workspace: workspace}, nil
}

// ScopePart returns the tenant or workspace of a request, as Scope determines it.
func (req *Request) ScopePart(field, body, own string) (string, error) {
	query := req.Query.Get(field)
	switch {
	case req.Query.Has(field) && !model.ValidID(query), body != "" && !model.ValidID(body):
		return "", InvalidID(field)
	case query != "" && body != "" && query != body:
		return "", InvalidField(field, field+" differs between the query and the body; say it once")
	case body != "":
		query = body
	}
	switch {
	case query == "" && own == token.Wildcard:
		return "", InvalidField(field, field+" is missing; this token is valid for all of them, so the request must name one")
	case query == "":
		return own, nil
	case own != token.Wildcard && query != own:
		return "", Forbidden("The token does not open this " + strings.TrimSuffix(field, "Id"))
	}
	return query, nil
}

// OpenScope returns the scope of a request that may concern several. The tenant or workspace may be "" if the token allows every one.
func (req *Request) OpenScope() (tenant, workspace string, err error) {
	half := func(field, own string) (string, error) {
		if own == token.Wildcard && !req.Query.Has(field) {
			return "", nil
		}
		return req.ScopePart(field, "", own)
	}
	if tenant, err = half("tenantId", req.Caller.Claims.Tenant); err != nil {
		return "", "", err
	}
	if workspace, err = half("workspaceId", req.Caller.Claims.Workspace); err != nil {
		return "", "", err
	}
	if tenant != "" {
		if r := req.TakeCall(tenant); r != nil {
			return "", "", r
		}
	}
	return tenant, workspace, nil
}
