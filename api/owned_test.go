package api

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/lubdub-io/lubdub/api/httpapi"
	v1 "github.com/lubdub-io/lubdub/sdk/go/v1"
	"github.com/lubdub-io/lubdub/tracker/workers"
)

// A worker's token opens the callbacks of the attempts that were dispatched to it, and of no others.
func TestContractWorkerTokenCallbacks(t *testing.T) {
	t.Parallel()
	contract(t, func(t *testing.T, l *live) {
		w, other := l.register(mailer), l.register(strings.Replace(mailer, "4711", "4712", 1))
		l.queue(`,"taskId":"t1","heartbeatTimeoutMs":60000`)
		if got := l.claim(w, ""); len(got) != 1 {
			t.Fatalf("%+v", got)
		}
		pushed := l.create(`{"taskId":"pushed"}`)
		own := func(call, body string) *answer { return l.do("POST", "/v1/tasks/t1/"+call, w.WorkerToken, body) }
		l.do("POST", "/v1/tasks/t1/heartbeat", other.WorkerToken, `{"attempt":1}`).refused(403, v1.CodeForbidden)
		l.do("POST", "/v1/tasks/t1/completed", other.WorkerToken, `{"attempt":1,"outcome":"SUCCEEDED"}`).refused(403, v1.CodeForbidden)
		l.do("POST", "/v1/tasks/pushed/started", w.WorkerToken, `{"attempt":1,"workerId":"`+w.WorkerID+`"}`).refused(403, v1.CodeForbidden)
		l.do("POST", "/v1/tasks/none/heartbeat", w.WorkerToken, `{"attempt":1}`).refused(403, v1.CodeForbidden)
		l.do("POST", "/v1/tasks/t1/heartbeat", l.control(roleAdmin), `{"attempt":1}`).refused(403, v1.CodeForbidden)
		own("heartbeat", `{"attempt":2}`).refused(403, v1.CodeForbidden)
		own("heartbeat", `{"attempt":0}`).refused(400, v1.CodeInvalidRequest)
		own("heartbeat", `[]`).refused(400, v1.CodeInvalidJSON)
		own("started", `{"attempt":1}`).want(200)
		own("heartbeat", `{"attempt":1,"progressPct":40}`).want(200).contains(`{"acknowledged":true,"nextHeartbeatMs":30000}`)

		var batch v1.HeartbeatsResponse
		l.badItems = true
		l.do("POST", "/v1/heartbeats", w.WorkerToken, fmt.Sprintf(`{"heartbeats":[{"taskId":"t1","attempt":1,"progressPct":50},
			{"taskId":"pushed","attempt":1},
			{"taskId":"pushed","attempt":1,"taskToken":%q},{"taskId":"none","attempt":1},{"taskId":".","attempt":1},
			{"taskId":"t1"}]}`, pushed.TaskToken)).want(200).into(&batch)
		var statuses []int
		for _, r := range batch.Results {
			statuses = append(statuses, r.Status)
		}
		if fmt.Sprint(statuses) != "[200 403 200 403 400 400]" {
			t.Errorf("%v", statuses)
		}
		if task := l.get("t1"); string(task.ProgressPct) != "50" {
			t.Errorf("%+v", task)
		}
		l.do("POST", "/v1/heartbeats", other.WorkerToken, `{"heartbeats":[{"taskId":"t1","attempt":1}]}`).want(200).into(&batch)
		if batch.Results[0].Status != 403 {
			t.Errorf("%+v", batch.Results)
		}
		first := own("completed", `{"attempt":1,"outcome":"SUCCEEDED"}`).want(200)
		if again := own("completed", `{"attempt":1,"outcome":"SUCCEEDED"}`).want(200); again.body != first.body {
			t.Errorf("%s, then %s", first.body, again.body)
		}
		own("heartbeat", `{"attempt":1}`).refused(409, v1.CodeTaskAlreadyTerminal)
	})
}

