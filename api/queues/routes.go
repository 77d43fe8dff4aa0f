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
			Summary: "Claim tasks",
			Description: "The answer has tasks of the queue, oldest first and fair across types, that the worker can run: the type, " +
				"runtime and worker labels match, and the task is not pinned to another worker. The request waits until there is a " +
				"task, or until waitMs is over and the answer is empty; a full worker waits too. The same claimId gets the same tasks " +
				"while the worker holds them. A claim counts as a heartbeat of the worker when it arrives; notices for the worker, " +
				"such as cancellations, are in the answers to its heartbeats only.",
		},
		{
			Method: "GET", Pattern: "/v1/queues", Op: "listQueues", Handle: h.list,
			Access: httpapi.ForControl, Needs: httpapi.MayRead,
			Query:   []string{"order"},
			Summary: "List queues",
			Description: "Queues that hold tasks, have workers or are paused, by name. unrunnable counts the tasks of a type that no " +
				"worker can run.",
		},
		{
			Method: "GET", Pattern: "/v1/queues/{queue}", Op: "getQueue", Handle: h.get,
			Access: httpapi.ForControl, Needs: httpapi.MayRead,
			Summary:     "Read a queue",
			Description: "The answer is 404 if the queue has no waiting or running tasks and no workers, and is not paused.",
		},
		{
			Method: "POST", Pattern: "/v1/queues/{queue}/pause", Op: "pauseQueue", Handle: h.pause,
			Access: httpapi.ForControl, Needs: httpapi.MayOperate,
			Summary: "Pause a queue",
			Description: "New tasks are accepted, and workers continue with the tasks that they hold. A workspace may have 1,000 paused " +
				"queues; one more gets 429.",
		},
		{
			Method: "POST", Pattern: "/v1/queues/{queue}/resume", Op: "resumeQueue", Handle: h.resume,
			Access: httpapi.ForControl, Needs: httpapi.MayOperate,
			Summary:     "Resume a queue",
			Description: "Waiting claims continue. For a queue that is not paused or does not exist, the answer is the same.",
		},
	}
}
