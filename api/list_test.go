package api

import (
	"encoding/json"
	"fmt"
	"reflect"
	"testing"
	"time"

	"github.com/lubdub-io/lubdub/api/token"
	v1 "github.com/lubdub-io/lubdub/sdk/go/v1"
	"github.com/lubdub-io/lubdub/tracker/model"
)

func TestListFilters(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	var got model.TaskFilter
	e.fake.list = func(f model.TaskFilter) (*model.TaskPage, error) {
		got = f
		return &model.TaskPage{Total: -1}, nil
	}
	a := e.do("GET", "/v1/tasks?state=RUNNING,FAILED&machineId=m1&reason=WORKER_LOST&order=desc&"+
		"runId=r1&workerId=w1&scheduleId=s1&queue=q1&type=t1&label=a%3Db%3Dc&label=team=&liveness=LATE&pageSize=7",
		e.control(roleViewer), "").want(200)
	want := model.TaskFilter{
		Scope: model.Scope{Tenant: "acme", Workspace: "prod"}, States: []model.State{model.Running, model.Failed}, MachineID: "m1",
		Reason: model.WorkerLost, Descending: true, RunID: "r1", WorkerID: "w1", ScheduleID: "s1", Queue: "q1", Type: "t1",
		Labels: map[string]string{"a": "b=c", "team": ""}, Liveness: model.Late, PageSize: 7,
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
	if want := `{"tasks":[],"totalCount":null}`; a.body != want {
		t.Errorf("got %s, want %s", a.body, want)
	}
	if e.fake.listedFor != "acme" {
		t.Errorf("the list takes the turn of tenant %q, want the token's", e.fake.listedFor)
	}
}

func TestBadQueriesAreNamed(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	e.fake.list = func(model.TaskFilter) (*model.TaskPage, error) {
		t.Error("a bad query reached the domain")
		return &model.TaskPage{}, nil
	}
	for query, want := range map[string]string{
		"state=running": "state", "state=": "state", "state=RUNNING,": "state", "state=FAILED,FAILED": "state",
		"liveness=OK": "liveness", "reason=OOM": "reason", "machineId=-": "machineId", "order=down": "order", "order=": "order",
		"finishedAfter=yesterday": "finishedAfter", "finishedBefore=": "finishedBefore",
		"finishedAfter=2025-01-15T10:00:00Z&state=FAILED,RUNNING": "state", "finishedAfter=2025-01-15T10:00:00%2B25:00": "finishedAfter",
		"finishedAfter=2025-01-15T10:00:00Z&finishedBefore=2025-01-15T10:00:00Z": "finishedBefore",
		"runId=a/b": "runId", "queue=": "queue", "type=a%20b": "type",
		"workerId=-": "workerId", "scheduleId=": "scheduleId",
		"label=x": "label", "label==x": "label", "label=a=1&label=a=2": "label", "pageSize=ten": "pageSize", "pageSize=1.5": "pageSize",
		"pageSize=": "pageSize", "pageSize=-": "pageSize",
		"pageToken=!": "pageToken", "pageToken=": "pageToken", "pageToken=AAAA": "pageToken", "bogus=1": "bogus", "State=RUNNING": "State",
		"state=RUNNING&state=FAILED": "state", "%zz": "query",
	} {
		a := e.do("GET", "/v1/tasks?"+query, e.control(roleViewer), "")
		var got v1.Error
		a.want(400).into(&got)
		if got.Field != want || got.Message == "" {
			t.Errorf("%s: %+v, want the field %s", query, got, want)
		}
	}
	e.do("GET", "/v1/tasks/task_1?state=RUNNING", e.control(roleViewer), "").refused(400, "invalid_request")
	e.do("GET", "/livez?x=1", "", "").refused(400, "invalid_request")
}

func TestPageSizeIsClamped(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	e.badItems = true // the validator's integers end at 64 bits
	var got int
	e.fake.list = func(f model.TaskFilter) (*model.TaskPage, error) {
		got = f.PageSize
		return &model.TaskPage{}, nil
	}
	for query, want := range map[string]int{
		"": 100, "?pageSize=1": 1, "?pageSize=0": 1, "?pageSize=-5": 1, "?pageSize=100": 100, "?pageSize=101": 100,
		"?pageSize=99999999999999999999": 100, "?pageSize=-99999999999999999999": 1,
	} {
		if e.do("GET", "/v1/tasks"+query, e.control(roleViewer), "").want(200); got != want {
			t.Errorf("%s: %d, want %d", query, got, want)
		}
	}
}

func TestPagesWalkTheWholeListAndKeepToTheirFilter(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	var all []string
	for i := range 25 {
		all = append(all, fmt.Sprintf("t%02d", i))
	}
	e.fake.list = func(f model.TaskFilter) (*model.TaskPage, error) {
		page := &model.TaskPage{Total: len(all)}
		for _, id := range all {
			if id > f.After && len(page.Tasks) < f.PageSize {
				page.Tasks = append(page.Tasks, fakeTask(model.NewTask{Scope: f.Scope, TaskID: id}))
			}
		}
		if last := page.Tasks[len(page.Tasks)-1].ID; last != all[len(all)-1] {
			page.Next = last
		}
		return page, nil
	}
	var got []string
	path := "/v1/tasks?state=DISPATCHED&pageSize=10"
	var next string
	for {
		var list v1.TaskList
		e.do("GET", path, e.control(roleViewer), "").want(200).into(&list)
		for _, task := range list.Tasks {
			got = append(got, task.TaskID)
		}
		if *list.TotalCount != len(all) {
			t.Errorf("totalCount %d", *list.TotalCount)
		}
		if list.NextPageToken == "" {
			break
		}
		next = list.NextPageToken
		path = "/v1/tasks?state=DISPATCHED&pageSize=7&pageToken=" + next // another size is fine
	}
	if !reflect.DeepEqual(got, all) {
		t.Errorf("got %v, want %v", got, all)
	}
	for _, other := range []string{"state=FAILED&", "", "state=DISPATCHED&runId=r&"} {
		e.do("GET", "/v1/tasks?"+other+"pageToken="+next, e.control(roleViewer), "").refused(400, "invalid_request")
	}
	e.do("GET", "/v1/tasks?tenantId=x&workspaceId=y&state=DISPATCHED&pageToken="+next,
		e.controlFor(roleViewer, token.Wildcard, token.Wildcard), "").refused(400, "invalid_request")
}

// The task of the contract, field by field.
func TestTaskViewIsTheContractsTask(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	at := func(s int) time.Time { return fakeTime.Add(time.Duration(s) * time.Second) }
	e.fake.get = func(s model.Scope, id string) (*model.Task, error) {
		return &model.Task{
			Scope: s, ID: id, RunID: "run_1", Key: "raw.events", Asset: "asset_1", Queue: "default", Type: "send_email",
			Labels: map[string]string{"team": "x"},
			State:  model.Running, Attempt: 2, WorkerID: "wkr_1", Liveness: model.Fresh,
			Progress:  model.Progress{Pct: "45", Message: `"partition 5 of 10"`},
			CreatedAt: at(0), DispatchedAt: at(1), StartedAt: at(2), LastHeartbeatAt: at(3), ReportedAt: at(4),
			HeartbeatInterval: 30 * time.Second, HeartbeatTimeout: 90 * time.Second, CancelGrace: 30 * time.Second,
			Retry: &model.RetryPolicy{MaxAttempts: 3, MaxLosses: 3, InitialBackoff: time.Second, Multiplier: 2, MaxBackoff: time.Minute},
			History: []model.HistoryEntry{{
				Attempt: 1, WorkerID: "wkr_0", DispatchedAt: at(-9), StartedAt: at(-8), EndedAt: at(-7), Outcome: "ZOMBIE",
				Reason:       model.HeartbeatTimeout,
				LastProgress: model.Progress{Pct: "30", Message: `"x"`},
				Evidence: &model.Evidence{
					LastHeartbeatAt: at(-97), Silent: 90012 * time.Millisecond, Timeout: 90 * time.Second, DetectedAt: at(-7),
					DetectionLag: 12 * time.Millisecond, Sweeper: "swp_1",
				},
			}},
		}, nil
	}
	var got any
	e.do("GET", "/v1/tasks/task_1", e.control(roleViewer), "").want(200).into(&got)
	var want any
	if err := json.Unmarshal([]byte(`{"taskId":"task_1","runId":"run_1","taskKey":"raw.events","assetId":"asset_1","tenantId":"acme",
		"workspaceId":"prod","queue":"default","type":"send_email","labels":{"team":"x"},
 "state":"RUNNING","attempt":2,"workerId":"wkr_1","liveness":"FRESH","progressPct":45,"message":"partition 5 of 10",
 "createdAt":"2025-01-15T10:05:00.000Z","dispatchedAt":"2025-01-15T10:05:01.000Z","startedAt":"2025-01-15T10:05:02.000Z",
 "lastHeartbeatAt":"2025-01-15T10:05:03.000Z","reportedHeartbeatAt":"2025-01-15T10:05:04.000Z","completedAt":null,"finishedAt":null,
 "deadline":null,"cancelRequested":false,"cancelReason":null,"reason":null,"output":null,"metrics":null,"error":null,
 "heartbeatIntervalMs":30000,"heartbeatTimeoutMs":90000,"cancelGracePeriodMs":30000,
 "retry":{"maxAttempts":3,"maxLosses":3,"initialBackoffMs":1000,"multiplier":2,"maxBackoffMs":60000},"nextAttemptAt":null,"failures":0,
 "losses":0,
 "history":[{"attempt":1,"workerId":"wkr_0","dispatchedAt":"2025-01-15T10:04:51.000Z","startedAt":"2025-01-15T10:04:52.000Z",
 "lastHeartbeatAt":null,"endedAt":"2025-01-15T10:04:53.000Z","outcome":"ZOMBIE","reason":"HEARTBEAT_TIMEOUT",
 "lastProgress":{"progressPct":30,"message":"x"},
   "evidence":{"lastHeartbeatAt":"2025-01-15T10:03:23.000Z","silentMs":90012,"timeoutMs":90000,"outageCreditMs":0,
   "detectedAt":"2025-01-15T10:04:53.000Z","detectionLagMs":12,"sweeper":"swp_1"}}]}`), &want); err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got\n%v\nwant\n%v", got, want)
	}
}

