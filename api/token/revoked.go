package token

import "time"

// Revoked is the set of revoked tokens. It must be filled before it is shared; then it is read without a lock.
type Revoked struct {
	tenants, workers, subjects map[bearers]int64 // Unix seconds up to which the issued tokens are revoked
}

// bearers identifies the bearers of revoked tokens.
type bearers struct{ tenant, workspace, name string }

// NewRevoked returns an empty set.
func NewRevoked() *Revoked {
	return &Revoked{tenants: map[bearers]int64{}, workers: map[bearers]int64{}, subjects: map[bearers]int64{}}
}

// Tenant revokes all tokens of a tenant that were issued up to a second.
func (r *Revoked) Tenant(tenant string, issued time.Time) {
	later(r.tenants, bearers{tenant: tenant}, issued)
}

// Worker revokes a worker's own tokens, and those of attempts that were dispatched to it.
func (r *Revoked) Worker(tenant, workspace, worker string, issued time.Time) {
	later(r.workers, bearers{tenant, workspace, worker}, issued)
}

// Subject revokes control tokens of a subject. Wildcard means every tenant or workspace, and every subject.
func (r *Revoked) Subject(tenant, workspace, subject string, issued time.Time) {
	later(r.subjects, bearers{tenant, workspace, subject}, issued)
}

func later(of map[bearers]int64, who bearers, issued time.Time) {
	of[who] = max(of[who], issued.Unix())
}

// Revokes reports whether the token with these claims was revoked.
func (r *Revoked) Revokes(c *Claims) bool { return r.revokes(c, c.IssuedAt.Unix()) }

// MayRevoke reports whether a token with these claims, whenever it was issued, may have been revoked.
func (r *Revoked) MayRevoke(c *Claims) bool { return r.revokes(c, 0) }

func (r *Revoked) revokes(c *Claims, issued int64) bool {
	in := func(of map[bearers]int64, tenant, workspace, name string) bool {
		until, ok := of[bearers{tenant, workspace, name}]
		return ok && issued <= until
	}
	if in(r.tenants, c.Tenant, "", "") {
		return true
	}
	if c.Kind != KindControl {
		return c.Worker != "" && in(r.workers, c.Tenant, c.Workspace, c.Worker)
	}
	for _, tenant := range [...]string{c.Tenant, Wildcard} {
		for _, workspace := range [...]string{c.Workspace, Wildcard} {
			if c.Subject != "" && in(r.subjects, tenant, workspace, c.Subject) {
				return true
			}
		}
	}
	return false
}
