package api

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/lubdub-io/lubdub/api/token"
	v1 "github.com/lubdub-io/lubdub/sdk/go/v1"
	"github.com/lubdub-io/lubdub/tracker/model"
)

func TestCreatePassesEveryFieldOn(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	a := e.do("POST", "/v1/tasks", e.control(roleDispatcher), `{
		"taskId":"t1","runId":"r1","taskKey":"raw/events ü","assetId":"a1","tenantId":"acme","workspaceId":"prod","type":"send_email",
		"queue":"default",
		"runtime":"python3.11","workerLabels":{"region":"us"},"placement":{"strategy":"leastLoaded"},
		"payload": {"b": 1, "a": ["<x>", 12345678901234567890]},"resources":{ "cpu": 2 },"labels":{"team":"x=y"},
		"notBefore":"2025-01-15T11:00:00Z","deadline":"2025-01-15T13:00:00.5+01:00","startTimeoutMs":5000,"runTimeoutMs":6000,
		"heartbeatIntervalMs":1500,"heartbeatTimeoutMs":3001,"cancelGracePeriodMs":7000,"tokenTtlSeconds":60,"renewToken":true,
		"retry":{"maxAttempts":5,"multiplier":1.5}}`).want(201)
	got := e.fake.lastCreated()
	want := model.NewTask{
		Scope: model.Scope{Tenant: "acme", Workspace: "prod"}, TaskID: "t1", RunID: "r1", Key: "raw/events ü", Asset: "a1", Type: "send_email",
		Queue:   "default",
		Runtime: "python3.11", WorkerLabels: map[string]string{"region": "us"}, Placement: "leastLoaded",
		Payload: json.RawMessage(`{"b":1,"a":["<x>",12345678901234567890]}`), Resources: json.RawMessage(`{"cpu":2}`),
		Labels: map[string]string{"team": "x=y"},
		RunAt:  time.Date(2025, 1, 15, 11, 0, 0, 0, time.UTC), Deadline: time.Date(2025, 1, 15, 12, 0, 0, 5e8, time.UTC),
		StartTimeout: 5 * time.Second, RunTimeout: 6 * time.Second, HeartbeatInterval: 1500 * time.Millisecond,
		HeartbeatTimeout: 3100 * time.Millisecond,
		CancelGrace:      7 * time.Second, TokenTTL: time.Minute,
		Retry: &model.RetryPolicy{MaxAttempts: 5, MaxLosses: 3, InitialBackoff: time.Second, Multiplier: 1.5, MaxBackoff: time.Minute},
	}
	if g, w := fmt.Sprintf("%+v %+v", got, *got.Retry), fmt.Sprintf("%+v %+v", want, *want.Retry); strings.ReplaceAll(g,
		fmt.Sprintf("%p", got.Retry), "") != strings.ReplaceAll(w, fmt.Sprintf("%p", want.Retry), "") {
		t.Errorf("got\n%s\nwant\n%s", g, w)
	}
	a.contains(`{"taskId":"t1","state":"QUEUED","attempt":0,"queue":"default","payload":{"b":1,"a":["<x>",12345678901234567890]}}`)
	if !strings.Contains(a.body, "<x>") {
		t.Error("the payload was escaped for HTML")
	}
}

func TestCreatePins(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	e.do("POST", "/v1/tasks", e.control(roleDispatcher), `{"queue":"q","workerId":"w1"}`).want(201)
	if got := e.fake.lastCreated(); got.WorkerID != "w1" {
		t.Errorf("got %+v", got)
	}
	e.do("POST", "/v1/tasks", e.control(roleDispatcher), `{"queue":"q","workerId":"w1","placement":{"strategy":"random"}}`).refused(400,
		v1.CodeInvalidRequest)
}

func TestCreateFillsDefaults(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	e.do("POST", "/v1/tasks", e.control(roleDispatcher),
		`{"taskKey":null,"retry":null,"deadline":null,"labels":null,"payload":null,"heartbeatTimeoutMs":null}`).want(201).
		contains(`{"assetId":null,"taskKey":null,"deadline":null,"resources":{}}`)
	got := e.fake.lastCreated()
	if got.HeartbeatTimeout != 90*time.Second || got.HeartbeatInterval != 30*time.Second || got.CancelGrace != 30*time.Second ||
		got.Payload != nil || got.NoRenewToken || got.Retry != nil {
		t.Errorf("got %+v", got)
	}
	e.do("POST", "/v1/tasks", e.control(roleDispatcher), `{"queue":"q"}`).want(201).contains(`{"heartbeatTimeoutMs":null}`)
	if got := e.fake.lastCreated(); got.HeartbeatTimeout != 0 {
		t.Errorf("a queued task got its own timeout: %v", got.HeartbeatTimeout)
	}
}

