package oidc

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"github.com/lubdub-io/lubdub/api/token"
)

// Refused is the error of a token that is valid but allows nothing.
type Refused struct{ Reason string }

func (r *Refused) Error() string { return r.Reason }

// control returns the claims of a control token with what the first grant that matches allows.
func (c *Config) control(claims jwt.MapClaims) (*token.Claims, error) {
	if v, known := claims["email_verified"]; known && v != true && v != "true" {
		delete(claims, "email") // of another person, perhaps
	}
	subject, _ := find(claims, c.SubjectClaim).(string)
	if !token.ValidSubject(subject) {
		return nil, &Refused{fmt.Sprintf("The claim %s of the token is %.140q, which cannot name its bearer in events: it takes 1 to 128 "+
			"letters, digits and . _ - @ + /, and a verified address if it is email", c.SubjectClaim, subject)}
	}
	for _, g := range c.Grants {
		if g.Claim != "" && !has(find(claims, g.Claim), g.Value) {
			continue
		}
		is := token.Control{Role: g.Role, Queue: g.Queue, Subject: subject, TTL: time.Second}
		var named [2]bool
		is.Tenant, named[0] = idOf(claims, g.Tenant)
		is.Workspace, named[1] = idOf(claims, g.Workspace)
		if named != [2]bool{true, true} || is.Check() != nil {
			return nil, &Refused{fmt.Sprintf("The token of %s does not name the tenant or workspace (%s, %s)", subject, g.Tenant, g.Workspace)}
		}
		found := &token.Claims{Kind: token.KindControl, Role: is.Role, Tenant: is.Tenant, Workspace: is.Workspace, Queue: is.Queue}
		found.Subject = subject
		return found, nil
	}
	return nil, &Refused{fmt.Sprintf("%s has signed in, but has no access: no grant of the server's oidc-file matches", subject)}
}

// idOf returns a grant's tenant or workspace; false: the claim that should name it does not. A claim never names all.
func idOf(claims jwt.MapClaims, granted string) (id string, ok bool) {
	name, fromClaim := strings.CutPrefix(granted, claimPrefix)
	if !fromClaim {
		return granted, true
	}
	id, _ = find(claims, name).(string)
	return id, id != "" && id != token.Wildcard
}

// find returns the claim of a name, which may have dots itself or lead to a nested claim; nil: there is no such claim.
func find(claims map[string]any, name string) any {
	if v, ok := claims[name]; ok {
		return v
	}
	first, rest, nested := strings.Cut(name, ".")
	if inner, ok := claims[first].(map[string]any); ok && nested {
		return find(inner, rest)
	}
	return nil
}

// has reports whether a claim is a value or a list that contains it.
func has(claim any, value string) bool {
	switch v := claim.(type) {
	case string:
		return v == value
	case bool:
		return fmt.Sprint(v) == value
	case []any:
		return slices.Contains(v, any(value))
	}
	return false
}
