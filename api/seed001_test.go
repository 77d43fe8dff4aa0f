package api

import (
	"encoding/json"
	"net/http"
	"testing"
	"time"

	"github.com/lubdub-io/lubdub/api/convert"
	"github.com/lubdub-io/lubdub/tracker/beats"
	"github.com/lubdub-io/lubdub/tracker/model"
)

// Every example payload of the worker contract (seed 001), sent and expected to the letter. That the domain
// behaves so is shown by the contract suite; here the wire is.

func TestSeed001Started(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	e.fake.start = func(a *model.Attempt, r model.Report) (model.Acknowledged, error) {
		want := model.Report{WorkerID: "worker-abc123", ReportedAt: time.Date(2025, 1, 15, 10, 0, 0, 0, time.UTC)}
		if a.TaskID != "task_1" || r != want {
			t.Errorf("got %+v %+v", a, r)
		}
		return model.Acknowledged{At: time.Date(2025, 1, 15, 10, 0, 1, 0, time.UTC)}, nil
	}
	a := e.do("POST", "/v1/tasks/task_1/started", e.task(), seedStarted).want(200).contains(seedStartedOK)
	if want := `{"acknowledged":true,"serverTime":"2025-01-15T10:00:01.000Z"}`; a.body != want {
		t.Errorf("got %s, want %s", a.body, want)
	}
}

func TestSeed001StartedAfterCancel(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	e.fake.start = func(*model.Attempt, model.Report) (model.Acknowledged, error) {
		return model.Acknowledged{}, &model.Error{Code: model.AlreadyTerminal, State: model.Cancelled, Message: "x"}
	}
	e.do("POST", "/v1/tasks/task_1/started", e.task(), seedStarted).want(409).contains(seedStartedConflict)
}

func TestSeed001Heartbeat(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	e.fake.beat = func(b *beats.Beat) {
		if want := "1736935500000\tworker-abc123\t45\t\"Processing partition 5 of 10\""; b.Report != want {
			t.Errorf("report %q, want %q", b.Report, want)
		}
	}
	a := e.do("POST", "/v1/tasks/task_1/heartbeat", e.task(), seedHeartbeat).want(200).contains(seedHeartbeatOK)
	if a.body != heartbeatOK {
		t.Errorf("got %s, want %s", a.body, heartbeatOK)
	}
}

func TestSeed001HeartbeatWithCancel(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	e.fake.beat = func(b *beats.Beat) { b.Cancel = &model.Cancel{Reason: "user_requested"} }
	a := e.do("POST", "/v1/tasks/task_1/heartbeat", e.task(), seedHeartbeat).want(200).contains(seedHeartbeatCancel)
	if a.body != heartbeatCancel {
		t.Errorf("got %s, want %s", a.body, heartbeatCancel)
	}
}

func TestSeed001HeartbeatOfAZombie(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	e.fake.beat = func(b *beats.Beat) {
		b.Err = &model.Error{Code: model.Expired, Reason: model.HeartbeatTimeout, State: model.Failed, Message: "x"}
	}
	e.do("POST", "/v1/tasks/task_1/heartbeat", e.task(), seedHeartbeat).want(410).contains(seedHeartbeatExpired)
}

func TestSeed001Succeeded(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	e.fake.complete = func(_ *model.Attempt, c model.Completion) (model.Completed, error) {
		if c.Outcome != model.Succeeded || c.WorkerID != "worker-abc123" || c.Error != nil || c.Retryable {
			t.Errorf("got %+v", c)
		}
		sameJSON(t, c.Output, field(t, seedSucceeded, "output"))
		sameJSON(t, c.Metrics, field(t, seedSucceeded, "metrics"))
		return model.Completed{At: time.Date(2025, 1, 15, 10, 30, 1, 0, time.UTC), Outcome: model.Succeeded}, nil
	}
	a := e.do("POST", "/v1/tasks/task_1/completed", e.task(), seedSucceeded).want(200).contains(seedCompletedOK)
	if want := `{"acknowledged":true,"finalState":"SUCCEEDED","serverTime":"2025-01-15T10:30:01.000Z"}`; a.body != want {
		t.Errorf("got %s, want %s", a.body, want)
	}
}

func TestSeed001Failed(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	e.fake.complete = func(_ *model.Attempt, c model.Completion) (model.Completed, error) {
		if c.Outcome != model.Failed || c.Category != "USER_CODE" || !c.Retryable {
			t.Errorf("got %+v", c)
		}
		sameJSON(t, c.Error, field(t, seedFailed, "error"))
		return model.Completed{At: fakeTime, Outcome: model.Failed, WillRetry: true, NextAttempt: 2}, nil
	}
	e.do("POST", "/v1/tasks/task_1/completed", e.task(), seedFailed).want(200).
		contains(`{"acknowledged":true,"finalState":"FAILED","willRetry":true,"nextAttempt":2}`)
}

