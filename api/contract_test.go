package api

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	v1 "github.com/lubdub-io/lubdub/api/v1"
	"github.com/lubdub-io/lubdub/internal/redistest"
	"github.com/lubdub-io/lubdub/tracker"
)

// The contract over HTTP, on every kind of store, with the clock in the test's hand.

func TestMain(m *testing.M) { redistest.Main(m) }

var _ Tracker = (*tracker.Tracker)(nil)

// live is an env on a real Tracker.
type live struct {
	*env
	tr      *tracker.Tracker
	sweeper *tracker.Sweeper
	store   *redistest.Store
}

func contract(t *testing.T, test func(l *live)) {
	t.Helper()
	redistest.Each(t, func(t *testing.T, s *redistest.Store) {
		var tr *tracker.Tracker
		e := newEnv(t, func(c *Config) {
			var err error
			tr, err = tracker.Open(context.Background(), tracker.Options{RedisURL: s.URL, Scripts: s.Scripts, Shards: 4, Logger: c.Logger})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = tr.Close(context.Background()) })
			c.Tracker, c.Now = tr, s.Clock.Now
		})
		e.readClock = s.Clock.Now
		l := &live{env: e, tr: tr, store: s, sweeper: tracker.NewSweeper(tr, tracker.SweeperOptions{ID: "swp_test"})}
		l.pass(0)
		test(l)
	})
}

// pass lets time pass while front ends are alive, so that shard time follows.
func (l *live) pass(d time.Duration) {
	l.t.Helper()
	for {
		step := min(d, 250*time.Millisecond)
		l.store.Clock.Advance(step)
		if err := l.tr.Tick(); err != nil {
			l.t.Fatal(err)
		}
		if d -= step; d <= 0 {
			return
		}
	}
}

func (l *live) sweep() {
	l.t.Helper()
	if _, err := l.sweeper.RunOnce(context.Background()); err != nil {
		l.t.Fatal(err)
	}
}

// create makes a pushed task and gives its envelope.
func (l *live) create(body string) *v1.TaskEnvelope {
	l.t.Helper()
	var e v1.TaskEnvelope
	l.do("POST", "/v1/tasks", l.control(RoleDispatcher), body).want(201).into(&e)
	return &e
}

// call is a callback of an attempt.
func (l *live) call(e *v1.TaskEnvelope, op, body string) *answer {
	l.t.Helper()
	return l.do("POST", "/v1/tasks/"+e.TaskID+"/"+op, e.TaskToken, body)
}

func (l *live) get(id string) *v1.Task {
	l.t.Helper()
	var task v1.Task
	l.do("GET", "/v1/tasks/"+id, l.control(RoleViewer), "").want(200).into(&task)
	return &task
}

const short = `{"heartbeatIntervalMs":1000,"heartbeatTimeoutMs":2000,"cancelGracePeriodMs":1000}`

func TestContractWholeLife(t *testing.T) {
	contract(t, func(l *live) {
		e := l.create(`{"taskKey":"raw.events","assetId":"asset_1","labels":{"team":"x"},"payload":{"a":1},"resources":{"cpu":2}}`)
		if e.Attempt != 1 || e.State != v1.Dispatched || e.TaskToken == "" {
			t.Fatalf("got %+v", e)
		}
		if task := l.get(e.TaskID); task.State != v1.Dispatched || task.Labels["team"] != "x" || string(task.Payload) != `{"a":1}` {
			t.Errorf("got %+v", task)
		}
		l.call(e, "started", seedStarted).want(200)
		l.call(e, "started", seedStarted).want(200)
		l.call(e, "heartbeat", seedHeartbeat).want(200).contains(`{"acknowledged":true,"shouldCancel":false,"nextHeartbeatMs":30000}`)
		task := l.get(e.TaskID)
		if task.State != v1.Running || *task.WorkerID != "worker-abc123" || string(task.ProgressPct) != "45" || string(task.Message) != `"Processing partition 5 of 10"` ||
			*task.Liveness != v1.Fresh || !task.ReportedHeartbeatAt.Equal(time.Date(2025, 1, 15, 10, 5, 0, 0, time.UTC)) {
			t.Errorf("got %+v", task)
		}
		first := l.call(e, "completed", seedSucceeded).want(200).contains(`{"acknowledged":true,"finalState":"SUCCEEDED"}`)
		if again := l.call(e, "completed", seedSucceeded).want(200); again.body != first.body {
			t.Errorf("the same completion got %s, then %s", first.body, again.body)
		}
		l.call(e, "completed", seedFailed).refused(409, "task_already_terminal")
		l.call(e, "heartbeat", seedHeartbeat).want(409).contains(`{"error":"task_already_terminal","state":"SUCCEEDED"}`)
		task = l.get(e.TaskID)
		if task.State != v1.Succeeded || len(task.History) != 1 || task.History[0].Outcome != "SUCCEEDED" {
			t.Errorf("got %+v", task)
		}
		sameJSON(t, task.Output, field(t, seedSucceeded, "output"))
		sameJSON(t, task.Metrics, field(t, seedSucceeded, "metrics"))
	})
}

