package api

import (
	"context"
	"fmt"
	"strings"
	"testing"

	v1 "github.com/lubdub-io/lubdub/sdk/go/v1"
)

func traceparent(n int) string { return fmt.Sprintf("00-%032x-%016x-01", n, n) }

// traces lists the traceparents in the events of a task; "" where one has none.
func (l *live) traces(task string) string {
	l.t.Helper()
	seen := map[string]bool{}
	for shard := range 4 {
		entries, err := l.store.Client.XRange(context.Background(), fmt.Sprintf("lubdub:{%d}:events", shard), "-", "+").Result()
		if err != nil {
			l.t.Fatal(err)
		}
		for _, e := range entries {
			if e.Values["subject"] == task {
				trace, _ := e.Values["trace"].(string) // what is empty is left out of events of pushed tasks
				seen[trace] = true
			}
		}
	}
	var all []string
	for trace := range seen {
		all = append(all, trace)
	}
	return strings.Join(all, " ")
}

// The trace of a creation is stored with the task and is in each of its envelopes and all its events, however the task is handed out; a
// header that is wrong is ignored, and a field that is wrong is refused.
func TestContractTracesAreStored(t *testing.T) {
	t.Parallel()
	contract(t, func(t *testing.T, l *live) {
		dispatcher := l.control(roleDispatcher)
		var w v1.RegisterWorkerResponse
		l.do("POST", "/v1/workers", l.control(roleEnroll), `{"queue":"q","types":["x"],"machineId":"m1"}`).want(201).into(&w)
		var pushed v1.TaskEnvelope
		l.do("POST", "/v1/tasks", dispatcher, `{"taskId":"pushed"}`, "traceparent", traceparent(1)).want(201).into(&pushed)
		l.call(&pushed, "started", `{"attempt":1}`).want(200)
		var again v1.TaskEnvelope
		l.do("POST", "/v1/tasks/pushed/attempts", dispatcher, `{"fromAttempt":1}`).want(201).into(&again)
		l.call(&again, "completed", `{"attempt":2,"outcome":"SUCCEEDED"}`).want(200)
		l.do("POST", "/v1/tasks:batch", dispatcher, `{"tasks":[{"taskId":"own","queue":"q","type":"x","traceparent":"`+traceparent(2)+`"},`+
			`{"taskId":"header","queue":"q","type":"x"},{"taskId":"bad","traceparent":"x"}]}`, "traceparent", traceparent(3)).want(200)
		var claimed v1.ClaimResponse
		l.do("POST", "/v1/queues/q/claim", w.WorkerToken, `{"max":5}`).want(200).into(&claimed)
		got := map[string]string{"first": pushed.Traceparent, "second": again.Traceparent, "view": l.get("pushed").Traceparent,
			"events": l.traces("pushed"), "own events": l.traces("own"), "header events": l.traces("header")}
		for i := range claimed.Tasks {
			got[claimed.Tasks[i].TaskID] = claimed.Tasks[i].Traceparent
		}
		for what, n := range map[string]int{"first": 1, "second": 1, "view": 1, "events": 1, "own": 2, "own events": 2, "header": 3,
			"header events": 3} {
			if got[what] != traceparent(n) {
				t.Errorf("%s has the trace %q, want %q", what, got[what], traceparent(n))
			}
		}
		l.do("GET", "/v1/tasks/bad", dispatcher, "").want(404)

		for _, bad := range []string{"x", "00-00000000000000000000000000000000-00f067aa0ba902b7-01", strings.ToUpper(traceparent(0xa))} {
			var e v1.TaskEnvelope
			a := l.do("POST", "/v1/tasks", dispatcher, `{}`, "traceparent", bad).want(201)
			if a.into(&e); strings.Contains(a.body, "traceparent") || l.traces(e.TaskID) != "" {
				t.Errorf("%q was taken: %s, events %q", bad, a.body, l.traces(e.TaskID))
			}
		}
		if r := l.do("POST", "/v1/tasks", dispatcher, `{"traceparent":"x"}`).refused(400, "invalid_request"); r.Field != "traceparent" {
			t.Errorf("%+v", r)
		}
	})
}

// A repeat under the key of a creation gets the first answer: its trace is not the task's.
func TestContractARepeatKeepsTheFirstTrace(t *testing.T) {
	t.Parallel()
	contract(t, func(t *testing.T, l *live) {
		create := func(n int) (e v1.TaskEnvelope) {
			l.do("POST", "/v1/tasks", l.control(roleDispatcher), `{"labels":{"a":"b"}}`, "Idempotency-Key", "k", "traceparent", traceparent(n)).
				want(201).into(&e)
			return e
		}
		first := create(1)
		if again := create(2); again.TaskID != first.TaskID || again.Traceparent != traceparent(1) {
			t.Errorf("%s %s", again.TaskID, again.Traceparent)
		}
	})
}
