package api

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	v1 "github.com/lubdub-io/lubdub/sdk/go/v1"
	"github.com/lubdub-io/lubdub/tracker/beats"
	"github.com/lubdub-io/lubdub/tracker/model"
)

// Every code of the domain has its row.
func TestDomainErrorsBecomeTheirStatus(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		err    error
		status int
		code   string
		check  func(*testing.T, *v1.Error, http.Header)
	}{
		"invalid": {&model.Error{Code: model.Invalid, Message: "x is wrong", Cause: &model.FieldError{Field: "x"}}, 400,
			"invalid_request", wantField("x")},
		"invalid id": {&model.Error{Code: model.InvalidID, Cause: &model.FieldError{Field: "taskId"}, Message: "m"}, 400, "invalid_id",
			wantField("taskId")},
		"no task":     {&model.Error{Code: model.NotFound}, 404, "task_not_found", nil},
		"no run":      {&model.Error{Code: model.RunNotFound}, 404, "run_not_found", nil},
		"exists":      {&model.Error{Code: model.Exists}, 409, "task_exists", nil},
		"idempotency": {&model.Error{Code: model.IdempotencyMismatch}, 409, "idempotency_mismatch", nil},
		"mismatch": {&model.Error{Code: model.AttemptMismatch, Expected: 3, Received: 1}, 409, "attempt_mismatch",
			func(t *testing.T, e *v1.Error, _ http.Header) {
				if e.ExpectedAttempt != 3 || e.ReceivedAttempt != 1 {
					t.Errorf("got %+v", e)
				}
			}},
		"terminal": {&model.Error{Code: model.AlreadyTerminal, State: model.Succeeded}, 409, "task_already_terminal",
			func(t *testing.T, e *v1.Error, _ http.Header) {
				if e.State != v1.Succeeded {
					t.Errorf("got %+v", e)
				}
			}},
		"expired": {&model.Error{Code: model.Expired, Reason: model.RunTimeout, State: model.Failed}, 410, "task_expired",
			func(t *testing.T, e *v1.Error, _ http.Header) {
				if e.Reason != "RUN_TIMEOUT" {
					t.Errorf("got %+v", e)
				}
			}},
		"overloaded": {&model.Error{Code: model.Overloaded, RetryAfter: 1500 * time.Millisecond}, 503, "overloaded", wantRetryAfter("2")},
		"unavailable": {&model.Error{Code: model.Unavailable, Cause: errors.New("dial tcp 10.0.0.1:6379: secret")}, 503, "store_unavailable",
			wantRetryAfter("1")},
		"deadline": {context.DeadlineExceeded, 503, "store_unavailable", wantRetryAfter("1")},
		"no code":  {errors.New("secret"), 503, "store_unavailable", wantRetryAfter("1")},
		"odd code": {&model.Error{Code: "odd", Message: "secret"}, 500, "internal_error", nil},
	} {
		t.Run(name, func(t *testing.T) {
			e := newEnv(t)
			e.fake.beat = func(b *beats.Beat) { b.Err = c.err }
			e.fake.get = func(model.Scope, string) (*model.Task, error) { return nil, c.err }
			e.fake.create = func(model.NewTask) (*model.Created, error) { return nil, c.err }
			var answers []*answer
			switch c.status {
			case 404:
				answers = append(answers, e.do("GET", "/v1/tasks/task_1", e.control(roleAdmin), ""))
			case 410:
				answers = append(answers, e.do("POST", "/v1/tasks/task_1/heartbeat", e.task(), `{"attempt":1}`))
			default:
				answers = append(answers, e.do("POST", "/v1/tasks/task_1/heartbeat", e.task(), `{"attempt":1}`),
					e.do("POST", "/v1/tasks", e.control(roleAdmin), `{}`))
			}
			for _, a := range answers {
				got := a.refused(c.status, c.code)
				if c.check != nil {
					c.check(t, got, a.header)
				}
				if strings.Contains(a.body, "secret") {
					t.Errorf("the response reveals the cause: %s", a.body)
				}
				if (a.header.Get("Retry-After") != "") != (c.status == 503) {
					t.Errorf("Retry-After %q with %d", a.header.Get("Retry-After"), c.status)
				}
			}
			if c.status >= 500 && strings.Contains(name, "unavailable") && !contains(e.log.String(), "secret", "requestId=req_") {
				t.Errorf("the cause is not in the log: %s", e.log.String())
			}
		})
	}
}

