package api

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/lubdub-io/lubdub/api/httpapi"
	"github.com/lubdub-io/lubdub/api/token"
	v1 "github.com/lubdub-io/lubdub/sdk/go/v1"
)

// Batches, lists, runs, and what must survive.

func TestContractBatches(t *testing.T) {
	t.Parallel()
	contract(t, func(t *testing.T, l *live) {
		var created struct {
			Results []struct {
				Status int
				v1.TaskEnvelope
			}
		}
		l.badItems = true
		l.do("POST", "/v1/tasks:batch", l.control(roleDispatcher),
			`{"tasks":[{"taskId":"a"},{"taskId":"b"},{"taskId":"a"},{"bogus":1},{"taskId":"c","queue":"q"}]}`).want(200).into(&created)
		var statuses []int
		for _, r := range created.Results {
			statuses = append(statuses, r.Status)
		}
		if !slices.Equal(statuses, []int{201, 201, 409, 400, 201}) && !slices.Equal(statuses, []int{409, 201, 201, 400, 201}) {
			t.Fatalf("got %v\n%s", statuses, l.log)
		}
		a, b := created.Results[0], created.Results[1]
		if statuses[0] != 201 {
			a = created.Results[2] // which of two with one id wins is open
		}
		l.call(&a.TaskEnvelope, "started", `{"attempt":1}`).want(200)
		l.call(&b.TaskEnvelope, "completed", seedSucceeded).want(200)
		var got v1.HeartbeatsResponse
		l.do("POST", "/v1/heartbeats", "", fmt.Sprintf(`{"heartbeats":[
			{"taskId":"a","attempt":1,"taskToken":%q,"progressPct":10},{"taskId":"b","attempt":1,"taskToken":%q},{"taskId":"b","attempt":1,
			"taskToken":%q},{"taskId":"a","attempt":1,"taskToken":%q,"progressPct":20}]}`,
			a.TaskToken, b.TaskToken, a.TaskToken, a.TaskToken)).want(200).into(&got)
		for i, want := range []int{200, 409, 403, 200} {
			if got.Results[i].Status != want {
				t.Errorf("%d: got %+v, want %d", i, got.Results[i], want)
			}
		}
		if task := l.get("a"); task.State != v1.Running || string(task.ProgressPct) != "20" {
			t.Errorf("got %s %s", task.State, task.ProgressPct)
		}
	})
}

func TestContractLists(t *testing.T) {
	t.Parallel()
	contract(t, func(t *testing.T, l *live) {
		want := map[string]bool{}
		for i := range 23 {
			id := fmt.Sprintf("t%02d", i)
			want[id] = true
			l.create(`{"taskId":"` + id + `","runId":"run_a","labels":{"odd":"` + fmt.Sprint(i%2 == 1) + `"}}`)
		}
		l.do("POST", "/v1/tasks", l.control(roleDispatcher), `{"taskId":"q1","queue":"default","type":"mail","runId":"run_b"}`).want(201)

		walk := func(query string) (ids []string, total *int) {
			t.Helper()
			path := "/v1/tasks?" + query
			for {
				var list v1.TaskList
				l.do("GET", path, l.control(roleViewer), "").want(200).into(&list)
				for _, task := range list.Tasks {
					ids = append(ids, task.TaskID)
				}
				total = list.TotalCount
				if list.NextPageToken == "" {
					return ids, total
				}
				path = "/v1/tasks?" + query + "&pageToken=" + list.NextPageToken
			}
		}
		for query, n := range map[string]int{"pageSize=5": 24, "runId=run_a&pageSize=7": 23, "state=DISPATCHED&pageSize=100": 23,
			"state=QUEUED": 1, "state=FAILED": 0, "runId=run_a&state=QUEUED": 0} {
			ids, total := walk(query)
			if len(ids) != n || total == nil || *total != n || !slices.IsSorted(ids) || len(slices.Compact(slices.Clone(ids))) != n {
				t.Errorf("%s: %d tasks, total %v, want %d: %v", query, len(ids), total, n, ids)
			}
		}
		for query, n := range map[string]int{"label=odd%3Dtrue&pageSize=4": 11, "queue=default": 1, "type=mail": 1, "type=none": 0,
			"workerId=w1": 0, "liveness=FRESH": 0} {
			if ids, total := walk(query); len(ids) != n || total != nil {
				t.Errorf("%s: %d tasks, total %v, want %d and none", query, len(ids), total, n)
			}
		}
		var page v1.TaskList
		l.do("GET", "/v1/tasks?runId=run_a&pageSize=10", l.control(roleViewer), "").want(200).into(&page)
		l.create(`{"taskId":"t045","runId":"run_a"}`) // behind the page's end in no order but its id's
		var rest []string
		path := "/v1/tasks?runId=run_a&pageSize=10&pageToken="
		for token := page.NextPageToken; token != ""; {
			var next v1.TaskList
			l.do("GET", path+token, l.control(roleViewer), "").want(200).into(&next)
			for _, task := range next.Tasks {
				rest = append(rest, task.TaskID)
			}
			token = next.NextPageToken
		}
		if len(rest) != 13 || slices.Contains(rest, page.Tasks[9].TaskID) {
			t.Errorf("after a task came into a page already read: %v", rest)
		}
	})
}

