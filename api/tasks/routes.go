package tasks

import (
	"github.com/lubdub-io/lubdub/api/httpapi"
)

// Routes returns the routes of the package.
func (h *Handlers) Routes() []*httpapi.Route {
	return []*httpapi.Route{
		{
			Method: "POST", Pattern: "/v1/tasks/{taskId}/started", Op: "started", Handle: h.started,
			Access:  httpapi.ForTask,
			Summary: "Report that the worker has started",
			Description: "A repeated request for the running attempt gets the same answer. A heartbeat or a completion before it starts " +
				"the attempt too.",
		},
		{
			Method: "POST", Pattern: "/v1/tasks/{taskId}/completed", Op: "completed", Handle: h.completed,
			Access:      httpapi.ForTask,
			Summary:     "Report the result of an attempt",
			Description: "A repeated completion gets the same answer. A late one changes nothing.",
		},
		{
			Method: "POST", Pattern: "/v1/tasks", Op: "createTask", Handle: h.create,
			Access: httpapi.ForControl, Needs: httpapi.MayCreate,
			Summary: "Create a task",
			Description: "Without a queue the task is pushed: the answer is the TaskEnvelope of its first attempt, which the caller " +
				"delivers to a worker. With a queue the task waits, QUEUED.",
		},
		{
			Method: "POST", Pattern: "/v1/tasks:batch", Op: "createTasks", Handle: h.createBatch,
			Access: httpapi.ForControl, Needs: httpapi.MayCreate,
			Summary:     "Create many tasks",
			Description: "Each task has its own result, in the same order: the status and body that a separate request would have got.",
		},
		{
			Method: "GET", Pattern: "/v1/tasks", Op: "listTasks", Handle: h.list,
			Access: httpapi.ForControl, Needs: httpapi.MayReadTasks, Repeats: []string{"label"},
			Query: []string{"state", "runId", "workerId", "machineId", "scheduleId", "queue", "type", "label", "liveness",
				"claimable", "reason", "finishedAfter", "finishedBefore", "order", "pageSize", "pageToken"},
			Summary: "List tasks",
			Description: "Tasks are in the order of their ids, or with finishedAfter or finishedBefore in the order of their ends. " +
				"totalCount is exact for state and runId, and without a filter, else null; other filters work within bounded pages. A " +
				"page may be short, also if tasks are large: continue while there is a nextPageToken.",
		},
		{
			Method: "GET", Pattern: "/v1/tasks/{taskId}", Op: "getTask", Handle: h.get,
			Access: httpapi.ForControl, Needs: httpapi.MayReadTasks,
			Summary: "Read a task",
		},
		{
			Method: "POST", Pattern: "/v1/tasks/{taskId}/cancel", Op: "cancelTask", Handle: h.cancel,
			Access: httpapi.ForControl, Needs: httpapi.MayCancel,
			Summary: "Request a task's cancellation",
			Description: "Cancellation is cooperative: the next heartbeat reports it to the worker, whose grace period begins then. A " +
				"task that has not started is CANCELLED at once, and so is any task with a gracePeriodMs of 0: its worker's requests " +
				"are then rejected as those of an expired attempt.",
		},
		{
			Method: "POST", Pattern: "/v1/tasks/{taskId}/attempts", Op: "nextAttempt", Handle: h.nextAttempt,
			Access: httpapi.ForControl, Needs: httpapi.MayOperate,
			Summary: "Create a task's next attempt",
			Description: "For a FAILED, DISPATCHED or RUNNING task; the old attempt is fenced at once. The same fromAttempt gets the " +
				"same answer. The answer is 201 with the envelope, or 202 with the task if it waits in its queue, or if the caller is " +
				"an operator, whose role does not include the tokens of attempts: a dispatcher receives the envelope by sending the " +
				"same request.",
		},
		{
			Method: "POST", Pattern: "/v1/tasks:cancel", Op: "cancelTasks", Handle: h.cancelMany,
			Access: httpapi.ForControl, Needs: httpapi.MayCancel,
			Summary: "Cancel all tasks that match a selector",
			Description: "Each call examines up to 1,000 tasks, in the order of their ids: continue while there is a nextPageToken. " +
				"Each task is cancelled as with its own call; finished tasks that match are refused. A call that failed, or whose " +
				"answer was lost, may be repeated with its pageToken. With dryRun nothing changes, and wouldDo counts the matching " +
				"tasks that would.",
		},
		{
			Method: "POST", Pattern: "/v1/tasks:retry", Op: "retryTasks", Handle: h.retryMany,
			Access: httpapi.ForControl, Needs: httpapi.MayOperate,
			Summary: "Retry all FAILED tasks that match a selector",
			Description: "Pages and repeats work as with /v1/tasks:cancel. Each FAILED task that matches gets its next attempt as with " +
				"its own call; others are refused, unfinished ones with task_not_failed. To get the envelopes of pushed tasks, request " +
				"the same attempts again. A repeated call also retries tasks that have failed again meanwhile.",
		},
		{
			Method: "GET", Pattern: "/v1/runs/{runId}", Op: "getRun", Handle: h.getRun,
			Access: httpapi.ForControl, Needs: httpapi.MayReadTasks,
			Summary: "Count a run's tasks",
		},
		{
			Method: "POST", Pattern: "/v1/runs/{runId}/cancel", Op: "cancelRun", Handle: h.cancelRun,
			Access: httpapi.ForControl, Needs: httpapi.MayCancel,
			Summary: "Request the cancellation of all tasks of a run",
		},
	}
}
