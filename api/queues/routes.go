package queues

import (
	"github.com/lubdub-io/lubdub/api/httpapi"
	v1 "github.com/lubdub-io/lubdub/sdk/go/v1"
)

// Routes returns the routes of the package.
func (h *Handlers) Routes() []*httpapi.Route {
	return []*httpapi.Route{
		{
			Method: "POST", Pattern: "/v1/queues/{queue}/claim", Op: "claimTasks", Handle: h.claim, IdempotentBy: "claimId",
			Tag: "workers", Body: v1.ClaimRequest{}, OptionalBody: true, Answers: map[int]any{200: v1.ClaimResponse{}},
			Errors: []int{404, 409, 410}, Examples: map[string]string{"long poll": `{"max":5,"waitMs":30000,"claimId":"c-17"}`},
			Access: httpapi.ForWorker, Waits: true,
			Summary: "Claim tasks",
			Description: "The answer has tasks of the queue, oldest first and fair across types, that the worker can run: the type, " +
				"runtime and worker labels match, and the task is not pinned to another worker. The request waits until there is a " +
				"task, or until waitMs is over and the answer is empty; a full worker waits too. The same claimId gets the same tasks " +
				"while the worker holds them. With start, the tasks are RUNNING in the answer, as if the worker had reported their " +
				"starts. A claim counts as a heartbeat of the worker when it arrives; notices for the worker, " +
				"such as cancellations, are in the answers to its heartbeats only.",
		},
		{
			Method: "GET", Pattern: "/v1/queues", Op: "listQueues", Handle: h.list,
			Query: []httpapi.Param{httpapi.ParamOrder},
			Tag:   "queues", Answers: map[int]any{200: v1.QueueList{}},
			Access: httpapi.ForControl, Needs: httpapi.MayRead,
			Summary: "List queues",
			Description: "Queues that hold tasks, have workers or are paused, by name. unrunnable counts the tasks of a type that no " +
				"worker can run.",
		},
		{
			Method: "GET", Pattern: "/v1/queues/{queue}", Op: "getQueue", Handle: h.get,
			Tag: "queues", Answers: map[int]any{200: v1.Queue{}}, Errors: []int{404},
			Access: httpapi.ForControl, Needs: httpapi.MayRead,
			Summary:     "Read a queue",
			Description: "The answer is 404 if the queue has no waiting or running tasks and no workers, and is not paused.",
		},
		{
			Method: "POST", Pattern: "/v1/queues/{queue}/pause", Op: "pauseQueue", Handle: h.pause,
			Tag: "queues", Body: v1.PauseQueueRequest{}, OptionalBody: true, Answers: map[int]any{200: v1.Queue{}},
			Access: httpapi.ForControl, Needs: httpapi.MayOperate, Examples: map[string]string{"reason": `{"reason":"the mail server is down"}`},
			Summary: "Pause a queue",
			Description: "New tasks are accepted, and workers continue with the tasks that they hold. A workspace may have 1,000 paused " +
				"queues; one more gets 429.",
		},
		{
			Method: "POST", Pattern: "/v1/queues/{queue}/resume", Op: "resumeQueue", Handle: h.resume,
			Tag: "queues", Body: struct{}{}, OptionalBody: true, Answers: map[int]any{200: v1.Queue{}},
			Access: httpapi.ForControl, Needs: httpapi.MayOperate,
			Summary:     "Resume a queue",
			Description: "Waiting claims continue. For a queue that is not paused or does not exist, the answer is the same.",
		},
	}
}