func TestScopes(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	one, tenant, all := e.control(roleAdmin), e.controlFor(roleAdmin, "acme", token.Wildcard),
		e.controlFor(roleAdmin, token.Wildcard, token.Wildcard)
	for _, c := range []struct {
		name, token, query, body string
		status                   int
		scope                    string
	}{
		{"the token's own", one, "", `{}`, 201, "acme/prod"},
		{"scope in the query", one, "?tenantId=acme&workspaceId=prod", `{}`, 201, "acme/prod"},
		{"scope in the body", one, "", `{"tenantId":"acme","workspaceId":"prod"}`, 201, "acme/prod"},
		{"another tenant", one, "?tenantId=evil", `{}`, 403, ""},
		{"another tenant in the body", one, "", `{"tenantId":"evil"}`, 403, ""},
		{"another workspace", one, "?workspaceId=evil", `{}`, 403, ""},
		{"two that differ", one, "?workspaceId=prod", `{"workspaceId":"test"}`, 400, ""},
		{"star needs one", tenant, "", `{}`, 400, ""},
		{"star takes any", tenant, "?workspaceId=any", `{}`, 201, "acme/any"},
		{"star of workspaces opens one tenant", tenant, "?workspaceId=any&tenantId=evil", `{}`, 403, ""},
		{"all needs both", all, "?workspaceId=any", `{}`, 400, ""},
		{"all takes both", all, "?workspaceId=any", `{"tenantId":"new"}`, 201, "new/any"},
		{"a star is no id", all, "?workspaceId=*&tenantId=x", `{}`, 400, ""},
		{"an empty one", one, "?tenantId=", `{}`, 400, ""},
	} {
		before := e.fake.createdCount()
		a := e.do("POST", "/v1/tasks"+c.query, c.token, c.body)
		if a.status != c.status {
			t.Errorf("%s: %d %s, want %d", c.name, a.status, a.body, c.status)
		}
		if c.status == 201 && e.fake.lastCreated().Scope.String() != c.scope {
			t.Errorf("%s: scope %s, want %s", c.name, e.fake.lastCreated().Scope, c.scope)
		}
		if c.status != 201 && e.fake.createdCount() != before {
			t.Errorf("%s: refused, but created", c.name)
		}
	}
	for _, path := range []string{"/v1/tasks", "/v1/tasks/task_1", "/v1/runs/run_1"} {
		e.do("GET", path, tenant, "").refused(400, "invalid_request")
		e.do("GET", path+"?workspaceId=any", tenant, "").want(200)
		e.do("GET", path+"?tenantId=evil", one, "").refused(403, "forbidden")
	}
}

// An operator retries a task, and a dispatcher receives the token of the new attempt.
func TestAnOperatorRetriesWithoutReceivingTokens(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	const path, body = "/v1/tasks/task_1/attempts", `{"fromAttempt":1}`
	if a := e.do("POST", path, e.control(roleOperator), body).want(202); strings.Contains(a.body, "oken") {
		t.Errorf("an operator receives %s", a.body)
	}
	if a := e.do("POST", path, e.control(roleDispatcher), body).want(201); !strings.Contains(a.body, `"taskToken":"`) {
		t.Errorf("a dispatcher receives %s", a.body)
	}
}

func TestIdempotencyHashesMeaning(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	hash := func(body, key string) string {
		t.Helper()
		e.do("POST", "/v1/tasks", e.control(roleAdmin), body, "Idempotency-Key", key).want(201)
		n := e.fake.lastCreated()
		if n.IdempotencyKey != key || key != "" && len(n.IdempotencyHash) != 64 {
			t.Fatalf("key %q, hash %q", n.IdempotencyKey, n.IdempotencyHash)
		}
		return n.IdempotencyHash
	}
	base := hash(`{"taskId":"t","payload":{"a":1,"b":[1,2]},"deadline":"2025-01-15T12:00:00Z"}`, "key 1")
	for name, same := range map[string]string{
		"order and space":   ` { "deadline":"2025-01-15T13:00:00.000+01:00" , "payload":{"b":[1, 2],"a":1},"taskId":"t"}`,
		"scope in the body": `{"taskId":"t","payload":{"a":1,"b":[1,2]},"deadline":"2025-01-15T12:00:00Z","tenantId":"acme"}`,
		"null":              `{"taskId":"t","payload":{"a":1,"b":[1,2]},"deadline":"2025-01-15T12:00:00Z","runId":null}`,
	} {
		if hash(same, "key 1") != base {
			t.Errorf("%s: another hash", name)
		}
	}
	for name, other := range map[string]string{
		"payload": `{"taskId":"t","payload":{"a":2,"b":[1,2]},"deadline":"2025-01-15T12:00:00Z"}`,
		"large":   `{"taskId":"t","payload":{"a":1.0000000000000000001,"b":[1,2]},"deadline":"2025-01-15T12:00:00Z"}`,
		"field":   `{"taskId":"t","payload":{"a":1,"b":[1,2]}}`,
	} {
		if hash(other, "key 1") == base {
			t.Errorf("%s: the same hash", name)
		}
	}
	if hash(`{}`, "") != "" {
		t.Error("a hash without a key")
	}
	for _, bad := range []string{strings.Repeat("x", 256), "ü", "a\tb"} {
		e.do("POST", "/v1/tasks", e.control(roleAdmin), `{}`, "Idempotency-Key", bad).refused(400, "invalid_request")
	}
	hash(`{}`, strings.Repeat("x", 255))
}

