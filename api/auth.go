package api

import (
	"bytes"
	"strings"
	"time"

	"github.com/lubdub-io/lubdub/api/token"
	"github.com/lubdub-io/lubdub/tracker"
)

// bearer gives the one token of a request, nil when there is none or more than one.
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

// taskToken verifies a task token, nearly always from the cache. raw may be borrowed. A nil token comes with
// the refusal: 401 for one that does not hold, 403 for a good one of another kind.
func (s *Server) taskToken(raw []byte, now time.Time, count *hotStripe) (*taskToken, *refusal) {
	if t := s.tokens.Get(raw, now.UnixMilli()); t != nil {
		count.cacheHits.Add(1)
		return t, nil
	}
	return s.verifyTask(raw, now)
}

func (s *Server) verifyTask(raw []byte, now time.Time) (*taskToken, *refusal) {
	if len(raw) == 0 {
		return nil, errUnauthorized
	}
	own := string(raw) // the cache outlives the request
	c, err := s.keys.Verify(own, now)
	switch {
	case err != nil:
		s.metrics.badTokens.Inc()
		return nil, errUnauthorized
	case c.Kind != token.KindTask:
		return nil, errNotTask
	}
	s.metrics.cacheMisses.Inc()
	e := newTaskToken(own, c, s.tracker.Attempt(attemptOf(c)))
	s.tokens.Put(e, now.UnixMilli())
	return &e.Value, nil
}

// checkTask holds a task id against the one that the token is for.
func (t *taskToken) checkTask(id []byte) *refusal {
	switch {
	case t.attempt.TaskID == string(id):
		return nil
	case !tracker.ValidID(id):
		return invalidID("taskId")
	}
	return forbidden("The token is another task's; use the taskToken of this task's envelope")
}

// checkAttempt holds the attempt of a body against the token's.
func (t *taskToken) checkAttempt(attempt int) *refusal {
	if t.attempt.Number == attempt {
		return nil
	}
	return forbidden("The token is another attempt's; send the attempt of the envelope that the token came with")
}

// authorize lets the request in or answers 401 or 403.
func (c *call) authorize() error {
	switch c.route.access {
	case forTask:
		t, r := c.s.taskToken(c.wire.bearer(), c.now, &c.s.metrics.hot.stripes[0])
		if r == errNotTask {
			return nil // a worker's, perhaps: judged when the body has named the attempt
		}
		if r == nil {
			r = t.checkTask([]byte(c.id))
		}
		if r == nil {
			r = c.s.tenantBeats.take(t.attempt.Scope.Tenant, &t.bucket, c.local())
		}
		if r != nil {
			return r
		}
		c.token = t
		known(c.ctx)
	case forControl:
		if err := c.authorizeControl(); err != nil {
			return err
		}
	case forWorker:
		if err := c.authorizeWorker(); err != nil {
			return err
		}
	}
	return nil
}

// claims verifies the request's token, which is no task's.
func (c *call) claims() (*token.Claims, error) {
	k, err := c.s.keys.Verify(string(c.wire.bearer()), c.now)
	if err == nil {
		known(c.ctx)
	}
	return k, err
}

func (c *call) authorizeControl() error {
	k, err := c.claims()
	if err != nil {
		c.s.metrics.badTokens.Inc()
		return errUnauthorized
	}
	if k.Kind != token.KindControl {
		return forbidden("The token is not a control token; make one with: lubdub token --role viewer")
	}
	if permitted[k.Role]&c.route.needs == 0 {
		return forbidden("The role " + string(k.Role) + " may not do this; it takes " + rolesFor(c.route.needs))
	}
	c.control = k
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
	tenant, err := c.half("tenantId", bodyTenant, c.control.Tenant)
	if err != nil {
		return tracker.Scope{}, err
	}
	workspace, err := c.half("workspaceId", bodyWorkspace, c.control.Workspace)
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
