package api

import (
	v1 "github.com/lubdub-io/lubdub/sdk/go/v1"
	"github.com/lubdub-io/lubdub/tracker"
)

// The words of openapi.json that are neither in the route table nor in package v1.

const docDescription = `Workers beat, start and finish under /v1/tasks/{taskId} and /v1/heartbeats with the token of their attempt; ` +
	`control planes create, read and cancel with a control token. Bodies are JSON; times are RFC 3339 in UTC with milliseconds; ` +
	`durations are integers in milliseconds and end in Ms. In requests an absent field and null mean the same. ` +
	`Every answer has an X-Request-Id. A refusal is {"error", "message"} with further fields by code; a failure of the store is always 503, ` +
	`never a verdict about a task.`

var tags = []any{
	obj{"name": "callbacks", "description": "What workers call, with the token of an attempt, or with their own for attempts that were " +
		"dispatched to them."},
	obj{"name": "tasks", "description": "What control planes call, with a control token."},
	obj{"name": "workers", "description": "Registration and beats of workers, with their own token; and what operators do with them and " +
		"their machines."},
	obj{"name": "queues", "description": "What waits for workers, and whether it is handed out."},
	obj{"name": "schedules", "description": "What creates tasks by the clock."},
	obj{"name": "events", "description": "What has happened to tasks, workers and machines."},
	obj{"name": "webhooks", "description": "Who is told what happens."},
	obj{"name": "system", "description": "Health and documents, open to everyone."},
}

var securitySchemes = obj{
	"taskToken": obj{"type": "http", "scheme": "bearer", "bearerFormat": "JWT",
		"description": "The taskToken of a TaskEnvelope. It opens the callbacks of that very attempt."},
	"workerToken": obj{"type": "http", "scheme": "bearer", "bearerFormat": "JWT",
		"description": "The workerToken of a registration. It opens that worker's own calls, and the callbacks of attempts that were " +
			"dispatched to it."},
	"controlToken": obj{"type": "http", "scheme": "bearer", "bearerFormat": "JWT",
		"description": "A control token, made with: lubdub token --role viewer|submitter|operator|dispatcher|enroll|admin."},
}

var requestIDHeader = obj{"$ref": "#/components/headers/RequestId"}

var requestIDHeaderSchema = obj{"description": "The request's own id when it sent a sane one, else a new one.",
	"schema": obj{"type": "string"}}

var statusWords = map[int]string{
	200: "Done", 201: "Created", 202: "Accepted",
	400: "The request is wrong; nothing was changed", 401: "No token, or none that holds", 403: "A token for something else",
	404: "No such thing in this scope", 409: "The request does not fit the state that things are in", 410: "Lubdub ended it; stop at once",
	413: "The body is too large", 415: "The body is not JSON",
	429: "The tenant sends or has more than it may; the message says what to do, Retry-After when to come again",
	500: "A bug; the request id finds it in the log", 503: "A bound was reached or the store did not answer",
}

// words of one operation.
type words struct {
	tag, summary, description string

	request         any // of v1; nil: no body
	optionalBody    bool
	requestExamples []example

	answers        map[int]any // of v1, or a list of them
	answerExamples map[int][]example
	errors         []int // besides those that every such route may answer
}

type example struct{ name, json string }

