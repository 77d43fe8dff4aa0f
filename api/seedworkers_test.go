package api

import (
	"fmt"
	"strings"
	"testing"
	"time"

	v1 "github.com/lubdub-io/lubdub/sdk/go/v1"
)

// The scenarios and edge cases that the project's requirements name, by those names. There workers beat every 30 s and are stale after 90;
// here the defaults are 10 and 30, and the multiple is the same.

const (
	workerInterval = 10 * time.Second
	workerTimeout  = 30 * time.Second
)

func on(machine string, pid int) string {
	return fmt.Sprintf(`{"queue":"default","types":["send_email"],"machineId":%q,"hostname":%q,"pid":%d}`, machine, machine, pid)
}

func (l *live) wantWorker(id string, status v1.WorkerStatus, schedulable bool) *v1.Worker {
	l.t.Helper()
	w := l.workerNow(id)
	if w.Status != status || w.Schedulable != schedulable {
		l.t.Fatalf("the worker is %s, schedulable %v %v; want %s, %v", w.Status, w.Schedulable, w.UnschedulableReasons, status, schedulable)
	}
	return w
}

func (l *live) wantMachine(id string, status v1.WorkerStatus) *v1.Machine {
	l.t.Helper()
	var m v1.Machine
	l.do("GET", "/v1/machines/"+id, l.control(roleViewer), "").want(200).into(&m)
	if m.Status != status {
		l.t.Fatalf("the machine is %s, want %s", m.Status, status)
	}
	return &m
}

func TestStaleDetectionScenarios(t *testing.T) {
	t.Parallel()
	scenario := func(name string, test func(t *testing.T, l *live)) {
		t.Run(name, func(t *testing.T) { contract(t, test) })
	}
	scenario("start a worker, kill -9 it, and it shows as offline, and so does its machine", func(t *testing.T, l *live) {
		w := l.register(on("m1", 1))
		l.wantWorker(w.WorkerID, v1.Online, true)
		l.wantMachine("m1", v1.Online)
		l.pass(workerTimeout)
		l.sweep()
		l.wantWorker(w.WorkerID, v1.Offline, false)
		l.wantMachine("m1", v1.Offline)
	})
	scenario("worker restarts during the cleanup window", func(t *testing.T, l *live) {
		w := l.register(on("m1", 1))
		l.pass(workerTimeout - time.Second)
		l.mine(w, "heartbeat", "").want(200)
		l.pass(time.Second)
		l.sweep()
		l.wantWorker(w.WorkerID, v1.Online, true)
	})
	scenario("a worker that beats between its timeout and the sweep lives", func(t *testing.T, l *live) {
		w := l.register(on("m1", 1))
		l.pass(workerTimeout + time.Second)
		l.mine(w, "heartbeat", "").want(200)
		l.sweep()
		l.wantWorker(w.WorkerID, v1.Online, true)
	})
	scenario("a worker with no last heartbeat is stale", func(t *testing.T, l *live) {
		never, beating := l.register(on("m1", 1)), l.register(on("m1", 2))
		l.pass(workerTimeout - time.Second)
		l.mine(beating, "heartbeat", "").want(200)
		l.pass(time.Second)
		l.sweep()
		l.wantWorker(never.WorkerID, v1.Offline, false)
		l.wantWorker(beating.WorkerID, v1.Online, true)
	})
	scenario("multiple workers on the same machine", func(t *testing.T, l *live) {
		a, b := l.register(on("m1", 1)), l.register(on("m1", 2))
		l.pass(workerTimeout / 2)
		l.mine(b, "heartbeat", "").want(200)
		l.pass(workerTimeout / 2)
		l.sweep()
		l.wantWorker(a.WorkerID, v1.Offline, false)
		if m := l.wantMachine("m1", v1.Online); m.Workers.Online != 1 || m.Workers.Offline != 1 {
			t.Fatalf("%+v", m)
		}
		l.pass(workerTimeout / 2)
		l.sweep()
		l.wantWorker(b.WorkerID, v1.Offline, false)
		l.wantMachine("m1", v1.Offline)
	})
	scenario("graceful shutdown needs no wait", func(t *testing.T, l *live) {
		w := l.register(on("m1", 1))
		l.mine(w, "deregister", "").want(200)
		l.wantWorker(w.WorkerID, v1.Offline, false)
		l.wantMachine("m1", v1.Offline)
	})
	scenario("repeated sweeps process a stale worker once", func(t *testing.T, l *live) {
		w := l.register(on("m1", 1))
		l.pass(workerTimeout)
		admin := l.controlFor(roleAdmin, "*", "*")
		l.do("POST", "/v1/system:sweep", admin, "").want(200).contains(`{"success":true}`)
		var r v1.SweepResponse
		l.do("POST", "/v1/system:sweep", admin, "").want(200).into(&r)
		if r.Results.StaleWorkers.MarkedOfflineCount != 0 {
			t.Fatalf("%+v", r)
		}
		if got := l.workerNow(w.WorkerID); got.StaleCount24h != 1 {
			t.Fatalf("%+v", got)
		}
	})
}

