package httpapi

import (
	"strings"

	"github.com/lubdub-io/lubdub/api/token"
)

// Permissions is a set of operations that roles allow.
type Permissions uint8

const (
	MayReadTasks Permissions = 1 << iota // and runs
	MayRead                              // workers, machines, queues and events
	MayCancel
	MayCreate
	MayOperate
	MayDispatch // receive the envelopes of new attempts, with their tokens
	MayEnroll
	MayAdmin
)

// Anything is the set of which every role has some.
const Anything = ^Permissions(0)

const (
	viewing     = MayReadTasks | MayRead
	operating   = viewing | MayCancel | MayOperate
	dispatching = operating | MayCreate | MayDispatch
)

// Permitted maps each role to its permissions. A route requires one of some bits.
var Permitted = map[token.Role]Permissions{
	token.RoleViewer:     viewing,
	token.RoleSubmitter:  MayCreate | MayReadTasks | MayCancel,
	token.RoleOperator:   operating,
	token.RoleDispatcher: dispatching,
	token.RoleEnroll:     MayEnroll,
	token.RoleAdmin:      dispatching | MayEnroll | MayAdmin,
}

// RolesFor names the roles that have one of some bits.
func RolesFor(needs Permissions) string {
	var names []string
	for _, r := range token.Roles {
		if Permitted[r]&needs != 0 {
			names = append(names, string(r))
		}
	}
	return strings.Join(names, " or ")
}
