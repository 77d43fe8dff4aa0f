package tasks

import (
	"github.com/lubdub-io/lubdub/api/httpapi"
	v1 "github.com/lubdub-io/lubdub/sdk/go/v1"
)

// Routes returns the routes of the package.
func (h *Handlers) Routes() []*httpapi.Route {
	return []*httpapi.Route{
		{
			Method: "POST", Pattern: "/v1/tasks/{taskId}/started", Op: "started", Handle: h.started,
			Tag: "callbacks", Body: v1.StartedRequest{}, Answers: map[int]any{200: v1.StartedResponse{}}, Errors: []int{409},
			Access:  httpapi.ForTask,
			Summary: "Report that the worker has started",
			Description: "A repeated request for the running attempt gets the same answer. A heartbeat or a completion before it starts " +
				"the attempt too.",
		},
		{
			Method: "POST", Pattern: "/v1/tasks/{taskId}/completed", Op: "completed", Handle: h.completed,
			Tag: "callbacks", Body: v1.CompletedRequest{}, Answers: map[int]any{200: v1.CompletedResponse{}}, Errors: []int{409},
			Access:      httpapi.ForTask,
			Summary:     "Report the result of an attempt",
			Description: "A repeated completion gets the same answer. A late one changes nothing.",
		},
		{
			Method: "POST", Pattern: "/v1/tasks", Op: "createTask", Handle: h.create,
			Tag: "tasks", Body: v1.CreateTaskRequest{}, Answers: map[int]any{201: []any{v1.TaskEnvelope{}, v1.Task{}}},
			Errors: []int{409},
			Examples: map[string]string{
				"pushed": `{"taskKey":"raw.events","assetId":"asset_1","heartbeatIntervalMs":30000,"heartbeatTimeoutMs":90000}`,
				"queued": `{"queue":"default","type":"send_email","payload":{"to":"a@example.com"},"retry":{"maxAttempts":5}}`,
			},
			Headers: []httpapi.Param{httpapi.IdempotencyKey("Makes a repeat safe for 24 hours: the same request again gets the first " +
				"answer, another one 409. Keys that begin with schedule: are reserved for the tasks of schedules."), traceparent},
			Access: httpapi.ForControl, Needs: httpapi.MayCreate,
			Summary: "Create a task",
			Description: "Without a queue the task is pushed: the answer is the TaskEnvelope of its first attempt, which the caller " +
				"delivers to a worker. With a queue the task waits, QUEUED, or SCHEDULED until its runAt or for its delayMs.",
		},
		{
			Method: "POST", Pattern: "/v1/tasks:batch", Op: "createTasks", Handle: h.createBatch,
			Headers: []httpapi.Param{traceparent},
			Tag:     "tasks", Body: v1.CreateTasksRequest{}, Answers: map[int]any{200: v1.CreateTasksResponse{}},
			Access: httpapi.ForControl, Needs: httpapi.MayCreate,
			Summary:     "Create many tasks",
			Description: "Each task has its own result, in the same order: the status and body that a separate request would have got.",
		},
		{
			Method: "GET", Pattern: "/v1/tasks", Op: "listTasks", Handle: h.list,
			Query: []httpapi.Param{state, runID, workerID, httpapi.ParamMachineID, scheduleID, httpapi.ParamQueue, httpapi.ParamType,
				httpapi.ParamLabel, httpapi.ParamLiveness, claimable, httpapi.ParamReason, finishedAfter, finishedBefore, httpapi.ParamOrder,
				httpapi.ParamPageSize, httpapi.ParamPageToken},
			Tag: "tasks", Answers: map[int]any{200: v1.TaskList{}},
			Access: httpapi.ForControl, Needs: httpapi.MayReadTasks,
			Summary: "List tasks",
			Description: "Tasks are in the order of their ids, or with finishedAfter or finishedBefore in the order of their ends. " +
				"totalCount is exact for state and runId, and without a filter, else null; other filters work within bounded pages. A " +
				"page may be short, also if tasks are large: continue while there is a nextPageToken.",
		},
		{
			Method: "GET", Pattern: "/v1/tasks/{taskId}", Op: "getTask", Handle: h.get,
			Tag: "tasks", Answers: map[int]any{200: v1.Task{}}, Errors: []int{404},
			Query:  []httpapi.Param{waitMs},
			Access: httpapi.ForControl, Needs: httpapi.MayReadTasks, Waits: true,
			Summary: "Read a task",
			Description: "With waitMs, the answer is sent when the task has ended (SUCCEEDED, FAILED or CANCELLED), or with its current " +
				"state when waitMs has passed. POST /v1/tasks:wait waits for many tasks.",
		},
		{
			Method: "POST", Pattern: "/v1/tasks:wait", Op: "waitTasks", Handle: h.wait,
			Tag: "tasks", Body: v1.WaitTasksRequest{}, Answers: map[int]any{200: v1.WaitTasksResponse{}},
			Examples: map[string]string{"two": `{"taskIds":["task_1","task_2"],"waitMs":30000}`},
			Access:   httpapi.ForControl, Needs: httpapi.MayReadTasks, Waits: true,
			Summary: "Wait for the ends of tasks",
			Description: "The answer is sent as soon as one of the tasks has ended (SUCCEEDED, FAILED or CANCELLED) or does not exist, " +
				"and has these tasks, 100 at most of up to 1,000. It is empty if waitMs, 60,000 at most, passes before. Repeat the request " +
				"with the other ids.",
		},
		{
			Method: "POST", Pattern: "/v1/tasks/{taskId}/cancel", Op: "cancelTask", Handle: h.cancel,
			Tag: "tasks", Body: v1.CancelRequest{}, OptionalBody: true, Answers: map[int]any{202: v1.Task{}}, Errors: []int{404, 409},
			Examples: map[string]string{"reason": `{"reason":"user_requested"}`, "now": `{"reason":"it hangs","gracePeriodMs":0}`},
			Access:   httpapi.ForControl, Needs: httpapi.MayCancel,
			Summary: "Request a task's cancellation",
			Description: "Cancellation is cooperative: the next heartbeat reports it to the worker, whose grace period begins then. A " +
				"task that has not started is CANCELLED at once, and so is any task with a gracePeriodMs of 0: its worker's requests " +
				"are then rejected as those of an expired attempt.",
		},
		{
			Method: "POST", Pattern: "/v1/tasks/{taskId}/attempts", Op: "nextAttempt", Handle: h.nextAttempt,
			Tag: "tasks", Body: v1.NextAttemptRequest{}, Answers: map[int]any{201: v1.TaskEnvelope{}, 202: v1.Task{}},
			Errors: []int{404, 409}, Examples: map[string]string{"second": `{"fromAttempt":1}`},
			Access: httpapi.ForControl, Needs: httpapi.MayOperate,
			Summary: "Create a task's next attempt",
			Description: "For a FAILED, DISPATCHED or RUNNING task; the old attempt is fenced at once. The same fromAttempt gets the " +
				"same answer. The answer is 201 with the envelope, or 202 with the task if it waits in its queue, or if the caller is " +
				"an operator, whose role does not include the tokens of attempts: a dispatcher receives the envelope by sending the " +
				"same request.",
		},
		{
			Method: "POST", Pattern: "/v1/tasks:cancel", Op: "cancelTasks", Handle: h.cancelMany,
			Tag: "tasks", Body: v1.CancelTasksRequest{}, Answers: map[int]any{200: v1.ActOnTasksResponse{}},
			Examples: map[string]string{"run of a worker": `{"selector":{"workerId":"wkr_01HGW5N7XHJM4GX29KZRXQP6N9000",` +
				`"state":"RUNNING"},"gracePeriodMs":0}`},
			Access: httpapi.ForControl, Needs: httpapi.MayCancel,
			Summary: "Cancel all tasks that match a selector",
			Description: "Each call examines up to 1,000 tasks, in the order of their ids: continue while there is a nextPageToken. " +
				"Each task is cancelled as with its own call; finished tasks that match are refused. A call that failed, or whose " +
				"answer was lost, may be repeated with its pageToken. With dryRun nothing changes, and wouldDo counts the matching " +
				"tasks that would.",
		},
		{
			Method: "POST", Pattern: "/v1/tasks:retry", Op: "retryTasks", Handle: h.retryMany,
			Tag: "tasks", Body: v1.RetryTasksRequest{}, Answers: map[int]any{200: v1.ActOnTasksResponse{}},
			Examples: map[string]string{"last hour": `{"selector":{"state":"FAILED","reason":"WORKER_LOST",` +
				`"finishedAfter":"2025-01-15T10:00:00.000Z"}}`},
			Access: httpapi.ForControl, Needs: httpapi.MayOperate,
			Summary: "Retry all FAILED tasks that match a selector",
			Description: "Pages and repeats work as when tasks are cancelled. Each FAILED task that matches gets its next attempt as with " +
				"its own call; others are refused, unfinished ones with task_not_failed. To get the envelopes of pushed tasks, request " +
				"the same attempts again. A repeated call also retries tasks that have failed again meanwhile.",
		},
		{
			Method: "GET", Pattern: "/v1/runs/{runId}", Op: "getRun", Handle: h.getRun,
			Tag: "tasks", Answers: map[int]any{200: v1.Run{}}, Errors: []int{404},
			Access: httpapi.ForControl, Needs: httpapi.MayReadTasks,
			Summary: "Count a run's tasks",
		},
		{
			Method: "POST", Pattern: "/v1/runs/{runId}/cancel", Op: "cancelRun", Handle: h.cancelRun,
			Tag: "tasks", Body: v1.CancelRequest{}, OptionalBody: true, Answers: map[int]any{202: v1.Run{}}, Errors: []int{404},
			Access: httpapi.ForControl, Needs: httpapi.MayCancel,
			Summary: "Request the cancellation of all tasks of a run",
		},
	}
}