func TestContractCancel(t *testing.T) {
	contract(t, func(l *live) {
		e := l.create(short)
		l.call(e, "started", `{"attempt":1}`).want(200)
		l.do("POST", "/v1/tasks/"+e.TaskID+"/cancel", l.control(RoleOperator), `{"reason":"user_requested"}`).want(202).contains(`{"cancelRequested":true,"cancelReason":"user_requested","state":"RUNNING"}`)
		l.do("POST", "/v1/tasks/"+e.TaskID+"/cancel", l.control(RoleOperator), `{"reason":"user_requested"}`).want(202)
		l.call(e, "heartbeat", `{"attempt":1}`).want(200).contains(`{"shouldCancel":true,"cancelReason":"user_requested"}`)
		l.call(e, "completed", seedCancelled).want(200).contains(`{"finalState":"CANCELLED"}`)
		task := l.get(e.TaskID)
		if task.State != v1.Cancelled || task.CancelledDuringPhase != "processing" {
			t.Errorf("got %+v", task)
		}
		sameJSON(t, task.PartialProgress, field(t, seedCancelled, "partialProgress"))
		l.do("POST", "/v1/tasks/"+e.TaskID+"/cancel", l.control(RoleOperator), "").want(409).contains(`{"error":"task_already_terminal","state":"CANCELLED"}`)

		idle := l.create(short)
		l.do("POST", "/v1/tasks/"+idle.TaskID+"/cancel", l.control(RoleOperator), "").want(202).contains(`{"state":"CANCELLED"}`)
		l.call(idle, "started", seedStarted).want(409).contains(seedStartedConflict)
	})
}

// The grace period runs from the first reply that carried the signal.
func TestContractCancelGrace(t *testing.T) {
	contract(t, func(l *live) {
		e := l.create(`{"heartbeatIntervalMs":20000,"heartbeatTimeoutMs":60000,"cancelGracePeriodMs":1000}`)
		l.call(e, "started", `{"attempt":1}`).want(200)
		l.do("POST", "/v1/tasks/"+e.TaskID+"/cancel", l.control(RoleOperator), "").want(202)
		l.pass(5 * time.Second)
		l.sweep()
		if task := l.get(e.TaskID); task.State != v1.Running {
			t.Fatalf("%s before the worker could know", task.State)
		}
		l.call(e, "heartbeat", `{"attempt":1}`).want(200).contains(`{"shouldCancel":true}`)
		l.pass(500 * time.Millisecond)
		l.call(e, "heartbeat", `{"attempt":1}`).want(200).contains(`{"shouldCancel":true}`) // does not begin the grace anew
		l.pass(750 * time.Millisecond)
		l.sweep()
		task := l.get(e.TaskID)
		if task.State != v1.Failed || *task.Reason != "CANCEL_TIMEOUT" {
			t.Fatalf("got %s %v", task.State, task.Reason)
		}
		l.call(e, "heartbeat", `{"attempt":1}`).want(410).contains(`{"error":"task_expired","reason":"CANCEL_TIMEOUT"}`)
		l.call(e, "completed", seedCancelled).want(409).contains(`{"error":"task_already_terminal","state":"FAILED"}`)
	})
}