// What the store may have lost is no verdict: the worker comes again, or shows the attempt's own token.
func TestAnAttemptInDoubtIsSentAgain(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	e.fake.doubts = true
	worker, _, err := httpapi.MintWorker(e.keys, testAttempt().Scope, &workers.Registered{WorkerID: fakeWorkerID, MachineID: "host-7",
		Queue: "default"}, e.now())
	if err != nil {
		t.Fatal(err)
	}
	for call, body := range map[string]string{"started": `{"attempt":1}`, "heartbeat": `{"attempt":1}`,
		"completed": `{"attempt":1,"outcome":"SUCCEEDED"}`} {
		a := e.do("POST", "/v1/tasks/task_1/"+call, worker, body).want(503).contains(`{"error":"store_unavailable"}`)
		if a.header.Get("Retry-After") != "1" || !strings.Contains(a.body, "taskToken") {
			t.Errorf("%s: %v %s", call, a.header, a.body)
		}
	}
	a := e.do("POST", "/v1/heartbeats", worker, `{"heartbeats":[{"taskId":"task_1","attempt":1}]}`).want(200)
	if !strings.Contains(a.body, `"status":503,"retryAfterMs":1000,"error":"store_unavailable"`) {
		t.Errorf("in a batch: %s", a.body)
	}
}

// The answer to a worker's beat carries cancels and losses until one was handed to its connection.
func TestContractWorkerBeatReportsCancelsAndLosses(t *testing.T) {
	t.Parallel()
	contract(t, func(t *testing.T, l *live) {
		w := l.register(mailer)
		for _, id := range []string{"t1", "t2", "t3"} {
			l.queue(`,"taskId":"` + id + `"`)
		}
		n := 0
		until(t, func() bool { n += len(l.claim(w, `{"max":3}`)); return n == 3 }, func() string { return "its tasks are not claimed" })
		l.mine(w, "heartbeat", `{"tasks":[{"taskId":"t1","attempt":1,"progressPct":12.5,"message":"on `+
			`it"},{"taskId":"t2","attempt":1},{"taskId":"t3","attempt":1},{"taskId":"t9","attempt":1}]}`).
			want(200).contains(`{"cancelTasks":[],"lostTasks":[]}`)
		if task := l.get("t1"); task.State != v1.Running || string(task.ProgressPct) != "12.5" || string(task.Message) != `"on it"` {
			t.Errorf("%+v", task)
		}
		l.do("POST", "/v1/tasks/t1/cancel", l.control(roleOperator), `{"reason":"why"}`).want(202)
		l.do("POST", "/v1/tasks/t2/attempts", l.control(roleDispatcher), `{"fromAttempt":1}`).want(202)
		l.sweep()
		l.mine(w, "heartbeat", "").want(200).contains(`{"cancelTasks":[{"taskId":"t1","attempt":1,"reason":"why"}],"lostTasks":[{"taskId":"t2",` +
			`"attempt":1,"error":"attempt_mismatch"}]}`)
		until(t, func() bool { // its delivery is recorded in the background
			var r v1.WorkerHeartbeatResponse
			l.mine(w, "heartbeat", "").want(200).into(&r)
			return len(r.CancelTasks) == 0 && len(r.LostTasks) == 0
		}, func() string { return "the delivery of the worker's notices is not recorded" })
		for range 2 {
			l.mine(w, "heartbeat", `{"tasks":[{"taskId":"t1","attempt":1}]}`).want(200)
			l.pass(10 * time.Second)
		}
		l.mine(w, "heartbeat", `{"tasks":[{"taskId":"t1","attempt":1}]}`).want(200)
		if task := l.get("t3"); task.State != v1.Queued || task.History[0].Outcome != "LOST" || *task.History[0].Reason != "WORKER_LOST" {
			t.Errorf("%+v", task)
		}
		for body, field := range map[string]string{
			`{"tasks":[{"attempt":1}]}`:                                 "tasks[0].taskId",
			`{"tasks":[{"taskId":"t1","attempt":1},{"taskId":"t1"}]}`:   "tasks[1].attempt",
			`{"tasks":[{"taskId":"t1","attempt":1,"progressPct":101}]}`: "tasks[0].progressPct",
			`{"tasks":[7]}`: "tasks[0]",
			`{"tasks":{}}`:  "tasks",
		} {
			if a := l.mine(w, "heartbeat", body).want(400); !strings.Contains(a.body, `"field":"`+field+`"`) {
				t.Errorf("%s: %s", body, a.body)
			}
		}
	})
}
