package v1

// Error codes: the "error" field of every refusal.
const (
	CodeInvalidRequest      = "invalid_request"        // 400: a field, parameter or header is wrong; Field names it
	CodeInvalidID           = "invalid_id"             // 400: an id does not match [A-Za-z0-9][A-Za-z0-9._-]{0,127}
	CodeInvalidCursor       = "invalid_cursor"         // 400: a cursor of events that is not one of this deployment's
	CodeInvalidJSON         = "invalid_json"           // 400: the body is not one JSON value of the right kind
	CodeUnknownField        = "unknown_field"          // 400: control plane only; Field names it
	CodeUnauthorized        = "unauthorized"           // 401: no token, or one that is not valid
	CodeForbidden           = "forbidden"              // 403: a token for something else
	CodeNotFound            = "not_found"              // 404: no such path
	CodeTaskNotFound        = "task_not_found"         // 404
	CodeRunNotFound         = "run_not_found"          // 404
	CodeWorkerNotFound      = "worker_not_found"       // 404: register again
	CodeMachineNotFound     = "machine_not_found"      // 404
	CodeScheduleNotFound    = "schedule_not_found"     // 404
	CodeScheduleExists      = "schedule_exists"        // 409
	CodeNoWorkersMatch      = "no_workers_match"       // 404: the selector of a drain matches no worker
	CodeWebhookNotFound     = "webhook_not_found"      // 404
	CodeDeliveryNotFound    = "delivery_not_found"     // 404: it is no longer stored
	CodeMethodNotAllowed    = "method_not_allowed"     // 405: the Allow header lists the allowed methods
	CodeRequestTimeout      = "request_timeout"        // 408: the request took too long to arrive
	CodeTaskExists          = "task_exists"            // 409
	CodeIdempotencyMismatch = "idempotency_mismatch"   // 409: the Idempotency-Key was used with another body
	CodeAttemptMismatch     = "attempt_mismatch"       // 409: ExpectedAttempt and ReceivedAttempt are set
	CodeTaskAlreadyTerminal = "task_already_terminal"  // 409: State is set
	CodeTaskWithoutQueue    = "task_without_queue"     // 409: only a task of a queue can be snoozed
	CodeWorkerDraining      = "worker_draining"        // 409: it gets no new tasks
	CodeNoFreshWorkers      = "no_fresh_workers"       // 409: a selection's freshness filter took the last; Considered and Rejected are set
	CodeNoMatchingWorkers   = "no_matching_workers"    // 409: no worker passes the other filters
	CodeNoCapacity          = "no_capacity"            // 409: all matching workers are full
	CodeWebhookExists       = "webhook_exists"         // 409
	CodeWebhookManaged      = "webhook_managed"        // 409: it is defined in the server's configuration; change it there
	CodeWebhookDisabled     = "webhook_disabled"       // 409: enable it first
	CodeWorkerOffline       = "worker_offline"         // 410: Reason is the reason; register again, unless it is FORCED_OFFLINE
	CodeWorkerHeld          = "worker_held_offline"    // 409: an operator holds the worker or its machine offline; stop
	CodeTaskExpired         = "task_expired"           // 410: Lubdub ended the attempt; stop at once
	CodeBodyTooLarge        = "body_too_large"         // 413
	CodeUnsupportedMedia    = "unsupported_media_type" // 415
	CodeMisdirected         = "misdirected_request"    // 421: the operators' pages do not go by this name
	CodeHeadersTooLarge     = "headers_too_large"      // 431
	CodeInternal            = "internal_error"         // 500: a bug; search the log for the request id
	CodeOverloaded          = "overloaded"             // 503: at a limit; 429: the tenant sends too much; retry after Retry-After
	CodeStoreUnavailable    = "store_unavailable"      // 503: Redis did not answer; retry after Retry-After
	CodeIssuerUnavailable   = "issuer_unavailable"     // 503: the token cannot be verified now; retry after Retry-After
)

// Error is the body of every refusal.
type Error struct {
	// Error is one of the codes.
	Error string `json:"error"`
	// Message describes what happened and what to do about it.
	Message string `json:"message"`

	// Field is the field, parameter or header that is wrong, as a path such as retry.maxAttempts.
	Field string `json:"field,omitempty"`
	// State is the task's state.
	State State `json:"state,omitempty"`
	// Reason is why Lubdub ended the attempt, why the worker is OFFLINE, or the reason given for the hold.
	Reason string `json:"reason,omitempty"`
	// WorkerID is the worker whose hold refuses the registration.
	WorkerID string `json:"workerId,omitempty"`
	// MachineID is the machine whose hold refuses the registration.
	MachineID string `json:"machineId,omitempty"`
	// Remedy is the command that lifts the hold.
	Remedy string `json:"remedy,omitempty"`
	// ExpectedAttempt is the task's current attempt.
	ExpectedAttempt int `json:"expectedAttempt,omitempty"`
	// ReceivedAttempt is the attempt that the call was for.
	ReceivedAttempt int `json:"receivedAttempt,omitempty"`
	// Considered is how many workers a selection considered.
	Considered *int `json:"considered,omitempty"`
	// Rejected is how many of them each filter removed.
	Rejected *Rejected `json:"rejected,omitempty"`
	// RequestID is given with a 500 only; every answer has it in its X-Request-Id header.
	RequestID string `json:"requestId,omitempty"`
}