func TestContractZombie(t *testing.T) {
	contract(t, func(l *live) {
		e := l.create(short)
		l.call(e, "started", `{"attempt":1,"workerId":"w1"}`).want(200)
		l.pass(time.Second)
		l.call(e, "heartbeat", `{"attempt":1,"progressPct":30,"message":"one third"}`).want(200)
		l.pass(2 * time.Second)
		l.sweep()
		if task := l.get(e.TaskID); task.State != v1.Running {
			t.Fatalf("%s at exactly its timeout", task.State)
		}
		l.pass(250 * time.Millisecond)
		l.sweep()
		task := l.get(e.TaskID)
		if task.State != v1.Failed || *task.Reason != "HEARTBEAT_TIMEOUT" || len(task.History) != 1 {
			t.Fatalf("got %+v", task)
		}
		h := task.History[0]
		if h.Outcome != "ZOMBIE" || h.Evidence == nil || h.Evidence.TimeoutMs != 2000 || h.Evidence.SilentMs < 2000 || h.Evidence.Sweeper != "swp_test" || string(h.LastProgress.ProgressPct) != "30" {
			t.Errorf("got %+v %+v", h, h.Evidence)
		}
		l.call(e, "heartbeat", `{"attempt":1}`).want(410).contains(seedHeartbeatGone)
		l.call(e, "started", `{"attempt":1}`).want(409).contains(`{"error":"task_already_terminal","state":"FAILED"}`)
		l.call(e, "completed", seedSucceeded).want(409).contains(`{"error":"task_already_terminal","state":"FAILED"}`)

		var next v1.TaskEnvelope
		l.do("POST", "/v1/tasks/"+e.TaskID+"/attempts", l.control(RoleDispatcher), `{"fromAttempt":1}`).want(201).into(&next)
		if next.Attempt != 2 || next.LastProgress == nil || string(next.LastProgress.Message) != `"one third"` || next.TaskToken == e.TaskToken {
			t.Fatalf("got %+v", next)
		}
		var again v1.TaskEnvelope
		l.do("POST", "/v1/tasks/"+e.TaskID+"/attempts", l.control(RoleDispatcher), `{"fromAttempt":1}`).want(201).into(&again)
		if again.TaskToken != next.TaskToken {
			t.Error("the same fromAttempt got another token")
		}
		l.call(e, "heartbeat", `{"attempt":1}`).want(409).contains(`{"error":"attempt_mismatch","expectedAttempt":2,"receivedAttempt":1}`)
		l.call(&next, "heartbeat", `{"attempt":2}`).want(200)
		l.call(&next, "completed", strings.Replace(seedSucceeded, `"attempt": 1`, `"attempt": 2`, 1)).want(200)
		l.call(e, "completed", seedSucceeded).want(409).contains(`{"error":"attempt_mismatch","expectedAttempt":2,"receivedAttempt":1}`)
		l.do("POST", "/v1/tasks/"+e.TaskID+"/attempts", l.control(RoleDispatcher), `{"fromAttempt":2}`).refused(409, "task_already_terminal")
	})
}

func TestContractMismatchBeforeTheNextEnds(t *testing.T) {
	contract(t, func(l *live) {
		e := l.create(short)
		l.call(e, "started", `{"attempt":1}`).want(200)
		l.do("POST", "/v1/tasks/"+e.TaskID+"/attempts", l.control(RoleDispatcher), `{"fromAttempt":1}`).want(201)
		for op, body := range map[string]string{"started": seedStarted, "heartbeat": seedHeartbeat, "completed": seedSucceeded} {
			l.call(e, op, body).want(409).contains(`{"error":"attempt_mismatch","expectedAttempt":2,"receivedAttempt":1}`)
		}
		l.do("POST", "/v1/tasks/"+e.TaskID+"/attempts", l.control(RoleDispatcher), `{"fromAttempt":7}`).refused(409, "attempt_mismatch")
		l.do("POST", "/v1/tasks/none/attempts", l.control(RoleDispatcher), `{"fromAttempt":1}`).refused(404, "task_not_found")
	})
}

