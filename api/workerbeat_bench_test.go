package api

import (
	"slices"
	"testing"
	"time"

	"github.com/lubdub-io/lubdub/api/httpapi"
	"github.com/lubdub-io/lubdub/tracker/workers"
)

// workerBeat is singleBeat with the token of the attempt's worker.
func workerBeat(t testing.TB) *hot {
	text, _, err := httpapi.MintWorker(testKeys(t), testAttempt().Scope,
		&workers.Registered{WorkerID: fakeWorkerID, MachineID: "host-7", Queue: "default", Record: []string{"registration", "host-7"}}, fakeTime)
	if err != nil {
		t.Fatal(err)
	}
	return newHot(t, "/v1/tasks/task_1/heartbeat", "Authorization: Bearer "+text+"\r\n", seedHeartbeat)
}

func BenchmarkWorkerBeat(b *testing.B) { workerBeat(b).bench(b) }

// BenchmarkWorkerBeatToTaskBeat reports how much more a beat costs with its worker's token than with its task's: the median of rounds in
// which both alternate, so that other load on the host slows both. 1.1 is the bound.
func BenchmarkWorkerBeatToTaskBeat(b *testing.B) {
	const beats = 200 // of each in a round
	worker, task := workerBeat(b), singleBeat(b)
	took := func(h *hot) time.Duration {
		start := time.Now()
		for range beats {
			h.once(b)
		}
		return time.Since(start)
	}
	took(worker)
	took(task)
	var ratios []float64
	for b.Loop() {
		ratios = append(ratios, took(worker).Seconds()/took(task).Seconds())
	}
	slices.Sort(ratios)
	b.ReportMetric(ratios[len(ratios)/2], "worker/task")
}
