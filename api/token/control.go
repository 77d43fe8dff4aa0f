package token

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"
)

// Role determines what a control token allows.
type Role string

// The roles.
const (
	RoleViewer     Role = "viewer"     // reads
	RoleSubmitter  Role = "submitter"  // creates tasks, reads and cancels them; no access to workers and queues
	RoleOperator   Role = "operator"   // as viewer; also cancels, drains, and pauses queues
	RoleDispatcher Role = "dispatcher" // as operator; also creates tasks and attempts
	RoleEnroll     Role = "enroll"     // only registers workers
	RoleAdmin      Role = "admin"      // everything
)

// Roles lists every role.
var Roles = []Role{RoleViewer, RoleSubmitter, RoleOperator, RoleDispatcher, RoleEnroll, RoleAdmin}

// Wildcard in a control token means every tenant or every workspace.
const Wildcard = "*"

// Control is the input of MintControl.
type Control struct {
	Role      Role
	Tenant    string        // an id or Wildcard
	Workspace string        // an id or Wildcard
	Queue     string        // with RoleEnroll only; empty: any queue
	Subject   string        // the bearer's name in events and logs; empty: they show the role
	TTL       time.Duration // a second to MaxControlLife
}

// subject matches no colon, so that no subject looks like the name of a role.
var subject = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._@+/-]{0,127}$`)

// ValidSubject reports whether s is valid as an actor in events and logs.
func ValidSubject(s string) bool { return subject.MatchString(s) }

// Check returns what is wrong with the token that c describes, or nil.
func (c Control) Check() error {
	switch {
	case !slices.Contains(Roles, c.Role):
		return fmt.Errorf("unknown role %q; use one of %s", c.Role, roleNames())
	case c.Tenant != Wildcard && !validID(c.Tenant):
		return fmt.Errorf("the tenant %q is neither a valid id nor %s", c.Tenant, Wildcard)
	case c.Workspace != Wildcard && !validID(c.Workspace):
		return fmt.Errorf("the workspace %q is neither a valid id nor %s", c.Workspace, Wildcard)
	case c.Queue != "" && (c.Role != RoleEnroll || !validID(c.Queue)):
		return fmt.Errorf("a queue must be a valid id and goes with the role %s only", RoleEnroll)
	case c.Subject != "" && !ValidSubject(c.Subject):
		return fmt.Errorf("the subject %.140q is not valid in events and logs; use 1 to 128 letters, digits and . _ - @ + /, "+
			"beginning with a letter or digit", c.Subject)
	case c.TTL < time.Second:
		return fmt.Errorf("the token's life %s is shorter than a second", c.TTL)
	case c.TTL > MaxControlLife:
		return fmt.Errorf("the token's life %s is longer than %s, which is the most", c.TTL, MaxControlLife)
	}
	return nil
}

// MintControl returns a control token that is valid from now, in whole seconds, and when it expires.
func (k *Keyring) MintControl(c Control, now time.Time) (token string, expires time.Time, err error) {
	if err := c.Check(); err != nil {
		return "", time.Time{}, err
	}
	iat := now.Truncate(time.Second)
	exp := iat.Add(c.TTL.Truncate(time.Second))
	claims := &Claims{Kind: KindControl, Role: c.Role, Tenant: c.Tenant, Workspace: c.Workspace, Queue: c.Queue}
	claims.Subject = c.Subject
	token, err = k.sign(claims, iat, exp)
	return token, exp, err
}

// Exchange returns a control token with the scope, queue and subject of another valid one, and when it expires, which is no later than
// the other. The caller must have checked that the role has no more permissions than the other's. The new token has the other's time of
// issue, so a revocation of that one also revokes this one, even if a replica receives it only after it has created this one.
func (k *Keyring) Exchange(of *Claims, role Role, life time.Duration, now time.Time) (token string, expires time.Time, err error) {
	claims := &Claims{Kind: KindControl, Role: role, Tenant: of.Tenant, Workspace: of.Workspace, Queue: of.Queue}
	claims.Subject = of.Subject
	exp := now.Truncate(time.Second).Add(life.Truncate(time.Second))
	if exp.After(of.ExpiresAt.Time) {
		exp = of.ExpiresAt.Time
	}
	token, err = k.sign(claims, of.IssuedAt.Time, exp)
	return token, exp, err
}

func roleNames() string {
	names := make([]string, len(Roles))
	for i, r := range Roles {
		names[i] = string(r)
	}
	return strings.Join(names, ", ")
}