func TestRunsCountEveryState(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	e.do("GET", "/v1/runs/run_1", e.control(roleViewer), "").want(200).
		contains(`{"runId":"run_1","tenantId":"acme","workspaceId":"prod","totalCount":2,"counts":{"SCHEDULED":0,"QUEUED":0,"DISPATCHED":0,"RUNNING":2,` +
			`"SUCCEEDED":0,"FAILED":0,"CANCELLED":0}}`)
	e.do("POST", "/v1/runs/run_1/cancel", e.control(roleOperator), `{"reason":"x"}`).want(202).contains(`{"runId":"run_1"}`)
	e.do("GET", "/v1/runs/-", e.control(roleViewer), "").refused(400, "invalid_id")
}

func TestCancelReturnsTheReason(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	e.do("POST", "/v1/tasks/task_1/cancel", e.control(roleOperator),
		`{"reason":"user \"x\" asked"}`).want(202).contains(`{"taskId":"task_1","cancelRequested":true,"cancelReason":"user \"x\" asked"}`)
	e.do("POST", "/v1/tasks/task_1/cancel", e.control(roleOperator), ``).want(202).contains(`{"cancelReason":null}`)
	e.do("POST", "/v1/tasks/task_1/cancel", e.control(roleOperator), `{}`).want(202)
}
