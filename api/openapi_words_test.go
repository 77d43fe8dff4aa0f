package api

// The words of openapi.json that are neither in the table of routes nor in package v1.

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

// seedExamples are the payloads of the worker contract, which tests send and expect to the letter: of bodies, and of answers by status.
var seedExamples = map[string]struct {
	bodies  map[string]string
	answers map[int]map[string]string
}{
	opStarted: {map[string]string{"started": seedStarted},
		map[int]map[string]string{200: {"acknowledged": seedStartedOK}, 409: {"cancelled": seedStartedConflict}}},
	opHeartbeat: {map[string]string{"beat": seedHeartbeat}, map[int]map[string]string{
		200: {"acknowledged": heartbeatOK, "cancel": heartbeatCancel}, 410: {"zombie": seedHeartbeatExpired},
	}},
	opCompleted: {map[string]string{"succeeded": seedSucceeded, "failed": seedFailed, "cancelled": seedCancelled},
		map[int]map[string]string{200: {"succeeded": seedCompletedOK}, 409: {"late": seedCompletedConflict}}},
}
