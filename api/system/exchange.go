package system

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/lubdub-io/lubdub/api/httpapi"
	"github.com/lubdub-io/lubdub/api/token"
	v1 "github.com/lubdub-io/lubdub/sdk/go/v1"
)

// The life of a token that is issued for another one. The default is for a page that a person is looking at.
const (
	defaultExchangedLife = time.Hour
	maxExchangedLife     = 12 * time.Hour
)

// createToken answers POST /v1/tokens: it issues, for the request's control token, another one with no more permissions and no longer
// life. It does not use the store.
func (h *Handlers) createToken(req *httpapi.Request) (int, any, error) {
	if _, _, err := req.OpenScope(); err != nil { // the scope is the token's; one in the query that it does not allow is refused
		return 0, nil, err
	}
	var body v1.CreateTokenRequest
	if err := req.OptionalBody(&body); err != nil {
		return 0, nil, err
	}
	own := req.Caller.Claims
	role, err := exchangedRole(own.Role, token.Role(body.Role))
	if err != nil {
		return 0, nil, err
	}
	var d httpapi.Durations
	life := d.Positive("ttlMs", body.TTLMs, time.Millisecond)
	switch {
	case d.Err != nil:
		return 0, nil, d.Err
	case body.TTLMs == nil:
		life = defaultExchangedLife
	case life < time.Second || life > maxExchangedLife:
		return 0, nil, httpapi.InvalidField("ttlMs", fmt.Sprintf("ttlMs is %d, which is out of range: use %d to %d, or omit it for %d",
			*body.TTLMs, time.Second.Milliseconds(), maxExchangedLife.Milliseconds(), defaultExchangedLife.Milliseconds()))
	}
	text, expires, err := req.API.Keys.Exchange(own, role, life, req.Now)
	if err != nil {
		return 0, nil, err
	}
	return fasthttp.StatusCreated, &v1.CreateTokenResponse{
		Token: text, Role: string(role), TenantID: own.Tenant, WorkspaceID: own.Workspace, Queue: own.Queue, Subject: own.Subject,
		ExpiresAt: v1.At(expires),
	}, nil
}

// exchangedRole returns the requested role, which must have no more permissions than the token's.
func exchangedRole(own, requested token.Role) (token.Role, error) {
	if requested == "" {
		return own, nil
	}
	if !slices.Contains(token.Roles, requested) {
		return "", httpapi.InvalidField("role", fmt.Sprintf("role is %q; use one of %s, or omit it for the token's own",
			httpapi.Clip(string(requested)), strings.Join(lesserRoles(own), ", ")))
	}
	if httpapi.Permitted[requested]&^httpapi.Permitted[own] != 0 {
		return "", httpapi.Forbidden("The role " + string(own) + " may not do all that " + string(requested) +
			" may; its token makes tokens of " +
			strings.Join(lesserRoles(own), ", ") + " only")
	}
	return requested, nil
}

// lesserRoles lists the roles with no more permissions than a role, which is one of them.
func lesserRoles(than token.Role) (names []string) {
	for _, r := range token.Roles {
		if httpapi.Permitted[r]&^httpapi.Permitted[than] == 0 {
			names = append(names, string(r))
		}
	}
	return names
}
