package main

import (
	"context"
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/lubdub-io/lubdub/api/token"
	"github.com/lubdub-io/lubdub/internal/cli/exit"
	"github.com/lubdub-io/lubdub/sdk/go/client"
	v1 "github.com/lubdub-io/lubdub/sdk/go/v1"
)

// client calls the server without the program.
func (d *desk) client() *client.Client {
	d.t.Helper()
	c, err := client.New(d.api, client.Token(bearer(d.t, token.RoleAdmin, time.Now())))
	if err != nil {
		d.t.Fatal(err)
	}
	d.t.Cleanup(c.Close)
	return c
}

// must is for calls of the client.
func must[T any](t *testing.T) func(*T, error) *T {
	return func(answer *T, err error) *T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return answer
	}
}

// worker registers a worker of the queue mail.
func (d *desk) worker(c *client.Client, name string) *v1.RegisterWorkerResponse {
	d.t.Helper()
	return must[v1.RegisterWorkerResponse](d.t)(c.RegisterWorker(d.t.Context(), v1.RegisterWorkerRequest{
		Queue: "mail", Types: []string{"letter"}, Name: name, MachineID: "host-" + name,
	}))
}

func TestOperatorActsOnManyTasks(t *testing.T) {
	t.Parallel()
	d := newDesk(t, token.RoleAdmin)
	var all []v1.CreateTasksItem
	for i := range 1200 {
		all = append(all, v1.CreateTasksItem{CreateTaskRequest: v1.CreateTaskRequest{
			TaskID: fmt.Sprintf("t%04d", i), Queue: "mail", RunID: fmt.Sprintf("run-%d", i%2), Type: "letter",
		}})
	}
	c := d.client()
	for _, part := range [][]v1.CreateTasksItem{all[:600], all[600:]} {
		if _, err := c.CreateTasks(t.Context(), part); err != nil {
			t.Fatal(err)
		}
	}
	d.is(d.run("task", "cancel"), exit.Misuse, "--queue")
	d.is(d.run("task", "cancel", "t0001", "--queue", "mail"), exit.Misuse, "not both")
	d.is(d.run("task", "cancel", "--queue", "mail", "--dry-run"), exit.OK,
		"This would cancel 1,200 tasks that match {queue:mail} in default/default")
	d.is(d.run("task", "cancel", "--queue", "mail"), exit.Misuse, "cancel 1,200 tasks", "-y")
	d.is(d.run("task", "cancel", "--queue", "mails", "-y"), exit.OK, "No task matches {queue:mails}")
	d.is(d.run("run", "get", "run-1"), exit.OK, "QUEUED", "600")
	d.is(d.run("run", "cancel", "run-1"), exit.Misuse, "cancel 600 tasks of run run-1", "-y")
	d.is(d.run("task", "cancel", "t0002", "--reason", "mistake"), exit.OK, "CANCELLED")
	d.is(d.run("task", "cancel", "--queue", "mail", "--state", "queued", "-y"), exit.OK, "1,199 tasks: done.")
	d.is(d.run("run", "get", "run-1", "-o", "json"), exit.OK, `"CANCELLED": 600`)
	d.is(d.run("task", "cancel", "--queue", "mail", "--dry-run"), exit.OK, "This would cancel 0 tasks") // all have ended
	d.is(d.run("task", "cancel", "--queue", "mail", "--state", "queued,cancelled", "-y"), exit.OK,
		"There is nothing to do: this would cancel 0 tasks, not 1,200 that have ended, of those that match {state:QUEUED,CANCELLED,queue:mail}")
	d.is(d.run("task", "retry", "--queue", "mail", "-y"), exit.OK, "No task matches {queue:mail}") // none has FAILED
	d.is(d.run("run", "wait", "run-0"), exit.Failed, "600")
	d.is(d.run("task", "wait", "t0002", "--for", "cancelled"), exit.OK)
	d.is(d.run("task", "wait", "t0002"), exit.Failed)
	d.is(d.run("task", "wait", "t0002", "--for", "canceled"), exit.Misuse, "no state of a task")
	d.is(d.run("task", "retry", "t0002"), exit.Failed)
	d.is(d.run("task", "retry", "t9999"), exit.NotFound)
	d.is(d.run("task", "ls", "--limit", "0", "-o", "name"), exit.OK, "task/t0000\n", "task/t1199\n")
	d.is(d.run("task", "create", "--queue", "mail", "--payload", "{"), exit.Misuse, "--payload is not JSON")
	d.is(d.with(`{"taskId":"from-file","queue":"x"}`, "task", "create", "-f", "-", "--queue", "mail"), exit.OK, "from-file", "mail")
	d.is(d.run("task", "create", "--id", "pushed"), exit.OK, "DISPATCHED", "-o json")
	if a := d.run("task", "create", "--id", "pushed2"); strings.Contains(a.out+a.err, "eyJ") {
		t.Errorf("a token was printed without a request: %s", a.out)
	}
	d.is(d.run("task", "create", "--id", "pushed3", "-o", "json"), exit.OK, `"taskToken": "eyJ`)
}

