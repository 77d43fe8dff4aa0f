package client

import v1 "github.com/lubdub-io/lubdub/sdk/go/v1"

// TaskQuery filters tasks; zero fields are ignored.
type TaskQuery struct {
	State          []v1.State        `url:"state"`
	RunID          string            `url:"runId"`
	WorkerID       string            `url:"workerId"`
	MachineID      string            `url:"machineId"`
	ScheduleID     string            `url:"scheduleId"`
	Queue          string            `url:"queue"`
	Type           string            `url:"type"`
	Labels         map[string]string `url:"label"`
	Liveness       v1.Liveness       `url:"liveness"`
	Claimable      *bool             `url:"claimable"` // QUEUED, and could be claimed now or waits for its backoff
	Reason         string            `url:"reason"`
	FinishedAfter  v1.Time           `url:"finishedAfter"`
	FinishedBefore v1.Time           `url:"finishedBefore"`
	Order          string            `url:"order"`    // asc (the default) or desc
	PageSize       int               `url:"pageSize"` // 1 to 100; 0: 100
	PageToken      string            `url:"pageToken"`
}

// WorkerQuery filters workers; zero fields are ignored.
type WorkerQuery struct {
	Queue       string            `url:"queue"`
	Status      v1.WorkerStatus   `url:"status"`
	Type        string            `url:"type"`
	Runtime     string            `url:"runtime"`
	MachineID   string            `url:"machineId"`
	Name        string            `url:"name"`
	Version     string            `url:"version"`
	Labels      map[string]string `url:"label"`
	Liveness    v1.Liveness       `url:"liveness"`
	Schedulable *bool             `url:"schedulable"`
	Flapping    *bool             `url:"flapping"` // went silent 3 times or more within 24 h
	Sort        string            `url:"sort"`     // lastHeartbeat, or empty: by id
	Order       string            `url:"order"`    // asc (the default) or desc
	PageSize    int               `url:"pageSize"` // 1 to 100; 0: 100
	PageToken   string            `url:"pageToken"`
}

// MachineQuery filters machines.
type MachineQuery struct {
	Status    v1.WorkerStatus `url:"status"`
	Order     string          `url:"order"`
	PageSize  int             `url:"pageSize"` // 1 to 100; 0: 100
	PageToken string          `url:"pageToken"`
}

// PageQuery is the query of lists without filters.
type PageQuery struct {
	Order     string `url:"order"`    // asc (the default) or desc
	PageSize  int    `url:"pageSize"` // 1 to 100; 0: 100
	PageToken string `url:"pageToken"`
}

// WebhookQuery is the query of lists of webhooks and deliveries.
type WebhookQuery struct {
	Status    v1.DeliveryStatus `url:"status"`   // of deliveries only
	Order     string            `url:"order"`    // of webhooks, asc (the default) or desc; of deliveries, desc (the default) or asc
	PageSize  int               `url:"pageSize"` // 1 to 100; 0: 100
	PageToken string            `url:"pageToken"`
}

// EventQuery filters events; zero fields are ignored.
type EventQuery struct {
	Types     []string `url:"type"` // such as task.zombie, or families such as task.*
	Subject   string   `url:"subject"`
	RunID     string   `url:"runId"`
	Queue     string   `url:"queue"`
	TaskType  string   `url:"taskType"`
	WorkerID  string   `url:"workerId"`
	MachineID string   `url:"machineId"`
	// After is where to start, exclusive: a cursor, now, or a time in RFC 3339. Empty: pages start with the oldest or newest stored event,
	// a stream now.
	After    string `url:"after"`
	Order    string `url:"order"`    // of pages: asc (the default) or desc
	PageSize int    `url:"pageSize"` // of pages: 1 to 100; 0: 100
}

// StatsQuery sets how much of the series to return.
type StatsQuery struct {
	Steps int `url:"steps"` // the number of newest steps; 0: all of the last hour
}

// VerdictQuery filters and groups verdicts.
type VerdictQuery struct {
	By      []string `url:"by"`      // machineId, version, type, queue, reason, workerId, label:<name>; none: one group of all
	SinceMs int64    `url:"sinceMs"` // how far back; 0: an hour
	Reason  string   `url:"reason"`
	Queue   string   `url:"queue"`
	Type    string   `url:"type"`
}
