package main

import (
	"crypto/rand"
	"fmt"
	"strings"
	"time"

	"github.com/lubdub-io/lubdub/api/token"
)

// guide returns a walk through the life of a task, as a shell script to be pasted whole or line by line.
func guide(base string, keys *token.Keyring, withFleet bool) (string, error) {
	mint := func(role token.Role, tenant, workspace string) (string, error) {
		text, _, err := keys.MintControl(token.Control{Role: role, Tenant: tenant, Workspace: workspace, TTL: 24 * time.Hour}, time.Now())
		return text, err
	}
	admin, err := mint(token.RoleAdmin, "default", "default")
	if err != nil {
		return "", err
	}
	text := strings.NewReplacer("{base}", base, "{admin}", admin, "{id}", strings.ToLower(rand.Text()[:5])).Replace(walk)
	if withFleet {
		viewer, err := mint(token.RoleViewer, fleetTenant, fleetWorkspace)
		if err != nil {
			return "", err
		}
		text += fmt.Sprintf(walkFleet, viewer)
	}
	return text, nil
}

const walk = `
# Try it from another shell: paste everything below, or one line at a time.
LUBDUB={base}
ADMIN='Authorization: Bearer {admin}'
JSON='Content-Type: application/json'

# Create a task. The response is its envelope, with the token that its worker needs.
ENVELOPE=$(curl -sS $LUBDUB/v1/tasks -H "$ADMIN" -H "$JSON" -d '{"taskId":"hello-{id}","heartbeatIntervalMs":30000,"heartbeatTimeoutMs":90000}')
TASK="Authorization: Bearer $(echo "$ENVELOPE" | sed -n 's/.*"taskToken":"\([^"]*\)".*/\1/p')"; echo "$ENVELOPE"

# Act as its worker: start the task, send a heartbeat, and report progress.
curl -sS $LUBDUB/v1/tasks/hello-{id}/started -H "$TASK" -H "$JSON" -d '{"attempt":1,"workerId":"me"}'; echo
curl -sS $LUBDUB/v1/tasks/hello-{id}/heartbeat -H "$TASK" -H "$JSON" -d '{"attempt":1,"progressPct":45,"message":"Partition 5 of 10"}'; echo

# Cancel the task. The response to the next heartbeat has shouldCancel, and the worker stops.
curl -sS $LUBDUB/v1/tasks/hello-{id}/cancel -H "$ADMIN" -H "$JSON" -d '{"reason":"user_requested"}'; echo
curl -sS $LUBDUB/v1/tasks/hello-{id}/heartbeat -H "$TASK" -H "$JSON" -d '{"attempt":1}'; echo
curl -sS $LUBDUB/v1/tasks/hello-{id}/completed -H "$TASK" -H "$JSON" -d '{"attempt":1,"outcome":"CANCELLED"}'; echo

# Get the task, and list all cancelled ones.
curl -sS $LUBDUB/v1/tasks/hello-{id} -H "$ADMIN"; echo
curl -sS "$LUBDUB/v1/tasks?state=CANCELLED" -H "$ADMIN"; echo

# Let a task time out: it must send a heartbeat every second, and sends none. Its history shows why it failed.
ENVELOPE=$(curl -sS $LUBDUB/v1/tasks -H "$ADMIN" -H "$JSON" -d '{"taskId":"silent-{id}","heartbeatIntervalMs":1000,"heartbeatTimeoutMs":2000}')
TASK="Authorization: Bearer $(echo "$ENVELOPE" | sed -n 's/.*"taskToken":"\([^"]*\)".*/\1/p')"
curl -sS $LUBDUB/v1/tasks/silent-{id}/started -H "$TASK" -H "$JSON" -d '{"attempt":1,"workerId":"me"}'; echo; sleep 4
curl -sS $LUBDUB/v1/tasks/silent-{id} -H "$ADMIN"; echo
curl -sS $LUBDUB/v1/tasks/silent-{id}/heartbeat -H "$TASK" -H "$JSON" -d '{"attempt":1}'; echo
`

const walkFleet = `
# The simulated fleet has its own workspace. List its failed tasks.
FLEET='Authorization: Bearer %s'
curl -sS "$LUBDUB/v1/tasks?state=FAILED&pageSize=3" -H "$FLEET"; echo
`
