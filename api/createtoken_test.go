package api

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/lubdub-io/lubdub/api/httpapi"
	"github.com/lubdub-io/lubdub/api/token"
	v1 "github.com/lubdub-io/lubdub/sdk/go/v1"
	"github.com/lubdub-io/lubdub/tracker/workers"
)

// claims are the contents of a token of this server.
func (e *env) claims(text string) *token.Claims {
	e.t.Helper()
	c, err := e.keys.Verify(text, e.now())
	if err != nil {
		e.t.Fatal(err)
	}
	return c
}

// A token makes such as may no more than it may: of each role, this is all.
func TestATokenMakesNoneThatMayMore(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	may := map[token.Role][]token.Role{
		roleViewer: {roleViewer}, roleSubmitter: {roleSubmitter}, roleOperator: {roleViewer, roleOperator}, roleEnroll: {roleEnroll},
		roleDispatcher: {roleViewer, roleSubmitter, roleOperator, roleDispatcher}, roleAdmin: token.Roles,
	}
	for _, own := range token.Roles {
		text := e.controlOf(token.Control{Role: own, Subject: "ann", TTL: 3 * time.Hour})
		for _, requested := range token.Roles {
			a := e.do("POST", "/v1/tokens", text, `{"role":"`+string(requested)+`"}`)
			if !slices.Contains(may[own], requested) {
				if is := a.refused(403, v1.CodeForbidden); !strings.Contains(is.Message, string(own)) {
					t.Errorf("%s requests %s: %s", own, requested, is.Message)
				}
				continue
			}
			var made v1.CreateTokenResponse
			a.want(201).into(&made)
			c := e.claims(made.Token)
			if c.Role != requested || c.Kind != token.KindControl || c.Tenant != "acme" || c.Workspace != "prod" || c.Subject != "ann" ||
				!c.ExpiresAt.Equal(e.now().Add(time.Hour)) || !made.ExpiresAt.Equal(c.ExpiresAt.Time) || made.Role != string(requested) ||
				made.TenantID != "acme" || made.WorkspaceID != "prod" || made.Subject != "ann" {
				t.Errorf("%s requests %s: %+v %+v", own, requested, made, c)
			}
			for _, higher := range token.Roles { // and what it makes may no more than it
				again := e.do("POST", "/v1/tokens", made.Token, `{"role":"`+string(higher)+`"}`)
				if slices.Contains(may[requested], higher) {
					again.want(201)
				} else {
					again.refused(403, v1.CodeForbidden)
				}
			}
		}
		var same v1.CreateTokenResponse
		e.do("POST", "/v1/tokens", text, "").want(201).into(&same)
		if same.Role != string(own) {
			t.Errorf("without a role, a token of %s makes one of %s", own, same.Role)
		}
	}
}

// However often one is made of another, none outlives the first, and none is of another scope or queue.
func TestAMadeTokenEndsWithItsParent(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	first := e.controlOf(token.Control{Role: roleEnroll, Queue: "mail", TTL: 2 * time.Hour})
	end := e.claims(first).ExpiresAt
	last := first
	for range 5 {
		e.advance(20*time.Minute + 300*time.Millisecond)
		var made v1.CreateTokenResponse
		e.do("POST", "/v1/tokens", last, `{"ttlMs":43200000}`).want(201).into(&made)
		last = made.Token
		c := e.claims(last)
		if !c.ExpiresAt.Equal(end.Time) || !c.IssuedAt.Equal(e.claims(first).IssuedAt.Time) || c.Queue != "mail" || made.Queue != "mail" {
			t.Errorf("%+v", c)
		}
	}
	var short v1.CreateTokenResponse
	e.do("POST", "/v1/tokens", last, `{"ttlMs":1999}`).want(201).into(&short)
	if left := short.ExpiresAt.Sub(e.now()); left <= 0 || left > time.Second {
		t.Errorf("1,999 ms are %v", left)
	}
	e.advance(20 * time.Minute)
	for _, ended := range []string{first, last} {
		e.do("POST", "/v1/tokens", ended, "").refused(401, v1.CodeUnauthorized)
	}
	var all v1.CreateTokenResponse
	e.do("POST", "/v1/tokens?tenantId=acme&workspaceId=prod", e.superAdmin(), "").want(201).into(&all)
	if c := e.claims(all.Token); c.Tenant != token.Wildcard || c.Workspace != token.Wildcard {
		t.Errorf("%+v", c)
	}
}

