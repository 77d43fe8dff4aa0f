package v1

import "encoding/json"

// EventList is a page of GET /v1/events.
type EventList struct {
	// Events are in the order of their times, those about one subject in the order in which they happened.
	Events []Event `json:"events"`
	// Next is the cursor to go on with, as after, also where there is no more now.
	Next string `json:"next"`
	// More is whether there may be more to read now. A page looks at 5,000 events at most, so where a filter passes over many it may
	// be short, or empty, and there be more; false: all that is kept was looked at.
	More bool `json:"more"`
	// Gap tells that events between after and the first of these are not kept any more.
	Gap *EventGap `json:"gap,omitempty"`
}

// EventGap is what is missing, since events are kept for a time and up to a number only.
type EventGap struct {
	// From is when the last event before the gap happened, or the time that was asked for.
	From Time `json:"from"`
	// To is when the first event behind it happened.
	To Time `json:"to"`
	// Shards are those in which events are missing.
	Shards []int `json:"shards"`
}

// Event is one thing that has happened. Fields that do not apply are left out.
type Event struct {
	// ID names it for good: what is told twice has the same.
	ID string `json:"id"`
	// Type is what has happened, such as task.zombie.
	Type string `json:"type"`
	// Time is when.
	Time Time `json:"time"`
	// TenantID and WorkspaceID are absent in events about the whole deployment.
	TenantID    string `json:"tenantId,omitempty"`
	WorkspaceID string `json:"workspaceId,omitempty"`
	// Subject is the task, worker, machine or whatever else it is about.
	Subject string `json:"subject,omitempty"`
	// Attempt is the number of the task's attempt.
	Attempt int `json:"attempt,omitempty"`
	// RunID is the task's run.
	RunID string `json:"runId,omitempty"`
	// Queue is the task's or the worker's.
	Queue string `json:"queue,omitempty"`
	// TaskType is the task's type.
	TaskType string `json:"taskType,omitempty"`
	// WorkerID is the worker that has the attempt or had it last, or that it is about.
	WorkerID string `json:"workerId,omitempty"`
	// MachineID is that worker's machine, or the one that it is about.
	MachineID string `json:"machineId,omitempty"`
	// Version is that worker's.
	Version string `json:"version,omitempty"`
	// Cause is the reason of a verdict or an end, such as HEARTBEAT_TIMEOUT.
	Cause string `json:"cause,omitempty"`
	// By is who did it: the subject of a token, a worker, a sweeper or a replica.
	By string `json:"by,omitempty"`
	// Traceparent is the W3C trace context of the task's creation.
	Traceparent string `json:"traceparent,omitempty"`
	// Data is the rest, such as a verdict's evidence.
	Data json.RawMessage `json:"data"`
}