var opWords = map[string]words{
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
			"answer was lost, may be repeated with its pageToken.",
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
			"answer. 201 with the envelope, or 202 with the task when it waits in its queue.",
		request: v1.NextAttemptRequest{}, requestExamples: []example{{"second", `{"fromAttempt":1}`}},
		answers: map[int]any{201: v1.TaskEnvelope{}, 202: v1.Task{}}, errors: []int{404, 409},
	},
	opGetRun: {tag: "tasks", summary: "Count a run's tasks", answers: map[int]any{200: v1.Run{}}, errors: []int{404}},
	opCancelRun: {
		tag: "tasks", summary: "Ask for the end of all tasks of a run",
		request: v1.CancelRequest{}, optionalBody: true, answers: map[int]any{202: v1.Run{}}, errors: []int{404},
	},
	opRegister: {
		tag: "workers", summary: "Register a worker",
		description: "Counts as its first beat. The same queue, machine, name, hostname and pid again take the place of the registration " +
			"before, which is OFFLINE then, SUPERSEDED, and is named by superseded; processes that keep doing that to each other are told as " +
			"worker.identity_conflict. With a registrationId or an Idempotency-Key a repeat gets the first answer and supersedes nobody. A token " +
			"that is tied to a queue registers for that one only. All that a registration says may take 8 KiB.",
		request: v1.RegisterWorkerRequest{}, requestExamples: []example{{"mailer",
			`{"queue":"default","types":["send_email"],"name":"mailer-1","hostname":"host-7","pid":4711,"version":"1.2.3","maxConcurrent":10,` +
				`"labels":{"region":"us-east-1"},"registrationId":"01HGW5N7XHJM4GX29KZRXQP6N9"}`}},
		answers: map[int]any{201: v1.RegisterWorkerResponse{}}, errors: []int{409},
	},
	opWorkerHeartbeat: {
		tag: "workers", summary: "The worker is alive",
		description: "And with it every task that it has claimed and that has no timeout of its own. On 410 stop everything; the reason says " +
			"whether to register again. In the last third of its token's life it gets a fresh one.",
		request: v1.WorkerHeartbeatRequest{}, optionalBody: true, requestExamples: []example{{"beat",
			`{"activeCount":2,"seq":17,"completedDelta":5,"failedDelta":1}`}},
		answers: map[int]any{200: v1.WorkerHeartbeatResponse{}}, errors: []int{404, 410},
	},
	opDeregister: {
		tag: "workers", summary: "The worker goes",
		description: "At once, and what it holds goes back to its queues without counting as lost; or, with drain, when it has finished what " +
			"it holds.",
		request: v1.DeregisterRequest{}, optionalBody: true, answers: map[int]any{200: v1.Worker{}}, errors: []int{404, 410},
	},
	opDrainWorker: {
		tag: "workers", summary: "Let a worker finish and go",
		description: "It claims nothing more, finishes what it holds, and is OFFLINE when it has and knows that it drains; or at the deadline, " +
			"when what it still holds goes back to its queues.",
		request: v1.DrainRequest{}, optionalBody: true, requestExamples: []example{{"deploy", `{"reason":"deploy","deadlineMs":300000}`}},
		answers: map[int]any{200: v1.Worker{}}, errors: []int{404, 410},
	},
	opResumeWorker: {tag: "workers", summary: "Take a drain back", request: v1.ReasonRequest{}, optionalBody: true,
		answers: map[int]any{200: v1.Worker{}}, errors: []int{404, 410}},
	opOfflineWorker: {
		tag: "workers", summary: "Give a worker up", description: "It is OFFLINE at once and what it holds is lost, as if it had died.",
		request: v1.ReasonRequest{}, optionalBody: true, requestExamples: []example{{"reason", `{"reason":"its host is gone"}`}},
		answers: map[int]any{200: v1.Worker{}}, errors: []int{404},
	},
	opCordonWorker: {
		tag: "workers", summary: "Let a worker take nothing new",
		description: "It stays ONLINE, goes on with what it holds and does not end when it is idle; its claims wait and get nothing, and " +
			"selection passes over it. What was placed on it and waits is placed anew. Beats, drains and resumes leave the cordon as it is, and " +
			"whoever registers in the worker's place inherits it. Again it changes nothing.",
		request: v1.ReasonRequest{}, optionalBody: true, requestExamples: []example{{"reason", `{"reason":"it writes nonsense"}`}},
		answers: map[int]any{200: v1.Worker{}}, errors: []int{404, 410},
	},
	opUncordonWorker: {
		tag: "workers", summary: "Take a cordon back", description: "Its claims that wait go on at once.",
		request: v1.ReasonRequest{}, optionalBody: true, answers: map[int]any{200: v1.Worker{}}, errors: []int{404, 410},
	},
	opCordonWorkers: {
		tag: "workers", summary: "Cordon all workers that a selector names",
		description: "All that the selector says must match. One that matches nothing is told so with 404.",
		request:     v1.ActOnWorkersRequest{}, requestExamples: []example{{"version", `{"selector":{"version":"1.2.3"},"reason":"bad build"}`}},
		answers: map[int]any{200: v1.ActOnWorkersResponse{}}, errors: []int{404},
	},
	opUncordonWorkers: {
		tag: "workers", summary: "Take the cordons of all workers back that a selector names",
		description: "All that the selector says must match. One that matches nothing is told so with 404.",
		request:     v1.ActOnWorkersRequest{}, requestExamples: []example{{"version", `{"selector":{"version":"1.2.3"}}`}},
		answers: map[int]any{200: v1.ActOnWorkersResponse{}}, errors: []int{404},
	},
	opResumeWorkers: {
		tag: "workers", summary: "Take the drains of all workers back that a selector names",
		description: "All that the selector says must match. One that matches nothing is told so with 404. A drained machine stays drained.",
		request:     v1.ActOnWorkersRequest{}, requestExamples: []example{{"queue", `{"selector":{"queue":"default"},"dryRun":true}`}},
		answers: map[int]any{200: v1.ActOnWorkersResponse{}}, errors: []int{404},
	},
	opOfflineWorkers: {
		tag: "workers", summary: "Give up all workers that a selector names, or that have been silent",
		description: "They are OFFLINE at once and what they hold is lost, as if they had died. The same call again may find that nobody is " +
			"left to give up, and says so with 200.",
		request: v1.OfflineWorkersRequest{}, requestExamples: []example{{"silent", `{"silentForMs":300000,"reason":"their hosts are gone"}`}},
		answers: map[int]any{200: v1.ActOnWorkersResponse{}},
	},
	opDrainWorkers: {
		tag: "workers", summary: "Drain all workers that a selector names",
		description: "All that the selector says must match. One that matches nothing is told so with 404.",
		request:     v1.DrainWorkersRequest{}, requestExamples: []example{{"version", `{"selector":{"version":"1.2.3"},"dryRun":true}`}},
		answers: map[int]any{200: v1.DrainWorkersResponse{}}, errors: []int{404},
	},
	opGetWorker: {tag: "workers", summary: "One worker", answers: map[int]any{200: v1.Worker{}}, errors: []int{404}},
	opListWorkers: {
		tag: "workers", summary: "List workers",
		description: "In the order of registration, or of last heartbeats. totalCount is that of all pages, whatever the filter.",
		answers:     map[int]any{200: v1.WorkerList{}},
	},
	opSelectWorker: {
		tag: "workers", summary: "Choose a worker",
		description: "Workers of the queue are asked for runtime, type, labels, status, cordon, freshness and capacity, in this order; " +
			"rejected counts them at the first that they fail. A worker that went OFFLINE by its silence counts as stale, whether or not a " +
			"sweep has come by. Choosing reserves nothing: use placement at creation for that.",
		request: v1.SelectWorkerRequest{}, optionalBody: true, requestExamples: []example{{"python",
			`{"queue":"default","runtime":"python","strategy":"leastLoaded"}`}},
		answers: map[int]any{200: v1.SelectWorkerResponse{}}, errors: []int{409},
		answerExamples: map[int][]example{409: {{"stale",
			`{"error":"no_fresh_workers","message":"No workers with fresh heartbeats ` +
				`available","considered":3,"rejected":{"runtime":1,"type":0,"labels":0,"status":0,"stale":2,"full":0}}`}}},
	},
	opGetMachine: {tag: "workers", summary: "One machine", answers: map[int]any{200: v1.Machine{}}, errors: []int{404}},
	opListMachines: {tag: "workers", summary: "List machines", description: "In the order of their ids.",
		answers: map[int]any{200: v1.MachineList{}}},
	opDrainMachine: {
		tag: "workers", summary: "Drain a machine",
		description: "Its workers drain as by calls of their own. Until the machine is resumed a worker that registers on it is DRAINING from " +
			"the start: its beats are told shouldDrain, its claims are refused with 409, and it stays so however idle it is. Again it may set " +
			"another deadline and reason.",
		request: v1.DrainRequest{}, optionalBody: true, requestExamples: []example{{"maintenance",
			`{"reason":"new kernel","deadlineMs":600000}`}},
		answers: map[int]any{200: v1.DrainWorkersResponse{}}, errors: []int{404},
	},
	opResumeMachine: {
		tag: "workers", summary: "Take a machine's drain back",
		description: "Workers that drain with it, or that registered on it meanwhile, are ONLINE again; those whose drain was asked for by " +
			"itself go on draining. A machine that is not drained is left as it is.",
		request: v1.ReasonRequest{}, optionalBody: true, answers: map[int]any{200: v1.ResumeMachineResponse{}}, errors: []int{404},
	},
	opSweep: {
		tag: "system", summary: "Sweep now", description: "One sweep of everything, whatever the sweepers do by themselves. The counts are of " +
			"every tenant; machines are named in the token's scope only.",
		request: noFields{}, optionalBody: true, answers: map[int]any{200: v1.SweepResponse{}},
	},
	opStats: {
		tag: "system", summary: "What there is, and what goes on",
		description: "Levels are those of the scope: a token that opens all tenants need name none, and may name a tenant alone. Rates, the " +
			"last hour and the series are of the whole deployment, counted by its replicas every ten seconds; one that has died drops out. " +
			"The levels of the series are shown to a token that opens everything, and to the only workspace that there is. At most a second old.",
		answers: map[int]any{200: v1.Stats{}},
	},
	opVerdicts: {
		tag: "system", summary: "Count the attempts that Lubdub ended",
		description: "Of the last sinceMs, grouped. They are kept as long as their tasks may be (finished-retention). The answer may be a " +
			"second old; where there are very many, up to ten.",
		answers: map[int]any{200: v1.VerdictCounts{}},
		answerExamples: map[int][]example{200: {{"by machine", `{"since":"2025-01-15T09:05:00.000Z","total":12,"truncated":false,"groups":[` +
			`{"machineId":"host-7","version":"1.2.3","count":12,"lastAt":"2025-01-15T10:04:00.000Z"}]}`}}},
	},
	opSystem: {
		tag: "system", summary: "How the deployment does",
		description: "Replicas, shards, Redis servers, brake and reconciler, of the whole deployment. At most a second old. A Redis server " +
			"that does not answer has an error and nothing else.", answers: map[int]any{200: v1.System{}},
	},
	opScopes: {
		tag: "system", summary: "List tenants and workspaces in use",
		description: "Those that have tasks or workers, in the order of their names, for tokens whose workspace is *; tenantId " +
			"chooses one tenant.",
		answers: map[int]any{200: v1.ScopeList{}},
	},
	opRelease: {
		tag: "system", summary: "Release the mass expiry brake",
		description: "For operators who know that what went silent together has died: what the brake holds in this tenant and workspace " +
			"expires now, and nothing is held there for a while. What beats meanwhile lives as ever. Without a brake that holds it changes nothing.",
		request: v1.ReleaseRequest{}, optionalBody: true, requestExamples: []example{{"half an hour", `{"durationMs":1800000}`}},
		answers: map[int]any{200: v1.ReleaseResponse{}},
	},
	opRevoke: {
		tag: "system", summary: "Take tokens back",
		description: "Those that were issued until now, or until issuedBefore, are answered 401 by this server at once and by all within 2 s; " +
			"what is issued later holds. A worker whose token does not hold registers again, if its enroll token does; until then nobody hears " +
			"it. It stands for as long as such a token may hold. At most 10,000 stand at a time, 1,000 of them of one tenant: one more is " +
			"answered 429.",
		request: v1.RevokeTokensRequest{}, requestExamples: []example{{"somebody left", `{"subject":"ann@example.com"}`},
			{"a machine was broken into", `{"workerId":"wkr_01HGW5N7XHJM4GX29KZRXQP6N9000","issuedBefore":"2025-01-15T10:00:00Z"}`}},
		answers: map[int]any{200: v1.RevokeTokensResponse{}},
	},
	opCreateSchedule: {
		tag: "schedules", summary: "Create tasks by the clock",
		description: "Each fire creates its task once, however many servers there are and whenever they die: its idempotency key is " +
			"schedule:<id>:<time>. A tenant has a bound of schedules (max-schedules); one beyond is answered 429.",
		request: v1.CreateScheduleRequest{}, requestExamples: []example{
			{"weekdays", `{"scheduleId":"report","cron":"0 30 9 * * MON-FRI","task":{"queue":"reports","type":"daily"}}`},
			{"one at a time", `{"cron":"0 */5 * * * *","overlap":"skip","maxCatchup":0,"task":{"queue":"sync","payload":{"full":false}}}`},
		},
		answers: map[int]any{201: v1.Schedule{}}, errors: []int{409},
	},
	opListSchedules: {tag: "schedules", summary: "List schedules", answers: map[int]any{200: v1.ScheduleList{}}},
	opGetSchedule:   {tag: "schedules", summary: "Read a schedule", answers: map[int]any{200: v1.Schedule{}}, errors: []int{404}},
	opPutSchedule: {
		tag: "schedules", summary: "Replace what a schedule says",
		description: "It goes on from the last fire: times since then at which it would have fired are caught up, maxCatchup of them.",
		request:     v1.ChangeScheduleRequest{},
		requestExamples: []example{
			{"hourly", `{"cron":"0 0 * * * *","task":{"queue":"reports","type":"hourly"}}`},
		},
		answers: map[int]any{200: v1.Schedule{}}, errors: []int{404},
	},
	opPatchSchedule: {
		tag: "schedules", summary: "Change a part of what a schedule says", description: "As PUT, and what is absent stays as it is.",
		request: v1.ChangeScheduleRequest{}, requestExamples: []example{{"catch up less", `{"maxCatchup":10}`}},
		answers: map[int]any{200: v1.Schedule{}}, errors: []int{404},
	},
	opDeleteSchedule: {tag: "schedules", summary: "Delete a schedule", description: "Its tasks stay.",
		answers: map[int]any{200: v1.DeletedSchedule{}}, errors: []int{404}},
	opPauseSchedule: {tag: "schedules", summary: "Stop new fires", description: "Fires that are pending still create their tasks.",
		request: noFields{}, optionalBody: true, answers: map[int]any{200: v1.Schedule{}}, errors: []int{404}},
	opResumeSchedule: {tag: "schedules", summary: "Let a schedule go on", description: "What it has missed is caught up, maxCatchup fires.",
		request: noFields{}, optionalBody: true, answers: map[int]any{200: v1.Schedule{}}, errors: []int{404}},
	opNextFires: {tag: "schedules", summary: "When a schedule fires next", answers: map[int]any{200: v1.NextFires{}}, errors: []int{404}},
	opFireSchedule: {
		tag: "schedules", summary: "Fire now, once",
		description: "Also when it is paused, and whatever still runs. The fire has the time of the present second: twice within one is once.",
		request:     noFields{}, optionalBody: true, answers: map[int]any{202: v1.FiredResponse{}}, errors: []int{404, 409},
	},
	opBackfillSchedule: {
		tag: "schedules", summary: "Make up for a time that is over",
		description: "Fires for each time after from, up to and with to: the newest maxCatchup of them. Those that have fired " +
			"keep their one task.",
		request: v1.BackfillRequest{}, requestExamples: []example{{"a day", `{"from":"2025-01-14T00:00:00Z","to":"2025-01-15T00:00:00Z"}`}},
		answers: map[int]any{202: v1.AskedFires{}}, errors: []int{404},
	},
	opCreateWebhook: {
		tag: "webhooks", summary: "Tell a URL what happens",
		description: "Messages are posted as Standard Webhooks 1.0 has it, at least once each, those about one subject in order while it " +
			"keeps up. The answer has the secret, which is never shown again. A URL that is no public address is refused, now and whenever " +
			"it is called, unless the deployment opens its range with webhook-allow-cidrs. It is told of its workspace; what belongs to " +
			"none, such as system.outage_credited, GET /v1/events tells tokens of tenant *. At most 100 a workspace.",
		request: v1.CreateWebhookRequest{}, requestExamples: []example{{"failures",
			`{"webhookId":"alerts","url":"https://example.com/hook","events":["task.failed","worker.offline"],"queue":"default"}`}},
		answers: map[int]any{201: v1.Webhook{}}, errors: []int{409},
	},
	opListWebhooks: {tag: "webhooks", summary: "List webhooks", description: "In the order of their ids.",
		answers: map[int]any{200: v1.WebhookList{}}},
	opGetWebhook: {tag: "webhooks", summary: "One webhook", answers: map[int]any{200: v1.Webhook{}}, errors: []int{404}},
	opUpdateWebhook: {
		tag: "webhooks", summary: "Change a webhook",
		description: "The body is all that it says from now on; its secret stays. One that was switched off is switched on, unless enabled is " +
			"false.",
		request: v1.UpdateWebhookRequest{}, answers: map[int]any{200: v1.Webhook{}}, errors: []int{404, 409},
	},
	opDeleteWebhook: {
		tag: "webhooks", summary: "Forget a webhook", description: "With all that it was still to be sent.",
		answers: map[int]any{200: v1.DeleteWebhookResponse{}}, errors: []int{404, 409},
	},
	opRotateSecret: {
		tag: "webhooks", summary: "Give a webhook another secret",
		description: "The answer has it, and never again. For 24 hours messages are signed with the one before, too.",
		request:     v1.RotateSecretRequest{}, optionalBody: true, answers: map[int]any{200: v1.Webhook{}}, errors: []int{404, 409},
	},
	opTestWebhook: {
		tag: "webhooks", summary: "Send a webhook a test", description: "A message of type webhook.test. Its delivery tells what came of it.",
		request: noFields{}, optionalBody: true, answers: map[int]any{202: v1.WebhookDelivery{}}, errors: []int{404, 409},
	},
	opListDeliveries: {
		tag: "webhooks", summary: "List what a webhook is sent",
		description: "Newest first, or oldest with order=asc: all that waits, and of what is over the newest 500 delivered and as many " +
			"dead. Pages may be short: go on while there is a nextPageToken.",
		answers: map[int]any{200: v1.WebhookDeliveryList{}}, errors: []int{404},
	},
	opRedeliver: {
		tag: "webhooks", summary: "Send a webhook something again",
		description: "One delivery, or all events since a time that are still kept; these keep their webhook-id. A call by since may " +
			"end early: go on with its nextPageToken.",
		request: v1.RedeliverRequest{},
		requestExamples: []example{{"one", `{"deliveryId":"dlv_0000000000042"}`},
			{"since", `{"since":"2025-01-15T10:00:00Z"}`}},
		answers: map[int]any{202: v1.RedeliverResponse{}}, errors: []int{404, 409},
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
	opResumeQueue: {tag: "queues", summary: "Let claims go on", description: "Those that wait are woken.", request: noFields{},
		optionalBody: true, answers: map[int]any{200: v1.Queue{}}},
	opEvents: {
		tag: "events", summary: "What has happened",
		description: "A page of events of all shards, or, where Accept asks for text/event-stream, a stream of them. The cursor resumes both: " +
			"nothing is missed, and what comes twice has the same id. Where events are not kept any more a page has a gap, " +
			"and a stream an event of that name. Pages may be short where little passes the filter. A stream says every 15 s that it is " +
			"alive, and where it is. It ends with an event and the cursor to go on from: lagged, when its client does not keep up, or end, " +
			"with a reason: draining, token_expired or token_revoked.",
		answers: map[int]any{200: v1.EventList{}},
	},
	"livez": {tag: "system", summary: "The process answers", description: "Never asks the store.",
		answers: map[int]any{200: v1.Health{}}},
	"readyz": {
		tag: "system", summary: "This server should get work",
		description: "503 while it shuts down. The store's trouble, which is that of all servers, is told as status degraded: a balancer must " +
			"not send nobody anywhere for it.", answers: map[int]any{200: v1.Health{}, 503: v1.Health{}},
	},
	"healthz": {tag: "system", summary: "The same as /readyz", answers: map[int]any{200: v1.Health{}, 503: v1.Health{}}},
	"version": {tag: "system", summary: "What runs here", answers: map[int]any{200: v1.Version{}}},
	"openapi": {tag: "system", summary: "This document", answers: map[int]any{200: nil}},
}