func TestTheSameAttemptGetsTheSameEnvelope(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	first := e.do("POST", "/v1/tasks", e.control(roleAdmin), `{"taskId":"t"}`, "Idempotency-Key", "k").want(201)
	e.advance(5 * time.Minute)
	if again := e.do("POST", "/v1/tasks", e.control(roleAdmin), `{"taskId":"t"}`, "Idempotency-Key", "k").want(201); again.body != first.body {
		t.Errorf("got\n%s\nwant\n%s", again.body, first.body)
	}
}

func TestBatchOfCreations(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	e.fake.create = func(n model.NewTask) (*model.Created, error) {
		switch n.TaskID {
		case "taken":
			return nil, &model.Error{Code: model.Exists, Message: "exists"}
		case "away":
			return nil, &model.Error{Code: model.Unavailable}
		}
		return fakeCreated(n, 1), nil
	}
	e.badItems = true
	var got v1.CreateTasksResponse
	e.do("POST", "/v1/tasks:batch", e.control(roleDispatcher), `{"tasks":[
		{"taskId":"a"}, {"taskId":"b","queue":"q","idempotencyKey":"k"}, {"taskId":"taken"}, {"taskId":"a/b"}, {"bogus":1}, {"taskId":5}, 7,
		{"tenantId":"evil"}, {"heartbeatTimeoutMs":1}, {"taskId":"away"}, {"idempotencyKey":"ü"}, {"taskId":"last"}]}`).want(200).into(&got)
	want := []struct {
		status int
		code   string
		state  string
		id     string
	}{
		{201, "", "DISPATCHED", "a"}, {201, "", "QUEUED", "b"}, {409, "task_exists", "", ""}, {400, "invalid_id", "", ""},
		{400, "unknown_field", "", ""},
		{400, "invalid_request", "", ""}, {400, "invalid_request", "", ""}, {403, "forbidden", "", ""}, {400, "invalid_request", "", ""},
		{503, "store_unavailable", "", ""}, {400, "invalid_request", "", ""}, {201, "", "DISPATCHED", "last"},
	}
	if len(got.Results) != len(want) {
		t.Fatalf("%d results, want %d", len(got.Results), len(want))
	}
	for i, w := range want {
		var r struct {
			Status               int
			Error, State, TaskID string
			TaskToken, Field     string
		}
		if err := json.Unmarshal(got.Results[i], &r); err != nil {
			t.Fatal(err)
		}
		if r.Status != w.status || r.Error != w.code || r.State != w.state || r.TaskID != w.id ||
			(r.TaskToken != "") != (w.state == "DISPATCHED") {
			t.Errorf("%d: got %s, want %+v", i, got.Results[i], w)
		}
		if i == 5 && r.Field != "taskId" {
			t.Errorf("field %q", r.Field)
		}
	}
	if n := e.fake.created[1]; n.IdempotencyKey != "k" || n.IdempotencyHash == "" {
		t.Errorf("the item's key was lost: %+v", n)
	}
}

func TestNextAttempt(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	e.fake.nextAttempt = func(s model.Scope, id string, from int) (*model.Created, error) {
		made := fakeCreated(model.NewTask{Scope: s, TaskID: id}, from+1)
		made.Envelope.LastProgress = &model.Progress{Pct: "30", Message: `"half \u00fc way"`}
		return made, nil
	}
	a := e.do("POST", "/v1/tasks/task_1/attempts", e.control(roleDispatcher), `{"fromAttempt":1}`).want(201).
		contains(`{"taskId":"task_1","attempt":2,"state":"DISPATCHED","lastProgress":{"progressPct":30,"message":"half ü way"}}`)
	if !strings.Contains(a.body, `"half \u00fc way"`) {
		t.Errorf("the message was encoded again: %s", a.body)
	}
	e.fake.nextAttempt = func(s model.Scope, id string, _ int) (*model.Created, error) {
		return &model.Created{Task: fakeTask(model.NewTask{Scope: s, TaskID: id, Queue: "q"})}, nil
	}
	e.do("POST", "/v1/tasks/task_1/attempts", e.control(roleDispatcher),
		`{"fromAttempt":1}`).want(202).contains(`{"taskId":"task_1","state":"QUEUED"}`)
}
