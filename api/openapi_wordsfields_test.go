package api

import (
	"time"

	"github.com/lubdub-io/lubdub/api/token"
)

// The words of fields of openapi.json.

// exampleStream is a stream that begins, sends one event and ends, as a JSON string.
const exampleStream = `": lubdub\nretry: 2381\nid: AQAQ…\n\nid: AQAQ…\ndata: {\"id\":\"evt_00a_1795334185916_0\",\"type\":\"task.created\",` +
	`\"time\":\"2026-01-15T10:00:00.000Z\",\"tenantId\":\"acme\",\"workspaceId\":\"prod\",\"subject\":\"task_1\",\"data\":{}}\n\n` +
	`event: end\nid: AQAQ…\nretry: 3104\ndata: {\"reason\":\"draining\",\"cursor\":\"AQAQ…\"}\n\n"`

var enums = map[string][]any{
	"State":          {"SCHEDULED", "QUEUED", "DISPATCHED", "RUNNING", "SUCCEEDED", "FAILED", "CANCELLED"},
	"WorkerStatus":   {"ONLINE", "DRAINING", "OFFLINE"},
	"Liveness":       {"FRESH", "LATE", "LOST"},
	"Overlap":        {"allow", "skip"},
	"DeliveryStatus": {"PENDING", "DELIVERED", "DEAD"},
	"Outcome":        {"SUCCEEDED", "FAILED", "CANCELLED", "SNOOZED"},
	"Severity":       {"ok", "warn", "fail"},
	"Party":          {"us", "them", "both", "none"},
	"ErrorCategory":  {"USER_CODE", "DATA_QUALITY", "INFRASTRUCTURE", "CONFIGURATION", "TIMEOUT", "CANCELLED"},
}

func roles() (words []any) {
	for _, r := range token.Roles {
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
	"registeredAt": true, "time": true, "expiresAt": true,
	"from": true, "to": true, "fireAt": true, "notedAt": true, "updatedAt": true, "last": true}

// strictTypes refuse fields that they do not have.
var strictTypes = map[string]bool{
	"CreateScheduleRequest": true, "ChangeScheduleRequest": true, "BackfillRequest": true,
	"PauseQueueRequest":     true,
	"RegisterWorkerRequest": true, "DeregisterRequest": true, "ReasonRequest": true, "DrainRequest": true, "DrainWorkersRequest": true,
	"ActOnWorkersRequest": true, "OfflineWorkersRequest": true, "SilentSelector": true,
	"CreateWebhookRequest": true, "UpdateWebhookRequest": true, "RotateSecretRequest": true, "RedeliverRequest": true,
	"SelectWorkerRequest": true, "WorkerSelector": true, "RevokeTokensRequest": true, "ReleaseRequest": true,
	"CreateTaskRequest": true, "CreateTasksRequest": true, "CreateTasksItem": true, "CancelRequest": true, "NextAttemptRequest": true,
	"RetryPolicy": true, "Placement": true,
	"CreateTokenRequest": true, "TaskSelector": true, "CancelTasksRequest": true, "RetryTasksRequest": true,
}

func between(lo, hi int) obj { return obj{"type": "integer", "minimum": lo, "maximum": hi} }

var (
	timeoutMs = between(1000, 86400000)
	outcome   = obj{"type": "string", "enum": []any{"SUCCEEDED", "FAILED", "CANCELLED", "SNOOZED"}}
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
		"LOST", "SUPERSEDED", "SNOOZED"}},
	"CompletedResponse.finalState": outcome,
	"CompletionResult.finalState":  outcome,
	"CompletedRequest.delayMs":     between(0, 31622400000),
	"TaskError.retryAfterMs":       between(0, 31622400000),
	"CreateTaskRequest.delayMs":    between(0, 31622400000),
	"CreateTaskRequest.taskKey":    {"type": "string", "maxLength": 256},
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
	"PauseQueueRequest.reason":              {"type": "string", "maxLength": 512},
	"ReasonRequest.reason":                  {"type": "string", "maxLength": 512},
	"ActOnWorkersRequest.reason":            {"type": "string", "maxLength": 512},
	"OfflineWorkersRequest.reason":          {"type": "string", "maxLength": 512},
	"SilentSelector.silentForMs":            between(1, 2592000000),
	"OfflineWorkersRequest.silentForMs":     between(1, 2592000000),
	"DrainWorkersRequest.reason":            {"type": "string", "maxLength": 512},
	"DrainWorkersRequest.deadlineMs":        between(1, 2592000000),
	"SelectWorkerRequest.strategy":          {"type": "string", "enum": []any{"leastLoaded", "roundRobin", "random"}},
	"Placement.strategy":                    {"type": "string", "enum": []any{"leastLoaded", "roundRobin", "random"}},
	"CreateTasksItem.idempotencyKey":        {"type": "string", "minLength": 1, "maxLength": 255},
	"CreateScheduleRequest.scheduleId":      idSchema(false),
	"CreateScheduleRequest.maxCatchup":      between(0, 1000),
	"ChangeScheduleRequest.maxCatchup":      between(0, 1000),
	"CreateWebhookRequest.webhookId":        idSchema(false),
	"WebhookSettingsItem.description":       {"type": "string", "maxLength": 256},
	"RegisterWorkerRequest.hostname":        {"type": "string", "maxLength": 255},
	"DeregisterRequest.reason":              {"type": "string", "maxLength": 512},
	"TaskSelector.queue":                    idSchema(false),
	"TaskSelector.type":                     idSchema(false),
	"TaskSelector.runId":                    idSchema(false),
	"TaskSelector.workerId":                 idSchema(false),
	"TaskSelector.machineId":                idSchema(false),
	"WorkerSelector.queue":                  idSchema(false),
	"WorkerSelector.machineId":              idSchema(false),
	"TaskSelector.state":                    {"type": "string", "minLength": 1},
	"TaskSelector.reason":                   {"type": "string", "minLength": 1},
	"WorkerSelector.version":                {"type": "string", "minLength": 1},
	"WebhookSettingsItem.subject":           idSchema(false),
	"RevokeTokensRequest.subject":           {"type": "string", "minLength": 1, "maxLength": 128},
	"CancelTasksRequest.reason":             {"type": "string", "maxLength": 512},
	"CancelTasksRequest.gracePeriodMs":      between(0, 86400000),
	"CancelRequest.gracePeriodMs":           between(0, 86400000),
	"CancelRequest.reason":                  {"type": "string", "maxLength": 512},
	"CreateTokenRequest.ttlMs":              between(1000, int((12 * time.Hour).Milliseconds())),
	"CreateTokenRequest.role":               {"type": "string", "enum": roles()},
	"CompletedRequest.cancelledDuringPhase": {"type": "string", "maxLength": 256},
}

// mostEntries is how many entries arrays have at most that may not be empty.
var mostEntries = map[string]int{
	"CreateTasksRequest.tasks": 1000, "HeartbeatsRequest.heartbeats": 1000,
}