func TestContractRuns(t *testing.T) {
	t.Parallel()
	contract(t, func(t *testing.T, l *live) {
		one := l.create(`{"taskId":"a","runId":"r"}`)
		l.create(`{"taskId":"b","runId":"r"}`)
		l.do("POST", "/v1/tasks", l.control(roleDispatcher), `{"taskId":"c","runId":"r","queue":"q"}`).want(201)
		l.call(one, "started", `{"attempt":1}`).want(200)
		l.do("GET", "/v1/runs/r", l.control(roleViewer),
			"").want(200).contains(`{"runId":"r","totalCount":3,"counts":{"SCHEDULED":0,"QUEUED":1,"DISPATCHED":1,"RUNNING":1,"SUCCEEDED":0,"FAILED":0,` +
			`"CANCELLED":0}}`)
		l.do("POST", "/v1/runs/r/cancel", l.control(roleOperator), `{"reason":"stop"}`).want(202)
		l.do("GET", "/v1/runs/r", l.control(roleViewer),
			"").want(200).contains(`{"counts":{"SCHEDULED":0,"QUEUED":0,"DISPATCHED":0,"RUNNING":1,"SUCCEEDED":0,"FAILED":0,"CANCELLED":2}}`)
		l.call(one, "heartbeat", `{"attempt":1}`).want(200).contains(`{"shouldCancel":true,"cancelReason":"stop"}`)
		l.do("GET", "/v1/runs/none", l.control(roleViewer), "").refused(404, "run_not_found")
		l.do("GET", "/v1/tasks/none", l.control(roleViewer), "").refused(404, "task_not_found")
	})
}

func TestContractQueueTasksGoBackToTheirQueue(t *testing.T) {
	t.Parallel()
	contract(t, func(t *testing.T, l *live) {
		l.do("POST", "/v1/tasks", l.control(roleDispatcher),
			`{"taskId":"a","queue":"default","heartbeatTimeoutMs":2000,"heartbeatIntervalMs":1000,"retry":{"initialBackoffMs":60000,`+
				`"maxBackoffMs":60000}}`).want(201)
		claimed := l.claim(l.register(mailer), "")
		if len(claimed) != 1 || claimed[0].TaskID != "a" {
			t.Fatalf("%+v", claimed)
		}
		envelope := &claimed[0]
		l.call(envelope, "started", `{"attempt":1}`).want(200)
		l.call(envelope, "completed", seedFailed).want(200).contains(`{"finalState":"FAILED","willRetry":true,"nextAttempt":2}`)
		task := l.get("a")
		if task.State != v1.Queued || task.Attempt != 1 || task.NextAttemptAt.IsZero() || task.Failures != 1 {
			t.Errorf("got %+v", task)
		}
		l.call(envelope, "completed", seedFailed).want(200).contains(`{"finalState":"FAILED","willRetry":true,"nextAttempt":2}`)
	})
}

