package model

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"
	"unicode/utf8"
)

// These are the bounds for creating a task, in addition to those in task.go.
const (
	MaxIDBytes        = 128
	MaxKeyBytes       = 256 // of taskKey
	MaxLabels         = 64
	MaxLabelKeyBytes  = 128
	MaxLabelValBytes  = 256
	MaxPayloadBytes   = 1 << 20
	MaxResourcesBytes = 64 << 10
	MaxReasonBytes    = 512 // of a cancellation's reason
	MaxPhaseBytes     = 256 // of cancelledDuringPhase
	MaxRetryAttempts  = 1000
	MaxMultiplier     = 100

	maxIdempotencyKeyBytes = 255
)

// These prefixes are reserved for the fires of schedules, so that no request can use the name of a fire.
const (
	FireTaskPrefix = "fire_"     // of their task IDs
	FireKeyPrefix  = "schedule:" // of their idempotency keys
)

// FieldError is the cause of an Invalid or InvalidID error: the field that it is about.
type FieldError struct {
	Field string // as in the API, for example retry.maxAttempts
}

func (e *FieldError) Error() string { return "field " + e.Field }

// Invalidf returns the error for a field. Its message begins with the field's name.
func Invalidf(field, format string, args ...any) error {
	return &Error{Code: Invalid, Op: "validate", Message: field + " " + fmt.Sprintf(format, args...), Cause: &FieldError{field}}
}

// CheckText returns an error for text that is too long, is not UTF-8, or has control characters, which would disturb lists and logs.
func CheckText(field, s string, limit int) error {
	switch {
	case len(s) > limit:
		return Invalidf(field, "is %d bytes long; use at most %d", len(s), limit)
	case !utf8.ValidString(s):
		return Invalidf(field, "is not valid UTF-8")
	case strings.ContainsFunc(s, func(r rune) bool { return r < 0x20 || r == 0x7f }):
		return Invalidf(field, "has control characters in it; leave them out")
	}
	return nil
}

// Clip returns the part of a client's input that a message may show.
func Clip(s string) string {
	if len(s) > 64 {
		return s[:64]
	}
	return s
}

// Millis returns a duration in whole ms, as it is stored and sent.
func Millis(d time.Duration) int64 { return d.Milliseconds() }

// RoundTimeout rounds a timeout up to two significant digits of milliseconds, between MinTimeout and MaxTimeout. Each timeout in use has
// its own sorted set, so there must be few.
func RoundTimeout(d time.Duration) time.Duration {
	ms := (d + time.Millisecond - 1) / time.Millisecond
	unit := time.Duration(1)
	for ms/unit >= 100 {
		unit *= 10
	}
	ms = (ms + unit - 1) / unit * unit
	return min(max(ms*time.Millisecond, MinTimeout), MaxTimeout)
}

// Validate checks everything about a new task that needs no store, and sets defaults: the intervals, and the rounded timeouts. With an
// idempotency key, Create checks a deadline that has passed, since a repeat gets the first answer. Validate returns an *Error with the
// code Invalid or InvalidID, whose message names the field as the API does.
func (n *NewTask) Validate(now time.Time) error {
	for _, check := range []func(time.Time) error{
		n.checkIDs, n.checkQueueOnly, n.checkData, n.checkTimes, n.checkTimeouts, n.checkToken, n.checkRetry,
	} {
		if err := check(now); err != nil {
			return err
		}
	}
	return nil
}

func (n *NewTask) checkIDs(time.Time) error {
	for _, id := range []struct {
		field, value string
		required     bool
	}{
		{"tenantId", n.Scope.Tenant, true},
		{"workspaceId", n.Scope.Workspace, true},
		{"taskId", n.TaskID, false},
		{"runId", n.RunID, false},
		{"assetId", n.Asset, false},
		{"type", n.Type, false},
		{"queue", n.Queue, false},
		{"runtime", n.Runtime, false},
		{"workerId", n.WorkerID, false},
	} {
		if id.value == "" && !id.required {
			continue
		}
		if err := CheckID(id.field, id.value); err != nil {
			return err
		}
	}
	if strings.HasPrefix(n.TaskID, FireTaskPrefix) {
		return Invalidf("taskId", "begins with %s, which is reserved for the tasks that schedules create; choose another id, "+
			"or omit it and Lubdub generates one", FireTaskPrefix)
	}
	return CheckText("taskKey", n.Key, MaxKeyBytes)
}