// The parameters of these routes.
var (
	state = httpapi.Param{
		Name: "state", Schema: httpapi.ListOf(httpapi.OneOf(v1.States...)).With("uniqueItems", true), Commas: true,
		Description: "Only tasks in one of these states, with commas between them.",
	}
	runID      = httpapi.Param{Name: "runId", Schema: httpapi.IDSchema, Description: "Only tasks of this run."}
	workerID   = httpapi.Param{Name: "workerId", Schema: httpapi.IDSchema, Description: "Only tasks of this worker."}
	scheduleID = httpapi.Param{Name: "scheduleId", Schema: httpapi.IDSchema, Description: "Only tasks that this schedule created."}
	claimable  = httpapi.Param{
		Name: "claimable", Schema: httpapi.Of("boolean"),
		Description: "Only QUEUED tasks that could be claimed now, as the depth of a queue counts them, or only those that wait for their " +
			"backoff. That a queue is paused makes no difference.",
	}
	finishedAfter = httpapi.Param{
		Name: "finishedAfter", Schema: httpapi.Of("string").With("format", "date-time"),
		Description: "Only tasks that ended at this time or later, in the order of their ends.",
	}
	finishedBefore = httpapi.Param{
		Name: "finishedBefore", Schema: httpapi.Of("string").With("format", "date-time"),
		Description: "Only tasks that ended before this time, in the order of their ends.",
	}
	waitMs = httpapi.Param{
		Name: "waitMs", Schema: httpapi.Of("integer").With("minimum", 0).With("maximum", 60000),
		Description: "How long to wait until the task has ended. Default 0: do not wait.",
	}
	traceparent = httpapi.Param{
		Name: "traceparent", Schema: httpapi.Of("string"),
		Description: "W3C trace context of tasks whose body has none; their envelopes and events contain it. One that is not valid is ignored.",
	}
)