func TestContractRefusalsChangeNothing(t *testing.T) {
	t.Parallel()
	contract(t, func(t *testing.T, l *live) {
		e := l.create(short)
		l.call(e, "started", `{"attempt":1}`).want(200)
		before := fmt.Sprint(l.store.Dump(t))
		for _, c := range []struct{ path, token, body string }{
			{"/v1/tasks/" + e.TaskID + "/heartbeat", "", `{"attempt":1}`},
			{"/v1/tasks/" + e.TaskID + "/heartbeat", e.TaskToken + "x", `{"attempt":1}`},
			{"/v1/tasks/other/heartbeat", e.TaskToken, `{"attempt":1}`},
			{"/v1/tasks/" + e.TaskID + "/heartbeat", e.TaskToken, `{"attempt":2}`},
			{"/v1/tasks/" + e.TaskID + "/completed", e.TaskToken, `{"attempt":1,"outcome":"FAILED"}`},
			{"/v1/tasks/" + e.TaskID + "/completed", e.TaskToken, `{"attempt":1,"outcome":"SUCCEEDED"} ` + `x`},
			{"/v1/tasks", l.control(roleViewer), `{}`},
			{"/v1/tasks", l.control(roleAdmin), `{"bogus":1}`},
			{"/v1/tasks/none/cancel", l.control(roleAdmin), ``},
		} {
			if a := l.do("POST", c.path, c.token, c.body); a.status < 400 || a.status >= 500 {
				t.Errorf("%s %s: %d", c.path, c.body, a.status)
			}
		}
		if after := fmt.Sprint(l.store.Dump(t)); after != before {
			t.Errorf("a refused request changed the store:\n%s\n%s", before, after)
		}
	})
}

// A beat before started starts the attempt; a token whose record is gone is adopted.
func TestContractUnknownIsNotExpired(t *testing.T) {
	t.Parallel()
	contract(t, func(t *testing.T, l *live) {
		e := l.create(short)
		l.call(e, "heartbeat", `{"attempt":1}`).want(200)
		if task := l.get(e.TaskID); task.State != v1.Running {
			t.Errorf("a beat left the task %s", task.State)
		}
		lost := l.create(short)
		keys, err := l.store.Client.Keys(context.Background(), "*"+lost.TaskID+"*").Result()
		if err != nil || len(keys) == 0 {
			t.Fatal(err, keys)
		}
		if err := l.store.Client.Del(context.Background(), keys...).Err(); err != nil {
			t.Fatal(err)
		}
		l.do("GET", "/v1/tasks/"+lost.TaskID, l.control(roleViewer), "").refused(404, "task_not_found")
		l.call(lost, "heartbeat", `{"attempt":1}`).want(200)
		if task := l.get(lost.TaskID); task.State != v1.Running || task.Attempt != 1 {
			t.Errorf("got %+v", task)
		}
	})
}

// So is a worker, by its first call of any kind; a claim continues with what it registered for. Only its token can do that.
func TestContractAnUnknownWorkerIsAdopted(t *testing.T) {
	t.Parallel()
	contract(t, func(t *testing.T, l *live) {
		for first, call := range map[string]func(w *v1.RegisterWorkerResponse) *answer{
			"beat": func(w *v1.RegisterWorkerResponse) *answer { return l.mine(w, "heartbeat", "") },
			"claim": func(w *v1.RegisterWorkerResponse) *answer {
				return l.do("POST", "/v1/queues/default/claim", w.WorkerToken, "")
			},
			"drain":      func(w *v1.RegisterWorkerResponse) *answer { return l.mine(w, "drain", "") },
			"deregister": func(w *v1.RegisterWorkerResponse) *answer { return l.mine(w, "deregister", "") },
		} {
			w := l.register(mailer)
			if err := l.store.Client.FlushDB(context.Background()).Err(); err != nil {
				t.Fatal(err)
			}
			l.pass(0)
			l.do("GET", "/v1/workers/"+w.WorkerID, l.control(roleViewer), "").refused(404, v1.CodeWorkerNotFound)
			l.do("POST", "/v1/workers/"+w.WorkerID+"/drain", l.control(roleOperator), "").refused(404, v1.CodeWorkerNotFound)
			call(w).want(200)
			if got := l.workerNow(w.WorkerID); got.Name == nil || *got.Name != "mailer-1" || got.Labels["region"] != "us-east-1" ||
				len(got.Types) != 1 {
				t.Errorf("after a %s: %+v", first, got)
			}
		}
		w := l.register(mailer)
		renewed, _ := httpapi.RenewedWorker(l.keys, claimsOf(t, l, w.WorkerToken), l.now().Add(50*time.Minute))
		l.store.Client.FlushDB(context.Background())
		l.pass(0)
		l.do("POST", "/v1/workers/"+w.WorkerID+"/heartbeat", renewed, "").want(200) // a renewed token is as good
	})
}

