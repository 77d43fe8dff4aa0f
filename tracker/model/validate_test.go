package model

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"
)

var validateNow = time.Date(2025, 1, 15, 10, 0, 0, 0, time.UTC)

func pushedTask() NewTask { return NewTask{Scope: Scope{Tenant: "acme", Workspace: "prod"}} }

func TestValidID(t *testing.T) {
	for _, id := range []string{"a", "A", "0", "task_01J.x-y", strings.Repeat("x", 128), "a..", "9_"} {
		if !ValidID(id) || !ValidID([]byte(id)) {
			t.Errorf("%q is refused", id)
		}
	}
	for _, id := range []string{"", "-a", "_a", ".a", "a b", "a/b", "a:b", "é", "a\x00", "a\n", strings.Repeat("x", 129), "a%2f", "#"} {
		if ValidID(id) {
			t.Errorf("%q is taken", id)
		}
	}
}

func TestRoundTimeout(t *testing.T) {
	for in, want := range map[int64]int64{
		1000: 1000, 1001: 1100, 1999: 2000, 9999: 10000, 10001: 11000, 90000: 90000, 90001: 91000, 99001: 100000, 123456: 130000,
		86400000: 86400000, 86000001: 86400000, 85999999: 86000000, 500: 1000,
	} {
		if got := RoundTimeout(time.Duration(in) * time.Millisecond).Milliseconds(); got != want {
			t.Errorf("%d became %d, want %d", in, got, want)
		}
	}
	distinct := map[time.Duration]bool{}
	for d := MinTimeout; d <= MaxTimeout; d += 7 * time.Millisecond {
		r := RoundTimeout(d)
		if r < d || r > MaxTimeout {
			t.Fatalf("%v became %v", d, r)
		}
		distinct[r] = true
	}
	if len(distinct) > 500 {
		t.Errorf("%d distinct timeouts, each a sorted set", len(distinct))
	}
}

func TestValidateFillsDefaults(t *testing.T) {
	n := pushedTask()
	if err := n.Validate(validateNow); err != nil {
		t.Fatal(err)
	}
	if n.HeartbeatInterval != DefaultHeartbeatInterval || n.HeartbeatTimeout != DefaultHeartbeatTimeout ||
		n.CancelGrace != DefaultCancelGrace {
		t.Errorf("got %+v", n)
	}
	q := pushedTask()
	q.Queue = "default"
	if err := q.Validate(validateNow); err != nil {
		t.Fatal(err)
	}
	if q.HeartbeatTimeout != 0 || q.HeartbeatInterval != DefaultHeartbeatInterval || q.Retry != nil {
		t.Errorf("a queue task without a timeout must live by its worker's beat: %+v", q)
	}
	q.HeartbeatTimeout = 60001 * time.Millisecond
	if err := q.Validate(validateNow); err != nil || q.HeartbeatTimeout != 61*time.Second {
		t.Errorf("got %v %v", q.HeartbeatTimeout, err)
	}
}

func TestValidateTwiceIsValidateOnce(t *testing.T) {
	n := pushedTask()
	n.HeartbeatInterval, n.HeartbeatTimeout = 45499*time.Millisecond, 90999*time.Millisecond
	if err := n.Validate(validateNow); err != nil {
		t.Fatal(err)
	}
	before := fmt.Sprint(n)
	if err := n.Validate(validateNow); err != nil || fmt.Sprint(n) != before {
		t.Errorf("got %v %v, want %v", n, err, before)
	}
}

