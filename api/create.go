package api

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"time"

	"github.com/valyala/fasthttp"

	v1 "github.com/lubdub-io/lubdub/sdk/go/v1"
	"github.com/lubdub-io/lubdub/tracker/model"
)

const headerIdempotencyKey = "Idempotency-Key"

// createTask answers POST /v1/tasks.
func (req *request) createTask() (int, any, error) {
	var body v1.CreateTaskRequest
	if err := req.strict(&body); err != nil {
		return 0, nil, err
	}
	key, err := req.idempotencyKey()
	if err != nil {
		return 0, nil, err
	}
	n, err := req.newTask(&body, key, headerIdempotencyKey)
	if err != nil {
		return 0, nil, err
	}
	n.Trace = cmp.Or(n.Trace, req.traceHeader())
	made, err := req.s.services.Tasks.Create(req.context(), n)
	if err != nil {
		return 0, nil, req.selectionRefusal(err)
	}
	answer, err := req.s.created(made)
	return fasthttp.StatusCreated, answer, err
}

// idempotencyKey returns the header, empty when absent.
func (req *request) idempotencyKey() (string, error) {
	keys := req.ctx.Request.Header.PeekAll(headerIdempotencyKey)
	switch len(keys) {
	case 0:
		return "", nil
	case 1:
		key := string(keys[0])
		return key, checkIdempotencyKey(headerIdempotencyKey, key)
	}
	return "", invalidField(headerIdempotencyKey, "There are two Idempotency-Key headers; send one")
}

// traceHeader returns the trace context that tasks belong to which name none; empty: none. A header that is wrong, or that came
// twice, is ignored, as W3C has it: the caller's tracing must not fail its work.
func (req *request) traceHeader() string {
	headers := req.ctx.Request.Header.PeekAll("Traceparent")
	if len(headers) != 1 {
		return ""
	}
	trace, _ := model.ParseTraceparent(string(headers[0]))
	return trace
}

// ownTrace returns the one that a body names.
func ownTrace(said string) (string, error) {
	trace, ok := model.ParseTraceparent(said)
	if said != "" && !ok {
		return "", invalidField("traceparent", "traceparent is not one of W3C Trace Context, such as "+
			"00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01; correct it, or leave it out")
	}
	return trace, nil
}

func checkIdempotencyKey(field, key string) error {
	ok := len(key) >= 1 && len(key) <= 255
	for i := 0; ok && i < len(key); i++ {
		ok = key[i] >= ' ' && key[i] <= '~'
	}
	if !ok {
		return invalidField(field, field+" must be 1 to 255 printable ASCII characters")
	}
	return nil
}

// newTask turns a request into what the domain takes, checked.
func (req *request) newTask(body *v1.CreateTaskRequest, key, keyField string) (model.NewTask, error) {
	scope, err := req.scope(body.TenantID, body.WorkspaceID)
	if err != nil {
		return model.NewTask{}, err
	}
	n, err := taskOf(body, scope)
	if err != nil {
		return n, err
	}
	if key != "" {
		n.IdempotencyKey = key
		if n.IdempotencyHash, err = requestHash(body, scope); err != nil {
			return n, err
		}
	}
	if err := n.Validate(req.now); err != nil {
		return n, fieldNamed(err, "idempotencyKey", keyField)
	}
	return n, nil
}

