package httpapi

import (
	"github.com/lubdub-io/lubdub/api/token"
	"github.com/lubdub-io/lubdub/tracker/revocations"
)

// applyRevocations rejects revoked tokens. Heartbeats check only the cache, so tokens that may be affected are dropped from it, and
// verified when they are next used.
func (a *API) applyRevocations(all, news []revocations.Revocation) {
	a.revoked.Store(revokedTokens(all)) // first: tokens verified from here on are checked against it
	fresh := revokedTokens(news)
	a.tokens.Drop(func(p *Principal) bool {
		if p.Claims != nil {
			return fresh.MayRevoke(p.Claims)
		}
		return fresh.MayRevoke(&token.Claims{
			Kind: token.KindTask, Tenant: p.attempt.Scope.Tenant, Workspace: p.attempt.Scope.Workspace, Worker: p.attempt.WorkerID,
		})
	})
	a.Waits.Check()
}

func revokedTokens(list []revocations.Revocation) *token.Revoked {
	r := token.NewRevoked()
	for _, one := range list {
		switch one.Kind {
		case revocations.OfTenant:
			r.Tenant(one.Tenant, one.IssuedBefore)
		case revocations.OfWorker:
			r.Worker(one.Tenant, one.Workspace, one.Name, one.IssuedBefore)
		case revocations.OfSubject:
			r.Subject(one.Tenant, one.Workspace, one.Name, one.IssuedBefore)
		}
	}
	return r
}
