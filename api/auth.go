package api

import (
	"bytes"
	"strings"

	"github.com/lubdub-io/lubdub/api/token"
	"github.com/lubdub-io/lubdub/tracker"
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

// checkTask holds a task id against the one that a task token is for.
func checkTask(a *tracker.Attempt, id []byte) *refusal {
	switch {
	case a.TaskID == string(id):
		return nil
	case !tracker.ValidID(id):
		return invalidID("taskId")
	}
	return forbidden("The token is another task's; use the taskToken of this task's envelope")
}

// checkAttempt holds the attempt of a body against the token's.
func checkAttempt(a *tracker.Attempt, number int) *refusal {
	if a.Number == number {
		return nil
	}
	return forbidden("The token is another attempt's; send the attempt of the envelope that the token came with")
}

// authorize lets the request in or answers 401 or 403.
func (c *call) authorize() error {
	if c.route.access == forAll || c.route.access == forItems {
		return nil
	}
	if r := c.authenticate(); r != nil {
		return r
	}
	switch c.route.access {
	case forTask:
		return c.authorizeTask()
	case forWorker:
		return c.authorizeWorker()
	}
	return c.authorizeControl()
}

// authorizeTask lets in the token of the path's task. A worker's is judged when the body has named the attempt.
func (c *call) authorizeTask() error {
	a := c.who.task()
	if a == nil {
		return nil
	}
	if r := checkTask(a, []byte(c.id)); r != nil {
		return r
	}
	if r := c.s.tenantBeats.take(a.Scope.Tenant, &c.who.bucket, c.local()); r != nil {
		return r
	}
	c.attempt = a
	return nil
}

// authorizeWorker lets in the token of the path's worker, or, where the route has roles, a control token.
func (c *call) authorizeWorker() error {
	switch {
	case c.who.control() && c.route.needs != 0:
		return c.authorizeControl()
	case !c.who.worker():
		return forbidden("The token is not a worker's; use the workerToken of the registration")
	case !tracker.ValidID(c.id):
		return invalidID(c.route.idField())
	case c.route.idField() == "workerId" && c.who.claims.Worker != c.id:
		return forbidden("The token is another worker's; use the workerToken of this worker's registration")
	}
	return nil
}

func (c *call) authorizeControl() error {
	if !c.who.control() {
		return forbidden("The token is not a control token; make one with: lubdub token --role viewer")
	}
	role := c.who.claims.Role
	if permitted[role]&c.route.needs == 0 {
		return forbidden("The role " + string(role) + " may not do this; it takes " + rolesFor(c.route.needs))
	}
	if c.id != "" {
		return invalidIDUnless(c.route.idField(), c.id)
	}
	return nil
}

func invalidIDUnless(field, id string) error {
	if tracker.ValidID(id) {
		return nil
	}
	return invalidID(field)
}

// scope settles the scope of a control call: what the body says (empty for calls without), else the query,
// else the token. What the token does not open is 403, what is more than the tenant may send 429: a call counts once
// for each scope that it settles, so each task of a batch does.
func (c *call) scope(bodyTenant, bodyWorkspace string) (tracker.Scope, error) {
	tenant, err := c.half("tenantId", bodyTenant, c.who.claims.Tenant)
	if err != nil {
		return tracker.Scope{}, err
	}
	workspace, err := c.half("workspaceId", bodyWorkspace, c.who.claims.Workspace)
	if err != nil {
		return tracker.Scope{}, err
	}
	limit := c.s.tenantCalls
	if c.route.op == opWorkerHeartbeat {
		limit = c.s.tenantBeats
	}
	if r := limit.take(tenant, nil, c.local()); r != nil {
		return tracker.Scope{}, r
	}
	return tracker.Scope{Tenant: tenant, Workspace: workspace}, nil
}

func (c *call) half(field, body, own string) (string, error) {
	asked := c.query.Get(field)
	switch {
	case c.query.Has(field) && !tracker.ValidID(asked), body != "" && !tracker.ValidID(body):
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