func TestContractIdempotency(t *testing.T) {
	contract(t, func(l *live) {
		deadline := l.now().Add(90 * time.Minute).Format(time.RFC3339)
		body := `{"taskKey":"k","deadline":"` + deadline + `"}`
		first := l.do("POST", "/v1/tasks", l.control(RoleDispatcher), body, "Idempotency-Key", "one").want(201)
		l.pass(time.Second)
		if again := l.do("POST", "/v1/tasks", l.control(RoleDispatcher), body, "Idempotency-Key", "one").want(201); again.body != first.body {
			t.Errorf("a repeat got\n%s\nwant\n%s", again.body, first.body)
		}
		l.do("POST", "/v1/tasks", l.control(RoleDispatcher), `{"taskKey":"other"}`, "Idempotency-Key", "one").refused(409, "idempotency_mismatch")
		l.do("POST", "/v1/tasks", l.control(RoleDispatcher), `{"taskId":"mine"}`).want(201)
		before := l.store.Dump(t)
		l.do("POST", "/v1/tasks", l.control(RoleDispatcher), `{"taskId":"mine"}`).refused(409, "task_exists")
		if after := l.store.Dump(t); fmt.Sprint(after) != fmt.Sprint(before) {
			t.Error("a refused creation changed the store")
		}
		l.do("POST", "/v1/tasks?workspaceId=test", l.controlFor(RoleDispatcher, "acme", Wildcard), `{"taskId":"mine"}`).want(201)

		queued := l.do("POST", "/v1/tasks", l.control(RoleDispatcher), `{"queue":"q"}`, "Idempotency-Key", "two").want(201).contains(`{"state":"QUEUED","attempt":0}`)
		if again := l.do("POST", "/v1/tasks", l.control(RoleDispatcher), `{"queue":"q"}`, "Idempotency-Key", "two").want(201); again.body != queued.body {
			t.Errorf("a repeat got\n%s\nwant\n%s", again.body, queued.body)
		}
	})
}

