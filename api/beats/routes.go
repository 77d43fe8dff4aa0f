package beats

import (
	"github.com/lubdub-io/lubdub/api/httpapi"
)

// Routes returns the routes of the package.
func (h *Handlers) Routes() []*httpapi.Route {
	return []*httpapi.Route{
		{
			Method: "POST", Pattern: "/v1/tasks/{taskId}/heartbeat", Op: "heartbeat", Handle: h.heartbeat,
			Access: httpapi.ForBeat, Beats: httpapi.KindTask,
		},
		{
			Method: "POST", Pattern: "/v1/heartbeats", Op: "heartbeats", Handle: h.heartbeats,
			Access: httpapi.ForItems, Beats: httpapi.KindTask,
		},
	}
}