func wantField(name string) func(*testing.T, *v1.Error, http.Header) {
	return func(t *testing.T, e *v1.Error, _ http.Header) {
		if e.Field != name {
			t.Errorf("field %q, want %q", e.Field, name)
		}
	}
}

func wantRetryAfter(seconds string) func(*testing.T, *v1.Error, http.Header) {
	return func(t *testing.T, _ *v1.Error, h http.Header) {
		if h.Get("Retry-After") != seconds {
			t.Errorf("Retry-After %q, want %q", h.Get("Retry-After"), seconds)
		}
	}
}

// Bad bodies, at every route that takes one, are 400 with words, and nothing reaches the domain.
func TestBadBodies(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	e.fake.beat = func(*beats.Beat) { t.Error("a bad beat reached the domain") }
	e.fake.start = func(*model.Attempt, model.Report) (model.Acknowledged, error) {
		t.Error("a bad start reached the domain")
		return model.Acknowledged{}, nil
	}
	e.fake.complete = func(*model.Attempt, model.Completion) (model.Completed, error) {
		t.Error("a bad completion reached the domain")
		return model.Completed{}, nil
	}
	admin, task := e.control(roleAdmin), e.task()
	paths := map[string]string{
		"/v1/tasks/task_1/started": task, "/v1/tasks/task_1/heartbeat": task, "/v1/tasks/task_1/completed": task, "/v1/heartbeats": "",
		"/v1/tasks": admin, "/v1/tasks:batch": admin, "/v1/tasks/task_1/attempts": admin,
	}
	for path, token := range paths {
		for name, body := range map[string]string{
			"syntax": `{"attempt":1,}`, "cut": `{"attempt":`, "trailing data": `{"attempt":1}{}`, "trailing text": `{"attempt":1} x`,
			"array": `[]`, "text": `"x"`, "null": `null`, "number": `1`, "bad UTF-8": "{\"attempt\":1,\"workerId\":\"\xff\"}",
			"control byte": "{\"attempt\":1,\"x\":\"\x01\"}", "white space": "  ",
		} {
			a := e.do("POST", path, token, body)
			if got := a.refused(400, "invalid_json"); got.Message == "" {
				t.Errorf("%s %s", path, name)
			}
		}
		a := e.do("POST", path, token, "")
		a.refused(400, "invalid_json")
	}
}

func TestContentTypes(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	for kind, status := range map[string]int{
		"application/json": 200, "application/json; charset=utf-8": 200, "Application/JSON;charset=UTF-8": 200,
		`application/json; charset="utf-8"`: 200,
		"text/plain":                        415, "application/x-www-form-urlencoded": 415, "application/json; charset=latin1": 415,
		"multipart/form-data; boundary=x": 415, "application/jsonp": 415,
	} {
		for _, op := range []string{"heartbeat", "started"} {
			req := "POST /v1/tasks/task_1/" + op + " HTTP/1.1\nHost: x\nConnection: close\nContent-Type: " + kind + "\nAuthorization: Bearer " +
				e.task() + "\nContent-Length: 13\n\n{\"attempt\":1}"
			got := e.raw(req)
			if want := "HTTP/1.1 " + http.StatusText(status); !strings.Contains(got, http.StatusText(status)) {
				t.Errorf("%s %s: want %s, got %s", op, kind, want, got)
			}
		}
	}
	// None at all is taken as JSON.
	got := e.raw("POST /v1/tasks/task_1/heartbeat HTTP/1.1\nHost: x\nConnection: close\nAuthorization: Bearer " + e.task() +
		"\nContent-Length: 13\n\n{\"attempt\":1}")
	if !strings.HasPrefix(got, "HTTP/1.1 200") {
		t.Error(got)
	}
	e.do("POST", "/v1/tasks/task_1/started", e.task(), `{"attempt":1}`, "Content-Encoding", "gzip").refused(415, "unsupported_media_type")
}

