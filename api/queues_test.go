package api

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/lubdub-io/lubdub/api/httpapi"
	v1 "github.com/lubdub-io/lubdub/sdk/go/v1"
	"github.com/lubdub-io/lubdub/tracker/model"
	"github.com/lubdub-io/lubdub/tracker/workers"
)

// claim claims for a worker of the queue default.
func (l *live) claim(w *v1.RegisterWorkerResponse, body string) []v1.TaskEnvelope {
	l.t.Helper()
	var r v1.ClaimResponse
	l.do("POST", "/v1/queues/default/claim", w.WorkerToken, body).want(200).into(&r)
	return r.Tasks
}

// queue creates a task of the queue default and type send_email.
func (l *live) queue(fields string) {
	l.t.Helper()
	l.do("POST", "/v1/tasks", l.control(roleDispatcher),
		`{"queue":"default","type":"send_email"`+fields+`}`).want(201).contains(`{"state":"QUEUED"}`)
}

func TestContractClaim(t *testing.T) {
	t.Parallel()
	contract(t, func(t *testing.T, l *live) {
		w := l.register(mailer)
		if got := l.claim(w, ""); len(got) != 0 {
			t.Fatalf("%+v", got)
		}
		l.queue(`,"taskId":"t1","payload":{"to":"a@example.com"},"labels":{"team":"x"},"taskKey":"k"`)
		got := l.claim(w, `{"max":5,"waitMs":1000,"claimId":"c-1"}`)
		if len(got) != 1 {
			t.Fatalf("%+v", got)
		}
		e := got[0]
		if e.TaskID != "t1" || e.Attempt != 1 || e.State != v1.Dispatched || e.TaskToken == "" || *e.Type != "send_email" ||
			*e.Queue != "default" ||
			string(e.Payload) != `{"to":"a@example.com"}` || e.Labels["team"] != "x" || e.HeartbeatTimeoutMs != nil || *e.TaskKey != "k" {
			t.Fatalf("%+v", e)
		}
		if again := l.claim(w, `{"max":5,"claimId":"c-1"}`); len(again) != 1 || again[0].TaskToken != e.TaskToken {
			t.Fatalf("the same claim again: %+v", again)
		}
		if task := l.get("t1"); task.State != v1.Dispatched || *task.WorkerID != w.WorkerID {
			t.Fatalf("%+v", task)
		}
		if again := l.claim(w, `{"max":5,"claimId":"c-1","start":true}`); again[0].State != v1.Dispatched {
			t.Fatalf("a claim that starts what another has claimed: %+v", again)
		}
		l.call(&e, "started", `{"attempt":1}`).want(200)
		if again := l.claim(w, `{"max":5,"claimId":"c-1"}`); again[0].State != v1.Dispatched {
			t.Fatalf("the same claim after the start: %+v", again)
		}
		l.call(&e, "completed", `{"attempt":1,"outcome":"SUCCEEDED"}`).want(200)

		l.queue(`,"taskId":"t0"`)
		for range 2 {
			got := l.claim(w, `{"start":true,"claimId":"c-0"}`)
			if len(got) != 1 || got[0].State != v1.Running || l.get("t0").State != v1.Running {
				t.Fatalf("a claim that starts its tasks: %+v", got)
			}
			l.call(&got[0], "started", `{"attempt":1}`).want(200) // changes nothing
			e = got[0]
		}
		l.call(&e, "completed", `{"attempt":1,"outcome":"SUCCEEDED"}`).want(200)

		l.queue(`,"taskId":"t2"`)
		first := l.claim(w, "")
		l.call(&first[0], "heartbeat", `{"attempt":1,"progressPct":30,"message":"third"}`).want(200)
		l.mine(w, "deregister", "").want(200)
		next := l.register(mailer)
		second := l.claim(next, "")
		if len(second) != 1 || second[0].Attempt != 2 || second[0].LastProgress == nil || string(second[0].LastProgress.ProgressPct) != "30" {
			t.Fatalf("%+v", second)
		}
	})
}

