package api

import (
	v1 "github.com/lubdub-io/lubdub/sdk/go/v1"
)

// taskWords are what callers are told of tasks and queues.
var taskWords = map[string]words{
	opStarted: {
		tag: "callbacks", summary: "The worker began",
		description: "Again on the running attempt it gets the same answer. A beat or a completion before it starts the attempt too.",
		request:     v1.StartedRequest{}, requestExamples: []example{{"started", seedStarted}},
		answers: map[int]any{200: v1.StartedResponse{}}, errors: []int{409},
		answerExamples: map[int][]example{200: {{"acknowledged", seedStartedOK}}, 409: {{"cancelled", seedStartedConflict}}},
	},
	opHeartbeat: {
		tag: "callbacks", summary: "The worker is alive",
		description: "A 200 means that the beat is applied in the store. Stop gracefully when shouldCancel is true, and at once on 409 or 410. " +
			"In the last third of its token's life a beat gets a fresh one.",
		request: v1.HeartbeatRequest{}, requestExamples: []example{{"beat", seedHeartbeat}},
		answers: map[int]any{200: v1.HeartbeatResponse{}}, errors: []int{409, 410},
		answerExamples: map[int][]example{200: {{"acknowledged", heartbeatOK}, {"cancel", heartbeatCancel}},
			410: {{"zombie", seedHeartbeatGone}}},
	},
	opCompleted: {
		tag: "callbacks", summary: "The worker is done",
		description: "The same completion again gets the same answer. A late one changes nothing.",
		request:     v1.CompletedRequest{},
		requestExamples: []example{
			{"succeeded", seedSucceeded}, {"failed", seedFailed}, {"cancelled", seedCancelled},
		},
		answers: map[int]any{200: v1.CompletedResponse{}}, errors: []int{409},
		answerExamples: map[int][]example{200: {{"succeeded", seedCompletedOK}}, 409: {{"late", seedCompletedConflict}}},
	},
	opHeartbeats: {
		tag: "callbacks", summary: "Many beats at once",
		description: "Each item is opened by its own taskToken, or else by the worker's token of the request, and has its own result, in the " +
			"same order; one bad item never fails its neighbours. Statuses 401, 403, 409, 410, 429 and 503 stand in the results.",
		request: v1.HeartbeatsRequest{}, answers: map[int]any{200: v1.HeartbeatsResponse{}},
	},
	opCreate: {
		tag: "tasks", summary: "Create a task",
		description: "Without a queue the task is pushed: the answer is the TaskEnvelope of its first attempt, to be delivered to a worker. " +
			"With one it waits, QUEUED.",
		request: v1.CreateTaskRequest{},
		requestExamples: []example{
			{"pushed", `{"taskKey":"raw.events","assetId":"asset_1","heartbeatIntervalMs":30000,"heartbeatTimeoutMs":90000}`},
			{"queued", `{"queue":"default","type":"send_email","payload":{"to":"a@example.com"},"retry":{"maxAttempts":5}}`},
		},
		answers: map[int]any{201: []any{v1.TaskEnvelope{}, v1.Task{}}}, errors: []int{409},
	},
	opCreateBatch: {
		tag: "tasks", summary: "Create many tasks",
		description: "Each has its own result, in the same order: the body that its creation alone would have got, and its status.",
		request:     v1.CreateTasksRequest{}, answers: map[int]any{200: v1.CreateTasksResponse{}},
	},
	opList: {
		tag: "tasks", summary: "List tasks",
		description: "In the order of task ids, or with finishedAfter or finishedBefore of their ends. totalCount is " +
			"exact for state and runId (and for none), else null; other filters work within bounded pages. Pages may be " +
			"short, those of large tasks too: go on while there is a nextPageToken.",
		answers: map[int]any{200: v1.TaskList{}},
	},
	opGet: {tag: "tasks", summary: "One task", answers: map[int]any{200: v1.Task{}}, errors: []int{404}},
	opCancel: {
		tag: "tasks", summary: "Ask for a task's end",
		description: "Cooperative: the next beat tells the worker, whose grace period begins then. A task that has not started is CANCELLED " +
			"at once, and so is any with a gracePeriodMs of 0: its worker is refused then as one whose attempt has expired.",
		request: v1.CancelRequest{}, optionalBody: true, requestExamples: []example{{"reason", `{"reason":"user_requested"}`},
			{"now", `{"reason":"it hangs","gracePeriodMs":0}`}},
		answers: map[int]any{202: v1.Task{}}, errors: []int{404, 409},
	},
	opCancelTasks: {
		tag: "tasks", summary: "Cancel all tasks that a selector names",
		description: "A part of them with each call, of up to 1,000 that are looked at, in the order of their ids: go on with nextPageToken " +
			"until there is none. Each is cancelled as by a call of its own; finished ones that match are refused. A call that failed, or whose " +
			"answer was lost, may be repeated with its pageToken. With dryRun nothing is done: wouldDo says of how many that match anything " +
			"would be.",
		request: v1.CancelTasksRequest{}, requestExamples: []example{{"run of a worker",
			`{"selector":{"workerId":"wkr_01HGW5N7XHJM4GX29KZRXQP6N9000","state":"RUNNING"},"gracePeriodMs":0}`}},
		answers: map[int]any{200: v1.ActOnTasksResponse{}},
	},
	opRetryTasks: {
		tag: "tasks", summary: "Try all FAILED tasks again that a selector names",
		description: "As /v1/tasks:cancel goes about its own. Each FAILED task that matches gets its next attempt as by a call of its own; " +
			"others are refused, those that go on with task_not_failed. The envelopes of pushed tasks are had by asking for the same " +
			"attempts again. A repeat tries those again that have failed anew meanwhile.",
		request: v1.RetryTasksRequest{}, requestExamples: []example{{"last hour",
			`{"selector":{"state":"FAILED","reason":"WORKER_LOST","finishedAfter":"2025-01-15T10:00:00.000Z"}}`}},
		answers: map[int]any{200: v1.ActOnTasksResponse{}},
	},
	opNextAttempt: {
		tag: "tasks", summary: "Ask for the next attempt",
		description: "Of a FAILED, DISPATCHED or RUNNING task; the old attempt is fenced at once. The same fromAttempt again gets the same " +
			"answer. 201 with the envelope, or 202 with the task when it waits in its queue, and for an operator, whose role does not include " +
			"the tokens of attempts: a dispatcher receives the envelope by sending the same request.",
		request: v1.NextAttemptRequest{}, requestExamples: []example{{"second", `{"fromAttempt":1}`}},
		answers: map[int]any{201: v1.TaskEnvelope{}, 202: v1.Task{}}, errors: []int{404, 409},
	},
	opGetRun: {tag: "tasks", summary: "Count a run's tasks", answers: map[int]any{200: v1.Run{}}, errors: []int{404}},
	opCancelRun: {
		tag: "tasks", summary: "Ask for the end of all tasks of a run",
		request: v1.CancelRequest{}, optionalBody: true, answers: map[int]any{202: v1.Run{}}, errors: []int{404},
	},
	opClaim: {
		tag: "workers", summary: "Hand the worker tasks",
		description: "Of its queue, oldest first and fair across types, only such as it can run: their type, runtime and worker labels are " +
			"its, and they are pinned to nobody else. Answers as soon as there is one, or with none when waitMs is over; a full worker waits too. " +
			"The same claimId again gets the same tasks as long as the worker holds them. A claim counts as the worker's beat when it comes; " +
			"what the worker must be told comes with its beats only.",
		request: v1.ClaimRequest{}, optionalBody: true, requestExamples: []example{{"long poll",
			`{"max":5,"waitMs":30000,"claimId":"c-17"}`}},
		answers: map[int]any{200: v1.ClaimResponse{}}, errors: []int{404, 409, 410},
	},
	opListQueues: {tag: "queues", summary: "List queues",
		description: "Those that hold tasks, have workers or are paused, by name. A type with work that no worker can run is shown by its " +
			"unrunnable.", answers: map[int]any{200: v1.QueueList{}}},
	opGetQueue: {tag: "queues", summary: "Read a queue",
		description: "404 when nothing is known of it: no task waits in it or runs, it has no workers and is not paused.",
		answers:     map[int]any{200: v1.Queue{}}, errors: []int{404}},
	opPauseQueue: {tag: "queues", summary: "Stop claims from a queue",
		description: "New tasks are taken, and what workers hold goes on. At most 1,000 queues of a workspace may be paused: one more is " +
			"answered 429.", request: noFields{}, optionalBody: true, answers: map[int]any{200: v1.Queue{}}},
	opResumeQueue: {tag: "queues", summary: "Let claims go on",
		description: "Those that wait are woken. " +
			"A queue that is not paused, or of which nothing is known, goes on as well: the answer is the same.",
		request: noFields{}, optionalBody: true, answers: map[int]any{200: v1.Queue{}}},
}