func TestWrongFieldsAreNamed(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	admin, task := e.control(roleAdmin), e.task()
	long := strings.Repeat("x", 600)
	for _, c := range []struct{ path, token, body, code, field string }{
		{"/v1/tasks/task_1/heartbeat", task, `{}`, "invalid_request", "attempt"},
		{"/v1/tasks/task_1/heartbeat", task, `{"attempt":0}`, "invalid_request", "attempt"},
		{"/v1/tasks/task_1/heartbeat", task, `{"attempt":"1"}`, "invalid_request", "attempt"},
		{"/v1/tasks/task_1/heartbeat", task, `{"attempt":1.5}`, "invalid_request", "attempt"},
		{"/v1/tasks/task_1/heartbeat", task, `{"attempt":1,"progressPct":100.1}`, "invalid_request", "progressPct"},
		{"/v1/tasks/task_1/heartbeat", task, `{"attempt":1,"progressPct":-1}`, "invalid_request", "progressPct"},
		{"/v1/tasks/task_1/heartbeat", task, `{"attempt":1,"progressPct":"45"}`, "invalid_request", "progressPct"},
		{"/v1/tasks/task_1/heartbeat", task, `{"attempt":1,"message":{}}`, "invalid_request", "message"},
		{"/v1/tasks/task_1/heartbeat", task, `{"attempt":1,"details":"` + strings.Repeat("x", model.MaxDetailsBytes) + `"}`, "invalid_request",
			"details"},
		{"/v1/tasks/task_1/heartbeat", task, `{"attempt":1,"heartbeatAt":"yesterday"}`, "invalid_request", "heartbeatAt"},
		{"/v1/tasks/task_1/heartbeat", task, `{"attempt":1,"workerId":"a b"}`, "invalid_id", "workerId"},
		{"/v1/tasks/task_1/started", task, `{"workerId":"w"}`, "invalid_request", "attempt"},
		{"/v1/tasks/task_1/started", task, `{"attempt":1,"startedAt":5}`, "invalid_request", "startedAt"},
		{"/v1/tasks/task_1/started", task, `{"attempt":1,"startedAt":"2025-01-15"}`, "invalid_request", "startedAt"},
		{"/v1/tasks/task_1/started", task, `{"attempt":1,"workerId":"../x"}`, "invalid_id", "workerId"},
		{"/v1/tasks/task_1/completed", task, `{"attempt":"1","outcome":"SUCCEEDED"}`, "invalid_request", "attempt"},
		{"/v1/tasks/task_1/completed", task, `{"attempt":1}`, "invalid_request", "outcome"},
		{"/v1/tasks/task_1/completed", task, `{"attempt":1,"outcome":"DONE"}`, "invalid_request", "outcome"},
		{"/v1/tasks/task_1/completed", task, `{"attempt":1,"outcome":"SNOOZED"}`, "invalid_request", "delayMs"},
		{"/v1/tasks/task_1/completed", task, `{"attempt":1,"outcome":"SNOOZED","delayMs":-1}`, "invalid_request", "delayMs"},
		{"/v1/tasks/task_1/completed", task, `{"attempt":1,"outcome":"SNOOZED","delayMs":31622400001}`, "invalid_request", "delayMs"},
		{"/v1/tasks/task_1/completed", task, `{"attempt":1,"outcome":"SUCCEEDED","delayMs":5}`, "invalid_request", "delayMs"},
		{"/v1/tasks/task_1/completed", task, `{"attempt":1,"outcome":"SNOOZED","delayMs":5,"output":1}`, "invalid_request", "output"},
		{"/v1/tasks/task_1/completed", task, `{"attempt":1,"outcome":"SNOOZED","delayMs":5,"error":{"category":"TIMEOUT"}}`, "invalid_request",
			"error"},
		{"/v1/tasks/task_1/completed", task, `{"attempt":1,"outcome":"FAILED","error":{"category":"TIMEOUT","retryAfterMs":-1}}`,
			"invalid_request", "error.retryAfterMs"},
		{"/v1/tasks/task_1/completed", task, `{"attempt":1,"outcome":"FAILED","error":{"category":"TIMEOUT","retryAfterMs":31622400001}}`,
			"invalid_request", "error.retryAfterMs"},
		{"/v1/tasks/task_1/completed", task, `{"attempt":1,"outcome":"FAILED","error":{"category":"TIMEOUT","retryAfterMs":"5"}}`,
			"invalid_request", "error.retryAfterMs"},
		{"/v1/tasks/task_1/completed", task, `{"attempt":1,"outcome":"FAILED"}`, "invalid_request", "error.category"},
		{"/v1/tasks/task_1/completed", task, `{"attempt":1,"outcome":"FAILED","error":{}}`, "invalid_request", "error.category"},
		{"/v1/tasks/task_1/completed", task, `{"attempt":1,"outcome":"FAILED","error":{"category":"OTHER"}}`, "invalid_request",
			"error.category"},
		{"/v1/tasks/task_1/completed", task, `{"attempt":1,"outcome":"FAILED","error":{"category":5}}`, "invalid_request", "error.category"},
		{"/v1/tasks/task_1/completed", task, `{"attempt":1,"outcome":"FAILED","error":"boom"}`, "invalid_request", "error"},
		{"/v1/tasks/task_1/completed", task, `{"attempt":1,"outcome":"SUCCEEDED","metrics":[1]}`, "invalid_request", "metrics"},
		{"/v1/tasks/task_1/completed", task, `{"attempt":1,"outcome":"CANCELLED","cancelledDuringPhase":"` + long + `"}`, "invalid_request",
			"cancelledDuringPhase"},
		{"/v1/tasks", admin, `{"taskId":5}`, "invalid_request", "taskId"},
		{"/v1/tasks", admin, `{"taskId":""}`, "invalid_id", "taskId"},
		{"/v1/tasks", admin, `{"taskId":"a/b"}`, "invalid_id", "taskId"},
		{"/v1/tasks", admin, `{"tenantId":"a/b"}`, "invalid_id", "tenantId"},
		{"/v1/tasks", admin, `{"queue":"a b"}`, "invalid_id", "queue"},
		{"/v1/tasks", admin, `{"TaskId":"x"}`, "unknown_field", "TaskId"},
		{"/v1/tasks", admin, `{"taskid":"x"}`, "unknown_field", "taskid"},
		{"/v1/tasks", admin, `{"heartbeatTimeout":1}`, "unknown_field", "heartbeatTimeout"},
		{"/v1/tasks", admin, `{"queue":"q","retry":{"max":1}}`, "unknown_field", "retry.max"},
		{"/v1/tasks", admin, `{"queue":"q","retry":{"maxAttempts":"3"}}`, "invalid_request", "retry.maxAttempts"},
		{"/v1/tasks", admin, `{"queue":"q","retry":{"maxAttempts":0}}`, "invalid_request", "retry.maxAttempts"},
		{"/v1/tasks", admin, `{"queue":"q","retry":{"initialBackoffMs":-1}}`, "invalid_request", "retry.initialBackoffMs"},
		{"/v1/tasks", admin, `{"retry":{}}`, "invalid_request", "retry"},
		{"/v1/tasks", admin, `{"notBefore":"2025-02-01T00:00:00Z"}`, "invalid_request", "notBefore"},
		{"/v1/tasks", admin, `{"runAt":"2025-02-01T00:00:00Z"}`, "invalid_request", "runAt"},
		{"/v1/tasks", admin, `{"delayMs":5}`, "invalid_request", "delayMs"},
		{"/v1/tasks", admin, `{"queue":"q","delayMs":-1}`, "invalid_request", "delayMs"},
		{"/v1/tasks", admin, `{"queue":"q","delayMs":31622400001}`, "invalid_request", "delayMs"},
		{"/v1/tasks", admin, `{"queue":"q","delayMs":9223372036854775807}`, "invalid_request", "delayMs"},
		{"/v1/tasks", admin, `{"queue":"q","delayMs":1.5}`, "invalid_request", "delayMs"},
		{"/v1/tasks", admin, `{"queue":"q","delayMs":0,"runAt":"2025-02-01T00:00:00Z"}`, "invalid_request", "delayMs"},
		{"/v1/tasks", admin, `{"queue":"q","delayMs":5,"notBefore":"2025-02-01T00:00:00Z"}`, "invalid_request", "delayMs"},
		{"/v1/tasks", admin, `{"queue":"q","runAt":"2025-02-01T00:00:00Z","notBefore":"2025-02-01T00:00:00Z"}`, "invalid_request", "notBefore"},
		{"/v1/tasks", admin, `{"queue":"q","runAt":"2025-02-01T00:00:00Z","deadline":"2025-02-01T00:00:00Z"}`, "invalid_request", "runAt"},
		{"/v1/tasks", admin, `{"queue":"q","notBefore":"2025-02-01T00:00:00Z","deadline":"2025-02-01T00:00:00Z"}`, "invalid_request", "notBefore"},
		{"/v1/tasks", admin, `{"queue":"q","delayMs":3600000,"deadline":"2025-01-15T11:05:00Z"}`, "invalid_request", "delayMs"},
		{"/v1/tasks", admin, `{"placement":{}}`, "invalid_request", "placement.strategy"},
		{"/v1/tasks", admin, `{"placement":{"strategy":"random"}}`, "invalid_request", "placement"},
		{"/v1/tasks", admin, `{"deadline":"2025-01-15T10:04:59Z"}`, "invalid_request", "deadline"},
		{"/v1/tasks", admin, `{"deadline":"soon"}`, "invalid_request", "deadline"},
		{"/v1/tasks", admin, `{"heartbeatTimeoutMs":59999}`, "invalid_request", "heartbeatTimeoutMs"},
		{"/v1/tasks", admin, `{"heartbeatTimeoutMs":999,"heartbeatIntervalMs":1}`, "invalid_request", "heartbeatTimeoutMs"},
		{"/v1/tasks", admin, `{"heartbeatTimeoutMs":86400001}`, "invalid_request", "heartbeatTimeoutMs"},
		{"/v1/tasks", admin, `{"heartbeatTimeoutMs":9223372036854775807}`, "invalid_request", "heartbeatTimeoutMs"},
		{"/v1/tasks", admin, `{"heartbeatTimeoutMs":1e5}`, "invalid_request", "heartbeatTimeoutMs"},
		{"/v1/tasks", admin, `{"heartbeatIntervalMs":0}`, "invalid_request", "heartbeatIntervalMs"},
		{"/v1/tasks", admin, `{"heartbeatIntervalMs":-5}`, "invalid_request", "heartbeatIntervalMs"},
		{"/v1/tasks", admin, `{"tokenTtlSeconds":7201}`, "invalid_request", "tokenTtlSeconds"},
		{"/v1/tasks", admin, `{"tokenTtlSeconds":9223372036854775807}`, "invalid_request", "tokenTtlSeconds"},
		{"/v1/tasks", admin, `{"renewToken":false,"deadline":"2025-01-15T13:05:00Z"}`, "invalid_request", "renewToken"},
		{"/v1/tasks", admin, `{"renewToken":"no"}`, "invalid_request", "renewToken"},
		{"/v1/tasks", admin, `{"resources":[]}`, "invalid_request", "resources"},
		{"/v1/tasks", admin, `{"labels":{"a":5}}`, "invalid_request", "labels.a"},
		{"/v1/tasks", admin, `{"labels":["a"]}`, "invalid_request", "labels"},
		{"/v1/tasks/task_1/attempts", admin, `{}`, "invalid_request", "fromAttempt"},
		{"/v1/tasks/task_1/attempts", admin, `{"fromAttempt":0}`, "invalid_request", "fromAttempt"},
		{"/v1/tasks/task_1/attempts", admin, `{"from":1}`, "unknown_field", "from"},
		{"/v1/tasks/task_1/cancel", admin, `{"reason":5}`, "invalid_request", "reason"},
		{"/v1/tasks/task_1/cancel", admin, `{"reason":"` + long + `"}`, "invalid_request", "reason"},
		{"/v1/tasks/task_1/cancel", admin, `{"why":"x"}`, "unknown_field", "why"},
		{"/v1/tasks/-/cancel", admin, ``, "invalid_id", "taskId"},
		{"/v1/runs/r%20n/cancel", admin, ``, "invalid_id", "runId"},
		{"/v1/heartbeats", "", `{}`, "invalid_request", "heartbeats"},
		{"/v1/heartbeats", "", `{"heartbeats":[]}`, "invalid_request", "heartbeats"},
		{"/v1/heartbeats", "", `{"heartbeats":{}}`, "invalid_request", "heartbeats"},
		{"/v1/heartbeats", "", `{"heartbeats":null}`, "invalid_request", "heartbeats"},
		{"/v1/heartbeats", "", `{"heartbeats":[{},5]}`, "invalid_request", "heartbeats[1]"},
		{"/v1/heartbeats", "", `{"heartbeats":[` + strings.Repeat(`{},`, 1000) + `{}]}`, "invalid_request", "heartbeats"},
		{"/v1/tasks:batch", admin, `{}`, "invalid_request", "tasks"},
		{"/v1/tasks:batch", admin, `{"tasks":[]}`, "invalid_request", "tasks"},
		{"/v1/tasks:batch", admin, `{"tasks":{}}`, "invalid_request", "tasks"},
		{"/v1/tasks:batch", admin, `{"items":[]}`, "unknown_field", "items"},
		{"/v1/tasks:batch", admin, `{"tasks":[` + strings.Repeat(`{},`, 1000) + `{}]}`, "invalid_request", "tasks"},
	} {
		got := e.do("POST", c.path, c.token, c.body).refused(400, c.code)
		if got.Field != c.field {
			t.Errorf("%s %.80s: field %q, want %q (%s)", c.path, c.body, got.Field, c.field, got.Message)
		}
		if !strings.Contains(got.Message, got.Field) {
			t.Errorf("%s %.80s: the message does not name %s: %s", c.path, c.body, got.Field, got.Message)
		}
		if len(got.Message) > 400 {
			t.Errorf("%s: a message of %d bytes", c.path, len(got.Message))
		}
	}
}

