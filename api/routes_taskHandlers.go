package api

// Routes returns the routes of the package.
func (h *taskHandlers) Routes() []*route {
	return []*route{
		{method: "POST", pattern: "/v1/tasks/{taskId}/started", op: "started", access: forTask, handle: h.started},
		{method: "POST", pattern: "/v1/tasks/{taskId}/completed", op: "completed", access: forTask, handle: h.completed},
		{method: "POST", pattern: "/v1/tasks", op: "createTask", access: forControl, needs: mayCreate, handle: h.createTask},
		{method: "POST", pattern: "/v1/tasks:batch", op: "createTasks", access: forControl, needs: mayCreate, handle: h.createTasks},
		{
			method: "GET", pattern: "/v1/tasks", op: "listTasks", access: forControl, needs: mayReadTasks,
			repeats: []string{"label"}, handle: h.listTasks,
			query: []string{"state", "runId", "workerId", "machineId", "scheduleId", "queue", "type", "label", "liveness", "claimable",
				"reason", "finishedAfter", "finishedBefore", "order", "pageSize", "pageToken"},
		},
		{method: "GET", pattern: "/v1/tasks/{taskId}", op: "getTask", access: forControl, needs: mayReadTasks, handle: h.getTask},
		{
			method: "POST", pattern: "/v1/tasks/{taskId}/cancel", op: "cancelTask", access: forControl, needs: mayCancel,
			handle: h.cancelTask,
		},
		{
			method: "POST", pattern: "/v1/tasks/{taskId}/attempts", op: "nextAttempt", access: forControl, needs: mayOperate,
			handle: h.nextAttempt,
		},
		{method: "POST", pattern: "/v1/tasks:cancel", op: "cancelTasks", access: forControl, needs: mayCancel, handle: h.cancelTasks},
		{method: "POST", pattern: "/v1/tasks:retry", op: "retryTasks", access: forControl, needs: mayOperate, handle: h.retryTasks},
		{method: "GET", pattern: "/v1/runs/{runId}", op: "getRun", access: forControl, needs: mayReadTasks, handle: h.getRun},
		{
			method: "POST", pattern: "/v1/runs/{runId}/cancel", op: "cancelRun", access: forControl, needs: mayCancel,
			handle: h.cancelRun,
		},
	}
}
