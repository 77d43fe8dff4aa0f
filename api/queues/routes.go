package queues

import (
	"github.com/lubdub-io/lubdub/api/httpapi"
)

// Routes returns the routes of the package.
func (h *Handlers) Routes() []*httpapi.Route {
	return []*httpapi.Route{
		{
			Method: "POST", Pattern: "/v1/queues/{queue}/claim", Op: "claimTasks", Handle: h.claim,
			Access: httpapi.ForWorker, Waits: true,
		},
		{
			Method: "GET", Pattern: "/v1/queues", Op: "listQueues", Handle: h.list,
			Access: httpapi.ForControl, Needs: httpapi.MayRead,
			Query: []string{"order"},
		},
		{
			Method: "GET", Pattern: "/v1/queues/{queue}", Op: "getQueue", Handle: h.get,
			Access: httpapi.ForControl, Needs: httpapi.MayRead,
		},
		{
			Method: "POST", Pattern: "/v1/queues/{queue}/pause", Op: "pauseQueue", Handle: h.pause,
			Access: httpapi.ForControl, Needs: httpapi.MayOperate,
		},
		{
			Method: "POST", Pattern: "/v1/queues/{queue}/resume", Op: "resumeQueue", Handle: h.resume,
			Access: httpapi.ForControl, Needs: httpapi.MayOperate,
		},
	}
}
