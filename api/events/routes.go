package events

import (
	"github.com/lubdub-io/lubdub/api/httpapi"
)

// Routes returns the routes of the package.
func (h *Handlers) Routes() []*httpapi.Route {
	return []*httpapi.Route{
		{
			Method: "GET", Pattern: "/v1/events", Op: "listEvents", Handle: h.get,
			Access: httpapi.ForControl, Needs: httpapi.MayRead, Repeats: []string{"type"},
			Query: []string{"type", "subject", "runId", "queue", "taskType", "workerId", "machineId", "after", "order", "pageSize"},
		},
	}
}
