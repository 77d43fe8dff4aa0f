package api

// The words of openapi.json that are neither in the table of routes nor in package v1.

const docDescription = `Workers beat, start and finish under /v1/tasks/{taskId} and /v1/heartbeats with the token of their attempt; ` +
	`control planes create, read and cancel with a control token. Bodies are JSON; times are RFC 3339 in UTC with milliseconds; ` +
	`durations are integers in milliseconds and end in Ms. In requests an absent field and null mean the same. ` +
	`Every answer has an X-Request-Id. A refusal is {"error", "message"} with further fields by code; a failure of the store is always 503, ` +
	`which says nothing about the task.`

var tags = []any{
	obj{"name": "callbacks", "description": "Calls of workers, with the token of an attempt, or with their own for attempts that were " +
		"dispatched to them."},
	obj{"name": "tasks", "description": "Calls of control planes, with a control token."},
	obj{"name": "workers", "description": "Registration and heartbeats of workers, with their own token; operators' actions on workers and " +
		"machines."},
	obj{"name": "queues", "description": "Tasks that wait for workers, and whether they are handed out."},
	obj{"name": "schedules", "description": "Tasks that are created at scheduled times."},
	obj{"name": "events", "description": "Changes of tasks, workers and machines."},
	obj{"name": "webhooks", "description": "URLs that receive events."},
	obj{"name": "system", "description": "Health and documents, without a token."},
}

var securitySchemes = obj{
	"taskToken": obj{"type": "http", "scheme": "bearer", "bearerFormat": "JWT",
		"description": "The taskToken of a TaskEnvelope. It authorizes the callbacks of that attempt only."},
	"workerToken": obj{"type": "http", "scheme": "bearer", "bearerFormat": "JWT",
		"description": "The workerToken of a registration. It authorizes that worker's calls, and the callbacks of attempts that were " +
			"dispatched to it."},
	"controlToken": obj{"type": "http", "scheme": "bearer", "bearerFormat": "JWT",
		"description": "A control token, created with: lubdub token --role viewer|submitter|operator|dispatcher|enroll|admin."},
}

var requestIDHeader = obj{"$ref": "#/components/headers/RequestId"}

var requestIDHeaderSchema = obj{"description": "The id that the request sent, if it is valid, else a new one.",
	"schema": obj{"type": "string"}}

var statusWords = map[int]string{
	200: "Done", 201: "Created", 202: "Accepted",
	400: "The request is invalid; nothing was changed", 401: "No valid token", 403: "The token does not authorize this request",
	404: "Not found in this scope", 409: "The request conflicts with the current state",
	410: "Lubdub ended the attempt or the worker; stop at once",
	413: "The body is too large", 415: "The body is not JSON",
	429: "A limit of the tenant was reached; the message says what to do, Retry-After when to retry",
	500: "A bug in Lubdub; the log has the request id", 503: "A limit of the server was reached, or Redis is not responding",
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