func TestOperatorActsOnWorkers(t *testing.T) {
	t.Parallel()
	d := newDesk(t, token.RoleAdmin)
	c := d.client()
	first, second := d.worker(c, "ann"), d.worker(c, "bob")
	d.is(d.run("worker", "get", "ann"), exit.OK, first.WorkerID)
	d.is(d.run("worker", "cordon", first.WorkerID, "--reason", "look"), exit.OK, "cordoned")
	d.is(d.run("worker", "ls", "--hindered"), exit.OK, first.WorkerID, "cordoned")
	d.is(d.run("worker", "uncordon", "--queue", "mail"), exit.Misuse, "uncordon 2 workers with queue:mail", "-y")
	d.is(d.run("worker", "uncordon", "--queue", "mail", "-y"), exit.OK, "2 of 2 workers: done.")
	d.is(d.run("worker", "drain", "--machine", "host-bob", "-y", "--wait"), exit.OK, "1 of 1 worker: done.", "Nothing is held")
	d.is(d.run("worker", "resume", "ann", second.WorkerID), exit.NotFound, "that is the name of "+first.WorkerID)
	d.is(d.run("worker", "offline", "--silent-for", "1h", "-y"), exit.OK, "No worker that is ONLINE or DRAINING matches silentFor:1h")
	d.is(d.run("worker", "offline", first.WorkerID, "--reason", "gone"), exit.OK, "OFFLINE")
	d.is(d.run("worker", "ls"), exit.OK, "hidden, since OFFLINE; -a shows all.")
	d.is(d.run("worker", "ls", "-a"), exit.OK, first.WorkerID)
	d.is(d.run("machine", "ls"), exit.OK, "1 machine hidden, since OFFLINE; -a shows all.")
	d.is(d.run("machine", "drain", "host-ann", "--reason", "disk"), exit.OK, "0 workers of machine host-ann drain")
	d.is(d.run("machine", "get", "host-ann", "-o", "wide"), exit.OK, "disk")
	d.is(d.run("machine", "resume", "host-ann"), exit.OK, "host-ann")
	d.is(d.run("machine", "get", "host-an"), exit.NotFound, "did you mean host-ann?")
	d.is(d.run("queue", "pause", "mail"), exit.OK, "yes")
	d.is(d.run("queue", "resume", "mail"), exit.OK, "mail")
	d.is(d.run("queue", "pause", "mial"), exit.OK,
		"Nothing was known of queue mial before; did you mean mail?", "lubdub queue resume mial")
	d.is(d.run("queue", "resume", "mial"), exit.OK, "mial")
	d.is(d.run("queue", "resume", "mial"), exit.NotFound, "did you mean mail?")
	schedule := `{"scheduleId":"nightly","cron":"0 0 3 * * *","task":{"queue":"mail","type":"letter"}}`
	d.is(d.with(schedule, "schedule", "create", "-f", "-"), exit.OK, "nightly", "0 0 3 * * *")
	d.is(d.run("schedule", "pause", "nightly"), exit.OK, "yes")
	d.is(d.run("schedule", "next", "nightly", "--count", "2"), exit.OK, "T03:00:00.000Z")
	d.is(d.run("schedule", "fire", "nightly"), exit.OK, "Fired: created task ")
	d.is(d.run("schedule", "backfill", "nightly", "--from", "48h", "--to", "1m"), exit.OK, "made up for")
	d.is(d.run("schedule", "fire", "nigtly"), exit.NotFound, "did you mean nightly?")
	d.is(d.run("schedule", "rm", "nightly"), exit.OK, "is deleted")
	// A secret is in one answer and no other, so it is printed once, whatever the format.
	for _, format := range []string{"table", "wide", "json", "jsonl", "yaml", "name"} {
		made := d.ok(d.run("webhook", "create", "--url", "https://example.com/hook", "--events", "task.failed", "--id", "pager", "-o", format))
		rotated := d.ok(d.run("webhook", "rotate", "pager", "-o", format))
		shown := d.ok(d.run("webhook", "get", "pager", "-o", format))
		for command, r := range map[string]answer{"create": made, "rotate": rotated} {
			if n := strings.Count(r.out+r.err, "whsec_"); n != 1 {
				t.Errorf("webhook %s -o %s prints %d secrets: %s%s", command, format, n, r.out, r.err)
			}
		}
		if strings.Contains(shown.out+shown.err, "whsec_") {
			t.Errorf("webhook get -o %s prints the secret", format)
		}
		d.is(d.run("webhook", "rm", "pager"), exit.OK, "is deleted")
	}
	d.is(d.run("webhook", "create", "--url", "https://example.com/hook", "--events", "task.failed", "--id", "pager"), exit.OK, "pager")
	d.is(d.run("webhook", "deliveries", "pagr"), exit.NotFound, "did you mean pager?")
	d.is(d.run("webhook", "rm", "pager"), exit.OK, "is deleted")
}