// A request that is not for a token, or is for more permissions, is refused with the reason.
func TestTokensThatAreNotMade(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	worker, _, err := httpapi.MintWorker(e.keys, testAttempt().Scope, &workers.Registered{WorkerID: fakeWorkerID, MachineID: "host-7",
		Queue: "default"}, e.now())
	if err != nil {
		t.Fatal(err)
	}
	own := e.control(roleOperator)
	for _, c := range []struct {
		bearer, query, body string
		status              int
		names               string
	}{
		{own, "", `{"role":"root"}`, 400, "one of viewer, operator,"}, {own, "", `{"role":"Viewer"}`, 400, "role"},
		{own, "", `{"role":"viewer "}`, 400, "role"}, {own, "", `{"role":["admin"]}`, 400, "role"}, {own, "", `{"role":7}`, 400, "role"},
		{own, "", `{"role":"viewer","role":"admin"}`, 400, "twice"}, {own, "", `{"Role":"admin"}`, 400, "Role"},
		{own, "", `{"ttlMs":0}`, 400, "ttlMs"}, {own, "", `{"ttlMs":-1}`, 400, "ttlMs"}, {own, "", `{"ttlMs":999}`, 400, "ttlMs"},
		{own, "", `{"ttlMs":43200001}`, 400, "43200000"}, {own, "", `{"ttlMs":9223372036854775807}`, 400, "ttlMs"},
		{own, "", `{"ttlMs":99999999999999999999}`, 400, "ttlMs"}, {own, "", `{"ttlMs":1.5}`, 400, "ttlMs"},
		{own, "", `{"ttlMs":"60000"}`, 400, "ttlMs"},
		{own, "", `{"tenantId":"*"}`, 400, "tenantId"}, {own, "", `{"workspaceId":"other"}`, 400, "workspaceId"},
		{own, "", `{"subject":"boss"}`, 400, "subject"}, {own, "", `{"queue":"q"}`, 400, "queue"},
		{own, "", `{"expiresAt":"2099-01-01T00:00:00Z"}`, 400, "expiresAt"},
		{own, "", `[]`, 400, ""}, {own, "", `{`, 400, ""}, {own, "", `"admin"`, 400, ""},
		{own, "?tenantId=other", ``, 403, "tenant"}, {own, "?tenantId=*", ``, 400, "tenantId"}, {own, "?workspaceId=*", ``, 400, "workspaceId"},
		{own, "?role=admin", ``, 400, "role"},
		{e.task(), "", ``, 403, "control token"}, {worker, "", ``, 403, "control token"}, {"", "", ``, 401, ""}, {own + "x", "", ``, 401, ""},
	} {
		a := e.do("POST", "/v1/tokens"+c.query, c.bearer, c.body)
		if a.status != c.status || !strings.Contains(a.body, c.names) || strings.Contains(a.body, "eyJ") {
			t.Errorf("%s %s: %d %s, want %d", c.query, c.body, a.status, a.body, c.status)
		}
	}
	e.do("GET", "/v1/tokens", own, "").want(405)
}

// Revoking a token also revokes all tokens that were exchanged for it, before or after, even by a replica that does not know of the
// revocation yet.
func TestContractExchangedTokensAreRevokedWithTheirParent(t *testing.T) {
	t.Parallel()
	contract(t, func(t *testing.T, l *live) {
		other := l.newReplica()
		ann := l.controlOf(token.Control{Role: roleOperator, Subject: "ann", TTL: 3 * time.Hour})
		made := func(at *live, of string) string {
			t.Helper()
			var m v1.CreateTokenResponse
			at.do("POST", "/v1/tokens", of, `{"role":"viewer"}`).want(201).into(&m)
			return m.Token
		}
		l.pass(5 * time.Second)
		tokens := map[string]string{"ann": ann, "made before": made(l, ann)}
		tokens["made of that"] = made(other, tokens["made before"])
		l.pass(5 * time.Second)
		l.do("POST", "/v1/tokens:revoke", l.superAdmin(), `{"subject":"ann"}`).want(200)
		l.pass(1500 * time.Millisecond)
		tokens["made by a replica that does not know yet"] = made(other, ann)
		other.refreshRevocations()
		for name, text := range tokens {
			for _, at := range []*live{l, other} {
				if a := at.do("GET", "/v1/tasks", text, ""); a.status != 401 {
					t.Errorf("%s is answered %d", name, a.status)
				}
				at.do("POST", "/v1/tokens", text, "").refused(401, v1.CodeUnauthorized)
			}
		}
		later := l.controlOf(token.Control{Role: roleOperator, Subject: "ann", TTL: time.Hour})
		l.do("GET", "/v1/tasks", made(other, later), "").want(200)
		l.do("POST", "/v1/tokens:revoke", l.superAdmin(), `{"tenantId":"acme"}`).want(200)
		l.do("GET", "/v1/tasks", made(other, later), "").want(401)
	})
}
