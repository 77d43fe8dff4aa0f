package api

import (
	"testing"

	"github.com/lubdub-io/lubdub/tracker"
)

func workerBeat(t testing.TB) *hot {
	token, _, err := mintWorker(testKeys(t), testAttempt().Scope, &tracker.Registered{WorkerID: fakeWorkerID, MachineID: "host-7", Queue: "default"}, fakeTime)
	if err != nil {
		t.Fatal(err)
	}
	h := newHot(t, "/v1/tasks/task_1/heartbeat", "Authorization: Bearer "+token+"\r\n", seedHeartbeat)
	h.s.tracker.(quietTracker).owns = true
	return h
}

func BenchmarkWorkerBeat(b *testing.B) {
	h := workerBeat(b)
	b.ReportAllocs()
	for b.Loop() {
		h.once(b)
	}
}