func queryParam(name, description string, schema obj) obj {
	return obj{"name": name, "in": "query", "description": description, "schema": schema}
}

var queryParams = map[string]obj{
	"tenantId":    queryParam("tenantId", "Half of the scope. Default: the token's; required where the token says *.", idSchema(false)),
	"workspaceId": queryParam("workspaceId", "The other half.", idSchema(false)),
	"state": {
		"name": "state", "in": "query", "description": "Only tasks in one of these states, with commas between them.",
		"schema": obj{"type": "array", "items": obj{"type": "string", "enum": enums["State"]}, "uniqueItems": true}, "style": "form",
		"explode": false,
	},
	"reason": queryParam("reason", "Only tasks that failed for this reason.", obj{"type": "string", "enum": reasons()}),
	"finishedAfter": queryParam("finishedAfter", "Only tasks that ended at this time or later, in the order of their ends.",
		obj{"type": "string", "format": "date-time"}),
	"finishedBefore": queryParam("finishedBefore", "Only tasks that ended before this time, in the order of their ends.",
		obj{"type": "string", "format": "date-time"}),
	"order": queryParam("order", "Which way round the list is.", obj{"type": "string", "enum": []any{"asc", "desc"}, "default": "asc"}),
	"by": {
		"name": "by", "in": "query", "description": "What to group by, with commas between them; nothing: one group of all.",
		"schema": obj{"type": "array", "items": obj{"type": "string", "enum": verdictGroups()}, "uniqueItems": true}, "style": "form",
		"explode": false,
	},
	"sinceMs": queryParam("sinceMs", "How far back to count.", obj{"type": "integer", "minimum": 1, "maximum": maxVerdictsMs,
		"default": defaultVerdictsMs}),
	"sort": queryParam("sort", "Order by the last heartbeat instead of the id. Who beats between two pages may stand on both, or on neither.",
		obj{"type": "string", "enum": []any{"lastHeartbeat"}}),
	"name":     queryParam("name", "Only workers of this name.", obj{"type": "string"}),
	"version":  queryParam("version", "Only workers of this version.", obj{"type": "string"}),
	"runId":    queryParam("runId", "Only tasks of this run.", idSchema(false)),
	"workerId": queryParam("workerId", "Only tasks of this worker.", idSchema(false)),
	"queue":    queryParam("queue", "Only what is of this queue.", idSchema(false)),
	"type":     queryParam("type", "Only tasks of this type, or workers that run it.", idSchema(false)),
	"label": {
		"name": "label", "in": "query", "description": "Only what has this label, key=value. May be given several times; all must match.",
		"schema": obj{"type": "array", "items": obj{"type": "string"}}, "style": "form", "explode": true,
	},
	"status":  queryParam("status", "Only workers, or machines, of this status.", obj{"type": "string", "enum": enums["WorkerStatus"]}),
	"runtime": queryParam("runtime", "Only workers that have this runtime.", idSchema(false)),
	"machineId": queryParam("machineId", "Only workers of this machine, or tasks of its workers, as long as these are known.",
		idSchema(false)),
	"schedulable": queryParam("schedulable", "Only workers that would, or would not, be selected now.", obj{"type": "boolean"}),
	"liveness":    queryParam("liveness", "Only what is of this liveness.", obj{"type": "string", "enum": enums["Liveness"]}),
	"count":       queryParam("count", "How many fires.", obj{"type": "integer", "minimum": 1, "maximum": 100, "default": 10}),
	"pageSize":    queryParam("pageSize", "Entries per page, clamped to 1 to 100.", obj{"type": "integer", "default": 100}),
	"pageToken":   queryParam("pageToken", "The nextPageToken of the page before, with the same filter.", obj{"type": "string"}),
}

