package api

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/lubdub-io/lubdub/api/httpapi"
	"github.com/lubdub-io/lubdub/api/token"
	v1 "github.com/lubdub-io/lubdub/sdk/go/v1"
	"github.com/lubdub-io/lubdub/tracker/workers"
)

// Who opens what, by the letters of bearers: v viewer, s submitter, o operator, d dispatcher, e enroll, a admin, t the
// task's own token, w the worker's own token; * everyone, also without a token.
var openedBy = map[string]string{
	opStarted: "tw", opHeartbeat: "tw", opCompleted: "tw", opHeartbeats: "*",

	opCreate: "sda", opCreateBatch: "sda", opList: "vsoda", opGet: "vsoda", opWaitTasks: "vsoda", opCancel: "soda", opNextAttempt: "oda",
	opCancelTasks: "soda", opRetryTasks: "oda", opGetRun: "vsoda", opCancelRun: "soda",

	opExchange: "w",

	opRegister: "ea", opWorkerHeartbeat: "w", opDeregister: "odaw", opDrainWorker: "odaw", opResumeWorker: "oda", opOfflineWorker: "oda",
	opCordonWorker: "oda", opUncordonWorker: "oda", opCordonWorkers: "oda", opUncordonWorkers: "oda", opResumeWorkers: "oda",
	opOfflineWorkers: "oda",
	opDrainWorkers:   "oda", opSelectWorker: "voda", opGetWorker: "voda", opListWorkers: "voda",
	opListMachines: "voda", opGetMachine: "voda", opDrainMachine: "oda", opOfflineMachine: "oda", opResumeMachine: "oda",

	opSweep: "a", opRelease: "oda", opRevoke: "a", opCreateToken: "vsodea",

	opStats: "voda", opVerdicts: "voda", opSystem: "voda", opScopes: "",

	opClaim: "w", opListQueues: "voda", opGetQueue: "voda", opPauseQueue: "oda", opResumeQueue: "oda",

	opEvents: "voda",

	opCreateSchedule: "oda", opListSchedules: "voda", opGetSchedule: "voda", opPutSchedule: "oda", opPatchSchedule: "oda",
	opDeleteSchedule: "oda", opPauseSchedule: "oda", opResumeSchedule: "oda", opNextFires: "voda", opFireSchedule: "oda",
	opBackfillSchedule: "oda",
	opCreateWebhook:    "oda", opListWebhooks: "voda", opGetWebhook: "voda", opUpdateWebhook: "oda", opDeleteWebhook: "oda",
	opRotateSecret: "oda", opTestWebhook: "oda", opListDeliveries: "voda", opRedeliver: "oda",

	"index": "*", "livez": "*", "readyz": "*", "healthz": "*", "version": "*", "openapi": "*",
}

// Every role and every kind of token against every operation: what is not in the table above must be put there.
func TestEveryRoleAgainstEveryOperation(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	e.badItems = true // only the check of roles matters, not the bodies
	e.fake.owns = true
	worker, _, err := httpapi.MintWorker(e.keys, testAttempt().Scope, &workers.Registered{WorkerID: fakeWorkerID, MachineID: "host-7",
		Queue: "default"}, e.now())
	if err != nil {
		t.Fatal(err)
	}
	bearers := map[string]string{"t": e.task(), "w": worker}
	foreign := map[string]string{}
	for _, r := range token.Roles {
		letter := string(r[0])
		if bearers[letter] != "" {
			t.Fatalf("the role %s has the letter of another bearer", r)
		}
		bearers[letter], foreign[letter] = e.control(r), e.controlFor(r, "other", "prod")
	}
	for _, r := range routes {
		allowed, known := openedBy[r.Op]
		if !known {
			t.Errorf("%s (%s) is not in the table openedBy: add it with the letters of those who may call it", r, r.Op)
			continue
		}
		path := strings.NewReplacer("{taskId}", "task_1", "{workerId}", fakeWorkerID, "{queue}", "default").Replace(r.Pattern)
		path = strings.NewReplacer("{runId}", "run_1", "{machineId}", "host-7", "{scheduleId}", "s1").Replace(path)
		path = strings.NewReplacer("{runId}", "run_1", "{machineId}", "host-7", "{webhookId}", "w").Replace(path)
		body := ""
		if r.Method != "GET" && r.Method != "DELETE" {
			body = `{"attempt":1,"outcome":"SUCCEEDED"}`
		}
		opened := func(token, query string) int { return e.do(r.Method, path+query, token, body).status }
		for letter, token := range bearers {
			want, got := allowed == "*" || strings.Contains(allowed, letter), opened(token, "")
			if is := got != 401 && got != 403; is != want {
				t.Errorf("%s with the bearer %s: %d, opened must be %v", r, letter, got, want)
			}
			if allowed == "*" || r.Access != httpapi.ForControl || !want || letter == "w" || letter == "t" {
				continue
			}
			if got := opened(token, "?tenantId=other"); got != 403 && got != 400 {
				t.Errorf("%s with the bearer %s opens another tenant: %d", r, letter, got)
			}
			if got := opened(foreign[letter], "?tenantId=acme"); got != 403 && got != 400 {
				t.Errorf("%s with the bearer %s of another tenant: %d", r, letter, got)
			}
		}
		for name, token := range map[string]string{"none": "", "expired": e.expired(t), "junk": "x.y.z"} {
			want, got := allowed == "*", opened(token, "")
			if is := got != 401; is != want {
				t.Errorf("%s with the token %q: %d, opened must be %v", r, name, got, want)
			}
		}
	}
	for op := range openedBy {
		if !slices.ContainsFunc(routes, func(r *httpapi.Route) bool { return r.Op == op }) {
			t.Errorf("the table names %s, and there is no such operation", op)
		}
	}
}

