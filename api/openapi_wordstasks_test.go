package api

import (
	v1 "github.com/lubdub-io/lubdub/sdk/go/v1"
)

// taskWords are the descriptions of tasks and queues.
var taskWords = map[string]words{
	opStarted: {
		tag: "callbacks", request: v1.StartedRequest{}, requestExamples: []example{{"started", seedStarted}},
		answers: map[int]any{200: v1.StartedResponse{}}, errors: []int{409},
		answerExamples: map[int][]example{200: {{"acknowledged", seedStartedOK}}, 409: {{"cancelled", seedStartedConflict}}},
	},
	opHeartbeat: {
		tag: "callbacks", request: v1.HeartbeatRequest{}, requestExamples: []example{{"beat", seedHeartbeat}},
		answers: map[int]any{200: v1.HeartbeatResponse{}}, errors: []int{409, 410},
		answerExamples: map[int][]example{200: {{"acknowledged", heartbeatOK}, {"cancel", heartbeatCancel}},
			410: {{"zombie", seedHeartbeatExpired}}},
	},
	opCompleted: {
		tag: "callbacks", request: v1.CompletedRequest{},
		requestExamples: []example{
			{"succeeded", seedSucceeded}, {"failed", seedFailed}, {"cancelled", seedCancelled},
		},
		answers: map[int]any{200: v1.CompletedResponse{}}, errors: []int{409},
		answerExamples: map[int][]example{200: {{"succeeded", seedCompletedOK}}, 409: {{"late", seedCompletedConflict}}},
	},
	opHeartbeats: {
		tag: "callbacks", request: v1.HeartbeatsRequest{}, answers: map[int]any{200: v1.HeartbeatsResponse{}},
	},
	opCreate: {
		tag: "tasks", request: v1.CreateTaskRequest{},
		requestExamples: []example{
			{"pushed", `{"taskKey":"raw.events","assetId":"asset_1","heartbeatIntervalMs":30000,"heartbeatTimeoutMs":90000}`},
			{"queued", `{"queue":"default","type":"send_email","payload":{"to":"a@example.com"},"retry":{"maxAttempts":5}}`},
		},
		answers: map[int]any{201: []any{v1.TaskEnvelope{}, v1.Task{}}}, errors: []int{409},
	},
	opCreateBatch: {
		tag: "tasks", request: v1.CreateTasksRequest{}, answers: map[int]any{200: v1.CreateTasksResponse{}},
	},
	opList: {
		tag: "tasks", answers: map[int]any{200: v1.TaskList{}},
	},
	opGet: {tag: "tasks", answers: map[int]any{200: v1.Task{}}, errors: []int{404}},
	opCancel: {
		tag: "tasks", request: v1.CancelRequest{}, optionalBody: true, requestExamples: []example{{"reason", `{"reason":"user_requested"}`},
			{"now", `{"reason":"it hangs","gracePeriodMs":0}`}},
		answers: map[int]any{202: v1.Task{}}, errors: []int{404, 409},
	},
	opCancelTasks: {
		tag: "tasks", request: v1.CancelTasksRequest{}, requestExamples: []example{{"run of a worker",
			`{"selector":{"workerId":"wkr_01HGW5N7XHJM4GX29KZRXQP6N9000","state":"RUNNING"},"gracePeriodMs":0}`}},
		answers: map[int]any{200: v1.ActOnTasksResponse{}},
	},
	opRetryTasks: {
		tag: "tasks", request: v1.RetryTasksRequest{}, requestExamples: []example{{"last hour",
			`{"selector":{"state":"FAILED","reason":"WORKER_LOST","finishedAfter":"2025-01-15T10:00:00.000Z"}}`}},
		answers: map[int]any{200: v1.ActOnTasksResponse{}},
	},
	opNextAttempt: {
		tag: "tasks", request: v1.NextAttemptRequest{}, requestExamples: []example{{"second", `{"fromAttempt":1}`}},
		answers: map[int]any{201: v1.TaskEnvelope{}, 202: v1.Task{}}, errors: []int{404, 409},
	},
	opGetRun: {tag: "tasks", answers: map[int]any{200: v1.Run{}}, errors: []int{404}},
	opCancelRun: {
		tag: "tasks", request: v1.CancelRequest{}, optionalBody: true, answers: map[int]any{202: v1.Run{}}, errors: []int{404},
	},
	opClaim: {
		tag: "workers", request: v1.ClaimRequest{}, optionalBody: true, requestExamples: []example{{"long poll",
			`{"max":5,"waitMs":30000,"claimId":"c-17"}`}},
		answers: map[int]any{200: v1.ClaimResponse{}}, errors: []int{404, 409, 410},
	},
	opListQueues:  {tag: "queues", answers: map[int]any{200: v1.QueueList{}}},
	opGetQueue:    {tag: "queues", answers: map[int]any{200: v1.Queue{}}, errors: []int{404}},
	opPauseQueue:  {tag: "queues", request: noFields{}, optionalBody: true, answers: map[int]any{200: v1.Queue{}}},
	opResumeQueue: {tag: "queues", request: noFields{}, optionalBody: true, answers: map[int]any{200: v1.Queue{}}},
}
