package api

import (
	"fmt"
	"strings"
	"testing"

	"github.com/lubdub-io/lubdub/api/httpapi"
	v1 "github.com/lubdub-io/lubdub/sdk/go/v1"
	"github.com/lubdub-io/lubdub/tracker/beats"
	"github.com/lubdub-io/lubdub/tracker/model"
	"github.com/lubdub-io/lubdub/tracker/workers"
)

// Only the field with the exact name decides about a task, however many look like it.
func TestAnOutcomeInAnotherCaseDecidesNothing(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	var got model.Completion
	e.fake.complete = func(_ *model.Attempt, c model.Completion) (model.Completed, error) {
		got = c
		return model.Completed{At: fakeTime, Outcome: c.Outcome}, nil
	}
	path := "/v1/tasks/task_1/completed"
	for _, other := range []string{`"Outcome":"FAILED"`, `"OUTCOME":"FAILED","Error":{"category":"INFRASTRUCTURE"}`,
		`"\u004futcome":"FAILED"`, ` "Outcome" : "FAILED"`} {
		e.do("POST", path, e.task(), `{"attempt":1,"outcome":"SUCCEEDED",`+other+`}`).want(200)
		if got.Outcome != model.Succeeded || got.Error != nil {
			t.Errorf("%s made a success %+v", other, got)
		}
	}
	e.do("POST", path, e.task(), `{"attempt":1,"outcome":"FAILED","error":{"category":"INFRASTRUCTURE","retryable":false,`+
		`"Retryable":true}}`).want(200)
	if got.Retryable || !strings.Contains(string(got.Error), `"Retryable":true`) {
		t.Errorf("Retryable counted, or the error was not kept as it was sent: %+v", got)
	}
	for _, c := range []struct{ body, field string }{
		{`{"attempt":1,"outcome":"SUCCEEDED","outcome":"FAILED"}`, "outcome"},
		{`{"attempt":1,"outcome":"SUCCEEDED","outc\u006fme":"SUCCEEDED"}`, "outcome"},
		{`{"attempt":1,"outcome":"FAILED","error":{"category":"INFRASTRUCTURE","category":"TIMEOUT"}}`, "error.category"},
		{`{"attempt":1,"attempt":1,"outcome":"SUCCEEDED"}`, "attempt"},
	} {
		if r := e.do("POST", path, e.task(), c.body).refused(400, v1.CodeInvalidRequest); r.Field != c.field {
			t.Errorf("%s: the field is %q", c.body, r.Field)
		}
	}
}

// A beat's fields come once, as those of every body.
func TestABeatHasEachFieldOnce(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	e.badItems = true
	worker, _, err := httpapi.MintWorker(e.keys, testAttempt().Scope, &workers.Registered{WorkerID: fakeWorkerID, Queue: "q"}, e.now())
	if err != nil {
		t.Fatal(err)
	}
	beatCount := 0
	e.fake.beat = func(*beats.Beat) { beatCount++ }
	for field, value := range map[string]string{
		"attempt": "1", "workerId": `"w"`, "heartbeatAt": `"2025-01-15T10:05:00Z"`, "progressPct": "5", "message": `"x"`,
	} {
		twice := []string{
			fmt.Sprintf(`{"attempt":1,%q:%s,%q:%s}`, field, value, field, value),
			fmt.Sprintf(`{"attempt":1,%q:null,%q:%s}`, field, field, value),
			fmt.Sprintf(`{"attempt":1,%q:%s,"\u%04x%s":null}`, field, value, field[0], field[1:]),
		}
		for _, body := range twice {
			if r := e.do("POST", "/v1/tasks/task_1/heartbeat", e.task(), body).refused(400, v1.CodeInvalidRequest); r.Field != field ||
				!strings.Contains(r.Message, "twice") {
				t.Errorf("%s: %+v", body, r)
			}
			item := `{"taskId":"task_1","taskToken":"` + e.task() + `",` + body[1:]
			var got struct{ Results []v1.Error }
			e.do("POST", "/v1/heartbeats", "", `{"heartbeats":[`+item+`]}`).want(200).into(&got)
			if got.Results[0].Field != field || got.Results[0].Error != v1.CodeInvalidRequest {
				t.Errorf("%s in a batch: %+v", body, got)
			}
			inventory := `{"tasks":[{"taskId":"t",` + body[1:] + `]}`
			if r := e.do("POST", "/v1/workers/"+fakeWorkerID+"/heartbeat", worker, inventory).refused(400, v1.CodeInvalidRequest); r.Field !=
				"tasks[0]."+field {
				t.Errorf("%s: %+v", inventory, r)
			}
		}
	}
	r := e.do("POST", "/v1/heartbeats", "",
		`{"heartbeats":[],"heartbeats":[{"taskId":"task_1","attempt":1,"taskToken":"`+e.task()+`"}]}`).refused(400, v1.CodeInvalidRequest)
	if r.Field != "heartbeats" {
		t.Errorf("heartbeats twice: %+v", r)
	}
	if beatCount > 0 {
		t.Errorf("%d beats were taken", beatCount)
	}
}