func TestValidateRefuses(t *testing.T) {
	labels := func(n int, key string) map[string]string {
		m := map[string]string{}
		for i := range n {
			m[fmt.Sprintf("%s%d", key, i)] = "v"
		}
		return m
	}
	retry := func(change func(*RetryPolicy)) func(*NewTask) {
		return func(n *NewTask) {
			p := DefaultRetryPolicy
			change(&p)
			n.Queue, n.Retry = "q", &p
		}
	}
	for name, c := range map[string]struct {
		field  string
		code   Code
		change func(*NewTask)
	}{
		"no tenant":           {"tenantId", InvalidID, func(n *NewTask) { n.Scope.Tenant = "" }},
		"bad workspace":       {"workspaceId", InvalidID, func(n *NewTask) { n.Scope.Workspace = "*" }},
		"task id":             {"taskId", InvalidID, func(n *NewTask) { n.TaskID = "a/b" }},
		"run id":              {"runId", InvalidID, func(n *NewTask) { n.RunID = "-" }},
		"asset id":            {"assetId", InvalidID, func(n *NewTask) { n.Asset = "a b" }},
		"type":                {"type", InvalidID, func(n *NewTask) { n.Type = "a/b" }},
		"queue":               {"queue", InvalidID, func(n *NewTask) { n.Queue = "{x}" }},
		"runtime":             {"runtime", InvalidID, func(n *NewTask) { n.Queue, n.Runtime = "q", "a b" }},
		"worker id":           {"workerId", InvalidID, func(n *NewTask) { n.Queue, n.WorkerID = "q", "é" }},
		"long key":            {"taskKey", Invalid, func(n *NewTask) { n.Key = strings.Repeat("x", 257) }},
		"control byte in key": {"taskKey", Invalid, func(n *NewTask) { n.Key = "a\tb" }},
		"key not UTF-8":       {"taskKey", Invalid, func(n *NewTask) { n.Key = "\xff" }},

		"retry without queue":        {"retry", Invalid, func(n *NewTask) { n.Retry = &RetryPolicy{MaxAttempts: 1} }},
		"notBefore without queue":    {"runAt", Invalid, func(n *NewTask) { n.RunAt = validateNow }},
		"runtime without queue":      {"runtime", Invalid, func(n *NewTask) { n.Runtime = "go" }},
		"workerLabels without queue": {"workerLabels", Invalid, func(n *NewTask) { n.WorkerLabels = labels(1, "k") }},
		"workerId without queue":     {"workerId", Invalid, func(n *NewTask) { n.WorkerID = "w" }},
		"placement without queue":    {"placement", Invalid, func(n *NewTask) { n.Placement = "random" }},
		"unknown placement":          {"placement.strategy", Invalid, func(n *NewTask) { n.Queue, n.Placement = "q", "best" }},

		"many labels":       {"labels", Invalid, func(n *NewTask) { n.Labels = labels(65, "k") }},
		"label key":         {"labels", Invalid, func(n *NewTask) { n.Labels = map[string]string{"a=b": "c"} }},
		"empty label key":   {"labels", Invalid, func(n *NewTask) { n.Labels = map[string]string{"": "c"} }},
		"long label key":    {"labels", Invalid, func(n *NewTask) { n.Labels = labels(1, strings.Repeat("k", 128)) }},
		"long label value":  {"labels.k", Invalid, func(n *NewTask) { n.Labels = map[string]string{"k": strings.Repeat("x", 257)} }},
		"many workerLabels": {"workerLabels", Invalid, func(n *NewTask) { n.Queue, n.WorkerLabels = "q", labels(65, "k") }},
		"large payload": {"payload", Invalid, func(n *NewTask) {
			n.Payload = json.RawMessage(`"` + strings.Repeat("x", MaxPayloadBytes) +
				`"`)
		}},
		"payload no JSON":     {"payload", Invalid, func(n *NewTask) { n.Payload = json.RawMessage(`{`) }},
		"resources no object": {"resources", Invalid, func(n *NewTask) { n.Resources = json.RawMessage(`[]`) }},
		"large resources": {"resources", Invalid, func(n *NewTask) {
			n.Resources = json.RawMessage(`{"x":"` + strings.Repeat("x", MaxResourcesBytes) + `"}`)
		}},
		"long idempotency key": {"idempotencyKey", Invalid, func(n *NewTask) { n.IdempotencyKey = strings.Repeat("x", 256) }},

		"a fire's task id":         {"taskId", Invalid, func(n *NewTask) { n.TaskID = "fire_01J" }},
		"a fire's idempotency key": {"idempotencyKey", Invalid, func(n *NewTask) { n.IdempotencyKey = "schedule:s1:2026-01-15T10:00:00Z" }},

		"deadline now":    {"deadline", Invalid, func(n *NewTask) { n.Deadline = validateNow }},
		"deadline before": {"deadline", Invalid, func(n *NewTask) { n.Deadline = validateNow.Add(-time.Hour) }},
		"deadline far":    {"deadline", Invalid, func(n *NewTask) { n.Deadline = time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC) }},
		"notBefore at the deadline": {"runAt", Invalid, func(n *NewTask) {
			n.Queue, n.RunAt, n.Deadline = "q", validateNow.Add(time.Hour), validateNow.Add(time.Hour)
		}},

		"short heartbeat timeout": {"heartbeatTimeoutMs", Invalid,
			func(n *NewTask) { n.HeartbeatTimeout, n.HeartbeatInterval = 999*time.Millisecond, time.Millisecond }},
		"long heartbeat timeout":  {"heartbeatTimeoutMs", Invalid, func(n *NewTask) { n.HeartbeatTimeout = MaxTimeout + time.Millisecond }},
		"less than two intervals": {"heartbeatTimeoutMs", Invalid, func(n *NewTask) { n.HeartbeatTimeout = 59999 * time.Millisecond }},
		"less before rounding": {"heartbeatTimeoutMs", Invalid, func(n *NewTask) {
			n.HeartbeatTimeout, n.HeartbeatInterval = 90999*time.Millisecond, 45500*time.Millisecond
		}},
		"the default is too short": {"heartbeatTimeoutMs", Invalid, func(n *NewTask) { n.HeartbeatInterval = 45001 * time.Millisecond }},
		"of a queue task":          {"heartbeatTimeoutMs", Invalid, func(n *NewTask) { n.Queue, n.HeartbeatTimeout = "q", 59*time.Second }},
		"negative interval":        {"heartbeatIntervalMs", Invalid, func(n *NewTask) { n.HeartbeatInterval = -time.Second }},
		"long interval":            {"heartbeatIntervalMs", Invalid, func(n *NewTask) { n.HeartbeatInterval = MaxTimeout + 1 }},
		"short start timeout":      {"startTimeoutMs", Invalid, func(n *NewTask) { n.StartTimeout = 999 * time.Millisecond }},
		"long run timeout":         {"runTimeoutMs", Invalid, func(n *NewTask) { n.RunTimeout = MaxTimeout + time.Millisecond }},
		"negative grace":           {"cancelGracePeriodMs", Invalid, func(n *NewTask) { n.CancelGrace = -1 }},

		"long token":  {"tokenTtlSeconds", Invalid, func(n *NewTask) { n.TokenTTL = MaxTokenTTL + time.Second }},
		"short token": {"tokenTtlSeconds", Invalid, func(n *NewTask) { n.TokenTTL = time.Millisecond }},
		"token ends first": {"renewToken", Invalid, func(n *NewTask) {
			n.NoRenewToken, n.TokenTTL, n.Deadline = true, time.Hour, validateNow.Add(time.Hour+1)
		}},
		"no token could cover it": {"renewToken", Invalid, func(n *NewTask) { n.NoRenewToken, n.Deadline = true, validateNow.Add(MaxTokenTTL) }},

		"no attempts":      {"retry.maxAttempts", Invalid, retry(func(p *RetryPolicy) { p.MaxAttempts = 0 })},
		"many attempts":    {"retry.maxAttempts", Invalid, retry(func(p *RetryPolicy) { p.MaxAttempts = MaxRetryAttempts + 1 })},
		"negative losses":  {"retry.maxLosses", Invalid, retry(func(p *RetryPolicy) { p.MaxLosses = -1 })},
		"negative backoff": {"retry.initialBackoffMs", Invalid, retry(func(p *RetryPolicy) { p.InitialBackoff = -1 })},
		"small multiplier": {"retry.multiplier", Invalid, retry(func(p *RetryPolicy) { p.Multiplier = 0.9 })},
		"no multiplier":    {"retry.multiplier", Invalid, retry(func(p *RetryPolicy) { p.Multiplier = math.NaN() })},
		"large multiplier": {"retry.multiplier", Invalid, retry(func(p *RetryPolicy) { p.Multiplier = math.Inf(1) })},
		"long backoff":     {"retry.maxBackoffMs", Invalid, retry(func(p *RetryPolicy) { p.MaxBackoff = MaxTimeout + 1 })},
		"backoff turned round": {"retry.maxBackoffMs", Invalid,
			retry(func(p *RetryPolicy) { p.InitialBackoff, p.MaxBackoff = time.Minute, time.Second })},
	} {
		t.Run(name, func(t *testing.T) {
			n := pushedTask()
			c.change(&n)
			err := n.Validate(validateNow)
			var e *Error
			var f *FieldError
			if !errors.As(err, &e) || !errors.As(err, &f) || e.Code != c.code || f.Field != c.field {
				t.Fatalf("got %v, want %s about %s", err, c.code, c.field)
			}
			if !strings.HasPrefix(e.Message, f.Field) || len(e.Message) > 400 {
				t.Errorf("the message does not name the field, or is too long: %s", e.Message)
			}
		})
	}
}