// exampleStream is a stream that begins, tells one event and ends, as JSON string.
const exampleStream = `": lubdub\nretry: 2381\nid: AQAQ…\n\nid: AQAQ…\ndata: {\"id\":\"evt_00a_1795334185916_0\",\"type\":\"task.created\",` +
	`\"time\":\"2026-01-15T10:00:00.000Z\",\"tenantId\":\"acme\",\"workspaceId\":\"prod\",\"subject\":\"task_1\",\"data\":{}}\n\n` +
	`event: end\nid: AQAQ…\nretry: 3104\ndata: {\"reason\":\"draining\",\"cursor\":\"AQAQ…\"}\n\n"`

// ownQueryParams are those that one operation understands otherwise than the others.
var ownQueryParams = map[string]map[string]obj{
	opListDeliveries: {
		"status": queryParam("status", "Only deliveries of this status.", obj{"type": "string", "enum": enums["DeliveryStatus"]}),
		"order":  queryParam("order", "Oldest or newest first.", obj{"type": "string", "enum": []any{"asc", "desc"}, "default": "desc"}),
	},
	opEvents: {
		"tenantId": queryParam("tenantId", "Half of the scope. Default: the token's; where that says *, of all, and what has no scope.",
			idSchema(false)),
		"workspaceId": queryParam("workspaceId", "The other half.", idSchema(false)),
		"type": {
			"name": "type", "in": "query", "description": "Only events of this type, or family of types such as task.*. Several with commas.",
			"schema": obj{"type": "array", "items": obj{"type": "string"}}, "style": "form", "explode": false,
		},
		"subject": queryParam("subject", "Only what is about this task, worker, machine or the like: its timeline. One shard is read.",
			idSchema(false)),
		"runId":     queryParam("runId", "Only what is about tasks of this run.", idSchema(false)),
		"taskType":  queryParam("taskType", "Only what is about tasks of this type.", idSchema(false)),
		"workerId":  queryParam("workerId", "Only what is about this worker and its attempts.", idSchema(false)),
		"machineId": queryParam("machineId", "Only what is about this machine, its workers and their attempts.", idSchema(false)),
		"after": queryParam("after", "Where to begin, exclusive: the next of a page or the id of a streamed event, now, or a time in "+
			"RFC 3339. Default: with the first event that is kept, the newest in descending order; a stream begins now.", obj{"type": "string"}),
		"order": queryParam("order", "Oldest or newest first; then after is where to go back from. A cursor goes on in its own order.",
			obj{"type": "string", "enum": []any{"asc", "desc"}, "default": "asc"}),
	},
}

