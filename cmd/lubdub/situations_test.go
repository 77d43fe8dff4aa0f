package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/lubdub-io/lubdub/api/token"
	"github.com/lubdub-io/lubdub/internal/redistest"
	"github.com/lubdub-io/lubdub/internal/sdkrunner"
	"github.com/lubdub-io/lubdub/internal/testenv"
	"github.com/lubdub-io/lubdub/sdk/go/client"
	v1 "github.com/lubdub-io/lubdub/sdk/go/v1"
)

// situation is one that an operator may find, and what each view of the deployment must show.
type situation struct {
	name     string
	severity v1.Severity
	code     string             // of the finding that it is about; empty: nothing is wrong
	message  string             // part of that finding's
	remains  []string           // codes of findings of earlier situations
	metrics  map[string]float64 // by series
	alerts   []string           // that fire if it lasts
	mayFire  []string           // others that may
}

// lubdub status, GET /v1/system (the Overview shows its summary and findings as they are: ui/test/alone.test.mjs), lubdub top, the
// metrics and the alerts agree in each situation that an operator may find. Workers are processes. Without promtool, which `make
// test-deploy` installs, alerts are left out.
func TestEveryViewReportsTheSameSituation(t *testing.T) {
	testenv.OnlyAll(t)
	t.Parallel()
	skipIfShort(t)
	runners, err := sdkrunner.Find("go", t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	redis := redistest.StartServer(t, "--appendonly", "yes")
	server := launch(t, append([]string{"LUBDUB_REDIS=" + redis.URL(), "LUBDUB_SHARDS=2", "LUBDUB_LISTEN=127.0.0.1:0",
		"LUBDUB_ADMIN_LISTEN=127.0.0.1:0", "LUBDUB_LOG_LEVEL=error", "LUBDUB_REDIS_TIMEOUT=2s",
		"LUBDUB_WORKER_HEARTBEAT_INTERVAL=500ms", "LUBDUB_WORKER_TIMEOUT_MULTIPLIER=8"}, withKey...), "serve")
	w := &views{desk: &desk{t: t, server: server, redis: redis.URL()}, token: bearer(t, token.RoleOperator, time.Now())}
	w.api, w.admin = server.urls()
	w.environ = []string{"XDG_CONFIG_HOME=" + t.TempDir(), "LUBDUB_URL=" + w.api, "LUBDUB_TOKEN=" + w.token}
	w.top = newTerminal(w.desk, 2000, 50, "top", "--every", "300ms")
	c := w.client()
	enrol := bearer(t, token.RoleEnroll, time.Now())
	// hire starts a worker that never finishes what it begins, but for letters where it is quick.
	hire := func(queue, name string, quick bool) *exec.Cmd {
		return startRunner(t, runners[0].Command, w.api, enrol, queue, name, quick)
	}
	kill := func(worker *exec.Cmd) {
		t.Helper()
		if err := worker.Process.Kill(); err != nil {
			t.Fatal(err)
		}
	}
	online := func(queue string, n int) {
		t.Helper()
		until(t, fmt.Sprintf("%d workers of the queue %s are online", n, queue), func() bool {
			return len(must[v1.WorkerList](t)(c.ListWorkers(t.Context(), client.WorkerQuery{Queue: queue, Status: v1.Online})).Workers) == n
		})
	}
	holds := func(name string, n int) {
		t.Helper()
		until(t, fmt.Sprintf("%s holds %d tasks", name, n), func() bool {
			all := must[v1.WorkerList](t)(c.ListWorkers(t.Context(), client.WorkerQuery{Name: name, Status: v1.Online})).Workers
			return len(all) == 1 && all[0].HeldCount == n
		})
	}
	losses, backoff := 9, int64(0)
	create := func(queue, id, kind string) {
		t.Helper()
		must[client.Created](t)(c.CreateTask(t.Context(), v1.CreateTaskRequest{TaskID: id, Queue: queue, Type: kind,
			Retry: &v1.RetryPolicy{MaxLosses: &losses, InitialBackoffMs: &backoff}}))
	}

	for n := range 7 {
		hire("mail", fmt.Sprintf("idle-%d", n), true)
	}
	online("mail", 7)
	w.agree(situation{name: "idle", severity: v1.SeverityOK, metrics: map[string]float64{`lubdub_workers{status="ONLINE"}`: 7}})

	must[v1.Queue](t)(c.PauseQueue(t.Context(), "mail", v1.PauseQueueRequest{}))
	create("mail", "waits", "letter")
	w.agree(situation{name: "a queue is paused", severity: v1.SeverityWarn, code: "queue", message: "1 queue is paused: mail (1 task waiting)",
		metrics: map[string]float64{
			`lubdub_queue_paused{queue="mail",tenant="default",workspace="default"}`: 1,
			`lubdub_queue_depth{queue="mail",tenant="default",workspace="default"}`:  1,
		},
		alerts: []string{"LubdubQueuePaused"}})
	must[v1.Queue](t)(c.ResumeQueue(t.Context(), "mail"))

	// More tasks than the alert for lost attempts allows, and one that will be lost with each of its workers.
	const letters = 12
	for n := range letters {
		create("post", fmt.Sprintf("letter-%d", n), "letter")
	}
	create("post", "bomb", "bomb")
	ann := hire("post", "ann", false)
	holds("ann", letters+1)
	bob := hire("post", "bob", true)
	online("post", 2)
	kill(ann)
	holds("bob", 1)
	lost := func(n float64) map[string]float64 {
		return map[string]float64{`lubdub_stale_workers_total{queue="post",tenant="default",workspace="default"}`: n}
	}
	w.agree(situation{name: "a worker is killed that holds tasks", severity: v1.SeverityWarn, code: "recently-lost",
		message: "1 worker lost in the last hour while holding 13 attempts (13 requeued", metrics: lost(1),
		alerts: []string{"LubdubAttemptsFailing"}})

	for range 2 {
		ann = hire("post", "ann", false)
		online("post", 2)
		kill(ann)
		online("post", 1)
	}
	flaps := lost(3)
	flaps[`lubdub_flapping{kind="worker"}`] = 1
	w.agree(situation{name: "a worker flaps", severity: v1.SeverityWarn, code: "flapping", message: "1 worker is flapping", metrics: flaps,
		remains: []string{"recently-lost"},
		alerts:  []string{"LubdubAttemptsFailing", "LubdubWorkersFlapping", "LubdubWorkersStale", "LubdubQueueWorkersStale"}})

	for _, next := range []string{"cat", "dan"} {
		worker := hire("post", next, true)
		online("post", 2)
		kill(bob)
		bob = worker
		holds(next, 1)
	}
	w.agree(situation{name: "a task loses its workers", severity: v1.SeverityWarn, code: "poison-task",
		message: "Task bomb (queue post, type bomb, ", metrics: lost(5),
		remains: []string{"recently-lost", "flapping"},
		alerts:  []string{"LubdubAttemptsFailing", "LubdubWorkersFlapping", "LubdubWorkersStale", "LubdubQueueWorkersStale"}})

	if err := redis.Freeze(); err != nil {
		t.Fatal(err)
	}
	w.agree(situation{name: "Redis is frozen", severity: v1.SeverityFail, code: "redis",
		message: "is not responding. Requests that need it get 503", metrics: map[string]float64{"lubdub_redis_silent": 1},
		alerts: []string{"LubdubRedisDown", "LubdubSweeperDown"},
		mayFire: []string{"LubdubAttemptsFailing", "LubdubWorkersFlapping", "LubdubWorkersStale", "LubdubQueueWorkersStale",
			"LubdubHeartbeatsRefused", "LubdubNoHeartbeats"}})
}

// startRunner starts a worker of a queue as a separate process.
func startRunner(t *testing.T, command, api, enrol, queue, name string, quick bool) *exec.Cmd {
	t.Helper()
	cmd := exec.Command(command)
	cmd.Env = []string{"PATH=" + os.Getenv("PATH")}
	stdin, err := cmd.StdinPipe() // the process ends when it is closed
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	stuck := []map[string]any{{"gate": "never"}}
	letter := stuck
	if quick {
		letter = []map[string]any{{"return": "done"}}
	}
	if err := json.NewEncoder(stdin).Encode(map[string]any{
		"mode": "worker", "urls": []string{api}, "token": enrol, "lease": "patient", "queue": queue, "types": []string{"letter", "bomb"},
		"name": name, "concurrency": 20, "handlers": map[string]any{"type:letter": letter, "type:bomb": stuck},
	}); err != nil {
		t.Fatal(err)
	}
	return cmd
}