func TestValidateTakes(t *testing.T) {
	for name, change := range map[string]func(*NewTask){
		"everything about a queue task": func(n *NewTask) {
			p := DefaultRetryPolicy
			n.Queue, n.Retry, n.Runtime, n.Placement = "q", &p, "python3.11", "roundRobin"
			n.WorkerLabels = map[string]string{"k8s.io/zone": "a b"}
			n.RunAt, n.Deadline = validateNow.Add(-time.Hour), validateNow.Add(time.Hour)
		},
		"the bounds": func(n *NewTask) {
			n.HeartbeatTimeout, n.HeartbeatInterval, n.StartTimeout, n.RunTimeout = MinTimeout, MinTimeout/2, MinTimeout, MaxTimeout
		},
		"the upper bounds": func(n *NewTask) {
			n.HeartbeatTimeout, n.HeartbeatInterval, n.TokenTTL = MaxTimeout, MaxTimeout/2, MaxTokenTTL
		},
		"exactly twice": func(n *NewTask) { n.HeartbeatTimeout = 60 * time.Second },
		"a token that covers the deadline": func(n *NewTask) {
			n.NoRenewToken, n.TokenTTL, n.Deadline = true, time.Hour,
				validateNow.Add(time.Hour)
		},
		"a token as long as it must be": func(n *NewTask) { n.NoRenewToken, n.Deadline = true, validateNow.Add(MaxTokenTTL-time.Second) },
		"a far deadline with renewal":   func(n *NewTask) { n.Deadline = validateNow.Add(1000 * time.Hour) },
		"no renewal without a deadline": func(n *NewTask) { n.NoRenewToken = true },
		"a short grace":                 func(n *NewTask) { n.CancelGrace = time.Millisecond },
		"backoff zero":                  func(n *NewTask) { n.Queue, n.Retry = "q", &RetryPolicy{MaxAttempts: 1, Multiplier: 1} },
		"64 labels, an empty value":     func(n *NewTask) { n.Labels = map[string]string{"a": "", "team/x": "é"} },
	} {
		n := pushedTask()
		change(&n)
		if err := n.Validate(validateNow); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}
