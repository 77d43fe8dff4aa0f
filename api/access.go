package api

import (
	"strings"

	"github.com/lubdub-io/lubdub/api/token"
)

// permissions is a set of what roles may do.
type permissions uint8

const (
	mayReadTasks permissions = 1 << iota // and runs
	mayRead                              // workers, machines, queues and events
	mayCancel
	mayCreate
	mayOperate
	mayDispatch // receive the envelopes of new attempts, with their tokens
	mayEnroll
	mayAdmin
)

// anything is what every role may some of.
const anything = ^permissions(0)

const (
	viewing     = mayReadTasks | mayRead
	operating   = viewing | mayCancel | mayOperate
	dispatching = operating | mayCreate | mayDispatch
)

// permitted says what each role may do. A route asks for one of some bits.
var permitted = map[token.Role]permissions{
	token.RoleViewer:     viewing,
	token.RoleSubmitter:  mayCreate | mayReadTasks | mayCancel,
	token.RoleOperator:   operating,
	token.RoleDispatcher: dispatching,
	token.RoleEnroll:     mayEnroll,
	token.RoleAdmin:      dispatching | mayEnroll | mayAdmin,
}

// rolesFor names the roles that have one of some bits.
func rolesFor(needs permissions) string {
	var names []string
	for _, r := range token.Roles {
		if permitted[r]&needs != 0 {
			names = append(names, string(r))
		}
	}
	return strings.Join(names, " or ")
}