func TestHeartbeatValidationScenarios(t *testing.T) {
	t.Parallel()
	scenario := func(name string, test func(t *testing.T, l *live)) {
		t.Run(name, func(t *testing.T) { contract(t, test) })
	}
	choose := func(l *live) *answer {
		return l.do("POST", "/v1/workers:select", l.control(roleViewer), `{"queue":"default"}`)
	}
	scenario("fresh below the timeout, stale from it on", func(t *testing.T, l *live) {
		w := l.register(on("m1", 1))
		l.pass(workerTimeout - 250*time.Millisecond)
		l.wantWorker(w.WorkerID, v1.Online, true)
		choose(l).want(200)
		l.pass(250 * time.Millisecond)
		if got := l.wantWorker(w.WorkerID, v1.Online, false); fmt.Sprint(got.UnschedulableReasons) != "[stale]" || got.Liveness != "LOST" {
			t.Fatalf("%+v", got)
		}
		if e := choose(l).refused(409, v1.CodeNoFreshWorkers); e.Message != "No workers with fresh heartbeats available" {
			t.Fatal(e.Message)
		}
	})
	scenario("a paused worker is not selected, one that is unpaused in time is", func(t *testing.T, l *live) {
		w := l.register(on("m1", 1))
		l.pass(workerTimeout)
		choose(l).refused(409, v1.CodeNoFreshWorkers)
		l.mine(w, "heartbeat", "").want(200) // unpaused before any sweep
		choose(l).want(200)
	})
	scenario("graceful shutdown marks it inactive at once", func(t *testing.T, l *live) {
		w := l.register(on("m1", 1))
		l.mine(w, "deregister", "").want(200)
		choose(l).refused(409, v1.CodeNoMatchingWorkers)
	})
	scenario("with several workers the stale one is passed over", func(t *testing.T, l *live) {
		stale, fresh := l.register(on("m1", 1)), l.register(on("m2", 1))
		l.pass(workerTimeout / 2)
		l.mine(fresh, "heartbeat", "").want(200)
		l.pass(workerTimeout / 2)
		for range 5 {
			var s v1.SelectWorkerResponse
			choose(l).want(200).into(&s)
			if s.Worker.WorkerID != fresh.WorkerID || s.Rejected.Stale != 1 {
				t.Fatalf("%+v, the stale one is %s", s, stale.WorkerID)
			}
		}
	})
}

