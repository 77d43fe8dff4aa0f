package v1

// ClaimRequest is the body of POST /v1/queues/{queue}/claim.
type ClaimRequest struct {
	// Types limits the claim to these task types, which the worker must have registered. Absent: all of them, and tasks without a type.
	Types []string `json:"types,omitempty"`
	// Max is the maximum number of tasks. Default 1; a claim gets at most 100.
	Max *int `json:"max,omitempty"`
	// WaitMs is how long to wait for the first task. Default 0: not at all.
	WaitMs *int64 `json:"waitMs,omitempty"`
	// ClaimID makes a repeat safe: the same id gets the same tasks again, without those that are done.
	ClaimID string `json:"claimId,omitempty"`
	// Start declares that the worker starts the tasks when it gets them: they are RUNNING in the answer, and their start needs no request.
	// A server that does not know this field returns them as DISPATCHED; the worker must then report each start.
	Start bool `json:"start,omitempty"`
}

// ClaimResponse has the claimed tasks; none if none became available in time.
type ClaimResponse struct {
	Tasks []TaskEnvelope `json:"tasks"`
}

// PauseQueueRequest is the body of POST /v1/queues/{queue}/pause.
type PauseQueueRequest struct {
	// Reason is recorded in the event queue.paused. A queue that is already paused keeps its reason.
	Reason string `json:"reason,omitempty"`
}

// QueueList is the answer of GET /v1/queues.
type QueueList struct {
	// Queues are those that have tasks or workers, or are paused; sorted by name.
	Queues []Queue `json:"queues"`
}

// Queue is the state of one queue: its tasks and its workers.
type Queue struct {
	Queue       string `json:"queue"`
	TenantID    string `json:"tenantId"`
	WorkspaceID string `json:"workspaceId"`
	// Paused reports that no tasks are handed out.
	Paused bool `json:"paused"`
	// Depth is how many tasks wait to be claimed, with or without an eligible worker; those that are SCHEDULED or wait for their backoff
	// do not count.
	Depth int `json:"depth"`
	// Running is how many of its tasks are DISPATCHED or RUNNING.
	Running int `json:"running"`
	// Outstanding is Depth plus Running.
	Outstanding int `json:"outstanding"`
	// OldestWaitMs is how long the oldest of the tasks in Depth has waited; null if Depth is 0.
	OldestWaitMs *int64 `json:"oldestWaitMs"`
	// Types are the types of the tasks in Depth.
	Types []QueueType `json:"types"`
	// Workers counts the queue's workers by status.
	Workers QueueWorkers `json:"workers"`
	// Created is set only in the answer to a pause: the queue did not exist before, so its name may be mistyped.
	Created bool `json:"created,omitempty"`
}

// QueueType is the waiting tasks of one type in a queue.
type QueueType struct {
	// Type is null for tasks without one.
	Type  *string `json:"type"`
	Depth int     `json:"depth"`
	// OldestWaitMs is how long the oldest has waited.
	OldestWaitMs int64 `json:"oldestWaitMs"`
	// Unrunnable is how many of them have no eligible worker in the queue: no uncordoned worker has their type, runtime and labels, or the
	// worker that they are pinned to is cordoned or offline.
	Unrunnable int `json:"unrunnable"`
}

// QueueWorkers counts workers of a queue.
type QueueWorkers struct {
	Online   int `json:"online"`
	Draining int `json:"draining"`
	Offline  int `json:"offline"`
}
