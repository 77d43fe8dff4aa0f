package api

import (
	"testing"

	v1 "github.com/lubdub-io/lubdub/sdk/go/v1"
)

// What a worker still holds when it deregisters is queued again at once and runs again, whatever its retry policy allows: it counts neither
// as a failure nor as a loss, and the history records how the attempt ended.
func TestContractADeregisteredWorkersTasksAreRequeued(t *testing.T) {
	t.Parallel()
	contract(t, func(t *testing.T, l *live) {
		w := l.register(mailer)
		l.do("POST", "/v1/tasks", l.control(roleSubmitter),
			`{"taskId":"t1","queue":"default","type":"send_email","retry":{"maxAttempts":1,"maxLosses":0}}`).want(201)
		var claimed v1.ClaimResponse
		claim := func(w *v1.RegisterWorkerResponse) v1.TaskEnvelope {
			t.Helper()
			l.do("POST", "/v1/queues/default/claim", w.WorkerToken, "").want(200).into(&claimed)
			if len(claimed.Tasks) != 1 {
				t.Fatalf("claimed %+v", claimed)
			}
			return claimed.Tasks[0]
		}
		first := claim(w)
		l.do("POST", "/v1/tasks/t1/started", first.TaskToken, `{"attempt":1}`).want(200)
		l.mine(w, "heartbeat", `{"tasks":[{"taskId":"t1","attempt":1,"progressPct":40}]}`).want(200)
		l.mine(w, "deregister", `{"reason":"deploy"}`).want(200)
		var task v1.Task
		l.do("GET", "/v1/tasks/t1", l.control(roleViewer), "").want(200).
			contains(`{"state":"QUEUED","attempt":1,"failures":0,"losses":0,"nextAttemptAt":null,"reason":null}`).into(&task)
		if len(task.History) != 1 {
			t.Fatalf("%+v", task.History)
		}
		h := task.History[0]
		if h.Attempt != 1 || h.Outcome != "LOST" || h.Reason == nil || *h.Reason != "WORKER_LOST" || h.StartedAt.IsZero() || !h.WillRetry ||
			h.RetriesExhausted || h.Evidence == nil || h.Evidence.WorkerReason != "DEREGISTERED" || *h.WorkerID != w.WorkerID {
			t.Errorf("%+v %+v", h, h.Evidence)
		}
		l.do("POST", "/v1/tasks/t1/heartbeat", first.TaskToken, `{"attempt":1}`).want(410)
		second := claim(l.register(mailer))
		if second.Attempt != 2 {
			t.Errorf("%+v", second)
		}
		l.do("POST", "/v1/tasks/t1/completed", second.TaskToken, `{"attempt":2,"outcome":"SUCCEEDED"}`).want(200)
	})
}