var enums = map[string][]any{
	"State":          {"QUEUED", "DISPATCHED", "RUNNING", "SUCCEEDED", "FAILED", "CANCELLED"},
	"WorkerStatus":   {"ONLINE", "DRAINING", "OFFLINE"},
	"Liveness":       {"FRESH", "LATE", "LOST"},
	"Overlap":        {"allow", "skip"},
	"DeliveryStatus": {"PENDING", "DELIVERED", "DEAD"},
	"Outcome":        {"SUCCEEDED", "FAILED", "CANCELLED"},
	"ErrorCategory":  {"USER_CODE", "DATA_QUALITY", "INFRASTRUCTURE", "CONFIGURATION", "TIMEOUT", "CANCELLED"},
}

func verdictGroups() (words []any) {
	for _, name := range tracker.VerdictGroups {
		words = append(words, name)
	}
	return words
}

// reasons are those for which a task may fail.
func reasons() (words []any) {
	for _, r := range tracker.Reasons {
		words = append(words, string(r))
	}
	return words
}

var idFields = map[string]bool{
	"taskType": true, "machineId": true, "taskId": true, "runId": true, "assetId": true, "tenantId": true, "workspaceId": true, "type": true,
	"queue": true, "runtime": true, "workerId": true, "registrationId": true,
}