func TestContractJSONComesBackAsItWent(t *testing.T) {
	t.Parallel()
	contract(t, func(t *testing.T, l *live) {
		payload := `{"b":1,"a":[1.50,"<&>\u2028é",12345678901234567890,null,{}]}`
		e := l.create(`{"payload":` + payload + `}`)
		if string(e.Payload) != payload {
			t.Errorf("envelope: %s", e.Payload)
		}
		task := l.get(e.TaskID)
		if string(task.Payload) != payload {
			t.Errorf("task: %s", task.Payload)
		}
		l.call(e, "completed", `{"attempt":1,"outcome":"FAILED","error":{"category":"USER_CODE","retryable":true,"more":[1.0]},`+
			`"output":"text"}`).want(200)
		task = l.get(e.TaskID)
		if string(task.Error) != `{"category":"USER_CODE","retryable":true,"more":[1.0]}` || string(task.Output) != `"text"` {
			t.Errorf("%s %s", task.Error, task.Output)
		}
		if !json.Valid(task.Error) {
			t.Error("not JSON")
		}
	})
}

func claimsOf(t *testing.T, l *live, token string) *token.Claims {
	t.Helper()
	c, err := l.keys.Verify(token, l.now())
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// What could not be written again in UTC is refused where it comes in: a task that kept it could not be shown.
func TestContractTimesOutsideTheYearsThatCanBeWritten(t *testing.T) {
	t.Parallel()
	contract(t, func(t *testing.T, l *live) {
		e := l.create(short)
		for _, at := range []string{"9999-12-31T23:59:59-23:59", "0000-01-01T00:00:00+23:59"} {
			l.call(e, "started", `{"attempt":1,"startedAt":"`+at+`"}`).refused(400, "invalid_request")
			l.call(e, "heartbeat", `{"attempt":1,"heartbeatAt":"`+at+`"}`).refused(400, "invalid_request")
			l.call(e, "completed", `{"attempt":1,"outcome":"SUCCEEDED","completedAt":"`+at+`"}`).refused(400, "invalid_request")
			l.do("POST", "/v1/tasks", l.control(roleDispatcher), `{"queue":"q","notBefore":"`+at+`"}`).refused(400, "invalid_request")
		}
		for _, at := range []string{"9999-12-31T23:59:59.999Z", "0000-01-01T00:00:00Z"} {
			l.call(e, "heartbeat", `{"attempt":1,"heartbeatAt":"`+at+`"}`).want(200)
			if got := l.get(e.TaskID); got.ReportedHeartbeatAt.Year() != 9999 && got.ReportedHeartbeatAt.Year() != 0 {
				t.Errorf("%s is kept as %v", at, got.ReportedHeartbeatAt)
			}
		}
	})
}

// The first answer is kept for 24 h, whatever the request's deadline was.
func TestContractRepeatAfterTheDeadline(t *testing.T) {
	t.Parallel()
	contract(t, func(t *testing.T, l *live) {
		deadline := l.now().Add(time.Minute).UTC().Format(time.RFC3339)
		body, item := `{"deadline":"`+deadline+`"}`, `{"tasks":[{"deadline":"`+deadline+`","idempotencyKey":"k2"}]}`
		create := func(path, body, key string) *answer {
			return l.do("POST", path, l.control(roleDispatcher), body, "Idempotency-Key", key)
		}
		one, batch := create("/v1/tasks", body, "k1").want(201), create("/v1/tasks:batch", item, "").want(200)
		l.pass(2 * time.Minute)
		l.sweep()
		if again := create("/v1/tasks", body, "k1").want(201); again.body != one.body {
			t.Errorf("got %s, then %s", one.body, again.body)
		}
		if again := create("/v1/tasks:batch", item, "").want(200); again.body != batch.body {
			t.Errorf("got %s, then %s", batch.body, again.body)
		}
		if e := create("/v1/tasks", body, "k3").refused(400, "invalid_request"); e.Field != "deadline" {
			t.Errorf("%+v", e)
		}
		l.do("POST", "/v1/tasks", l.control(roleDispatcher), body).refused(400, "invalid_request")
	})
}