// taskOf turns a request into what the domain takes. What it says together is still to be checked.
func taskOf(body *v1.CreateTaskRequest, scope model.Scope) (model.NewTask, error) {
	n := model.NewTask{
		Scope: scope, TaskID: body.TaskID, RunID: body.RunID, Key: body.TaskKey, Asset: body.AssetID,
		Type: body.Type, Queue: body.Queue,
		Runtime: body.Runtime, WorkerLabels: body.WorkerLabels, WorkerID: body.WorkerID,
		Payload: compact(body.Payload), Resources: compact(body.Resources), Labels: body.Labels,
		NotBefore: body.NotBefore.Time, Deadline: body.Deadline.Time,
		NoRenewToken: body.RenewToken != nil && !*body.RenewToken,
	}
	var err error
	if n.Trace, err = ownTrace(body.Traceparent); err != nil {
		return n, err
	}
	if body.Placement != nil {
		if n.Placement = body.Placement.Strategy; n.Placement == "" {
			return n, invalidField("placement.strategy", "placement.strategy is missing; use leastLoaded, roundRobin or random")
		}
	}
	var d durations
	n.StartTimeout = d.positive("startTimeoutMs", body.StartTimeoutMs, time.Millisecond)
	n.RunTimeout = d.positive("runTimeoutMs", body.RunTimeoutMs, time.Millisecond)
	n.HeartbeatInterval = d.positive("heartbeatIntervalMs", body.HeartbeatIntervalMs, time.Millisecond)
	n.HeartbeatTimeout = d.positive("heartbeatTimeoutMs", body.HeartbeatTimeoutMs, time.Millisecond)
	n.CancelGrace = d.positive("cancelGracePeriodMs", body.CancelGracePeriodMs, time.Millisecond)
	n.TokenTTL = d.positive("tokenTtlSeconds", body.TokenTTLSeconds, time.Second)
	n.Retry = d.retry(body.Retry)
	return n, d.err
}

// fieldNamed has an error about the key name the field or header that it came from.
func fieldNamed(err error, from, to string) error {
	r := refusalOf(opCreate, err)
	if r.body.Field == from {
		r.body.Field = to
	}
	return r
}

// durations reads numbers of milliseconds or seconds and keeps the first refusal. In a request every one must
// be said positive: zero means "not said" inside.
type durations struct{ err error }

// longest is more than every bound of the domain and far from overflowing.
const longest = 1 << 40

func (d *durations) positive(field string, v *int64, unit time.Duration) time.Duration {
	if v != nil && *v == 0 {
		d.refuse(field, *v, "must be positive; leave it out for the default")
		return 0
	}
	return d.some(field, v, unit, 0)
}

func (d *durations) some(field string, v *int64, unit, absent time.Duration) time.Duration {
	if v == nil {
		return absent
	}
	most := longest / int64(unit/time.Millisecond)
	switch {
	case *v < 0:
		d.refuse(field, *v, "must not be negative")
		return 0
	case *v > most:
		d.refuse(field, *v, fmt.Sprintf("must be at most %d", most))
		return 0
	}
	return time.Duration(*v) * unit
}

func (d *durations) refuse(field string, v int64, why string) {
	if d.err == nil {
		d.err = invalidField(field, fmt.Sprintf("%s is %d; it %s", field, v, why))
	}
}

// retry fills in what a policy leaves out from the default.
func (d *durations) retry(r *v1.RetryPolicy) *model.RetryPolicy {
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
	p.InitialBackoff = d.some("retry.initialBackoffMs", r.InitialBackoffMs, time.Millisecond, p.InitialBackoff)
	p.MaxBackoff = d.some("retry.maxBackoffMs", r.MaxBackoffMs, time.Millisecond, max(p.MaxBackoff, p.InitialBackoff))
	return &p
}

// requestHash is the same for requests that mean the same: white space, the order of fields and the spelling
// of times do not count.
func requestHash(body *v1.CreateTaskRequest, scope model.Scope) (string, error) {
	r := *body
	r.TenantID, r.WorkspaceID = scope.Tenant, scope.Workspace
	r.Traceparent = "" // each try may be a span of its own
	for _, raw := range []*json.RawMessage{&r.Payload, &r.Resources} {
		if len(*raw) == 0 {
			continue
		}
		dec := json.NewDecoder(bytes.NewReader(*raw))
		dec.UseNumber() // large numbers stay apart
		var v any
		if err := dec.Decode(&v); err != nil {
			return "", err
		}
		sorted, err := json.Marshal(v)
		if err != nil {
			return "", err
		}
		*raw = sorted
	}
	return hashOf(r)
}

// hashOf returns the hash that stands for a value in the store.
func hashOf(v any) (string, error) {
	b, err := json.Marshal(v)
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:]), nil
}

// created returns the body for a created task or attempt: the envelope of what was dispatched, else the task
// that waits.
func (s *Server) created(made *model.Created) (any, error) {
	if made.Envelope == nil {
		return taskView(made.Task, true), nil
	}
	return s.envelope(made.Envelope)
}
