package httpapi

import (
	"errors"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/lubdub-io/lubdub/api/oidc"
	"github.com/lubdub-io/lubdub/api/token"
	v1 "github.com/lubdub-io/lubdub/sdk/go/v1"
)

// ErrIssuerUnavailable refuses a token that may be valid: the keys of its issuer are not known.
var ErrIssuerUnavailable = func() *Refusal {
	r := NewRefusal(fasthttp.StatusServiceUnavailable, v1.CodeIssuerUnavailable,
		"The OpenID provider has not been reached yet, or has not published the key of this token. Retry after the time in Retry-After")
	r.RetryAfter = DefaultRetryAfter
	return r
}()

// foreignLife is how long a token of the provider is cached. After that its key may have been removed.
const foreignLife = time.Minute

// verifyAny is verify for tokens that may be the OpenID provider's.
func (a *API) verifyAny(bearer []byte, now time.Time) (*Principal, *Refusal) {
	if a.cfg.Provider == nil || !a.cfg.Provider.Claimed(bearer) {
		return a.verify(bearer, now)
	}
	o, r := a.openForeign(string(bearer), now)
	if o != nil && a.Remember(o, now) {
		return &o.entry.Value, nil
	}
	a.Metrics.badTokens.Inc()
	return nil, r
}

// openForeign returns a verified token of the OpenID provider. It does not cache it.
func (a *API) openForeign(text string, now time.Time) (*OpenedToken, *Refusal) {
	c, err := a.cfg.Provider.Verify(text, now)
	var refused *oidc.Refused
	switch {
	case errors.As(err, &refused):
		return nil, Forbidden(refused.Reason)
	case errors.Is(err, oidc.ErrUnavailable):
		return nil, ErrIssuerUnavailable
	case err != nil || a.revoked.Load().Revokes(c):
		return nil, ErrUnauthorized
	}
	e := &token.Entry[Principal]{Token: text, Expires: min(c.ExpiresAt.UnixMilli(), now.Add(foreignLife).UnixMilli())}
	e.Value.Claims = c
	return &OpenedToken{e, c}, ErrUnauthorized
}