func TestSeed001Cancelled(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	e.fake.complete = func(_ *model.Attempt, c model.Completion) (model.Completed, error) {
		if c.Outcome != model.Cancelled || c.CancelledDuringPhase != "processing" {
			t.Errorf("got %+v", c)
		}
		sameJSON(t, c.PartialProgress, field(t, seedCancelled, "partialProgress"))
		return model.Completed{At: fakeTime, Outcome: model.Cancelled}, nil
	}
	e.do("POST", "/v1/tasks/task_1/completed", e.task(), seedCancelled).want(200).contains(`{"acknowledged":true,"finalState":"CANCELLED"}`)
}

func TestSeed001LateResult(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	e.fake.complete = func(*model.Attempt, model.Completion) (model.Completed, error) {
		return model.Completed{}, &model.Error{Code: model.AttemptMismatch, Expected: 2, Received: 1, State: model.Succeeded}
	}
	e.do("POST", "/v1/tasks/task_1/completed", e.task(), seedSucceeded).want(409).contains(seedCompletedConflict)
	if log := e.log.String(); !contains(log, "late result ignored", "taskId=task_1", "attempt=1", "currentAttempt=2",
		"code=attempt_mismatch") {
		t.Errorf("the late result was not logged: %s", log)
	}
}

// Section 8: the envelope has every field, in camelCase.
func TestSeed001TaskEnvelope(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	a := e.do("POST", "/v1/tasks", e.control(roleDispatcher), `{
		"taskId":"task_01HGW5N7XHJM4GX29KZRXQP6N9","runId":"run_01HGW5N7XHJM4GX29KZRXQP6N8","assetId":"asset_1","taskKey":"raw.events",
		"resources":{"cpu":2,"memoryBytes":1073741824},"deadline":"2025-01-15T11:00:00Z"}`).want(201)
	a.contains(`{
		"taskId":"task_01HGW5N7XHJM4GX29KZRXQP6N9","runId":"run_01HGW5N7XHJM4GX29KZRXQP6N8","assetId":"asset_1","taskKey":"raw.events",
		"tenantId":"acme","workspaceId":"prod","attempt":1,"resources":{"cpu":2,"memoryBytes":1073741824},
		"enqueuedAt":"2025-01-15T10:05:00.000Z","deadline":"2025-01-15T11:00:00.000Z",
		"callbackBaseUrl":"https://api.arco.dev","tokenExpiresAt":"2025-01-15T11:05:00.000Z",
		"heartbeatIntervalMs":30000,"heartbeatTimeoutMs":90000,"cancelGracePeriodMs":30000,"state":"DISPATCHED"}`)
	var envelope struct {
		TaskToken string `json:"taskToken"`
	}
	a.into(&envelope)
	e.do("POST", "/v1/tasks/task_01HGW5N7XHJM4GX29KZRXQP6N9/heartbeat", envelope.TaskToken, `{"attempt":1}`).want(200)
}

// Section 6: each category with its default, which the report's own word beats.
func TestSeed001ErrorCategories(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	var got model.Completion
	e.fake.complete = func(_ *model.Attempt, c model.Completion) (model.Completed, error) {
		got = c
		return model.Completed{At: fakeTime, Outcome: c.Outcome}, nil
	}
	for category, retryable := range map[string]bool{
		"USER_CODE": true, "DATA_QUALITY": false, "INFRASTRUCTURE": true, "CONFIGURATION": false, "TIMEOUT": true, "CANCELLED": false,
	} {
		for word, want := range map[string]bool{``: retryable, `,"retryable":null`: retryable, `,"retryable":true`: true,
			`,"retryable":false`: false} {
			e.do("POST", "/v1/tasks/task_1/completed", e.task(),
				`{"attempt":1,"outcome":"FAILED","error":{"category":"`+category+`"`+word+`}}`).want(200)
			if got.Category != category || got.Retryable != want {
				t.Errorf("%s%s: %s retryable %v, want %v", category, word, got.Category, got.Retryable, want)
			}
		}
	}
}

// Section 2: a method other than POST on a callback does nothing.
func TestSeed001CallbacksArePosts(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	for _, op := range []string{"started", "heartbeat", "completed"} {
		a := e.do(http.MethodGet, "/v1/tasks/task_1/"+op, e.task(), "")
		a.refused(405, "method_not_allowed")
		if a.header.Get("Allow") != "POST" {
			t.Errorf("Allow: %s", a.header.Get("Allow"))
		}
	}
}

func field(t *testing.T, object, name string) json.RawMessage {
	t.Helper()
	var m map[string]json.RawMessage
	if err := json.Unmarshal([]byte(object), &m); err != nil {
		t.Fatal(err)
	}
	return m[name]
}

// sameJSON fails unless got is want without white space.
func sameJSON(t *testing.T, got, want json.RawMessage) {
	t.Helper()
	if string(got) != string(convert.Compact(want)) {
		t.Errorf("got %s, want %s", got, want)
	}
}
