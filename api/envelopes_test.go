package api

import (
	"strings"
	"testing"
	"time"

	v1 "github.com/lubdub-io/lubdub/sdk/go/v1"
)

// A claim's envelope has all its fields, those that the task was not given too.
func TestContractClaimEnvelopeIsWhole(t *testing.T) {
	t.Parallel()
	contract(t, func(t *testing.T, l *live) {
		w := l.register(mailer)
		l.do("POST", "/v1/tasks", l.control(roleDispatcher), `{"queue":"default","taskId":"bare"}`).want(201)
		a := l.do("POST", "/v1/queues/default/claim", w.WorkerToken, `{"max":500}`).want(200)
		for _, field := range []string{`"taskId":"bare"`, `"type":null`, `"queue":"default"`, `"labels":{}`, `"payload":null`, `"resources":{}`,
			`"taskKey":null`, `"deadline":null`} {
			if !strings.Contains(a.body, field) {
				t.Errorf("no %s in %s", field, a.body)
			}
		}
	})
}

// The answer to a creation names the worker that the task waits for, alone and in a batch, and so does a repeated one.
func TestContractCreationNamesItsWorker(t *testing.T) {
	t.Parallel()
	contract(t, func(t *testing.T, l *live) {
		w := l.register(mailer)
		want := `{"state":"QUEUED","workerId":"` + w.WorkerID + `"}`
		for _, body := range []string{
			`{"taskId":"p1","queue":"default","type":"send_email","placement":{"strategy":"random"}}`,
			`{"taskId":"p2","queue":"default","type":"send_email","workerId":"` + w.WorkerID + `"}`,
		} {
			for range 2 {
				l.do("POST", "/v1/tasks", l.control(roleDispatcher), body, "Idempotency-Key", body[11:13]).want(201).contains(want)
			}
			l.do("POST", "/v1/tasks", l.control(roleDispatcher), body).refused(409, v1.CodeTaskExists)
		}
		l.mine(w, "deregister", "").want(200)
		l.do("POST", "/v1/tasks", l.control(roleDispatcher), `{"taskId":"p1","queue":"default","placement":{"strategy":"random"}}`).refused(409,
			v1.CodeTaskExists)
	})
}

// Every timeout is rounded up to two significant digits, and shown so.
func TestContractTimeoutsAreRounded(t *testing.T) {
	t.Parallel()
	contract(t, func(t *testing.T, l *live) {
		l.do("POST", "/v1/tasks", l.control(roleDispatcher),
			`{"queue":"default","startTimeoutMs":12345,"runTimeoutMs":100001,"heartbeatIntervalMs":1000,"heartbeatTimeoutMs":2001}`).
			want(201).contains(`{"startTimeoutMs":13000,"runTimeoutMs":110000,"heartbeatTimeoutMs":2100}`)
	})
}

// An envelope contains how long its attempt may run, whether it was pushed or claimed, and nothing if the task has no such limit.
func TestContractEnvelopesHaveTheRunTimeout(t *testing.T) {
	t.Parallel()
	contract(t, func(t *testing.T, l *live) {
		l.do("POST", "/v1/tasks", l.control(roleDispatcher), `{"runTimeoutMs":60000}`).want(201).contains(`{"runTimeoutMs":60000,"attempt":1}`)
		w := l.register(mailer)
		for _, body := range []string{`{"taskId":"t1","queue":"default","type":"send_email","runTimeoutMs":100001}`,
			`{"taskId":"t2","queue":"default","type":"send_email"}`} {
			l.do("POST", "/v1/tasks", l.control(roleDispatcher), body).want(201)
		}
		var claimed struct {
			Tasks []map[string]any `json:"tasks"`
		}
		l.do("POST", "/v1/queues/default/claim", w.WorkerToken, `{"max":2}`).want(200).into(&claimed)
		for _, e := range claimed.Tasks {
			ms, has := e["runTimeoutMs"]
			if bounded := e["taskId"] == "t1"; has != bounded || bounded && ms != 110000.0 {
				t.Errorf("the envelope of %v has the run timeout %v", e["taskId"], ms)
			}
		}
		if len(claimed.Tasks) != 2 {
			t.Errorf("%v", claimed)
		}
	})
}

// A hostname is whatever the host calls itself; the machine is named after it.
func TestContractHostnames(t *testing.T) {
	t.Parallel()
	contract(t, func(t *testing.T, l *live) {
		seen := map[string]bool{}
		for hostname, prefix := range map[string]string{"host-7": "host-7", "Anna's laptop": "Anna-s-laptop-", "_x_": "x-", "büro": "b-ro-",
			"ホスト": "", strings.Repeat("h", 200): "hhh"} {
			w := l.register(`{"queue":"default","types":["x"],"hostname":"` + hostname + `","pid":7}`)
			if !strings.HasPrefix(w.MachineID, prefix) || seen[w.MachineID] {
				t.Errorf("%s became %s", hostname, w.MachineID)
			}
			seen[w.MachineID] = true
			l.do("GET", "/v1/machines/"+w.MachineID, l.control(roleViewer),
				"").want(200).contains(`{"workers":{"online":1,"draining":0,"offline":0}}`)
			again := l.register(`{"queue":"default","types":["x"],"hostname":"` + hostname + `","pid":7}`)
			if old := l.workerNow(w.WorkerID); old.Status != v1.Offline || *old.StatusReason != "SUPERSEDED" || again.MachineID != w.MachineID {
				t.Errorf("%s: %+v", hostname, old)
			}
		}
	})
}

// A claim that waits is refused when its worker drains.
func TestContractADrainEndsALongPoll(t *testing.T) {
	t.Parallel()
	contract(t, func(t *testing.T, l *live) {
		w := l.register(mailer)
		got := make(chan *answer)
		go func() { got <- l.do("POST", "/v1/queues/default/claim", w.WorkerToken, `{"waitMs":60000}`) }()
		l.pass(100 * time.Millisecond)
		l.mine(w, "drain", "").want(200).contains(`{"status":"DRAINING"}`)
		(<-got).refused(409, v1.CodeWorkerDraining)
	})
}