func TestLifecycleScenarios(t *testing.T) {
	t.Parallel()
	scenario := func(name string, test func(t *testing.T, l *live)) {
		t.Run(name, func(t *testing.T) { contract(t, test) })
	}
	claim := func(l *live, w *v1.RegisterWorkerResponse, body string) []v1.TaskEnvelope {
		l.t.Helper()
		var r v1.ClaimResponse
		l.do("POST", "/v1/queues/default/claim", w.WorkerToken, body).want(200).into(&r)
		return r.Tasks
	}
	queue := func(l *live, body string) string {
		l.t.Helper()
		var task v1.Task
		l.do("POST", "/v1/tasks", l.control(roleDispatcher), body).want(201).into(&task)
		return task.TaskID
	}
	scenario("no type poisoning: a task that no worker here can run blocks none behind it", func(t *testing.T, l *live) {
		w := l.register(on("m1", 1))
		for range 5 {
			queue(l, `{"queue":"default","type":"process_order"}`)
		}
		mine := queue(l, `{"queue":"default","type":"send_email"}`)
		for range 2 {
			tasks := claim(l, w, `{"max":10}`)
			if len(tasks) > 0 && tasks[0].TaskID != mine || len(tasks) > 1 {
				t.Fatalf("%+v", tasks)
			}
		}
	})
	scenario("a worker's beat extends everything that it holds", func(t *testing.T, l *live) {
		w := l.register(on("m1", 1))
		var ids []string
		for range 3 {
			ids = append(ids, queue(l, `{"queue":"default","type":"send_email"}`))
		}
		for _, e := range claim(l, w, `{"max":3}`) {
			l.call(&e, "started", `{"attempt":1}`).want(200)
		}
		for range 6 {
			l.pass(workerInterval)
			l.mine(w, "heartbeat", `{"activeCount":3}`).want(200)
			l.sweep()
		}
		for _, id := range ids {
			if task := l.get(id); task.State != v1.Running || task.WorkerID == nil || *task.WorkerID != w.WorkerID {
				t.Fatalf("%+v", task)
			}
		}
		if got := l.workerNow(w.WorkerID); got.HeldCount != 3 || got.ActiveCount != 3 {
			t.Fatalf("%+v", got)
		}
	})
	scenario("a dead worker's tasks go to others", func(t *testing.T, l *live) {
		dead, heir := l.register(on("m1", 1)), l.register(on("m2", 1))
		id := queue(l, `{"queue":"default","type":"send_email"}`)
		lost := claim(l, dead, "")[0]
		l.pass(workerTimeout / 2)
		l.mine(heir, "heartbeat", "").want(200)
		l.pass(workerTimeout / 2)
		l.sweep()
		l.mine(dead, "heartbeat", "").refused(410, v1.CodeWorkerOffline)
		l.pass(time.Second) // its backoff
		l.sweep()
		tasks := claim(l, heir, "")
		if len(tasks) != 1 || tasks[0].TaskID != id || tasks[0].Attempt != 2 {
			t.Fatalf("%+v", tasks)
		}
		l.call(&lost, "completed", seedSucceeded).refused(409, v1.CodeAttemptMismatch) // return never revives lost attempts
	})
	scenario("a draining worker gets no new work and finishes what it has", func(t *testing.T, l *live) {
		w := l.register(on("m1", 1))
		queue(l, `{"queue":"default","type":"send_email"}`)
		held := claim(l, w, "")[0]
		queue(l, `{"queue":"default","type":"send_email"}`)
		l.mine(w, "deregister", `{"drain":true}`).want(200)
		l.do("POST", "/v1/queues/default/claim", w.WorkerToken, "").refused(409, v1.CodeWorkerDraining)
		l.sweep()
		l.wantWorker(w.WorkerID, v1.Draining, false)
		l.call(&held, "completed", seedSucceeded).want(200)
		l.pass(time.Second)
		l.sweep()
		l.wantWorker(w.WorkerID, v1.Offline, false)
		l.do("POST", "/v1/queues/default/claim", w.WorkerToken, "").refused(410, v1.CodeWorkerOffline)
	})
	scenario("one registration for each namespace, queue, host and pid", func(t *testing.T, l *live) {
		a := l.register(on("m1", 1))
		others := []*v1.RegisterWorkerResponse{l.register(on("m1", 2)), l.register(on("m2", 1)),
			l.register(strings.Replace(on("m1", 1), "default", "other", 1))}
		b := l.register(on("m1", 1))
		if got := l.wantWorker(a.WorkerID, v1.Offline, false); *got.StatusReason != "SUPERSEDED" {
			t.Fatalf("%+v", got)
		}
		for _, w := range append(others, b) {
			l.wantWorker(w.WorkerID, v1.Online, true)
		}
	})
	scenario("max concurrent is never exceeded", func(t *testing.T, l *live) {
		w := l.register(`{"queue":"default","types":["send_email"],"maxConcurrent":2}`)
		for range 5 {
			queue(l, `{"queue":"default","type":"send_email"}`)
		}
		first := claim(l, w, `{"max":10}`)
		if len(first) != 2 || len(claim(l, w, `{"max":10}`)) != 0 {
			t.Fatalf("%d", len(first))
		}
		l.wantWorker(w.WorkerID, v1.Online, false)
		l.call(&first[0], "completed", seedSucceeded).want(200)
		if more := claim(l, w, `{"max":10}`); len(more) != 1 {
			t.Fatalf("%d", len(more))
		}
	})
}
