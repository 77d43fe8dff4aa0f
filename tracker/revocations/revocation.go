package revocations

import (
	"strings"
	"time"

	"github.com/lubdub-io/lubdub/tracker/model"
)

// Kind is the kind of a revocation's subject.
type Kind string

// These are the kinds, as they are stored.
const (
	OfSubject Kind = "s" // control tokens of a subject
	OfWorker  Kind = "w" // a worker's own token, and those of the attempts that were dispatched to it
	OfTenant  Kind = "t" // every token of a tenant
)

// Wildcard in a revocation means every tenant or every workspace, including tokens whose own one is Wildcard.
const Wildcard = "*"

// Revocation revokes tokens that were issued before a moment. Two with the same key revoke the same tokens.
type Revocation struct {
	Kind              Kind
	Tenant, Workspace string // an ID or Wildcard
	Name              string // the subject or the worker; empty with OfTenant

	// IssuedBefore is a whole second, like the time of issue in tokens. A token that was issued in that second is revoked too.
	IssuedBefore time.Time
}

// expiresAt returns when the last revoked token expires: the revocation has no effect after that.
func (r *Revocation) expiresAt() time.Time { return r.IssuedBefore.Add(r.Kind.longestLife()) }

func (k Kind) longestLife() time.Duration {
	if k == OfWorker {
		return model.MaxTokenTTL
	}
	return model.MaxControlTTL
}

// key returns the key of the revoked tokens, as it is stored. A subject may contain slashes; IDs and Wildcard do not.
func (r *Revocation) key() string {
	return string(r.Kind) + "/" + r.Tenant + "/" + r.Workspace + "/" + r.Name
}

// parse parses a stored revocation; ok is false for one that another version has written.
func parse(what string, expiresAt time.Time) (r Revocation, ok bool) {
	parts := strings.SplitN(what, "/", 4)
	if len(parts) < 4 {
		return r, false
	}
	r = Revocation{Kind: Kind(parts[0]), Tenant: parts[1], Workspace: parts[2], Name: parts[3]}
	switch r.Kind {
	case OfSubject, OfWorker, OfTenant:
	default:
		return r, false
	}
	r.IssuedBefore = expiresAt.Add(-r.Kind.longestLife())
	return r, true
}