// awaitStderr waits until a program has written a text to standard error.
func (r *running) awaitStderr(text string) {
	r.t.Helper()
	deadline := time.After(long)
	for !strings.Contains(r.errs.String(), text) {
		select {
		case <-r.exited:
			if !strings.Contains(r.errs.String(), text) {
				r.t.Fatalf("it ended with %d and did not print %q: %s", r.code, text, r.errs)
			}
		case <-deadline:
			r.t.Fatalf("it does not print %q: %s", text, r.errs)
		case <-time.After(10 * time.Millisecond):
		}
	}
}

func TestOperatorDrainWaits(t *testing.T) {
	t.Parallel()
	d := newDesk(t, token.RoleOperator)
	c := d.client()
	w := d.worker(c, "ann")
	must[client.Created](t)(c.CreateTask(t.Context(), v1.CreateTaskRequest{TaskID: "held", Queue: "mail", Type: "letter"}))
	claimed := must[v1.ClaimResponse](t)(c.ClaimTasks(t.Context(), "mail", w.WorkerToken, v1.ClaimRequest{}))
	if len(claimed.Tasks) != 1 {
		t.Fatalf("it got %d tasks", len(claimed.Tasks))
	}
	// The worker beats while it is drained, so that nothing else ends it.
	beating, stop := context.WithCancel(t.Context())
	beaten := make(chan struct{})
	go func() {
		defer close(beaten)
		for beating.Err() == nil {
			_, _ = c.WorkerHeartbeat(beating, w.WorkerID, w.WorkerToken, v1.WorkerHeartbeatRequest{})
			select {
			case <-beating.Done():
			case <-time.After(time.Second):
			}
		}
	}()
	defer func() { stop(); <-beaten }()

	drain := launch(t, d.environ, "worker", "drain", w.WorkerID, "--wait", "--deadline", "1h")
	drain.awaitStderr("1 task held by 1 worker")
	drain.awaitStderr("held, 59m")
	drain.signal(syscall.SIGINT)
	if code := drain.wait(); code != exit.Failed {
		t.Errorf("it ended with %d", code)
	}
	drain.awaitStderr("the drain stays on. To take it back: lubdub worker resume " + w.WorkerID)
	d.is(d.run("worker", "get", w.WorkerID), exit.OK, "DRAINING")
	d.is(d.run("worker", "resume", w.WorkerID), exit.OK, "ONLINE")

	again := launch(t, d.environ, "machine", "drain", "host-ann", "--wait")
	again.awaitStderr("held, no deadline")
	task := claimed.Tasks[0]
	_, attempt, err := c.Track(t.Context(), &task)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := attempt.Done(nil); err != nil {
		t.Fatal(err)
	}
	if code := again.wait(); code != exit.OK {
		t.Errorf("it ended with %d", code)
	}
	again.awaitStderr("Nothing is held any more.")
}

// Commands that follow or wait end with Ctrl-C; they wait for a server that goes away.
func TestOperatorFollows(t *testing.T) {
	t.Parallel()
	d := newDesk(t, token.RoleAdmin)
	tail := launch(t, d.environ, "event", "tail", "--type", "task.*", "--after", "1h", "-o", "jsonl")
	wait := launch(t, d.environ, "task", "create", "--id", "slow", "--queue", "mail", "--wait")
	tail.line(`"type":"task.created"`)
	ann := d.worker(d.client(), "ann")
	watch := launch(t, d.environ, "task", "ls", "--watch")
	staff := launch(t, d.environ, "worker", "ls", "--watch")
	staff.line(ann.WorkerID)
	typo := launch(t, d.environ, "task", "tail", "slwo")
	watch.line("slow ")
	d.ok(d.run("task", "cancel", "slow"))
	tail.line(`"type":"task.cancelled"`)
	watch.line("CANCELLED")
	d.ok(d.run("worker", "offline", ann.WorkerID))
	staff.line("OFFLINE") // which the list has no more
	until(t, "tail reports that slwo is unknown", func() bool {
		return strings.Contains(typo.errs.String(), "did you mean slow?\nIts events are followed")
	})
	if code := wait.wait(); code != exit.Failed {
		t.Errorf("a wait for what was cancelled ended with %d", code)
	}
	for _, r := range []*running{tail, watch, staff, typo} {
		r.signal(syscall.SIGINT)
		if code := r.wait(); code != exit.OK {
			t.Errorf("%v ended with %d: %s", r.cmd.Args, code, r.errs)
		}
	}
	d.is(d.run("task", "wait", "nosuch"), exit.NotFound)
	created := d.run("task", "create", "--id", "never", "--queue", "mail")
	d.ok(created)
	d.is(d.run("task", "wait", "never", "--within", "50ms"), exit.Failed, "timed out: task never did not reach the requested state")
}