func (n *NewTask) checkQueueOnly(time.Time) error {
	if n.Queue != "" {
		if n.Placement != "" && !slices.Contains(Placements, n.Placement) {
			return Invalidf("placement.strategy", "is %q; use one of %s", n.Placement, strings.Join(Placements, ", "))
		}
		if n.Placement != "" && n.WorkerID != "" {
			return Invalidf("workerId", "names a worker and placement asks for one to be chosen; leave one of them out")
		}
		return nil
	}
	for _, f := range []struct {
		field string
		set   bool
	}{
		{"retry", n.Retry != nil},
		{"runAt", !n.RunAt.IsZero()},
		{"delayMs", n.Delay != 0},
		{"runtime", n.Runtime != ""},
		{"workerLabels", len(n.WorkerLabels) > 0},
		{"workerId", n.WorkerID != ""},
		{"placement", n.Placement != ""},
	} {
		if f.set {
			return Invalidf(f.field, "needs a queue; without one the task is dispatched at once and Lubdub chooses no worker for it. "+
				"Name a queue, or leave %s out", f.field)
		}
	}
	return nil
}

func (n *NewTask) checkData(time.Time) error {
	if err := CheckLabels("labels", n.Labels); err != nil {
		return err
	}
	if err := CheckLabels("workerLabels", n.WorkerLabels); err != nil {
		return err
	}
	if len(n.Payload) > MaxPayloadBytes {
		return Invalidf("payload", "is %d bytes long; use at most %d, or send a reference to it", len(n.Payload), MaxPayloadBytes)
	}
	if len(n.Payload) > 0 && !json.Valid(n.Payload) {
		return Invalidf("payload", "is not valid JSON")
	}
	if err := CheckDepth("payload", n.Payload); err != nil {
		return err
	}
	if len(n.Resources) > MaxResourcesBytes {
		return Invalidf("resources", "is %d bytes long; use at most %d", len(n.Resources), MaxResourcesBytes)
	}
	if len(n.Resources) > 0 && (n.Resources[0] != '{' || !json.Valid(n.Resources)) {
		return Invalidf("resources", "is not a JSON object")
	}
	if err := CheckDepth("resources", n.Resources); err != nil {
		return err
	}
	if strings.HasPrefix(n.IdempotencyKey, FireKeyPrefix) {
		return Invalidf("idempotencyKey", "begins with %s, which is reserved for the tasks that schedules create; choose another key",
			FireKeyPrefix)
	}
	if len(n.IdempotencyKey) > maxIdempotencyKeyBytes {
		return Invalidf("idempotencyKey", "is %d characters long; use at most %d", len(n.IdempotencyKey), maxIdempotencyKeyBytes)
	}
	return nil
}

// lastTime is the last time that RFC 3339 can represent.
var lastTime = time.Date(9999, 12, 31, 23, 59, 59, 0, time.UTC)

func (n *NewTask) checkTimes(now time.Time) error {
	n.AdmissionErr = nil
	if !n.Deadline.IsZero() && !n.Deadline.After(now) {
		n.AdmissionErr = Invalidf("deadline", "is in the past (the server has %s); use a later time", now.UTC().Format(time.RFC3339))
	}
	if n.Deadline.After(lastTime) {
		return Invalidf("deadline", "is after the year 9999")
	}
	if n.RunAt.After(lastTime) {
		return Invalidf("runAt", "is after the year 9999")
	}
	if n.Delay < 0 || n.Delay > MaxDelay {
		return Invalidf("delayMs", "is %d; use at most %d, which is 366 days, or runAt", n.Delay.Milliseconds(), MaxDelay.Milliseconds())
	}
	if !n.RunAt.IsZero() && !n.Deadline.IsZero() && !n.RunAt.Before(n.Deadline) {
		return Invalidf("runAt", "is not before the deadline, so the task could never run")
	}
	if n.Delay != 0 && !n.Deadline.IsZero() && !now.Add(n.Delay).Before(n.Deadline) && n.AdmissionErr == nil {
		n.AdmissionErr = Invalidf("delayMs", "ends at the deadline or later, so the task could never run; use a shorter one, or a later deadline")
	}
	if n.IdempotencyKey == "" {
		return n.AdmissionErr
	}
	return nil
}

