package tasks

import (
	"github.com/lubdub-io/lubdub/api/httpapi"
)

// Routes returns the routes of the package.
func (h *Handlers) Routes() []*httpapi.Route {
	return []*httpapi.Route{
		{Method: "POST", Pattern: "/v1/tasks/{taskId}/started", Op: "started", Access: httpapi.ForTask, Handle: h.started},
		{Method: "POST", Pattern: "/v1/tasks/{taskId}/completed", Op: "completed", Access: httpapi.ForTask, Handle: h.completed},
		{Method: "POST", Pattern: "/v1/tasks", Op: "createTask", Access: httpapi.ForControl, Needs: httpapi.MayCreate, Handle: h.create},
		{Method: "POST", Pattern: "/v1/tasks:batch", Op: "createTasks", Access: httpapi.ForControl, Needs: httpapi.MayCreate, Handle: h.createBatch},
		{
			Method: "GET", Pattern: "/v1/tasks", Op: "listTasks", Access: httpapi.ForControl, Needs: httpapi.MayReadTasks,
			Repeats: []string{"label"}, Handle: h.list,
			Query: []string{"state", "runId", "workerId", "machineId", "scheduleId", "queue", "type", "label", "liveness", "claimable",
				"reason", "finishedAfter", "finishedBefore", "order", "pageSize", "pageToken"},
		},
		{Method: "GET", Pattern: "/v1/tasks/{taskId}", Op: "getTask", Access: httpapi.ForControl, Needs: httpapi.MayReadTasks, Handle: h.get},
		{
			Method: "POST", Pattern: "/v1/tasks/{taskId}/cancel", Op: "cancelTask", Access: httpapi.ForControl, Needs: httpapi.MayCancel,
			Handle: h.cancel,
		},
		{
			Method: "POST", Pattern: "/v1/tasks/{taskId}/attempts", Op: "nextAttempt", Access: httpapi.ForControl, Needs: httpapi.MayOperate,
			Handle: h.nextAttempt,
		},
		{Method: "POST", Pattern: "/v1/tasks:cancel", Op: "cancelTasks", Access: httpapi.ForControl, Needs: httpapi.MayCancel, Handle: h.cancelMany},
		{Method: "POST", Pattern: "/v1/tasks:retry", Op: "retryTasks", Access: httpapi.ForControl, Needs: httpapi.MayOperate, Handle: h.retryMany},
		{Method: "GET", Pattern: "/v1/runs/{runId}", Op: "getRun", Access: httpapi.ForControl, Needs: httpapi.MayReadTasks, Handle: h.getRun},
		{
			Method: "POST", Pattern: "/v1/runs/{runId}/cancel", Op: "cancelRun", Access: httpapi.ForControl, Needs: httpapi.MayCancel,
			Handle: h.cancelRun,
		},
	}
}
