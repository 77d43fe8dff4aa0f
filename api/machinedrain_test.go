package api

import (
	"testing"
	"time"

	v1 "github.com/lubdub-io/lubdub/sdk/go/v1"
)

// A drained machine takes no new work until it is resumed, as a worker and an operator see it.
func TestContractMachineDrain(t *testing.T) {
	t.Parallel()
	contract(t, func(t *testing.T, l *live) {
		op := l.control(roleOperator)
		old := l.register(mailer)
		l.do("POST", "/v1/tasks", l.control(roleSubmitter), `{"taskId":"t1","queue":"default","type":"send_email"}`).want(201)
		l.do("POST", "/v1/machines/host-7/drain", op, `{"reason":"new kernel","deadlineMs":600000}`).want(200).
			contains(`{"matched":1,"draining":1,"dryRun":false,"workerIds":["` + old.WorkerID + `"]}`)
		var m v1.Machine
		l.do("GET", "/v1/machines/host-7", op, "").want(200).contains(`{"status":"DRAINING"}`).into(&m)
		if d := m.Drain; d == nil || *d.Reason != "new kernel" || !d.Since.Equal(l.now()) || !d.Deadline.Equal(l.now().Add(10*time.Minute)) {
			t.Errorf("%+v", d)
		}
		l.pass(time.Second)
		l.sweep()
		l.mine(old, "heartbeat", "").want(200).contains(`{"shouldDrain":true}`)
		l.mine(old, "heartbeat", "").refused(410, v1.CodeWorkerOffline)

		again := l.register(mailer) // as its supervisor has it
		if !again.ShouldDrain || old.ShouldDrain {
			t.Errorf("registered on a drained machine: shouldDrain is %v, and %v before the drain", again.ShouldDrain, old.ShouldDrain)
		}
		for range 3 {
			l.mine(again, "heartbeat", "").want(200).contains(`{"shouldDrain":true}`)
			l.do("POST", "/v1/queues/default/claim", again.WorkerToken, "").refused(409, v1.CodeWorkerDraining)
			l.pass(9 * time.Second)
			l.sweep()
		}
		l.do("GET", "/v1/workers/"+again.WorkerID, op,
			"").want(200).contains(`{"status":"DRAINING","statusReason":"new kernel","schedulable":false,"unschedulableReasons":["status"]}`)
		l.do("POST", "/v1/workers:select", op, `{"queue":"default"}`).want(409)
		l.do("POST", "/v1/workers:drain", op, `{"selector":{"machineId":"nowhere"}}`).refused(404, v1.CodeNoWorkersMatch)

		before := l.store.Dump(t)
		for _, c := range []struct{ path, body, code string }{
			{"/v1/machines/host-7/resume", `{"reason":"a\nb"}`, v1.CodeInvalidRequest},
			{"/v1/machines/host-7/resume", `{"deadlineMs":5}`, v1.CodeUnknownField},
			{"/v1/machines/a%20b/resume", "", v1.CodeInvalidID},
		} {
			l.do("POST", c.path, op, c.body).refused(400, c.code)
		}
		for _, call := range []string{"drain", "resume"} {
			l.do("POST", "/v1/machines/nowhere/"+call, op, "").refused(404, v1.CodeMachineNotFound)
			l.do("POST", "/v1/machines/host-7/"+call, l.controlFor(roleOperator, "other", "prod"), "").refused(404, v1.CodeMachineNotFound)
		}
		if after := l.store.Dump(t); len(after) != len(before) {
			t.Error("what was refused changed the store")
		}

		l.do("POST", "/v1/machines/host-7/resume", op, `{"reason":"done"}`).want(200).contains(`{"matched":1,"resumed":1}`)
		l.do("GET", "/v1/machines/host-7", op, "").want(200).contains(`{"status":"ONLINE","drain":null}`)
		l.mine(again, "heartbeat", "").want(200).contains(`{"shouldDrain":false}`)
		var claimed v1.ClaimResponse
		l.do("POST", "/v1/queues/default/claim", again.WorkerToken, "").want(200).into(&claimed)
		if len(claimed.Tasks) != 1 {
			t.Errorf("%+v", claimed)
		}
		if l.register(mailer).ShouldDrain {
			t.Error("registered on a machine that was resumed: shouldDrain is true")
		}
		l.do("POST", "/v1/machines/host-7/resume", op, "").want(200).contains(`{"matched":0,"resumed":0}`)
		if data := l.lastEvent("machine.resumed", "host-7"); data["reason"] != "done" {
			t.Errorf("%v", data)
		}
	})
}