// A claim that waits is answered when there is a task, and with none when the server shuts down.
func TestContractLongPoll(t *testing.T) {
	t.Parallel()
	contract(t, func(t *testing.T, l *live) {
		w := l.register(mailer)
		got := make(chan *answer)
		wait := func() {
			got <- l.do("POST", "/v1/queues/default/claim", w.WorkerToken, `{"waitMs":60000}`)
		}
		go wait()
		l.queue(`,"taskId":"t1"`)
		if a := <-got; a.status != 200 || !strings.Contains(a.body, `"taskId":"t1"`) {
			t.Fatalf("%d %s", a.status, a.body)
		}
		go wait()
		l.s.stop()
		if a := <-got; a.status != 200 || a.body != `{"tasks":[]}` {
			t.Fatalf("%d %s", a.status, a.body)
		}
	})
}

func TestContractClaimRefusals(t *testing.T) {
	t.Parallel()
	contract(t, func(t *testing.T, l *live) {
		w := l.register(mailer)
		other := l.register(`{"queue":"other","types":["x"]}`)
		const path = "/v1/queues/default/claim"
		l.do("POST", path, "", "").refused(401, v1.CodeUnauthorized)
		l.do("POST", path, other.WorkerToken, "").refused(403, v1.CodeForbidden)
		l.do("POST", path, l.control(roleAdmin), "").refused(403, v1.CodeForbidden)
		l.do("POST", "/v1/queues/.bad/claim", w.WorkerToken, "").refused(400, v1.CodeInvalidID)
		for body, field := range map[string]string{
			`{"types":[]}`:        "types",
			`{"types":["fax"]}`:   "types",
			`{"max":0}`:           "max",
			`{"max":-1}`:          "max",
			`{"waitMs":-1}`:       "waitMs",
			`{"waitMs":60001}`:    "waitMs",
			`{"claimId":"a b"}`:   "claimId",
			`{"types":["a b"]}`:   "types[0]",
			`{"types":"send"}`:    "types",
			`{"max":"many"}`:      "max",
			`{"waitMs":1e30}`:     "waitMs",
			`{"claimId":["c-1"]}`: "claimId",
		} {
			if a := l.do("POST", path, w.WorkerToken, body).want(400); !strings.Contains(a.body, `"field":"`+field+`"`) {
				t.Errorf("%s: %s", body, a.body)
			}
		}
		l.do("POST", path, w.WorkerToken, `[]`).refused(400, v1.CodeInvalidJSON)
		l.queue("")
		l.claim(w, "") // so that it has something to finish
		l.mine(w, "drain", "").want(200)
		l.do("POST", path, w.WorkerToken, "").refused(409, v1.CodeWorkerDraining)
		l.mine(w, "deregister", "").want(200)
		if e := l.do("POST", path, w.WorkerToken, "").refused(410, v1.CodeWorkerOffline); e.Reason != "DEREGISTERED" {
			t.Errorf("%+v", e)
		}
		l.store.Clock.Advance(25 * time.Hour)
		l.sweep()
		fresh, _, err := httpapi.MintWorker(l.keys, model.Scope{Tenant: "acme", Workspace: "prod"},
			&workers.Registered{WorkerID: w.WorkerID, MachineID: "host-7", Queue: "default"}, l.now())
		if err != nil {
			t.Fatal(err)
		}
		l.do("POST", path, fresh, "").refused(404, v1.CodeWorkerNotFound)
	})
}

