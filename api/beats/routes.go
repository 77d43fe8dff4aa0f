package beats

import (
	"github.com/lubdub-io/lubdub/api/httpapi"
)

// Routes returns the routes of the package.
func (h *Handlers) Routes() []*httpapi.Route {
	return []*httpapi.Route{
		{
			Method: "POST", Pattern: "/v1/tasks/{taskId}/heartbeat", Op: "heartbeat", Access: httpapi.ForBeat,
			Beats: httpapi.KindTask, Handle: h.heartbeat,
		},
		{Method: "POST", Pattern: "/v1/heartbeats", Op: "heartbeats", Access: httpapi.ForItems, Beats: httpapi.KindTask, Handle: h.heartbeats},
	}
}
