package api

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"

	v1 "github.com/lubdub-io/lubdub/sdk/go/v1"
)

// naming are the operations whose request names a task or has an idempotency key, each with what it is sent here; none: it names
// only tasks that there are, or the key is none of a task's.
var naming = map[string][]struct{ body, key, field string }{
	"POST /v1/tasks": {
		{body: `{"queue":"q","taskId":"fire_01J"}`, field: "taskId"},
		{body: `{"taskId":"fire_"}`, field: "taskId"},
		{body: `{"queue":"q"}`, key: "schedule:s1:2026-01-15T10:00:00Z", field: "Idempotency-Key"},
		{body: `{}`, key: "schedule:", field: "Idempotency-Key"},
	},
	"POST /v1/tasks:batch": {
		{body: `{"tasks":[{"queue":"q","taskId":"fire_01J"}]}`, field: "taskId"},
		{body: `{"tasks":[{"queue":"q","idempotencyKey":"schedule:s1:2026-01-15T10:00:00Z"}]}`, field: "idempotencyKey"},
	},
	"POST /v1/schedules": {
		{body: `{"cron":"* * * * * *","task":{"queue":"q","taskId":"fire_01J"}}`, field: "task.taskId"},
	},
	"PUT /v1/schedules/{scheduleId}":   nil, // the domain refuses any taskId of a schedule's task
	"PATCH /v1/schedules/{scheduleId}": nil,

	"POST /v1/heartbeats":                    nil,
	"POST /v1/workers":                       nil,
	"POST /v1/workers/{workerId}/heartbeat":  nil,
	"POST /v1/workers/{workerId}/release":    nil,
	"POST /v1/workers/{workerId}/exchange":   nil,
	"POST /v1/workers/{workerId}/owned":      nil,
	"POST /v1/workers/{workerId}/claims":     nil,
	"POST /v1/workers/{workerId}/deregister": nil,
}

// No request can create a task under an id or an idempotency key of a schedule's fire.
func TestNoRequestTakesANameOfAFire(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	e.badItems = true
	for path, item := range loadOpenAPI(t).Paths.Map() {
		for method, op := range item.Operations() {
			name := strings.ToUpper(method) + " " + path
			requests, known := naming[name]
			if !known && namesTasks(op) {
				t.Errorf("%s may name a task or an idempotency key: is it a fire's? Add it to this table", name)
			}
			for _, r := range requests {
				var headers []string
				if r.key != "" {
					headers = []string{"Idempotency-Key", r.key}
				}
				got := e.do(method, path, e.control(roleAdmin), r.body, headers...)
				want := fmt.Sprintf(`"error":%q`, v1.CodeInvalidRequest)
				if got.status == 200 && path == "/v1/tasks:batch" {
					want = `"status":400,` + want
				} else if got.status != 400 {
					t.Errorf("%s %s: %d %s", name, r.body, got.status, got.body)
				}
				if !strings.Contains(got.body, want) || !strings.Contains(got.body, fmt.Sprintf(`"field":%q`, r.field)) {
					t.Errorf("%s %s (%s): %s", name, r.body, r.key, got.body)
				}
			}
		}
	}
}

// namesTasks reports whether a request of an operation may hold a task's id in its body, or an idempotency key.
func namesTasks(op *openapi3.Operation) bool {
	for _, p := range op.Parameters {
		if p.Value.Name == "Idempotency-Key" {
			return true
		}
	}
	if op.RequestBody == nil {
		return false
	}
	for _, content := range op.RequestBody.Value.Content {
		if names(content.Schema, nil) {
			return true
		}
	}
	return false
}

func names(s *openapi3.SchemaRef, above []*openapi3.Schema) bool {
	if s == nil || s.Value == nil || slices.Contains(above, s.Value) {
		return false
	}
	above = append(above, s.Value)
	for name, of := range s.Value.Properties {
		if name == "taskId" || name == "idempotencyKey" || names(of, above) {
			return true
		}
	}
	for _, of := range append(append(slices.Clone(s.Value.AllOf), s.Value.AnyOf...), s.Value.OneOf...) {
		if names(of, above) {
			return true
		}
	}
	return names(s.Value.Items, above)
}
