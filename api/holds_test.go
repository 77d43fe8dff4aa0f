package api

import (
	"testing"

	v1 "github.com/lubdub-io/lubdub/sdk/go/v1"
)

// A worker that an operator takes offline stays offline: its beats and claims get the reason, its next registration is refused with the
// remedy, and the remedy works. The same for a machine.
func TestContractHeldOffline(t *testing.T) {
	t.Parallel()
	contract(t, func(t *testing.T, l *live) {
		op, enroll := l.control(roleOperator), l.control(roleEnroll)
		w := l.register(mailer)
		for _, token := range []string{l.control(roleViewer), l.control(roleSubmitter), enroll} {
			l.do("POST", "/v1/machines/host-7/offline", token, "").refused(403, v1.CodeForbidden)
		}
		l.do("POST", "/v1/workers/"+w.WorkerID+"/offline", op, `{"reason":"it writes nonsense"}`).want(200).
			contains(`{"status":"OFFLINE","endReason":"FORCED_OFFLINE","hold":{"since":"2026-01-15T10:00:00.000Z","reason":"it writes nonsense"}}`)
		wantOffline := func(w *v1.RegisterWorkerResponse) {
			t.Helper()
			for _, e := range []*v1.Error{l.mine(w, "heartbeat", "").refused(410, v1.CodeWorkerOffline),
				l.do("POST", "/v1/queues/default/claim", w.WorkerToken, "").refused(410, v1.CodeWorkerOffline)} {
				if e.Reason != "FORCED_OFFLINE" {
					t.Errorf("%+v", e)
				}
			}
		}
		wantOffline(w)
		l.do("POST", "/v1/workers", enroll, mailer).want(409).contains(`{"error":"worker_held_offline","workerId":"` + w.WorkerID +
			`","reason":"it writes nonsense","remedy":"lubdub worker resume ` + w.WorkerID + `"}`)
		l.do("POST", "/v1/workers/"+w.WorkerID+"/resume", op, "").want(200).contains(`{"status":"OFFLINE","hold":null}`)
		wantOffline(w)
		again := l.register(mailer)

		l.do("POST", "/v1/machines/host-7/offline", op, `{"reason":"on fire"}`).want(200).
			contains(`{"matched":1,"done":1,"dryRun":false,"workerIds":["` + again.WorkerID + `"]}`)
		wantOffline(again)
		l.do("GET", "/v1/machines/host-7", op, "").want(200).contains(`{"status":"OFFLINE","hold":{"since":"2026-01-15T10:00:00.000Z","reason":"on fire"}}`)
		l.do("POST", "/v1/workers", enroll, mailer).want(409).contains(`{"error":"worker_held_offline","machineId":"host-7","reason":"on fire",` +
			`"remedy":"lubdub machine resume host-7"}`)
		l.do("POST", "/v1/machines/nowhere/offline", op, "").refused(404, v1.CodeMachineNotFound)
		l.do("POST", "/v1/machines/host-7/offline", op, `{"deadlineMs":5}`).refused(400, v1.CodeUnknownField)
		l.do("POST", "/v1/machines/host-7/resume", op, "").want(200)
		l.do("GET", "/v1/machines/host-7", op, "").want(200).contains(`{"hold":null}`)
		l.mine(l.register(mailer), "heartbeat", "").want(200)
	})
}
