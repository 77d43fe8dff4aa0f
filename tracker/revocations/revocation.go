package revocations

import (
	"strings"
	"time"

	"github.com/lubdub-io/lubdub/tracker/model"
)

// Kind is what a revocation names.
type Kind string

// The kinds, as they are stored.
const (
	OfSubject Kind = "s" // control tokens of one who bears them
	OfWorker  Kind = "w" // a worker's own token, and those of the attempts that were dispatched to it
	OfTenant  Kind = "t" // every token of a tenant
)

// Wildcard stands in a revocation for every tenant or every workspace, those included that tokens name Wildcard.
const Wildcard = "*"

// Revocation takes tokens back that were issued before a moment. Two with the same names are about the same tokens.
type Revocation struct {
	Kind              Kind
	Tenant, Workspace string // an id or Wildcard
	Name              string // the subject or the worker; empty with OfTenant

	// IssuedBefore is a whole second: tokens tell when they were issued in such. One that was issued in that very second is
	// taken back too.
	IssuedBefore time.Time
}

// stands returns until when tokens hold that a revocation takes back: after that it says nothing any more.
func (r *Revocation) stands() time.Time { return r.IssuedBefore.Add(r.Kind.longestLife()) }

func (k Kind) longestLife() time.Duration {
	if k == OfWorker {
		return model.MaxTokenTTL
	}
	return model.MaxControlTTL
}

// what names the tokens, as it is stored. A subject may have slashes; ids and Wildcard have none.
func (r *Revocation) what() string {
	return string(r.Kind) + "/" + r.Tenant + "/" + r.Workspace + "/" + r.Name
}

// parse reads what stands until a moment; ok is false for what another version has written.
func parse(what string, stands time.Time) (r Revocation, ok bool) {
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
	r.IssuedBefore = stands.Add(-r.Kind.longestLife())
	return r, true
}