// expired makes an admin's token that has just ended.
func (e *env) expired(t *testing.T) string {
	t.Helper()
	token, _, err := e.keys.MintControl(token.Control{Role: roleAdmin, Tenant: "acme", Workspace: "prod", TTL: time.Hour},
		e.now().Add(-time.Hour))
	if err != nil {
		t.Fatal(err)
	}
	return token
}

// A refusal names the roles that would do, and the role that only submits is known wherever roles are.
func TestRolesAreNamed(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	submitter := e.control(roleSubmitter)
	if r := e.do("GET", "/v1/workers", submitter, "").refused(403, "forbidden"); !contains(r.Message, "submitter",
		"viewer or operator or dispatcher or admin") {
		t.Errorf("%s", r.Message)
	}
	if r := e.do("POST", "/v1/tasks", e.control(roleViewer), "{}").refused(403, "forbidden"); !contains(r.Message,
		"submitter or dispatcher or admin") {
		t.Errorf("%s", r.Message)
	}
	e.do("POST", "/v1/tasks", submitter, `{"queue":"default","type":"x"}`).want(201)
	e.do("POST", "/v1/tasks/task_1/cancel", submitter, "").want(202)
	for _, r := range token.Roles {
		if httpapi.Permitted[r] == 0 {
			t.Errorf("the role %s opens nothing", r)
		}
		if !contains(securitySchemes["controlToken"].(obj)["description"].(string), string(r)) {
			t.Errorf("openapi.json does not name the role %s", r)
		}
	}
}

// A task for a worker that is not there is refused as any bad field is, alone and in a batch.
func TestContractATaskForAWorkerThatIsNotThere(t *testing.T) {
	t.Parallel()
	contract(t, func(t *testing.T, l *live) {
		w := l.register(mailer)
		submitter := l.control(roleSubmitter)
		body := func(id string) string { return `{"queue":"default","type":"send_email","workerId":"` + id + `"}` }
		l.do("POST", "/v1/tasks", submitter, body(w.WorkerID)).want(201)
		for _, id := range []string{"mailer-1", fakeWorkerID} {
			if e := l.do("POST", "/v1/tasks", submitter, body(id)).refused(400, v1.CodeInvalidRequest); e.Field != "workerId" {
				t.Errorf("field %q", e.Field)
			}
		}
		var batch struct {
			Results []struct {
				Status int
				Field  string
			}
		}
		l.do("POST", "/v1/tasks:batch", submitter, `{"tasks":[`+body(w.WorkerID)+`,`+body("mailer-1")+`]}`).want(200).into(&batch)
		if r := batch.Results; r[0].Status != 201 || r[1].Status != 400 || r[1].Field != "workerId" && r[1].Field != "tasks[1].workerId" {
			t.Errorf("%+v", r)
		}
	})
}
