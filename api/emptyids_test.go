package api

import (
	"strings"
	"testing"

	v1 "github.com/lubdub-io/lubdub/sdk/go/v1"
)

// An id that is given as "" is no id; only one that is left out, or null, is absent.
func TestEmptyIDsAreRefused(t *testing.T) {
	t.Parallel()
	contract(t, func(t *testing.T, l *live) {
		e, w := l.create(short), l.register(mailer)
		dispatcher, operator, viewer, enroll := l.control(roleDispatcher), l.control(roleOperator), l.control(roleViewer), l.control(roleEnroll)
		task := "/v1/tasks/" + e.TaskID
		for _, c := range []struct{ path, token, body, field string }{
			{task + "/started", e.TaskToken, `{"attempt":1,"workerId":""}`, "workerId"},
			{task + "/heartbeat", e.TaskToken, `{"attempt":1,"workerId":""}`, "workerId"},
			{task + "/completed", e.TaskToken, `{"attempt":1,"outcome":"SUCCEEDED","workerId":""}`, "workerId"},
			{"/v1/queues/default/claim", w.WorkerToken, `{"claimId":""}`, "claimId"},
			{"/v1/workers/" + w.WorkerID + "/heartbeat", w.WorkerToken, `{"tasks":[{"taskId":"","attempt":1}]}`, "tasks[0].taskId"},
			{"/v1/tasks", dispatcher, `{"queue":""}`, "queue"},
			{"/v1/tasks", dispatcher, `{"type":""}`, "type"},
			{"/v1/tasks", dispatcher, `{"queue":"q","runtime":""}`, "runtime"},
			{"/v1/tasks", dispatcher, `{"queue":"q","workerId":""}`, "workerId"},
			{"/v1/tasks", dispatcher, `{"taskId":""}`, "taskId"},
			{"/v1/tasks", dispatcher, `{"runId":""}`, "runId"},
			{"/v1/tasks", dispatcher, `{"assetId":""}`, "assetId"},
			{"/v1/tasks", dispatcher, `{"tenantId":""}`, "tenantId"},
			{"/v1/workers", enroll, `{"queue":"","types":["x"]}`, "queue"},
			{"/v1/workers", enroll, `{"queue":"q","types":["x"],"machineId":""}`, "machineId"},
			{"/v1/workers:select", viewer, `{"queue":""}`, "queue"},
			{"/v1/workers:select", viewer, `{"queue":"default","type":""}`, "type"},
			{"/v1/workers:select", viewer, `{"queue":"default","runtime":""}`, "runtime"},
			{"/v1/workers:drain", operator, `{"selector":{"queue":""}}`, "selector.queue"},
			{"/v1/workers:drain", operator, `{"selector":{"machineId":""}}`, "selector.machineId"},
			{"/v1/tasks:cancel", operator, `{"selector":{"queue":""}}`, "selector.queue"},
			{"/v1/tasks:retry", dispatcher, `{"selector":{"runId":""}}`, "selector.runId"},
			{"/v1/workers:cordon", operator, `{"selector":{"queue":""}}`, "selector.queue"},
			{"/v1/workers:offline", operator, `{"selector":{"machineId":""}}`, "selector.machineId"},
		} {
			if r := l.do("POST", c.path, c.token, c.body).refused(400, v1.CodeInvalidID); r.Field != c.field {
				t.Errorf("%s %s: the field is %q", c.path, c.body, r.Field)
			}
		}
		var batch struct{ Results []v1.Error }
		l.badItems = true
		l.do("POST", "/v1/tasks:batch", dispatcher, `{"tasks":[{"queue":""}]}`).want(200).into(&batch)
		if r := batch.Results[0]; r.Error != v1.CodeInvalidID || r.Field != "queue" {
			t.Errorf("in a batch: %+v", r)
		}
		for _, at := range []string{"soon", "", "2025-01-15"} {
			r := l.do("POST", "/v1/tasks", dispatcher, `{"queue":"q","deadline":"`+at+`"}`).refused(400, v1.CodeInvalidRequest)
			if r.Field != "deadline" || strings.Contains(r.Message, "string") {
				t.Errorf("%q: %+v", at, r)
			}
		}
		for _, query := range []string{"runId=", "workerId=", "queue=", "type=", "tenantId="} {
			l.do("GET", "/v1/tasks?"+query, viewer, "").refused(400, v1.CodeInvalidID)
		}
		l.call(e, "started", `{"attempt":1,"workerId":null,"bogusId":""}`).want(200)
		l.call(e, "completed", `{"attempt":1,"outcome":"SUCCEEDED","output":{"fileId":""}}`).want(200)
	})
}

// Text that narrows what is meant is not left out by being empty: what is meant would be more than was wanted.
func TestEmptySelectorsMeanNothing(t *testing.T) {
	t.Parallel()
	contract(t, func(t *testing.T, l *live) {
		l.register(mailer)
		l.queue(`,"taskId":"t1"`)
		operator, dispatcher, admin := l.control(roleOperator), l.control(roleDispatcher), l.control(roleAdmin)
		for _, c := range []struct{ path, token, body, field string }{
			{"/v1/tasks:cancel", operator, `{"selector":{"queue":"default","state":""}}`, "selector.state"},
			{"/v1/tasks:cancel", operator, `{"selector":{"queue":"default","reason":""}}`, "selector.reason"},
			{"/v1/tasks:retry", dispatcher, `{"selector":{"queue":"default","reason":""}}`, "selector.reason"},
			{"/v1/workers:drain", operator, `{"selector":{"queue":"default","version":""}}`, "selector.version"},
			{"/v1/workers:cordon", operator, `{"selector":{"queue":"default","version":""}}`, "selector.version"},
			{"/v1/workers:offline", operator, `{"selector":{"queue":"default","version":""}}`, "selector.version"},
			{"/v1/tokens:revoke", admin, `{"tenantId":"default","subject":""}`, "subject"},
			{"/v1/webhooks", operator, `{"url":"https://example.com","events":["task.*"],"subject":""}`, "subject"},
			{"/v1/webhooks", operator, `{"url":"https://example.com","events":["task.*"],"taskType":""}`, "taskType"},
		} {
			if r := l.do("POST", c.path, c.token, c.body).refused(400, v1.CodeInvalidRequest); r.Field != c.field {
				t.Errorf("%s %s: the field is %q", c.path, c.body, r.Field)
			}
		}
		var batch struct{ Results []v1.Error }
		l.badItems = true
		l.do("POST", "/v1/tasks:batch", dispatcher, `{"tasks":[{"queue":"default","idempotencyKey":""}]}`).want(200).into(&batch)
		if r := batch.Results[0]; r.Error != v1.CodeInvalidRequest || r.Field != "idempotencyKey" {
			t.Errorf("in a batch: %+v", r)
		}
		if task := l.get("t1"); task.State != v1.Queued {
			t.Errorf("the task is %s", task.State)
		}
		l.do("POST", "/v1/tasks:cancel", operator, `{"selector":{"queue":"default","state":null},"reason":"","pageToken":""}`).want(200)
	})
}
