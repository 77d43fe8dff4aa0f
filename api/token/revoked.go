package token

import "time"

// Revoked knows which tokens were taken back. Fill it before it is shared; then it is read without a lock.
type Revoked struct {
	tenants, workers, subjects map[bearers]int64 // until when those were issued that do not hold, Unix seconds
}

// bearers are whose tokens were taken back.
type bearers struct{ tenant, workspace, name string }

// NewRevoked returns one that knows of none.
func NewRevoked() *Revoked {
	return &Revoked{tenants: map[bearers]int64{}, workers: map[bearers]int64{}, subjects: map[bearers]int64{}}
}

// Tenant takes back all tokens of a tenant that were issued up to a second.
func (r *Revoked) Tenant(tenant string, issued time.Time) {
	later(r.tenants, bearers{tenant: tenant}, issued)
}

// Worker takes back a worker's own tokens, and those of attempts that were dispatched to it.
func (r *Revoked) Worker(tenant, workspace, worker string, issued time.Time) {
	later(r.workers, bearers{tenant, workspace, worker}, issued)
}

// Subject takes back control tokens of a subject. Wildcard stands for every tenant or workspace, and for tokens of all.
func (r *Revoked) Subject(tenant, workspace, subject string, issued time.Time) {
	later(r.subjects, bearers{tenant, workspace, subject}, issued)
}

func later(of map[bearers]int64, who bearers, issued time.Time) {
	of[who] = max(of[who], issued.Unix())
}

// Takes reports whether the token that says this was taken back.
func (r *Revoked) Takes(c *Claims) bool { return r.takes(c, c.IssuedAt.Unix()) }

// MayTake reports whether a token that says this, but for when it was issued, may have been taken back.
func (r *Revoked) MayTake(c *Claims) bool { return r.takes(c, 0) }

func (r *Revoked) takes(c *Claims, issued int64) bool {
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
