package beats

import (
	"github.com/lubdub-io/lubdub/api/httpapi"
	v1 "github.com/lubdub-io/lubdub/sdk/go/v1"
)

// Routes returns the routes of the package.
func (h *Handlers) Routes() []*httpapi.Route {
	return []*httpapi.Route{
		{
			Method: "POST", Pattern: "/v1/tasks/{taskId}/heartbeat", Op: "heartbeat", Handle: h.heartbeat,
			Tag: "callbacks", Body: v1.HeartbeatRequest{}, Answers: map[int]any{200: v1.HeartbeatResponse{}}, Errors: []int{409, 410},
			Access: httpapi.ForBeat, Beats: httpapi.KindTask,
			Summary: "Send a task's heartbeat",
			Description: "A 200 means that the heartbeat is stored in Redis. Stop gracefully when shouldCancel is true, and at once on " +
				"409 or 410. In the last third of its token's life the attempt gets a new token.",
		},
		{
			Method: "POST", Pattern: "/v1/heartbeats", Op: "heartbeats", Handle: h.heartbeats,
			Tag: "callbacks", Body: v1.HeartbeatsRequest{}, Answers: map[int]any{200: v1.HeartbeatsResponse{}},
			Access: httpapi.ForItems, Beats: httpapi.KindTask,
			Summary: "Send many heartbeats",
			Description: "A request may have 1,000 items. Each item is authorized by its own taskToken, or else by the worker's token of the " +
				"request, and has its own result, in the same order; an invalid item never fails the others. Statuses 401, 403, 409, " +
				"410, 429 and 503 are in the results.",
		},
	}
}
