package api

import (
	"slices"
	"testing"
	"time"

	v1 "github.com/lubdub-io/lubdub/sdk/go/v1"
)

// A worker is cordoned and uncordoned over the wire: it stays ONLINE, its claims get nothing and selection passes over it.
func TestContractCordon(t *testing.T) {
	t.Parallel()
	contract(t, func(t *testing.T, l *live) {
		op := l.control(roleOperator)
		w := l.register(on("m1", 1))
		var got v1.Worker
		for range 2 {
			l.do("POST", "/v1/workers/"+w.WorkerID+"/cordon", op, `{"reason":"it writes nonsense"}`).want(200).into(&got)
		}
		if got.Status != v1.Online || got.Schedulable || !slices.Equal(got.UnschedulableReasons, []string{"cordoned"}) || got.Cordon == nil ||
			deref(got.Cordon.Reason) != "it writes nonsense" || got.Cordon.Since.IsZero() {
			t.Fatalf("%+v", got)
		}
		if data := l.lastEvent("worker.cordoned", w.WorkerID); data["reason"] != "it writes nonsense" {
			t.Fatalf("%v", data)
		}
		l.do("POST", "/v1/tasks", l.control(roleDispatcher), `{"queue":"default","type":"send_email"}`).want(201)
		var claimed v1.ClaimResponse
		l.do("POST", "/v1/queues/default/claim", w.WorkerToken, "").want(200).into(&claimed)
		if len(claimed.Tasks) != 0 {
			t.Fatalf("%+v", claimed)
		}
		r := l.do("POST", "/v1/workers:select", op, `{"queue":"default"}`).refused(409, v1.CodeNoMatchingWorkers)
		if r.Rejected == nil || r.Rejected.Cordoned != 1 || r.Rejected.Status != 0 {
			t.Fatalf("%+v", r)
		}
		l.pass(workerInterval)
		if beat := l.mine(w, "heartbeat", "").want(200); contains(string(beat.body), `"shouldDrain":true`) {
			t.Fatalf("%s", beat.body)
		}
		l.sweep()
		if got := l.workerNow(w.WorkerID); got.Status != v1.Online || got.Cordon == nil {
			t.Fatalf("%+v", got)
		}
		got = v1.Worker{}
		l.do("POST", "/v1/workers/"+w.WorkerID+"/uncordon", op, "").want(200).into(&got)
		if !got.Schedulable || got.Cordon != nil {
			t.Fatalf("%+v", got)
		}
		l.do("POST", "/v1/queues/default/claim", w.WorkerToken, "").want(200).into(&claimed)
		if len(claimed.Tasks) != 1 {
			t.Fatalf("%+v", claimed)
		}
		l.do("POST", "/v1/workers/wkr_01HGW5N7XHJM4GX29KZRXQP6N9000/cordon", op, "").refused(404, v1.CodeWorkerNotFound)
		l.mine(w, "deregister", "").want(200)
		l.do("POST", "/v1/workers/"+w.WorkerID+"/cordon", op, "").refused(410, v1.CodeWorkerOffline)
	})
}

// Acts on many workers return their counts over the wire, and a selector without a condition is refused.
func TestContractActsOnManyWorkers(t *testing.T) {
	t.Parallel()
	contract(t, func(t *testing.T, l *live) {
		op := l.control(roleOperator)
		a, b := l.register(on("m1", 1)), l.register(on("m2", 1))
		act := func(what, body string, matched, done int) *v1.ActOnWorkersResponse {
			t.Helper()
			var r v1.ActOnWorkersResponse
			l.do("POST", "/v1/workers:"+what, op, body).want(200).into(&r)
			if r.Matched != matched || r.Done != done || len(r.WorkerIDs) != matched {
				t.Fatalf("%s: %+v", what, r)
			}
			return &r
		}
		if r := act("cordon", `{"selector":{"queue":"default"},"dryRun":true}`, 2, 0); !r.DryRun {
			t.Fatalf("%+v", r)
		}
		act("cordon", `{"selector":{"queue":"default"},"reason":"r"}`, 2, 2)
		act("uncordon", `{"selector":{"machineId":"m1"}}`, 1, 1)
		if l.workerNow(a.WorkerID).Cordon != nil || l.workerNow(b.WorkerID).Cordon == nil {
			t.Fatal("the other one")
		}
		l.do("POST", "/v1/workers:drain", op, `{"selector":{"queue":"default"}}`).want(200)
		act("resume", `{"selector":{"queue":"default"}}`, 2, 2)
		l.wantWorker(a.WorkerID, v1.Online, true)
		l.wantWorker(b.WorkerID, v1.Online, false)
		l.pass(5 * time.Second)
		l.mine(a, "heartbeat", "").want(200)
		for _, body := range []string{`{"silentForMs":5000,"dryRun":true}`, `{"selector":{"silentForMs":5000,"queue":"default"},"dryRun":true}`} {
			if r := act("offline", body, 1, 0); r.WorkerIDs[0] != b.WorkerID {
				t.Fatalf("%+v", r)
			}
		}
		act("offline", `{"silentForMs":5000,"reason":"gone"}`, 1, 1)
		act("offline", `{"silentForMs":5000}`, 0, 0)
		if got := l.workerNow(b.WorkerID); got.Status != v1.Offline || deref(got.StatusReason) != "gone" ||
			deref(got.EndReason) != "FORCED_OFFLINE" {
			t.Fatalf("%+v", got)
		}
		for _, what := range []string{"cordon", "uncordon", "resume", "offline"} {
			for _, body := range []string{`{}`, `{"selector":{}}`, `{"selector":{"labels":{}}}`} {
				if r := l.do("POST", "/v1/workers:"+what, op, body).refused(400, v1.CodeInvalidRequest); r.Field != "selector" {
					t.Fatalf("%s %s: %+v", what, body, r)
				}
			}
			l.do("POST", "/v1/workers:"+what, op, `{"selector":{"zone":"x"}}`).refused(400, v1.CodeUnknownField)
			l.do("POST", "/v1/workers:"+what, op, `{"selector":{"queue":"default"},"reason":"two\nlines"}`).refused(400, v1.CodeInvalidRequest)
			if what != "offline" {
				l.do("POST", "/v1/workers:"+what, op, `{"selector":{"queue":"nosuch"}}`).refused(404, v1.CodeNoWorkersMatch)
				l.do("POST", "/v1/workers:"+what, op, `{"silentForMs":5000}`).refused(400, v1.CodeUnknownField)
			}
		}
		for _, body := range []string{`{"silentForMs":0}`, `{"silentForMs":-1}`, `{"silentForMs":2592000001}`,
			`{"selector":{"silentForMs":1},"silentForMs":1}`} {
			if r := l.do("POST", "/v1/workers:offline", op, body).refused(400, v1.CodeInvalidRequest); r.Field != "silentForMs" {
				t.Fatalf("%s: %+v", body, r)
			}
		}
		for body, want := range map[string]string{
			`{"selector":{"silentForMs":-1}}`:  "selector.silentForMs is -1; it must not be negative",
			`{"silentForMs":9007199254740991}`: "silentForMs is 9007199254740991; it must be at most 1099511627776",
			`{}`: "selector is empty, which would select every worker: set at least one of labels, queue, version or machineId, " +
				"or say silentForMs",
		} {
			if r := l.do("POST", "/v1/workers:offline", op, body).refused(400, v1.CodeInvalidRequest); r.Message != want {
				t.Fatalf("%s: %+v", body, r)
			}
		}
	})
}
