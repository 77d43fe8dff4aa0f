package api

import (
	"fmt"
	"testing"
	"time"

	v1 "github.com/lubdub-io/lubdub/sdk/go/v1"
)

func (l *live) taskIDs(query string) (ids string) {
	l.t.Helper()
	var page v1.TaskList
	l.do("GET", "/v1/tasks?"+query, l.control(roleViewer), "").want(200).into(&page)
	for _, task := range page.Tasks {
		ids += task.TaskID + " "
	}
	return ids
}

// A task with runAt or delayMs is SCHEDULED in the answer, in reads and in lists until it is due, and can be cancelled.
func TestContractTasksAreScheduled(t *testing.T) {
	t.Parallel()
	contract(t, func(t *testing.T, l *live) {
		l.register(mailer)
		at := l.now().Add(time.Minute).UTC()
		for id, when := range map[string]string{
			"delayed": `"delayMs":60000`, "timed": fmt.Sprintf(`"runAt":%q`, at.Format(time.RFC3339Nano)),
			"cancelled": `"notBefore":"2099-01-01T00:00:00Z"`, "now": `"delayMs":0`, "past": `"runAt":"2020-01-01T00:00:00Z"`,
		} {
			var task v1.Task
			body := `{"queue":"default","type":"send_email","taskId":"` + id + `",` + when + `}`
			l.do("POST", "/v1/tasks", l.control(roleDispatcher), body).want(201).into(&task)
			want := v1.Scheduled
			if id == "now" || id == "past" {
				want = v1.Queued
			}
			if task.State != want || l.get(id).State != want || !task.NotBefore.Equal(task.RunAt.Time) {
				t.Errorf("%s is %s, read as %s, with runAt %v and notBefore %v", id, task.State, l.get(id).State, task.RunAt, task.NotBefore)
			}
		}
		for _, id := range []string{"delayed", "timed"} {
			if got := l.get(id); got.RunAt.Sub(at).Abs() > time.Millisecond || !got.NextAttemptAt.Equal(got.RunAt.Time) {
				t.Errorf("%s runs at %v, want %v", id, got.RunAt, at)
			}
		}
		if got := l.taskIDs("state=SCHEDULED"); got != "cancelled delayed timed " {
			t.Errorf("SCHEDULED: %s", got)
		}
		l.do("POST", "/v1/tasks/cancelled/cancel", l.control(roleOperator), `{}`).want(202)
		l.pass(61 * time.Second)
		l.sweep()
		got := l.taskIDs("state=SCHEDULED") + l.taskIDs("state=QUEUED") + l.taskIDs("state=CANCELLED")
		if got != "delayed now past timed cancelled " {
			t.Errorf("SCHEDULED, QUEUED, CANCELLED: %s", got)
		}
	})
}

// A handler may give its task back for a time, which does not count, and may say when a failure is worth another attempt.
func TestContractSnoozeAndRetryAfter(t *testing.T) {
	t.Parallel()
	contract(t, func(t *testing.T, l *live) {
		w := l.register(mailer)
		l.do("POST", "/v1/tasks", l.control(roleDispatcher),
			`{"queue":"default","type":"send_email","taskId":"t1","retry":{"maxAttempts":2,"initialBackoffMs":1000}}`).want(201)
		next := func() *v1.TaskEnvelope {
			t.Helper()
			l.sweep()
			got := l.claim(w, "")
			if len(got) != 1 {
				t.Fatalf("%d tasks are claimed", len(got))
			}
			return &got[0]
		}
		waits := func(d time.Duration) {
			t.Helper()
			if got := l.get("t1"); got.State != v1.Queued || got.NextAttemptAt.Sub(l.now()).Round(time.Second) != d {
				t.Errorf("%s, and the next attempt is at %v; it is %v", got.State, got.NextAttemptAt, l.now())
			}
			l.mine(w, "heartbeat", `{}`).want(200)
			l.pass(d)
		}
		for i := range 3 {
			e := next()
			body := fmt.Sprintf(`{"attempt":%d,"outcome":"SNOOZED","delayMs":5000}`, e.Attempt)
			for range 2 { // a repeat gets the same answer
				l.call(e, "completed", body).want(200).contains(fmt.Sprintf(`{"finalState":"SNOOZED","willRetry":true,"nextAttempt":%d}`, i+2))
			}
			l.call(e, "heartbeat", fmt.Sprintf(`{"attempt":%d}`, e.Attempt)).refused(409, "task_already_terminal")
			waits(5 * time.Second)
		}
		l.call(next(), "completed", `{"attempt":4,"outcome":"FAILED","error":{"category":"TIMEOUT","retryAfterMs":7000}}`).want(200).
			contains(`{"finalState":"FAILED","willRetry":true}`)
		waits(7 * time.Second)
		l.call(next(), "completed", `{"attempt":5,"outcome":"FAILED","error":{"category":"TIMEOUT","retryAfterMs":7000}}`).want(200)
		task := l.get("t1")
		if task.State != v1.Failed || task.Failures != 2 || len(task.History) != 5 || task.History[0].Outcome != "SNOOZED" {
			t.Errorf("%+v", task)
		}
		pushed := l.create(short)
		l.call(pushed, "completed", `{"attempt":1,"outcome":"SNOOZED","delayMs":1}`).refused(409, "task_without_queue")
		if got := l.get(pushed.TaskID); got.State != v1.Dispatched {
			t.Errorf("the refusal has made it %s", got.State)
		}
	})
}