func TestContractQueues(t *testing.T) {
	t.Parallel()
	contract(t, func(t *testing.T, l *live) {
		l.do("GET", "/v1/queues", l.control(roleViewer), "").want(200).contains(`{"queues":[]}`)
		l.do("GET", "/v1/queues/default", l.control(roleViewer), "").refused(404, "queue_not_found")
		l.do("POST", "/v1/queues/typo/pause", l.control(roleOperator), "").want(200).contains(`{"queue":"typo","paused":true,"created":true}`)
		l.do("POST", "/v1/queues/typo/resume", l.control(roleOperator), "").want(200)
		w := l.register(mailer)
		l.queue("")
		l.queue(`,"workerLabels":{"gpu":"a100"}`)
		l.pass(2 * time.Second)
		queue := func(paused bool) string {
			return fmt.Sprintf(`{"queue":"default","tenantId":"acme","workspaceId":"prod","paused":%v,"depth":2,"running":0,"outstanding":2,
				"oldestWaitMs":2000,
				"types":[{"type":"send_email","depth":2,"oldestWaitMs":2000,"unrunnable":1}],"workers":{"online":1,"draining":0,"offline":0}}`, paused)
		}
		l.do("GET", "/v1/queues", l.control(roleViewer), "").want(200).contains(`{"queues":[` + queue(false) + `]}`)
		l.do("POST", "/v1/queues/default/pause", l.control(roleViewer), "").refused(403, v1.CodeForbidden)
		l.do("POST", "/v1/queues/default/pause", l.control(roleOperator), "").want(200).contains(queue(true))
		l.do("POST", "/v1/queues/default/pause", l.control(roleOperator), `{"x":1}`).refused(400, v1.CodeUnknownField)
		for _, reason := range []string{strings.Repeat("x", 513), `two\nlines`} {
			l.do("POST", "/v1/queues/default/pause", l.control(roleOperator), `{"reason":"`+reason+`"}`).refused(400, v1.CodeInvalidRequest)
		}
		if got := l.claim(w, ""); len(got) != 0 {
			t.Fatalf("a paused queue handed out %+v", got)
		}
		l.do("POST", "/v1/queues/default/resume", l.control(roleOperator), "{}").want(200).contains(queue(false))
		if got := l.claim(w, ""); len(got) != 1 {
			t.Fatalf("%+v", got)
		}
		l.do("GET", "/v1/queues/default", l.control(roleViewer),
			"").want(200).contains(`{"queue":"default","depth":1,"running":1,"outstanding":2}`)
		l.do("POST", "/v1/queues/none/resume", l.control(roleOperator),
			"").want(200).contains(`{"queue":"none","paused":false,"depth":0,"oldestWaitMs":null,"types":[]}`)
	})
}

// A queue whose tasks all wait for their time has nothing to claim and still exists: autoscalers poll it repeatedly.
func TestContractAQueueThatWaitsForItsTime(t *testing.T) {
	t.Parallel()
	contract(t, func(t *testing.T, l *live) {
		l.do("POST", "/v1/tasks", l.control(roleDispatcher), `{"queue":"later","type":"x","notBefore":"2099-01-01T00:00:00Z"}`).want(201)
		var q v1.Queue
		l.do("GET", "/v1/queues/later", l.control(roleViewer), "").want(200).into(&q)
		if q.Queue != "later" || q.Depth != 0 || q.Outstanding != 0 || q.OldestWaitMs != nil || q.TenantID != "acme" {
			t.Errorf("%+v", q)
		}
		l.do("GET", "/v1/queues/latest", l.control(roleViewer), "").refused(404, "queue_not_found")
		l.do("GET", "/v1/queues/later", l.controlFor(roleViewer, "other", "prod"), "").refused(404, "queue_not_found")
	})
}

// An envelope has the time since when its task could be claimed, after a creation as after a backoff.
func TestContractEnvelopeTellsWhenTheTaskWasReady(t *testing.T) {
	t.Parallel()
	contract(t, func(t *testing.T, l *live) {
		w := l.register(mailer)
		l.queue(`,"taskId":"t1","retry":{"maxAttempts":2,"initialBackoffMs":7000}`)
		l.pass(5 * time.Second)
		waited := func(wait time.Duration) {
			t.Helper()
			var got []v1.TaskEnvelope
			until(t, func() bool { got = l.claim(w, `{"claimId":"c`+wait.String()+`"}`); return len(got) == 1 },
				func() string { return "it is not claimed" })
			if e := got[0]; e.EnqueuedAt.Sub(e.ReadyAt.Time) != wait {
				t.Errorf("it was ready at %v and handed out at %v, want %v", e.ReadyAt, e.EnqueuedAt, wait)
			}
			if again := l.claim(w, `{"claimId":"c`+wait.String()+`"}`); len(again) != 1 || !again[0].ReadyAt.IsZero() {
				t.Errorf("%+v", again)
			}
			l.call(&got[0], "completed", `{"attempt":`+strconv.Itoa(got[0].Attempt)+`,"outcome":"FAILED","error":{"category":"TIMEOUT"}}`).want(200)
		}
		waited(5 * time.Second)
		l.pass(7 * time.Second)
		l.sweep()
		l.pass(2 * time.Second)
		waited(2 * time.Second)
		if pushed := l.create(`{"taskId":"pushed"}`); !pushed.ReadyAt.IsZero() {
			t.Errorf("%+v", pushed)
		}
	})
}
