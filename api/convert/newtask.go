package convert

import (
	"bytes"
	"encoding/json"
	"time"

	"github.com/lubdub-io/lubdub/api/httpapi"
	v1 "github.com/lubdub-io/lubdub/sdk/go/v1"
	"github.com/lubdub-io/lubdub/tracker/model"
)

// TaskOf converts a request to the domain's type. The combination of its fields is still to be checked.
func TaskOf(body *v1.CreateTaskRequest, scope model.Scope) (model.NewTask, error) {
	n := model.NewTask{
		Scope: scope, TaskID: body.TaskID, RunID: body.RunID, Key: body.TaskKey, Asset: body.AssetID,
		Type: body.Type, Queue: body.Queue,
		Runtime: body.Runtime, WorkerLabels: body.WorkerLabels, WorkerID: body.WorkerID,
		Payload: Compact(body.Payload), Resources: Compact(body.Resources), Labels: body.Labels,
		Deadline:     body.Deadline.Time,
		NoRenewToken: body.RenewToken != nil && !*body.RenewToken,
	}
	var err error
	if n.RunAt, err = runAt(body); err != nil {
		return n, err
	}
	if n.Trace, err = ownTrace(body.Traceparent); err != nil {
		return n, err
	}
	if body.Placement != nil {
		if n.Placement = body.Placement.Strategy; n.Placement == "" {
			return n, httpapi.InvalidField("placement.strategy", "placement.strategy is missing; use leastLoaded, roundRobin or random")
		}
	}
	var d httpapi.Durations
	if delay := d.Delay("delayMs", body.DelayMs); delay != nil {
		n.Delay = *delay
	}
	n.StartTimeout = d.Positive("startTimeoutMs", body.StartTimeoutMs, time.Millisecond)
	n.RunTimeout = d.Positive("runTimeoutMs", body.RunTimeoutMs, time.Millisecond)
	n.HeartbeatInterval = d.Positive("heartbeatIntervalMs", body.HeartbeatIntervalMs, time.Millisecond)
	n.HeartbeatTimeout = d.Positive("heartbeatTimeoutMs", body.HeartbeatTimeoutMs, time.Millisecond)
	n.CancelGrace = d.Positive("cancelGracePeriodMs", body.CancelGracePeriodMs, time.Millisecond)
	n.TokenTTL = d.Positive("tokenTtlSeconds", body.TokenTTLSeconds, time.Second)
	n.Retry = retryPolicy(&d, body.Retry)
	return n, d.Err
}

// runAt returns the start time in a body, under one of its names.
func runAt(body *v1.CreateTaskRequest) (at time.Time, err error) {
	if at = body.RunAt.Time; at.IsZero() {
		at = body.NotBefore.Time
	} else if !body.NotBefore.IsZero() {
		return at, httpapi.InvalidField("notBefore", "notBefore is another name of runAt; send one of them")
	}
	if body.DelayMs != nil && !at.IsZero() {
		return at, httpapi.InvalidField("delayMs", "delayMs and runAt both say when the task may start; send one of them")
	}
	return at, nil
}

// ownTrace returns the trace context in a body.
func ownTrace(header string) (string, error) {
	trace, ok := model.ParseTraceparent(header)
	if header != "" && !ok {
		return "", httpapi.InvalidField("traceparent", "traceparent is not one of W3C Trace Context, such as "+
			"00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01; correct it, or omit it")
	}
	return trace, nil
}

// retryPolicy completes a policy with defaults.
func retryPolicy(d *httpapi.Durations, r *v1.RetryPolicy) *model.RetryPolicy {
	if r == nil {
		return nil
	}
	p := model.DefaultRetryPolicy
	if r.MaxAttempts != nil {
		p.MaxAttempts = *r.MaxAttempts
	}
	if r.MaxLosses != nil {
		p.MaxLosses = *r.MaxLosses
	}
	if r.Multiplier != nil {
		p.Multiplier = *r.Multiplier
	}
	p.InitialBackoff = d.OrDefault("retry.initialBackoffMs", r.InitialBackoffMs, time.Millisecond, p.InitialBackoff)
	p.MaxBackoff = d.OrDefault("retry.maxBackoffMs", r.MaxBackoffMs, time.Millisecond, max(p.MaxBackoff, p.InitialBackoff))
	return &p
}

// Compact returns valid JSON without white space, in a copy; absent and null are nil.
func Compact(raw json.RawMessage) json.RawMessage {
	if len(raw) == 0 || string(raw) == "null" {
		return nil
	}
	var buf bytes.Buffer
	buf.Grow(len(raw))
	if json.Compact(&buf, raw) != nil {
		return nil // raw is part of a valid body
	}
	return buf.Bytes()
}
