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
			Summary: "The worker began",
			Description: "Again on the running attempt it gets the same answer. A beat or a completion before it starts the " +
				"attempt too.",
		},
		{
			Method: "POST", Pattern: "/v1/tasks/{taskId}/completed", Op: "completed", Handle: h.completed,
			Access:      httpapi.ForTask,
			Summary:     "The worker is done",
			Description: "The same completion again gets the same answer. A late one changes nothing.",
		},
		{
			Method: "POST", Pattern: "/v1/tasks", Op: "createTask", Handle: h.create,
			Access: httpapi.ForControl, Needs: httpapi.MayCreate,
			Summary: "Create a task",
			Description: "Without a queue the task is pushed: the answer is the TaskEnvelope of its first attempt, to be delivered " +
				"to a worker. With one it waits, QUEUED.",
		},
		{
			Method: "POST", Pattern: "/v1/tasks:batch", Op: "createTasks", Handle: h.createBatch,
			Access: httpapi.ForControl, Needs: httpapi.MayCreate,
			Summary: "Create many tasks",
			Description: "Each has its own result, in the same order: the body that its creation alone would have got, and its " +
				"status.",
		},
		{
			Method: "GET", Pattern: "/v1/tasks", Op: "listTasks", Handle: h.list,
			Access: httpapi.ForControl, Needs: httpapi.MayReadTasks, Repeats: []string{"label"},
			Query: []string{"state", "runId", "workerId", "machineId", "scheduleId", "queue", "type", "label", "liveness",
				"claimable", "reason", "finishedAfter", "finishedBefore", "order", "pageSize", "pageToken"},
			Summary: "List tasks",
			Description: "In the order of task ids, or with finishedAfter or finishedBefore of their ends. totalCount is exact for " +
				"state and runId (and for none), else null; other filters work within bounded pages. Pages may be short, those of " +
				"large tasks too: go on while there is a nextPageToken.",
		},
		{
			Method: "GET", Pattern: "/v1/tasks/{taskId}", Op: "getTask", Handle: h.get,
			Access: httpapi.ForControl, Needs: httpapi.MayReadTasks,
			Summary: "One task",
		},
		{
			Method: "POST", Pattern: "/v1/tasks/{taskId}/cancel", Op: "cancelTask", Handle: h.cancel,
			Access: httpapi.ForControl, Needs: httpapi.MayCancel,
			Summary: "Ask for a task's end",
			Description: "Cooperative: the next beat tells the worker, whose grace period begins then. A task that has not started " +
				"is CANCELLED at once, and so is any with a gracePeriodMs of 0: its worker is refused then as one whose attempt " +
				"has expired.",
		},
		{
			Method: "POST", Pattern: "/v1/tasks/{taskId}/attempts", Op: "nextAttempt", Handle: h.nextAttempt,
			Access: httpapi.ForControl, Needs: httpapi.MayOperate,
			Summary: "Ask for the next attempt",
			Description: "Of a FAILED, DISPATCHED or RUNNING task; the old attempt is fenced at once. The same fromAttempt again " +
				"gets the same answer. 201 with the envelope, or 202 with the task when it waits in its queue, and for an " +
				"operator, whose role does not include the tokens of attempts: a dispatcher receives the envelope by sending the " +
				"same request.",
		},
		{
			Method: "POST", Pattern: "/v1/tasks:cancel", Op: "cancelTasks", Handle: h.cancelMany,
			Access: httpapi.ForControl, Needs: httpapi.MayCancel,
			Summary: "Cancel all tasks that a selector names",
			Description: "A part of them with each call, of up to 1,000 that are looked at, in the order of their ids: go on with " +
				"nextPageToken until there is none. Each is cancelled as by a call of its own; finished ones that match are " +
				"refused. A call that failed, or whose answer was lost, may be repeated with its pageToken. With dryRun nothing is " +
				"done: wouldDo says of how many that match anything would be.",
		},
		{
			Method: "POST", Pattern: "/v1/tasks:retry", Op: "retryTasks", Handle: h.retryMany,
			Access: httpapi.ForControl, Needs: httpapi.MayOperate,
			Summary: "Try all FAILED tasks again that a selector names",
			Description: "As /v1/tasks:cancel goes about its own. Each FAILED task that matches gets its next attempt as by a call " +
				"of its own; others are refused, those that go on with task_not_failed. The envelopes of pushed tasks are had by " +
				"asking for the same attempts again. A repeat tries those again that have failed anew meanwhile.",
		},
		{
			Method: "GET", Pattern: "/v1/runs/{runId}", Op: "getRun", Handle: h.getRun,
			Access: httpapi.ForControl, Needs: httpapi.MayReadTasks,
			Summary: "Count a run's tasks",
		},
		{
			Method: "POST", Pattern: "/v1/runs/{runId}/cancel", Op: "cancelRun", Handle: h.cancelRun,
			Access: httpapi.ForControl, Needs: httpapi.MayCancel,
			Summary: "Ask for the end of all tasks of a run",
		},
	}
}