// neverNull are times that are always there.
var neverNull = map[string]bool{"serverTime": true, "enqueuedAt": true, "tokenExpiresAt": true, "createdAt": true, "detectedAt": true,
	"registeredAt": true, "time": true, "from": true, "to": true, "fireAt": true, "notedAt": true, "updatedAt": true, "last": true}

// noFields is the body of a call that takes none: {} or nothing.
type noFields struct{}

// strictTypes refuse fields that they do not have.
var strictTypes = map[string]bool{
	"CreateScheduleRequest": true, "ChangeScheduleRequest": true, "BackfillRequest": true,
	"RegisterWorkerRequest": true, "DeregisterRequest": true, "ReasonRequest": true, "DrainRequest": true, "DrainWorkersRequest": true,
	"ActOnWorkersRequest": true, "OfflineWorkersRequest": true, "SilentSelector": true,
	"CreateWebhookRequest": true, "UpdateWebhookRequest": true, "RotateSecretRequest": true, "RedeliverRequest": true,
	"SelectWorkerRequest": true, "WorkerSelector": true, "noFields": true,
	"CreateTaskRequest": true, "CreateTasksRequest": true, "CreateTasksItem": true, "CancelRequest": true, "NextAttemptRequest": true,
	"RetryPolicy": true, "Placement": true,
	"TaskSelector": true, "CancelTasksRequest": true, "RetryTasksRequest": true,
}