func TestContractBatches(t *testing.T) {
	contract(t, func(l *live) {
		var created struct {
			Results []struct {
				Status int
				v1.TaskEnvelope
			}
		}
		l.badItems = true
		l.do("POST", "/v1/tasks:batch", l.control(RoleDispatcher), `{"tasks":[{"taskId":"a"},{"taskId":"b"},{"taskId":"a"},{"bogus":1},{"taskId":"c","queue":"q"}]}`).want(200).into(&created)
		var statuses []int
		for _, r := range created.Results {
			statuses = append(statuses, r.Status)
		}
		if !slices.Equal(statuses, []int{201, 201, 409, 400, 201}) {
			t.Fatalf("got %v", statuses)
		}
		a, b := created.Results[0], created.Results[1]
		l.call(&b.TaskEnvelope, "completed", seedSucceeded).want(200)
		var got v1.HeartbeatsResponse
		l.do("POST", "/v1/heartbeats", "", fmt.Sprintf(`{"heartbeats":[
			{"taskId":"a","attempt":1,"taskToken":%q,"progressPct":10},{"taskId":"b","attempt":1,"taskToken":%q},{"taskId":"b","attempt":1,"taskToken":%q},{"taskId":"a","attempt":1,"taskToken":%q,"progressPct":20}]}`,
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
	contract(t, func(l *live) {
		want := map[string]bool{}
		for i := range 23 {
			id := fmt.Sprintf("t%02d", i)
			want[id] = true
			l.create(`{"taskId":"` + id + `","runId":"run_a","labels":{"odd":"` + fmt.Sprint(i%2 == 1) + `"}}`)
		}
		l.do("POST", "/v1/tasks", l.control(RoleDispatcher), `{"taskId":"q1","queue":"default","type":"mail","runId":"run_b"}`).want(201)

		walk := func(query string) (ids []string, total *int) {
			t.Helper()
			path := "/v1/tasks?" + query
			for {
				var list v1.TaskList
				l.do("GET", path, l.control(RoleViewer), "").want(200).into(&list)
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
		for query, n := range map[string]int{"pageSize=5": 24, "runId=run_a&pageSize=7": 23, "state=DISPATCHED&pageSize=100": 23, "state=QUEUED": 1, "state=FAILED": 0, "runId=run_a&state=QUEUED": 0} {
			ids, total := walk(query)
			if len(ids) != n || total == nil || *total != n || !slices.IsSorted(ids) || len(slices.Compact(slices.Clone(ids))) != n {
				t.Errorf("%s: %d tasks, total %v, want %d: %v", query, len(ids), total, n, ids)
			}
		}
		for query, n := range map[string]int{"label=odd%3Dtrue&pageSize=4": 11, "queue=default": 1, "type=mail": 1, "type=none": 0, "workerId=w1": 0, "liveness=FRESH": 0} {
			if ids, total := walk(query); len(ids) != n || total != nil {
				t.Errorf("%s: %d tasks, total %v, want %d and none", query, len(ids), total, n)
			}
		}
		var page v1.TaskList
		l.do("GET", "/v1/tasks?runId=run_a&pageSize=10", l.control(RoleViewer), "").want(200).into(&page)
		l.create(`{"taskId":"t045","runId":"run_a"}`) // behind the page's end in no order but its id's
		var rest []string
		path := "/v1/tasks?runId=run_a&pageSize=10&pageToken="
		for token := page.NextPageToken; token != ""; {
			var next v1.TaskList
			l.do("GET", path+token, l.control(RoleViewer), "").want(200).into(&next)
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
	contract(t, func(l *live) {
		one := l.create(`{"taskId":"a","runId":"r"}`)
		l.create(`{"taskId":"b","runId":"r"}`)
		l.do("POST", "/v1/tasks", l.control(RoleDispatcher), `{"taskId":"c","runId":"r","queue":"q"}`).want(201)
		l.call(one, "started", `{"attempt":1}`).want(200)
		l.do("GET", "/v1/runs/r", l.control(RoleViewer), "").want(200).contains(`{"runId":"r","totalCount":3,"counts":{"QUEUED":1,"DISPATCHED":1,"RUNNING":1,"SUCCEEDED":0,"FAILED":0,"CANCELLED":0}}`)
		l.do("POST", "/v1/runs/r/cancel", l.control(RoleOperator), `{"reason":"stop"}`).want(202)
		l.do("GET", "/v1/runs/r", l.control(RoleViewer), "").want(200).contains(`{"counts":{"QUEUED":0,"DISPATCHED":0,"RUNNING":1,"SUCCEEDED":0,"FAILED":0,"CANCELLED":2}}`)
		l.call(one, "heartbeat", `{"attempt":1}`).want(200).contains(`{"shouldCancel":true,"cancelReason":"stop"}`)
		l.do("GET", "/v1/runs/none", l.control(RoleViewer), "").refused(404, "run_not_found")
		l.do("GET", "/v1/tasks/none", l.control(RoleViewer), "").refused(404, "task_not_found")
	})
}

func TestContractQueueTasksGoBackToTheirQueue(t *testing.T) {
	contract(t, func(l *live) {
		l.do("POST", "/v1/tasks", l.control(RoleDispatcher), `{"taskId":"a","queue":"q","heartbeatTimeoutMs":2000,"heartbeatIntervalMs":1000,"retry":{"initialBackoffMs":60000,"maxBackoffMs":60000}}`).want(201)
		made, err := l.tr.Dispatch(context.Background(), tracker.Scope{Tenant: "acme", Workspace: "prod"}, "a", 0, "w1")
		if err != nil {
			t.Fatal(err)
		}
		envelope, err := l.s.envelope(made.Envelope)
		if err != nil {
			t.Fatal(err)
		}
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
	contract(t, func(l *live) {
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
			{"/v1/tasks", l.control(RoleViewer), `{}`},
			{"/v1/tasks", l.control(RoleAdmin), `{"bogus":1}`},
			{"/v1/tasks/none/cancel", l.control(RoleAdmin), ``},
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
	contract(t, func(l *live) {
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
		l.do("GET", "/v1/tasks/"+lost.TaskID, l.control(RoleViewer), "").refused(404, "task_not_found")
		l.call(lost, "heartbeat", `{"attempt":1}`).want(200)
		if task := l.get(lost.TaskID); task.State != v1.Running || task.Attempt != 1 {
			t.Errorf("got %+v", task)
		}
	})
}

func TestContractJSONComesBackAsItWent(t *testing.T) {
	contract(t, func(l *live) {
		payload := `{"b":1,"a":[1.50,"<&>\u2028é",12345678901234567890,null,{}]}`
		e := l.create(`{"payload":` + payload + `}`)
		if string(e.Payload) != payload {
			t.Errorf("envelope: %s", e.Payload)
		}
		task := l.get(e.TaskID)
		if string(task.Payload) != payload {
			t.Errorf("task: %s", task.Payload)
		}
		l.call(e, "completed", `{"attempt":1,"outcome":"FAILED","error":{"category":"USER_CODE","more":[1.0]},"output":"text"}`).want(200)
		task = l.get(e.TaskID)
		if string(task.Error) != `{"category":"USER_CODE","more":[1.0]}` || string(task.Output) != `"text"` {
			t.Errorf("%s %s", task.Error, task.Output)
		}
		if !json.Valid(task.Error) {
			t.Error("not JSON")
		}
	})
}
