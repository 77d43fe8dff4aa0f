package queues

import (
	"github.com/lubdub-io/lubdub/api/httpapi"
)

// Routes returns the routes of the package.
func (h *Handlers) Routes() []*httpapi.Route {
	return []*httpapi.Route{
		{Method: "POST", Pattern: "/v1/queues/{queue}/claim", Op: "claimTasks", Access: httpapi.ForWorker, Waits: true, Handle: h.claim},
		{
			Method: "GET", Pattern: "/v1/queues", Op: "listQueues", Access: httpapi.ForControl, Needs: httpapi.MayRead,
			Handle: h.list,
			Query:  []string{"order"},
		},
		{Method: "GET", Pattern: "/v1/queues/{queue}", Op: "getQueue", Access: httpapi.ForControl, Needs: httpapi.MayRead, Handle: h.get},
		{
			Method: "POST", Pattern: "/v1/queues/{queue}/pause", Op: "pauseQueue", Access: httpapi.ForControl, Needs: httpapi.MayOperate,
			Handle: h.pause,
		},
		{
			Method: "POST", Pattern: "/v1/queues/{queue}/resume", Op: "resumeQueue", Access: httpapi.ForControl, Needs: httpapi.MayOperate,
			Handle: h.resume,
		},
	}
}