func (n *NewTask) checkTimeouts(time.Time) error {
	for _, t := range []struct {
		field    string
		value    time.Duration
		min, max time.Duration
	}{
		{"startTimeoutMs", n.StartTimeout, MinTimeout, MaxTimeout},
		{"runTimeoutMs", n.RunTimeout, MinTimeout, MaxTimeout},
		{"heartbeatTimeoutMs", n.HeartbeatTimeout, MinTimeout, MaxTimeout},
		{"heartbeatIntervalMs", n.HeartbeatInterval, time.Millisecond, MaxTimeout},
		{"cancelGracePeriodMs", n.CancelGrace, time.Millisecond, MaxTimeout},
	} {
		if t.value != 0 && (t.value < t.min || t.value > t.max) {
			return Invalidf(t.field, "is %d; use %d to %d", t.value.Milliseconds(), t.min.Milliseconds(), t.max.Milliseconds())
		}
	}
	for _, d := range []*time.Duration{&n.StartTimeout, &n.RunTimeout} {
		if *d != 0 {
			*d = RoundTimeout(*d)
		}
	}
	if n.CancelGrace == 0 {
		n.CancelGrace = DefaultCancelGrace
	}
	if n.HeartbeatInterval == 0 {
		n.HeartbeatInterval = DefaultHeartbeatInterval
	}
	if n.HeartbeatTimeout == 0 {
		if n.Queue != "" {
			return nil // its worker's beats keep it alive
		}
		n.HeartbeatTimeout = DefaultHeartbeatTimeout
	}
	// Check before rounding: the requested values must be valid.
	if n.HeartbeatTimeout < 2*n.HeartbeatInterval {
		return Invalidf("heartbeatTimeoutMs",
			"is %d, less than twice heartbeatIntervalMs (%d), so one lost beat would look like a death; use at least %d, or a shorter interval",
			n.HeartbeatTimeout.Milliseconds(), n.HeartbeatInterval.Milliseconds(), 2*n.HeartbeatInterval.Milliseconds())
	}
	n.HeartbeatTimeout = RoundTimeout(n.HeartbeatTimeout)
	return nil
}

func (n *NewTask) checkToken(now time.Time) error {
	if n.TokenTTL != 0 && (n.TokenTTL < time.Second || n.TokenTTL > MaxTokenTTL) {
		return Invalidf("tokenTtlSeconds", "is %d; use 1 to %d", int64(n.TokenTTL.Seconds()), int64(MaxTokenTTL.Seconds()))
	}
	if !n.NoRenewToken || n.Deadline.IsZero() {
		return nil
	}
	// A token's end is in whole seconds and never later than MaxTokenTTL, so at that limit up to a second may be missing.
	life := n.TokenTTL
	if life == 0 || life == MaxTokenTTL {
		life = MaxTokenTTL - time.Second
	}
	if n.Deadline.After(now.Add(life)) {
		return Invalidf("renewToken", "is false, but the token would end before the deadline; leave renewToken out, "+
			"give a longer tokenTtlSeconds (at most %d) or an earlier deadline", int64(MaxTokenTTL.Seconds()))
	}
	return nil
}

func (n *NewTask) checkRetry(time.Time) error {
	r := n.Retry
	if r == nil {
		return nil
	}
	switch {
	case r.MaxAttempts < 1 || r.MaxAttempts > MaxRetryAttempts:
		return Invalidf("retry.maxAttempts", "is %d; use 1 to %d", r.MaxAttempts, MaxRetryAttempts)
	case r.MaxLosses < 0 || r.MaxLosses > MaxRetryAttempts:
		return Invalidf("retry.maxLosses", "is %d; use 0 to %d", r.MaxLosses, MaxRetryAttempts)
	case r.InitialBackoff < 0 || r.InitialBackoff > MaxTimeout:
		return Invalidf("retry.initialBackoffMs", "is %d; use 0 to %d", r.InitialBackoff.Milliseconds(), MaxTimeout.Milliseconds())
	case math.IsNaN(r.Multiplier) || r.Multiplier < 1 || r.Multiplier > MaxMultiplier:
		return Invalidf("retry.multiplier", "is %v; use 1 to %d", r.Multiplier, MaxMultiplier)
	case r.MaxBackoff < 0 || r.MaxBackoff > MaxTimeout:
		return Invalidf("retry.maxBackoffMs", "is %d; use 0 to %d", r.MaxBackoff.Milliseconds(), MaxTimeout.Milliseconds())
	case r.MaxBackoff < r.InitialBackoff:
		return Invalidf("retry.maxBackoffMs", "is %d, less than retry.initialBackoffMs (%d); use at least that",
			r.MaxBackoff.Milliseconds(), r.InitialBackoff.Milliseconds())
	}
	return nil
}
