package api

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/lubdub-io/lubdub/tracker"
)

// Role is what a control token may do.
type Role string

const (
	RoleViewer     Role = "viewer"     // reads
	RoleSubmitter  Role = "submitter"  // creates tasks, reads and cancels them; nothing of workers or queues
	RoleOperator   Role = "operator"   // what a viewer may, cancels, drains, and pauses queues
	RoleDispatcher Role = "dispatcher" // what an operator may, and creates tasks and attempts
	RoleEnroll     Role = "enroll"     // registers workers and nothing else
	RoleAdmin      Role = "admin"      // everything
)

// Roles lists every role.
var Roles = []Role{RoleViewer, RoleSubmitter, RoleOperator, RoleDispatcher, RoleEnroll, RoleAdmin}

// Wildcard stands in a control token for every tenant or every workspace.
const Wildcard = "*"

// ControlToken is what MintControl makes a token of.
type ControlToken struct {
	Role      Role
	Tenant    string        // an id or Wildcard
	Workspace string        // an id or Wildcard
	Queue     string        // with RoleEnroll only; empty: any queue
	TTL       time.Duration // at least a second
}

// Check tells what is wrong with the token that t describes, or nil.
func (t ControlToken) Check() error {
	switch {
	case !slices.Contains(Roles, t.Role):
		return fmt.Errorf("unknown role %q; use one of %s", t.Role, roleNames())
	case t.Tenant != Wildcard && !tracker.ValidID(t.Tenant):
		return fmt.Errorf("the tenant %q is neither a valid id nor %s", t.Tenant, Wildcard)
	case t.Workspace != Wildcard && !tracker.ValidID(t.Workspace):
		return fmt.Errorf("the workspace %q is neither a valid id nor %s", t.Workspace, Wildcard)
	case t.Queue != "" && (t.Role != RoleEnroll || !tracker.ValidID(t.Queue)):
		return fmt.Errorf("a queue must be a valid id and goes with the role %s only", RoleEnroll)
	case t.TTL < time.Second:
		return fmt.Errorf("the token's life %s is shorter than a second", t.TTL)
	}
	return nil
}

// MintControl makes a control token that holds from now on, and tells when it ends.
func (k *Keyring) MintControl(t ControlToken, now time.Time) (token string, expires time.Time, err error) {
	if err := t.Check(); err != nil {
		return "", time.Time{}, err
	}
	iat := now.Truncate(time.Second)
	exp := iat.Add(t.TTL.Truncate(time.Second))
	token, err = k.sign(&claims{
		Kind: kindControl, Role: string(t.Role), Tenant: t.Tenant, Workspace: t.Workspace, Queue: t.Queue,
	}, iat, exp)
	return token, exp, err
}

func roleNames() string {
	names := make([]string, len(Roles))
	for i, r := range Roles {
		names[i] = string(r)
	}
	return strings.Join(names, ", ")
}

// roleSet is a set of what roles may do.
type roleSet uint8

const (
	mayReadTasks roleSet = 1 << iota // and runs
	mayRead                          // workers, machines and queues
	mayCancel
	mayCreate
	mayOperate
	mayDispatch // new attempts
	mayEnroll
	mayAdmin
)

const (
	viewing     = mayReadTasks | mayRead
	operating   = viewing | mayCancel | mayOperate
	dispatching = operating | mayCreate | mayDispatch
)

// grants says what each role may do. A route asks for one of the bits.
var grants = map[Role]roleSet{
	RoleViewer:     viewing,
	RoleSubmitter:  mayCreate | mayReadTasks | mayCancel,
	RoleOperator:   operating,
	RoleDispatcher: dispatching,
	RoleEnroll:     mayEnroll,
	RoleAdmin:      dispatching | mayEnroll | mayAdmin,
}
