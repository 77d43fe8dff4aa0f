package api

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"

	v1 "github.com/lubdub-io/lubdub/sdk/go/v1"
)

// nested is JSON so many levels deep.
func nested(levels int) string {
	return strings.Repeat(`{"a":`, levels) + `"{[\"[{"` + strings.Repeat("}", levels)
}

// rawFields are the fields of a request whose JSON is kept as it comes.
func rawFields(t reflect.Type) (names []string) {
	for _, f := range reflect.VisibleFields(t) {
		if name, _, _ := strings.Cut(f.Tag.Get("json"), ","); f.Type == reflect.TypeFor[json.RawMessage]() {
			names = append(names, name)
		}
	}
	return names
}

// Every JSON value that a client may have kept can be read again by anything: 100 levels are taken and come back, 101 are
// refused with the field's name, and change nothing.
func TestContractDepthOfJSON(t *testing.T) {
	t.Parallel()
	contract(t, func(t *testing.T, l *live) {
		fields := rawFields(reflect.TypeFor[v1.CreateTaskRequest]())
		if len(fields) != 2 {
			t.Fatalf("a creation keeps %v; this test knows of payload and resources", fields)
		}
		for _, field := range fields {
			body := func(levels int) string { return fmt.Sprintf(`{"%s":%s}`, field, nested(levels)) }
			task := l.get(l.create(body(100)).TaskID)
			stored := map[string]json.RawMessage{"payload": task.Payload, "resources": task.Resources}
			if string(stored[field]) != nested(100) {
				t.Errorf("%s of 100 levels came back as %s", field, stored[field])
			}
			for _, levels := range []int{101, 9_990} {
				refusal := fmt.Sprintf(`{"error":"invalid_request","field":"%s"}`, field)
				message := fmt.Sprintf("%s is nested %d levels deep; use at most 100, or send it as a string", field, levels)
				l.do("POST", "/v1/tasks", l.control(roleDispatcher), body(levels)).want(400).contains(refusal)
				l.do("POST", "/v1/tasks:batch", l.control(roleDispatcher), `{"tasks":[`+body(levels)+`]}`).want(200).contains(`{"results":[` +
					strings.TrimSuffix(refusal, "}") + `,"status":400,"message":"` + message + `"}]}`)
			}
		}
		fields = append(rawFields(reflect.TypeFor[v1.CompletedRequest]()), "error")
		if len(fields) != 4 {
			t.Fatalf("a completion keeps %v; this test knows of output, metrics, partialProgress and error", fields)
		}
		for _, field := range fields {
			body := func(levels int) string {
				value := nested(levels)
				if field == "error" {
					value = `{"category":"TIMEOUT",` + value[1:]
				}
				return fmt.Sprintf(`{"attempt":1,"outcome":"CANCELLED","%s":%s}`, field, value)
			}
			e := l.create(`{}`)
			for _, levels := range []int{101, 9_990} {
				refusal := fmt.Sprintf(`{"error":"invalid_request","field":"%s"}`, field)
				l.call(e, "completed", body(levels)).want(400).contains(refusal)
			}
			l.call(e, "completed", body(20_000)).want(400).contains(`{"error":"invalid_json","message":"The body is nested deeper than 10000 ` +
				`levels; use far fewer"}`)
			if task := l.get(e.TaskID); task.State != v1.Dispatched {
				t.Errorf("after refusals the task is %s", task.State)
			}
			l.call(e, "completed", body(100)).want(200)
			l.get(e.TaskID)
		}
	})
}
