package tasks

import (
	"github.com/lubdub-io/lubdub/api/httpapi"
)

// Routes returns the routes of the package.
func (h *Handlers) Routes() []*httpapi.Route {
	return []*httpapi.Route{
		{
			Method: "POST", Pattern: "/v1/tasks/{taskId}/started", Op: "started", Handle: h.started,
			Access: httpapi.ForTask,
		},
		{
			Method: "POST", Pattern: "/v1/tasks/{taskId}/completed", Op: "completed", Handle: h.completed,
			Access: httpapi.ForTask,
		},
		{
			Method: "POST", Pattern: "/v1/tasks", Op: "createTask", Handle: h.create,
			Access: httpapi.ForControl, Needs: httpapi.MayCreate,
		},
		{
			Method: "POST", Pattern: "/v1/tasks:batch", Op: "createTasks", Handle: h.createBatch,
			Access: httpapi.ForControl, Needs: httpapi.MayCreate,
		},
		{
			Method: "GET", Pattern: "/v1/tasks", Op: "listTasks", Handle: h.list,
			Access: httpapi.ForControl, Needs: httpapi.MayReadTasks, Repeats: []string{"label"},
			Query: []string{"state", "runId", "workerId", "machineId", "scheduleId", "queue", "type", "label", "liveness",
				"claimable", "reason", "finishedAfter", "finishedBefore", "order", "pageSize", "pageToken"},
		},
		{
			Method: "GET", Pattern: "/v1/tasks/{taskId}", Op: "getTask", Handle: h.get,
			Access: httpapi.ForControl, Needs: httpapi.MayReadTasks,
		},
		{
			Method: "POST", Pattern: "/v1/tasks/{taskId}/cancel", Op: "cancelTask", Handle: h.cancel,
			Access: httpapi.ForControl, Needs: httpapi.MayCancel,
		},
		{
			Method: "POST", Pattern: "/v1/tasks/{taskId}/attempts", Op: "nextAttempt", Handle: h.nextAttempt,
			Access: httpapi.ForControl, Needs: httpapi.MayOperate,
		},
		{
			Method: "POST", Pattern: "/v1/tasks:cancel", Op: "cancelTasks", Handle: h.cancelMany,
			Access: httpapi.ForControl, Needs: httpapi.MayCancel,
		},
		{
			Method: "POST", Pattern: "/v1/tasks:retry", Op: "retryTasks", Handle: h.retryMany,
			Access: httpapi.ForControl, Needs: httpapi.MayOperate,
		},
		{
			Method: "GET", Pattern: "/v1/runs/{runId}", Op: "getRun", Handle: h.getRun,
			Access: httpapi.ForControl, Needs: httpapi.MayReadTasks,
		},
		{
			Method: "POST", Pattern: "/v1/runs/{runId}/cancel", Op: "cancelRun", Handle: h.cancelRun,
			Access: httpapi.ForControl, Needs: httpapi.MayCancel,
		},
	}
}