// Workers may be newer than the server.
func TestCallbacksSkipUnknownFields(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	for op, body := range map[string]string{
		"started": `{"attempt":1,"x":{"y":[1]}}`, "heartbeat": `{"attempt":1,"x":{"y":[1]}}`,
		"completed": `{"attempt":1,"outcome":"SUCCEEDED","x":1,"error":null,"metrics":null}`,
	} {
		e.do("POST", "/v1/tasks/task_1/"+op, e.task(), body).want(200)
	}
}

func TestPathsThatAreNotThere(t *testing.T) {
	e := newEnv(t)
	for _, path := range []string{"/v1", "/v1/tasks/", "/v1//tasks", "/v2/tasks", "/v1/nothing", "/v1/event",
		"/v1/tasks/task_1/heartbeat/x", "/V1/tasks", "/v1/tasks/task_1/", "/metrics", "/debug/pprof/"} {
		e.do("GET", path, e.control(roleAdmin), "").refused(404, "not_found")
	}
}

func TestAPanicIsA500AndTheServerLives(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	e.fake.beat = func(*beats.Beat) { panic("boom") }
	e.fake.get = func(model.Scope, string) (*model.Task, error) { panic("boom") }
	a := e.do("POST", "/v1/tasks/task_1/heartbeat", e.task(), `{"attempt":1}`, "X-Request-Id", "my-id")
	if got := a.refused(500, "internal_error"); got.RequestID != "my-id" || a.header.Get("X-Request-Id") != "my-id" {
		t.Errorf("got %+v", got)
	}
	e.do("GET", "/v1/tasks/task_1", e.control(roleAdmin), "").refused(500, "internal_error")
	if log := e.log.String(); !contains(log, "boom", "requestId=my-id", "errors_test.go") || strings.Contains(log, "eyJ") {
		t.Errorf("the log has no panic, or a token: %s", log)
	}
	e.fake.beat = nil
	e.do("POST", "/v1/tasks/task_1/heartbeat", e.task(), `{"attempt":1}`).want(200)
}
