package lubdubprom_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/lubdub-io/lubdub/sdk/go/client"
	"github.com/lubdub-io/lubdub/sdk/go/lubdubprom"
	v1 "github.com/lubdub-io/lubdub/sdk/go/v1"
	"github.com/lubdub-io/lubdub/sdk/go/worker"
	"github.com/lubdub-io/lubdub/sdk/go/workertest"
)

func TestAWorkersMetrics(t *testing.T) {
	reg := prometheus.NewPedanticRegistry()
	m, err := lubdubprom.Metrics(reg)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := lubdubprom.Metrics(reg); err == nil {
		t.Error("the same names were registered twice")
	}
	server := workertest.New(t)
	c, err := client.New(server.URL(), append(server.Options(), client.Measure(m))...)
	if err != nil {
		t.Fatal(err)
	}
	w, err := worker.New(c, "default")
	if err != nil {
		t.Fatal(err)
	}
	w.Handle("mail", func(_ context.Context, task *worker.Task) (any, error) {
		switch {
		case task.ID() == "fails":
			return nil, client.Permanent(errors.New("no address"))
		case task.Attempt() == 1:
			return nil, worker.Snooze(0)
		}
		return nil, nil
	})
	for _, id := range []string{"fails", "works"} {
		server.Enqueue(v1.CreateTaskRequest{TaskID: id, Type: "mail"})
	}
	ended := make(chan error, 1)
	go func() { ended <- w.Run(t.Context()) }()
	server.Until("both tasks have ended", func() bool {
		return server.Task("fails").State == v1.Failed && server.Task("works").State == v1.Succeeded
	})
	w.Close()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if err := testutil.GatherAndCompare(reg, strings.NewReader(`
# HELP lubdub_worker_attempts_total Attempts that ended, by the task's type and by outcome: of the completion, LOST or RETURNED.
# TYPE lubdub_worker_attempts_total counter
lubdub_worker_attempts_total{outcome="FAILED",type="mail"} 1
lubdub_worker_attempts_total{outcome="SNOOZED",type="mail"} 1
lubdub_worker_attempts_total{outcome="SUCCEEDED",type="mail"} 1
# HELP lubdub_worker_claimed_tasks_total Tasks that were claimed.
# TYPE lubdub_worker_claimed_tasks_total counter
lubdub_worker_claimed_tasks_total 3
# HELP lubdub_worker_retries_total Those of them that were not the first attempt of their task.
# TYPE lubdub_worker_retries_total counter
lubdub_worker_retries_total{type="mail"} 1
# HELP lubdub_worker_running_tasks Tasks that the worker runs.
# TYPE lubdub_worker_running_tasks gauge
lubdub_worker_running_tasks 0
`), "lubdub_worker_attempts_total", "lubdub_worker_claimed_tasks_total", "lubdub_worker_retries_total", "lubdub_worker_running_tasks"); err != nil {
		t.Error(err)
	}
	m.Beat("ok", 3, 0)
	m.Refused("task_expired")
	m.LeaseLeft(0.5)
	for name, series := range map[string]int{
		"lubdub_worker_attempt_duration_seconds": 3, "lubdub_worker_queue_wait_seconds": 1, "lubdub_worker_claims_total": 2,
		"lubdub_worker_heartbeats_total": 1, "lubdub_worker_heartbeat_duration_seconds": 1, "lubdub_worker_refusals_total": 1,
		"lubdub_worker_lease_left_ratio": 1,
	} {
		if n, err := testutil.GatherAndCount(reg, name); err != nil || n != series {
			t.Errorf("%s: %d series, want %d (%v)", name, n, series, err)
		}
	}
	if problems, err := testutil.GatherAndLint(reg); err != nil || len(problems) > 0 {
		t.Errorf("%v %v", problems, err)
	}
}
