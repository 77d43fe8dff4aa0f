package main

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/lubdub-io/lubdub/api/token"
	"github.com/lubdub-io/lubdub/internal/cli/exit"
	v1 "github.com/lubdub-io/lubdub/sdk/go/v1"
)

func TestWhyExplains(t *testing.T) {
	t.Parallel()
	d := newDesk(t, token.RoleViewer)
	live := createRunning(t, d.api, `{"heartbeatIntervalMs":60000,"heartbeatTimeoutMs":600000}`).TaskID
	d.is(d.run("why", live), exit.OK, "Task "+live+" is RUNNING", "it sends heartbeats every 60s and times out after 10m")
	id := createRunning(t, d.api, `{"heartbeatIntervalMs":1000,"heartbeatTimeoutMs":2000}`).TaskID
	d.is(d.run("task", "wait", id), exit.Failed, "HEARTBEAT_TIMEOUT")
	for _, args := range [][]string{{"why", id}, {"task", "why", id}, {"why", "task/" + id}} {
		d.is(d.run(args...), exit.OK, "is FAILED", "ended ZOMBIE (HEARTBEAT_TIMEOUT)", "(timeout 2",
			"Decided by sweeper swp_", "ms after its deadline", "task.created", "by role:admin", "task.zombie", "by swp_")
	}
	var explained struct {
		Sentences []string
		Task      v1.Task
		Events    []v1.Event
	}
	a := d.ok(d.run("why", id, "-o", "json"))
	if err := json.Unmarshal([]byte(a.out), &explained); err != nil || len(explained.Sentences) < 5 ||
		explained.Task.History[0].Evidence == nil ||
		explained.Events == nil {
		t.Errorf("%v: %s", err, a.out)
	}
	c := d.client()
	w := d.worker(c, "ann")
	d.is(d.run("why", w.WorkerID), exit.OK, "(ann) (queue mail, machine host-ann) is ONLINE, liveness FRESH", "It holds no tasks",
		"worker.registered")
	d.is(d.run("worker", "why", "ann"), exit.OK, w.WorkerID)
	d.is(d.run("worker", "why", "wkr_nobody"), exit.NotFound)
	must[v1.Worker](t)(c.OfflineWorker(t.Context(), w.WorkerID, v1.ReasonRequest{Reason: "unplugged"}))
	d.is(d.run("why", w.WorkerID), exit.OK, `FORCED_OFFLINE ("unplugged")`, "worker.offline", "by tester")
	d.is(d.run("machine", "why", "host-ann"), exit.OK, "Machine host-ann is OFFLINE", w.WorkerID)
	d.is(d.run("why", "nosuch"), exit.NotFound, "no task, worker, machine or queue nosuch in default/default")
	d.is(d.run("why", "host-anne"), exit.NotFound, "did you mean host-ann?")
	d.is(d.run("machine", "why", "machine/host-ann"), exit.OK, "Machine host-ann is OFFLINE", "worker.offline")
	d.is(d.run("why", "queue/mail"), exit.OK, "Queue mail: 0 waiting tasks")
	d.is(d.run("why", "schedule/daily"), exit.Misuse, "run 'lubdub schedule get daily'")
	d.is(d.run("why", "shard/1"), exit.Misuse, "task/ID, worker/ID, machine/ID or queue/NAME")
}

func TestOperatorStatusAndDoctor(t *testing.T) {
	t.Parallel()
	d := newDesk(t, token.RoleViewer)
	d.is(d.run("status"), exit.OK, "DEGRADED (1 warning)", "Heartbeats", "Findings", "Declared dead in the last hour", "What to do",
		"workers: ok   no problems found")
	d.is(d.run("doctor"), exit.OK, "ok   server", "ok   token", "ok   replicas", "redis-version", "ok   redis-policy",
		"redis-persistence", "-> run redis-cli CONFIG SET appendonly yes", "redis-round-trip", "are being swept", "settings")
	must[v1.Queue](t)(d.client().PauseQueue(t.Context(), "mail", v1.PauseQueueRequest{Reason: "its server is down"}))
	boss := &desk{t: t, environ: append(slices.Clone(d.environ), "LUBDUB_TOKEN="+adminToken(t))}
	boss.ok(boss.run("task", "create", "--id", "stuck", "--queue", "mail", "--tenant", "default", "--workspace", "default"))
	until(t, "the queue is evaluated again", func() bool { return strings.Contains(d.run("status").out, "UNHEALTHY") })
	d.is(d.run("status"), exit.Failed, "UNHEALTHY (1 failure, 2 warnings)", "Waiting tasks have no eligible worker.",
		"Queue mail: 1 task has no online worker that can run it",
		"is paused", "lubdub queue resume mail")
	var status struct {
		Healthy  bool
		Findings []v1.Finding
		System   *v1.System
		Stats    *v1.Stats
	}
	a := d.is(d.run("status", "-o", "json"), exit.Failed)
	if err := json.Unmarshal([]byte(a.out), &status); err != nil || status.Healthy || status.System == nil || status.Stats == nil ||
		v1.Worst(status.Findings) != v1.SeverityFail {
		t.Errorf("%v: %s", err, a.out)
	}
	if a := d.is(d.run("status", "-o", "name"), exit.Failed); strings.TrimSpace(a.out) != "fail" {
		t.Errorf("%q", a.out)
	}
	d.is(d.run("queue", "why", "mail"), exit.OK, "Queue mail has been paused since",
		"by tester (\"its server is down\"): no task is dispatched until `lubdub queue resume mail`.", "queue.paused mail, by tester",
		"no online worker can run 1 of them")
	d.is(d.run("why", "stuck"), exit.OK, "Queue mail has been paused since", "`lubdub queue resume mail`",
		"1 waiting task of its type cannot run: no online worker")
	unreachable := &desk{t: t, environ: append(slices.Clone(d.environ), "LUBDUB_URL=http://127.0.0.1:1", "LUBDUB_TOKEN="+adminToken(t))}
	unreachable.is(unreachable.run("status"), exit.Unavailable, "does not answer")
	unreachable.is(unreachable.run("doctor"), exit.Unavailable, "does not answer")
}
