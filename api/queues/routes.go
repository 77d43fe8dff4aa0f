package queues

import (
	"github.com/lubdub-io/lubdub/api/httpapi"
	v1 "github.com/lubdub-io/lubdub/sdk/go/v1"
)

// Routes returns the routes of the package.
func (h *Handlers) Routes() []*httpapi.Route {
	return []*httpapi.Route{
		{
			Method: "POST", Pattern: "/v1/queues/{queue}/claim", Op: "claimTasks", Handle: h.claim,
			Tag: "workers", Body: v1.ClaimRequest{}, OptionalBody: true, Answers: map[int]any{200: v1.ClaimResponse{}},
			Errors: []int{404, 409, 410}, Examples: map[string]string{"long poll": `{"max":5,"waitMs":30000,"claimId":"c-17"}`},
			Access: httpapi.ForWorker, Waits: true,
			Summary: "Hand the worker tasks",
			Description: "Of its queue, oldest first and fair across types, only such as it can run: their type, runtime and " +
				"worker labels are its, and they are pinned to nobody else. Answers as soon as there is one, or with none when " +
				"waitMs is over; a full worker waits too. The same claimId again gets the same tasks as long as the worker holds " +
				"them. A claim counts as the worker's beat when it comes; what the worker must be told comes with its beats only.",
		},
		{
			Method: "GET", Pattern: "/v1/queues", Op: "listQueues", Handle: h.list,
			Query: []httpapi.Param{httpapi.ParamOrder},
			Tag:   "queues", Answers: map[int]any{200: v1.QueueList{}},
			Access: httpapi.ForControl, Needs: httpapi.MayRead,
			Summary: "List queues",
			Description: "Those that hold tasks, have workers or are paused, by name. A type with work that no worker can run is " +
				"shown by its unrunnable.",
		},
		{
			Method: "GET", Pattern: "/v1/queues/{queue}", Op: "getQueue", Handle: h.get,
			Tag: "queues", Answers: map[int]any{200: v1.Queue{}}, Errors: []int{404},
			Access: httpapi.ForControl, Needs: httpapi.MayRead,
			Summary:     "Read a queue",
			Description: "404 when nothing is known of it: no task waits in it or runs, it has no workers and is not paused.",
		},
		{
			Method: "POST", Pattern: "/v1/queues/{queue}/pause", Op: "pauseQueue", Handle: h.pause,
			Tag: "queues", Body: struct{}{}, OptionalBody: true, Answers: map[int]any{200: v1.Queue{}},
			Access: httpapi.ForControl, Needs: httpapi.MayOperate,
			Summary: "Stop claims from a queue",
			Description: "New tasks are taken, and what workers hold goes on. At most 1,000 queues of a workspace may be paused: " +
				"one more is answered 429.",
		},
		{
			Method: "POST", Pattern: "/v1/queues/{queue}/resume", Op: "resumeQueue", Handle: h.resume,
			Tag: "queues", Body: struct{}{}, OptionalBody: true, Answers: map[int]any{200: v1.Queue{}},
			Access: httpapi.ForControl, Needs: httpapi.MayOperate,
			Summary: "Let claims go on",
			Description: "Those that wait are woken. A queue that is not paused, or of which nothing is known, goes on as well: " +
				"the answer is the same.",
		},
	}
}
