package client

import (
	"time"

	v1 "github.com/lubdub-io/lubdub/sdk/go/v1"
)

// Metrics are functions that are called with what happens, for a metrics library. Any of them may be nil. They are called from many
// goroutines and must neither block nor panic. Package lubdubprom has them for Prometheus.
type Metrics struct {
	// Beat is called for a heartbeat request: ok, refused or unanswered; for how many attempts, and its duration.
	Beat func(result string, attempts int, took time.Duration)
	// Refused is called when a heartbeat or completion was refused with a code.
	Refused func(code string)
	// LeaseLeft is called with each accepted heartbeat, with the share of the lease that was left: 1 is all, 0 nothing.
	LeaseLeft func(ratio float64)
	// Completed is called when a completion was answered.
	Completed func(outcome v1.Outcome)
	// Claimed is called when a claim was answered or failed: ok, refused or unanswered; with how many tasks.
	Claimed func(result string, tasks int)
	// Running is called with the number of attempts that a worker runs.
	Running func(n int)
	// Ended is called when an attempt that a worker ran is over.
	Ended func(AttemptEnd)
}

// Outcomes of an AttemptEnd, in addition to those of completions.
const (
	OutcomeLost     v1.Outcome = "LOST"     // the attempt was not the worker's any more
	OutcomeReturned v1.Outcome = "RETURNED" // it was given back, since the worker stopped
)

// AttemptEnd is the end of an attempt.
type AttemptEnd struct {
	Type    string // of the task; empty if it has none
	Queue   string
	Attempt int // from 1
	Outcome v1.Outcome
	// WillRetry reports that another attempt follows a failure.
	WillRetry bool
	// Duration is the time from the start of the handler until the attempt ended.
	Duration time.Duration
	// QueueWait is how long the task could be claimed before it was; nil: unknown, since the claim was repeated.
	QueueWait *time.Duration
	// FirstHeartbeat is the time from the start of the handler until a server first accepted a heartbeat; nil: none did.
	FirstHeartbeat *time.Duration
}

// filled returns m with a function in each field.
func (m Metrics) filled() Metrics {
	if m.Beat == nil {
		m.Beat = func(string, int, time.Duration) {}
	}
	if m.Refused == nil {
		m.Refused = func(string) {}
	}
	if m.LeaseLeft == nil {
		m.LeaseLeft = func(float64) {}
	}
	if m.Completed == nil {
		m.Completed = func(v1.Outcome) {}
	}
	if m.Claimed == nil {
		m.Claimed = func(string, int) {}
	}
	if m.Running == nil {
		m.Running = func(int) {}
	}
	if m.Ended == nil {
		m.Ended = func(AttemptEnd) {}
	}
	return m
}