func between(lo, hi int) obj { return obj{"type": "integer", "minimum": lo, "maximum": hi} }

var (
	timeoutMs = between(1000, 86400000)
	anyJSON   = obj{"type": []string{"object", "array", "string", "number", "boolean", "null"}}
	anyObject = obj{"type": []string{"object", "null"}}
	progress  = obj{"type": []string{"number", "null"}, "minimum": 0, "maximum": 100}
	text      = obj{"type": []string{"string", "null"}}
)

// fieldSchemas narrow what the Go types leave open, by "Type.field" or by field.
var fieldSchemas = map[string]obj{
	"attempt":                        {"type": "integer", "minimum": 0},
	"StartedRequest.attempt":         {"type": "integer", "minimum": 1},
	"HeartbeatRequest.attempt":       {"type": "integer", "minimum": 1},
	"CompletedRequest.attempt":       {"type": "integer", "minimum": 1},
	"NextAttemptRequest.fromAttempt": {"type": "integer", "minimum": 1},
	"HeartbeatRequest.progressPct":   progress,
	"Task.progressPct":               progress,
	"Progress.progressPct":           progress,
	"Task.message":                   text,
	"Progress.message":               text,
	"CompletedRequest.metrics":       anyObject,
	"Task.metrics":                   anyObject,
	"Task.error":                     anyObject,
	"HistoryEntry.error":             anyObject,
	"CreateTaskRequest.resources":    anyObject,
	"TaskEnvelope.resources":         {"type": "object"},
	"Task.resources":                 {"type": "object"},
	"Task.lastProgress":              anyObject,
	"HistoryEntry.outcome": {"type": "string", "enum": []any{"SUCCEEDED", "FAILED", "CANCELLED", "ZOMBIE", "TIMED_OUT",
		"LOST", "SUPERSEDED"}},
	"CreateTaskRequest.taskKey": {"type": "string", "maxLength": 256},
	"CreateTaskRequest.labels": {"type": "object", "maxProperties": 64,
		"additionalProperties": obj{"type": "string", "maxLength": 256}},
	"CreateTaskRequest.workerLabels": {"type": "object", "maxProperties": 64,
		"additionalProperties": obj{"type": "string", "maxLength": 256}},
	"CreateTaskRequest.startTimeoutMs":      timeoutMs,
	"CreateTaskRequest.runTimeoutMs":        timeoutMs,
	"CreateTaskRequest.heartbeatTimeoutMs":  timeoutMs,
	"CreateTaskRequest.heartbeatIntervalMs": between(1, 43200000),
	"CreateTaskRequest.cancelGracePeriodMs": between(1, 86400000),
	"CreateTaskRequest.tokenTtlSeconds":     between(1, 7200),
	"RetryPolicy.maxAttempts":               between(1, 1000),
	"RetryPolicy.maxLosses":                 between(0, 1000),
	"RetryPolicy.initialBackoffMs":          between(0, 86400000),
	"RetryPolicy.multiplier":                {"type": "number", "minimum": 1, "maximum": 100},
	"RetryPolicy.maxBackoffMs":              between(0, 86400000),
	"ClaimRequest.types":                    {"type": "array", "items": idSchema(false), "minItems": 1},
	"ClaimRequest.max":                      {"minimum": 1},
	"ClaimRequest.waitMs":                   between(0, 60000),
	"ClaimRequest.claimId":                  idSchema(false),
	"RegisterWorkerRequest.types":           {"type": "array", "items": idSchema(false), "minItems": 1, "maxItems": 1000},
	"RegisterWorkerRequest.runtimes":        {"type": "array", "items": idSchema(false), "maxItems": 100},
	"RegisterWorkerRequest.name":            {"type": "string", "maxLength": 128},
	"RegisterWorkerRequest.version":         {"type": "string", "maxLength": 128},
	"RegisterWorkerRequest.probeUrl":        {"type": "string", "maxLength": 512},
	"RegisterWorkerRequest.pid":             between(0, 1<<31-1),
	"RegisterWorkerRequest.maxConcurrent":   between(0, 1000000),
	"RegisterWorkerRequest.labels": {"type": "object", "maxProperties": 64,
		"additionalProperties": obj{"type": "string", "maxLength": 256}},
	"WorkerHeartbeatRequest.activeCount":    between(0, 1000000),
	"WorkerHeartbeatRequest.seq":            {"type": "integer", "minimum": 0},
	"WorkerHeartbeatRequest.completedDelta": {"type": "integer", "minimum": 0},
	"WorkerHeartbeatRequest.failedDelta":    {"type": "integer", "minimum": 0},
	"WorkerTaskItem.attempt":                {"type": "integer", "minimum": 1},
	"WorkerTaskItem.progressPct":            progress,
	"DrainRequest.reason":                   {"type": "string", "maxLength": 512},
	"DrainRequest.deadlineMs":               between(1, 2592000000),
	"ReasonRequest.reason":                  {"type": "string", "maxLength": 512},
	"ActOnWorkersRequest.reason":            {"type": "string", "maxLength": 512},
	"OfflineWorkersRequest.reason":          {"type": "string", "maxLength": 512},
	"SilentSelector.silentForMs":            between(1, 2592000000),
	"OfflineWorkersRequest.silentForMs":     between(1, 2592000000),
	"DrainWorkersRequest.reason":            {"type": "string", "maxLength": 512},
	"DrainWorkersRequest.deadlineMs":        between(1, 2592000000),
	"SelectWorkerRequest.strategy":          {"type": "string", "enum": []any{"leastLoaded", "roundRobin", "random"}},
	"Placement.strategy":                    {"type": "string", "enum": []any{"leastLoaded", "roundRobin", "random"}},
	"CreateTasksItem.idempotencyKey":        {"type": "string", "maxLength": 255},
	"CancelTasksRequest.reason":             {"type": "string", "maxLength": 512},
	"CancelTasksRequest.gracePeriodMs":      between(0, 86400000),
	"CancelRequest.gracePeriodMs":           between(0, 86400000),
	"CancelRequest.reason":                  {"type": "string", "maxLength": 512},
	"CompletedRequest.cancelledDuringPhase": {"type": "string", "maxLength": 256},
}
