package v1

// ClaimRequest is the body of POST /v1/queues/{queue}/claim.
type ClaimRequest struct {
	// Types to claim, some of those that the worker registered; absent: all of them, and tasks without a type.
	Types []string `json:"types,omitempty"`
	// Max is the maximum number of tasks. Default 1; a claim gets at most 100.
	Max *int `json:"max,omitempty"`
	// WaitMs is how long to wait for the first task. Default 0: not at all.
	WaitMs *int64 `json:"waitMs,omitempty"`
	// ClaimID makes a repeat safe: the same id gets the same tasks again, without those that are done.
	ClaimID string `json:"claimId,omitempty"`
}

// ClaimResponse has the claimed tasks; none if none became available in time.
type ClaimResponse struct {
	Tasks []TaskEnvelope `json:"tasks"`
}

// QueueList is the answer of GET /v1/queues.
type QueueList struct {
	// Queues are those that have tasks or workers or are paused, by name.
	Queues []Queue `json:"queues"`
}

// Queue is the state of one queue: its tasks and its workers.
type Queue struct {
	Queue       string `json:"queue"`
	TenantID    string `json:"tenantId"`
	WorkspaceID string `json:"workspaceId"`
	// Paused reports that no tasks are handed out.
	Paused bool `json:"paused"`
	// Depth is how many tasks could be claimed now; those waiting for their backoff or notBefore do not count.
	Depth int `json:"depth"`
	// Running is how many of its tasks are DISPATCHED or RUNNING.
	Running int `json:"running"`
	// Outstanding is the sum of both.
	Outstanding int `json:"outstanding"`
	// OldestWaitMs is how long the oldest claimable task has waited; null without one.
	OldestWaitMs *int64 `json:"oldestWaitMs"`
	// Types are the types of those tasks.
	Types []QueueType `json:"types"`
	// Workers counts the queue's workers by status.
	Workers QueueWorkers `json:"workers"`
	// Created reports, when a queue is paused, that it was unknown before: its name may be mistyped.
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
