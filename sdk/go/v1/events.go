package v1

import "encoding/json"

// EventList is a page of GET /v1/events.
type EventList struct {
	// Events are ordered by time; those about one subject in the order in which they happened.
	Events []Event `json:"events"`
	// Next is the cursor of the next page, as after, even if there are no more events now.
	Next string `json:"next"`
	// More reports whether there may be more events now. A page reads at most 5,000 events, so with a selective filter it may be short or
	// empty although there are more; false: all stored events were read.
	More bool `json:"more"`
	// Gap reports that events between after and the first of these are no longer stored.
	Gap *EventGap `json:"gap,omitempty"`
}

// EventGap is a range of missing events: they are stored for a limited time and up to a limited number.
type EventGap struct {
	// From is when the last event before the gap happened, or the time that was requested.
	From Time `json:"from"`
	// To is when the first event after it happened.
	To Time `json:"to"`
	// Shards are those in which events are missing.
	Shards []int `json:"shards"`
}

// Event is one event. Fields that do not apply are absent.
type Event struct {
	// ID identifies the event: a repeated event has the same.
	ID string `json:"id"`
	// Type is the type of the event, such as task.zombie.
	Type string `json:"type"`
	// Time is when.
	Time Time `json:"time"`
	// TenantID and WorkspaceID are absent in events about the whole deployment.
	TenantID    string `json:"tenantId,omitempty"`
	WorkspaceID string `json:"workspaceId,omitempty"`
	// Subject is the task, worker, machine or other object that it is about.
	Subject string `json:"subject,omitempty"`
	// Attempt is the number of the task's attempt.
	Attempt int `json:"attempt,omitempty"`
	// RunID is the task's run.
	RunID string `json:"runId,omitempty"`
	// Queue is the task's or the worker's.
	Queue string `json:"queue,omitempty"`
	// TaskType is the task's type.
	TaskType string `json:"taskType,omitempty"`
	// WorkerID is the worker that has the attempt or had it last, or that the event is about.
	WorkerID string `json:"workerId,omitempty"`
	// MachineID is that worker's machine, or the machine that the event is about.
	MachineID string `json:"machineId,omitempty"`
	// Version is that worker's version.
	Version string `json:"version,omitempty"`
	// Cause is the reason of a verdict or an end, such as HEARTBEAT_TIMEOUT.
	Cause string `json:"cause,omitempty"`
	// By is who did it: the subject of a token, a worker, a sweeper or a replica.
	By string `json:"by,omitempty"`
	// Traceparent is the W3C trace context of the task's creation.
	Traceparent string `json:"traceparent,omitempty"`
	// Data is further data, such as a verdict's evidence.
	Data json.RawMessage `json:"data"`
}
