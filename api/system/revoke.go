package system

import (
	"time"

	"github.com/valyala/fasthttp"

	"github.com/lubdub-io/lubdub/api/httpapi"
	"github.com/lubdub-io/lubdub/api/token"
	v1 "github.com/lubdub-io/lubdub/sdk/go/v1"
	"github.com/lubdub-io/lubdub/tracker/model"
	"github.com/lubdub-io/lubdub/tracker/revocations"
)

// revokeTokens answers POST /v1/tokens:revoke.
func (h *Handlers) revokeTokens(req *httpapi.Request) (int, any, error) {
	var body v1.RevokeTokensRequest
	if err := req.Strict(&body); err != nil {
		return 0, nil, err
	}
	r, err := revocation(req, &body)
	if err != nil {
		return 0, nil, err
	}
	if full := req.TakeCall(r.Tenant); full != nil {
		return 0, nil, full
	}
	if r.IssuedBefore, err = issuedBefore(req, body.IssuedBefore.Time); err != nil {
		return 0, nil, err
	}
	if err := h.Revocations.Revoke(req.Context(), *r); err != nil {
		return 0, nil, err
	}
	return fasthttp.StatusOK, &v1.RevokeTokensResponse{
		Subject: body.Subject, WorkerID: body.WorkerID, TenantID: r.Tenant, WorkspaceID: r.Workspace, IssuedBefore: v1.At(r.IssuedBefore),
	}, nil
}

// revocation returns the tokens to revoke: of one kind, and within the scope of the request's own token.
func revocation(req *httpapi.Request, body *v1.RevokeTokensRequest) (*revocations.Revocation, error) {
	named := 0
	for _, name := range []string{body.Subject, body.WorkerID, body.TenantID} {
		if name != "" {
			named++
		}
	}
	if named != 1 {
		return nil, httpapi.InvalidField("subject", "The request must have exactly one of subject, workerId and tenantId: whose tokens to revoke")
	}
	switch {
	case body.WorkerID != "":
		if !model.ValidID(body.WorkerID) {
			return nil, httpapi.InvalidID("workerId")
		}
		tenant, err := req.ScopePart("tenantId", "", req.Caller.Claims.Tenant)
		if err != nil {
			return nil, err
		}
		workspace, err := req.ScopePart("workspaceId", "", req.Caller.Claims.Workspace)
		return &revocations.Revocation{Kind: revocations.OfWorker, Tenant: tenant, Workspace: workspace, Name: body.WorkerID}, err
	case body.TenantID != "":
		tenant, err := req.ScopePart("tenantId", body.TenantID, req.Caller.Claims.Tenant)
		if err == nil && (req.Caller.Claims.Workspace != token.Wildcard || req.Query.Has("workspaceId")) {
			err = httpapi.Forbidden("To revoke all tokens of a tenant, use an admin token for all its workspaces, and no workspaceId")
		}
		return &revocations.Revocation{Kind: revocations.OfTenant, Tenant: tenant, Workspace: token.Wildcard}, err
	}
	if !token.ValidSubject(body.Subject) {
		return nil, httpapi.InvalidField("subject", "subject cannot be that of a token; use 1 to 128 letters, digits and . _ - @ + /")
	}
	tenant, err := reach(req, "tenantId", req.Caller.Claims.Tenant)
	if err != nil {
		return nil, err
	}
	workspace, err := reach(req, "workspaceId", req.Caller.Claims.Workspace)
	return &revocations.Revocation{Kind: revocations.OfSubject, Tenant: tenant, Workspace: workspace, Name: body.Subject}, err
}

// reach returns the tenant or workspace of a request that may concern everything that the token allows.
func reach(req *httpapi.Request, field, own string) (string, error) {
	if own == token.Wildcard && !req.Query.Has(field) {
		return own, nil
	}
	return req.ScopePart(field, "", own)
}

// issuedBefore returns the second up to which issued tokens are revoked: tokens have a resolution of seconds, and those that Lubdub
// issues for workers and tasks have the next full second.
func issuedBefore(req *httpapi.Request, requested time.Time) (time.Time, error) {
	if requested.After(req.Now) {
		return time.Time{}, httpapi.InvalidField("issuedBefore",
			"issuedBefore is in the future; only tokens that were already issued can be revoked")
	}
	if requested.IsZero() {
		requested = req.Now
	}
	second := requested.UTC().Truncate(time.Second)
	if second.Before(requested) {
		second = second.Add(time.Second)
	}
	return second, nil
}
