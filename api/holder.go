package api

import "github.com/lubdub-io/lubdub/internal/shares"

// stranger stands for all clients without a valid token.
var stranger shares.Holder

// holder returns to whom the principal's use of bounded resources is charged.
func (p *principal) holder() shares.Holder {
	if a := p.task(); a != nil {
		return shares.Holder{Tenant: a.Scope.Tenant, Token: p.name}
	}
	return shares.Holder{Tenant: p.claims.Tenant, Token: p.name}
}

// tokenName returns what tells a token from others: the end of its signature.
func tokenName(text string) string { return text[max(0, len(text)-16):] }
