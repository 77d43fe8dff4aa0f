package api

import (
	"maps"
	"testing"

	"github.com/lubdub-io/lubdub/api/httpapi"
	v1 "github.com/lubdub-io/lubdub/sdk/go/v1"
)

// Tasks that a selector names are cancelled and tried again over the wire.
func TestContractActsOnManyTasks(t *testing.T) {
	t.Parallel()
	contract(t, func(t *testing.T, l *live) {
		dispatcher := l.control(roleDispatcher)
		act := func(what, body string, matched, done int, refused map[string]int, wouldDo ...int) {
			t.Helper()
			var r v1.ActOnTasksResponse
			l.do("POST", "/v1/tasks:"+what, dispatcher, body).want(200).into(&r)
			if r.Matched != matched || r.Done != done || !maps.Equal(r.Refused, refused) || r.NextPageToken != "" {
				t.Fatalf("%s %s: %+v", what, body, r)
			}
			if reported := r.WouldDo != nil; reported != (len(wouldDo) == 1) || reported && *r.WouldDo != wouldDo[0] {
				t.Fatalf("%s %s would do %v", what, body, r.WouldDo)
			}
		}
		failed := l.create(`{"taskId":"failed","type":"a"}`)
		l.call(failed, "started", `{"attempt":1}`).want(200)
		l.call(failed, "completed", `{"attempt":1,"outcome":"FAILED","error":{"category":"USER_CODE","message":"no"}}`).want(200)
		runs := l.create(`{"taskId":"runs","type":"a","labels":{"team":"x"}}`)
		l.call(runs, "started", `{"attempt":1}`).want(200)
		l.do("POST", "/v1/tasks", dispatcher, `{"taskId":"waits","queue":"q","type":"a"}`).want(201)

		act("retry", `{"selector":{"type":"a"},"dryRun":true}`, 3, 0, map[string]int{}, 1)
		act("cancel", `{"selector":{"type":"a"},"dryRun":true}`, 3, 0, map[string]int{}, 2)
		act("retry", `{"selector":{"type":"a"}}`, 3, 1, map[string]int{"task_not_failed": 2})
		act("retry", `{"selector":{"state":"FAILED"}}`, 0, 0, map[string]int{})
		act("retry", `{"selector":{"finishedAfter":"2020-01-01T00:00:00.000Z","reason":"WORKER_REPORTED","state":"FAILED,CANCELLED"}}`, 0, 0,
			map[string]int{})
		if task := l.get("failed"); task.State != v1.Dispatched || task.Attempt != 2 {
			t.Fatalf("%+v", task)
		}
		act("cancel", `{"selector":{"labels":{"team":"x"}},"gracePeriodMs":0,"reason":"it hangs"}`, 1, 1, map[string]int{})
		if task := l.get("runs"); task.State != v1.Cancelled || deref(task.Reason) != "TERMINATED" || deref(task.CancelReason) != "it hangs" {
			t.Fatalf("%+v", task)
		}
		act("cancel", `{"selector":{"state":"QUEUED,DISPATCHED","type":"a"}}`, 2, 2, map[string]int{})
		act("retry", `{"selector":{"type":"a"}}`, 3, 0, map[string]int{"task_already_terminal": 3})
		act("cancel", `{"selector":{"type":"a"},"dryRun":true}`, 3, 0, map[string]int{}, 0)

		for _, what := range []string{"cancel", "retry"} {
			for body, field := range map[string]string{
				`{}`: "selector", `{"selector":{}}`: "selector", `{"selector":{"labels":{}}}`: "selector",
				`{"selector":{"state":"DONE"}}`: "selector.state", `{"selector":{"reason":"WHY"}}`: "selector.reason",
				`{"selector":{"state":"RUNNING","finishedAfter":"2020-01-01T00:00:00Z"}}`:          "selector.state",
				`{"selector":{"type":"a"},"pageToken":"nonsense"}`:                                 "pageToken",
				`{"selector":{"type":"a"},"pageToken":"` + httpapi.PageToken("other", "t1") + `"}`: "pageToken",
			} {
				if r := l.do("POST", "/v1/tasks:"+what, dispatcher, body).refused(400, v1.CodeInvalidRequest); r.Field != field {
					t.Fatalf("%s %s: %+v", what, body, r)
				}
			}
			l.do("POST", "/v1/tasks:"+what, dispatcher, `{"selector":{"zone":"x"}}`).refused(400, v1.CodeUnknownField)
			l.do("POST", "/v1/tasks:"+what, dispatcher, `{"selector":{"type":"no id"}}`).refused(400, v1.CodeInvalidID)
		}
		l.do("POST", "/v1/tasks:cancel", dispatcher, `{"selector":{"type":"a"},"gracePeriodMs":-1}`).refused(400, v1.CodeInvalidRequest)
		l.do("POST", "/v1/tasks:retry", l.control(roleSubmitter), `{"selector":{"type":"a"}}`).refused(403, v1.CodeForbidden)
	})
}
