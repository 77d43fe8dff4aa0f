package api

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	v1 "github.com/lubdub-io/lubdub/sdk/go/v1"
)

// whole reads a task as the wire has it.
func (l *live) whole(id string) map[string]any {
	l.t.Helper()
	var task map[string]any
	l.do("GET", "/v1/tasks/"+id, l.control(roleViewer), "").want(200).into(&task)
	return task
}

// lastEnd is the newest entry of a task's history.
func lastEnd(task map[string]any) map[string]any {
	history := task["history"].([]any)
	return history[len(history)-1].(map[string]any)
}

// fields returns what is there under these names, for a comparison in one line.
func fields(of map[string]any, names ...string) string {
	var b strings.Builder
	for _, name := range names {
		v, there := of[name]
		text := "absent"
		if there {
			j, _ := json.Marshal(v)
			text = string(j)
		}
		fmt.Fprintf(&b, "%s=%s ", name, text)
	}
	return strings.TrimSpace(b.String())
}

func same(t *testing.T, what, got, want string) {
	t.Helper()
	if got != want {
		t.Errorf("%s:\n got %s\nwant %s", what, got, want)
	}
}

// A cancel may be repeated whatever it has done to the task; the confirmation of a cancel that was not requested is refused.
func TestContractACancelIsRepeatable(t *testing.T) {
	t.Parallel()
	contract(t, func(t *testing.T, l *live) {
		cancel := func(id string) *answer {
			return l.do("POST", "/v1/tasks/"+id+"/cancel", l.control(roleOperator), `{"reason":"first"}`)
		}
		pushed, queued := l.create(short).TaskID, "waits"
		l.do("POST", "/v1/tasks", l.control(roleDispatcher), `{"queue":"default","taskId":"waits"}`).want(201)
		for _, id := range []string{pushed, queued} {
			for range 3 {
				cancel(id).want(202).contains(`{"state":"CANCELLED","cancelRequested":true,"cancelReason":"first"}`)
			}
		}
		requested := l.create(short)
		l.call(requested, "started", `{"attempt":1}`).want(200)
		cancel(requested.TaskID).want(202).contains(`{"state":"RUNNING"}`)
		l.call(requested, "completed", `{"attempt":1,"outcome":"CANCELLED"}`).want(200)
		cancel(requested.TaskID).want(202).contains(`{"state":"CANCELLED"}`)

		for outcome, body := range map[string]string{"CANCELLED": `"CANCELLED"`, "SUCCEEDED": `"SUCCEEDED"`,
			"FAILED": `"FAILED","error":{"category":"USER_CODE"}`} {
			e := l.create(short)
			l.call(e, "started", `{"attempt":1}`).want(200)
			if outcome != "CANCELLED" {
				cancel(e.TaskID).want(202) // and the worker's outcome is kept
			}
			l.call(e, "completed", `{"attempt":1,"outcome":`+body+`}`).want(200)
			cancel(e.TaskID).want(409).contains(`{"error":"task_already_terminal","state":"` + outcome + `"}`)
		}
	})
}

// Every ended task includes the time of its last heartbeat and the end that its worker reported, and so does its history.
func TestContractAnEndedTaskKeepsItsTimes(t *testing.T) {
	t.Parallel()
	contract(t, func(t *testing.T, l *live) {
		at := func(d time.Duration) string { return v1.At(l.now().Add(d)).Format("2006-01-02T15:04:05.000Z") }
		ended := func(body, end string, then func(e *v1.TaskEnvelope)) (*v1.TaskEnvelope, map[string]any) {
			e := l.create(body)
			l.call(e, "started", `{"attempt":1}`).want(200)
			l.pass(500 * time.Millisecond)
			l.call(e, "heartbeat", `{"attempt":1}`).want(200)
			l.pass(750 * time.Millisecond)
			then(e)
			task := l.whole(e.TaskID)
			if task["state"] != end {
				t.Fatalf("%v, want %s", task, end)
			}
			return e, task
		}
		complete := func(outcome string) func(*v1.TaskEnvelope) {
			return func(e *v1.TaskEnvelope) {
				l.call(e, "completed", `{"attempt":1,"completedAt":"2025-01-15T10:30:00Z","outcome":`+outcome+`}`).want(200)
			}
		}
		for end, outcome := range map[string]string{"SUCCEEDED": `"SUCCEEDED"`, "CANCELLED": `"CANCELLED"`,
			"FAILED": `"FAILED","error":{"category":"USER_CODE"}`} {
			_, task := ended(short, end, complete(outcome))
			want := fmt.Sprintf(`lastHeartbeatAt="%s" completedAt="2025-01-15T10:30:00.000Z"`, at(-750*time.Millisecond))
			same(t, end, fields(task, "lastHeartbeatAt", "completedAt"), want)
			same(t, end+" in history", fields(lastEnd(task), "lastHeartbeatAt", "completedAt"), want)
		}
		for reason, body := range map[string]string{"HEARTBEAT_TIMEOUT": short,
			"RUN_TIMEOUT": `{"heartbeatIntervalMs":1000,"heartbeatTimeoutMs":60000,"runTimeoutMs":1500}`} {
			_, task := ended(body, "FAILED", func(*v1.TaskEnvelope) { l.pass(1500 * time.Millisecond); l.sweep() })
			want := fmt.Sprintf(`lastHeartbeatAt="%s"`, at(-2250*time.Millisecond))
			same(t, reason, fields(task, "reason", "lastHeartbeatAt", "completedAt"), `reason="`+reason+`" `+want+" completedAt=null")
			same(t, reason+" in history", fields(lastEnd(task), "lastHeartbeatAt", "completedAt"), want+" completedAt=absent")
		}
		e := l.create(short)
		l.call(e, "started", `{"attempt":1}`).want(200)
		l.pass(time.Second)
		l.do("POST", "/v1/tasks/"+e.TaskID+"/attempts", l.control(roleDispatcher), `{"fromAttempt":1}`).want(201)
		same(t, "superseded", fields(lastEnd(l.whole(e.TaskID)), "outcome", "lastHeartbeatAt"),
			`outcome="SUPERSEDED" lastHeartbeatAt="`+at(-time.Second)+`"`)
		same(t, "the attempt after it", fields(l.whole(e.TaskID), "lastHeartbeatAt", "completedAt"), `lastHeartbeatAt=null completedAt=null`)
	})
}

// The metrics that a failed attempt reported stay in its history, within bounds, whether or not another attempt follows.
func TestContractAFailedAttemptKeepsItsMetrics(t *testing.T) {
	t.Parallel()
	contract(t, func(t *testing.T, l *live) {
		w := l.register(mailer)
		l.do("POST", "/v1/tasks", l.control(roleDispatcher),
			`{"queue":"default","taskId":"t","retry":{"maxAttempts":3,"initialBackoffMs":0}}`).want(201)
		many := make([]string, 100)
		for i := range many {
			many[i] = fmt.Sprintf(`"m%03d":"%s"`, i, strings.Repeat("x", 50))
		}
		for i, metrics := range []string{`{"cpuTimeMs":5000,"deep":{"a":[1,2]}}`, `{"long":"` + strings.Repeat("x", 5000) + `","peak":1}`,
			`{` + strings.Join(many, ",") + `}`} {
			got := l.claim(w, `{}`)
			if len(got) != 1 {
				t.Fatal("nothing to claim")
			}
			l.call(&got[0], "completed", fmt.Sprintf(`{"attempt":%d,"outcome":"FAILED","error":{"category":"USER_CODE"},"metrics":%s}`, i+1,
				metrics)).want(200)
		}
		task := l.whole("t")
		history := task["history"].([]any)
		if len(history) != 3 || task["metrics"] == nil {
			t.Fatalf("%v", task)
		}
		of := func(i int) string { return fields(history[i].(map[string]any), "metrics") }
		same(t, "few metrics", of(0), `metrics={"cpuTimeMs":5000,"deep":{"a":[1,2]}}`)
		same(t, "a long one", of(1), `metrics={"peak":1}`)
		if all := of(2); len(all) > len("metrics=")+1024 || len(all) < 900 || !strings.HasPrefix(all, `metrics={"m000":"xxx`) {
			t.Errorf("many: %d bytes, %s", len(all), all)
		}
	})
}

// "No retry left" and "not worth a retry" are two things, and counts are there at 0.
func TestContractRetriesExhausted(t *testing.T) {
	t.Parallel()
	contract(t, func(t *testing.T, l *live) {
		w := l.register(mailer)
		fail := func(policy, category string, times int) map[string]any {
			id := fmt.Sprintf("%s-%d", category, times)
			l.do("POST", "/v1/tasks", l.control(roleDispatcher),
				`{"queue":"default","taskId":"`+id+`","retry":`+policy+`}`).want(201).contains(`{"failures":0,"losses":0}`)
			for range times {
				got := l.claim(w, `{}`)
				l.call(&got[0], "completed", fmt.Sprintf(`{"attempt":%d,"outcome":"FAILED","error":{"category":"%s"}}`, got[0].Attempt,
					category)).want(200)
			}
			return l.whole(id)
		}
		two := `{"maxAttempts":2,"initialBackoffMs":0}`
		task := fail(two, "USER_CODE", 2)
		same(t, "exhausted", fields(task, "state", "retriesExhausted", "failures", "losses"),
			`state="FAILED" retriesExhausted=true failures=2 losses=0`)
		same(t, "its last attempt", fields(lastEnd(task), "willRetry", "retriesExhausted"), `willRetry=absent retriesExhausted=true`)
		same(t, "its first attempt", fields(task["history"].([]any)[0].(map[string]any), "willRetry", "retriesExhausted"),
			`willRetry=true retriesExhausted=absent`)
		task = fail(two, "DATA_QUALITY", 1)
		same(t, "not retryable", fields(task, "state", "retriesExhausted", "losses"), `state="FAILED" retriesExhausted=absent losses=0`)
		same(t, "its attempt", fields(lastEnd(task), "willRetry", "retriesExhausted"), `willRetry=absent retriesExhausted=absent`)

		l.do("POST", "/v1/tasks", l.control(roleDispatcher),
			`{"queue":"default","taskId":"lost","heartbeatIntervalMs":1000,"heartbeatTimeoutMs":2000,"retry":{"maxLosses":0}}`).want(201)
		got := l.claim(w, `{}`)
		l.call(&got[0], "started", `{"attempt":1}`).want(200)
		l.pass(2250 * time.Millisecond)
		l.sweep()
		task = l.whole("lost")
		same(t, "losses", fields(task, "state", "retriesExhausted", "failures", "losses"),
			`state="FAILED" retriesExhausted=true failures=0 losses=1`)
	})
}

// The evidence and the events of an attempt that was lost with its worker state what happened to that worker.
func TestContractWorkerLostIsExplained(t *testing.T) {
	t.Parallel()
	contract(t, func(t *testing.T, l *live) {
		process := `{"queue":"default","types":["send_email"],"hostname":"host-7","pid":%d,"machineId":"host-7"}`
		pid := 0
		lost := func(end func(w *v1.RegisterWorkerResponse)) map[string]any {
			pid++
			w := l.register(fmt.Sprintf(process, pid))
			id := fmt.Sprintf("t%d", pid)
			l.do("POST", "/v1/tasks", l.control(roleDispatcher), `{"queue":"default","taskId":"`+id+`"}`).want(201)
			got := l.claim(w, `{}`)
			l.call(&got[0], "started", `{"attempt":1}`).want(200)
			l.mine(w, "heartbeat", `{}`).want(200)
			l.pass(2 * time.Second)
			end(w)
			l.sweep()
			task := l.whole(id)
			l.do("POST", "/v1/tasks/"+id+"/cancel", l.control(roleOperator), "").want(202) // no other worker claims it
			return lastEnd(task)["evidence"].(map[string]any)
		}
		operator := func(w *v1.RegisterWorkerResponse, call, body string) {
			l.do("POST", "/v1/workers/"+w.WorkerID+"/"+call, l.control(roleOperator), body).want(200)
		}
		names := []string{"workerReason", "silentMs", "timeoutMs", "massExpiryHeld"}
		for reason, end := range map[string]func(w *v1.RegisterWorkerResponse){
			"DEREGISTERED":   func(w *v1.RegisterWorkerResponse) { l.mine(w, "deregister", "").want(200) },
			"FORCED_OFFLINE": func(w *v1.RegisterWorkerResponse) { operator(w, "offline", "") },
			"SUPERSEDED":     func(*v1.RegisterWorkerResponse) { l.register(fmt.Sprintf(process, pid)) },
		} {
			e := lost(end)
			same(t, reason, fields(e, names...), `workerReason="`+reason+`" silentMs=2000 timeoutMs=30000 massExpiryHeld=absent`)
			if s, _ := e["sweeper"].(string); !strings.HasPrefix(s, "swp_") {
				t.Errorf("%s was found by %q", reason, s)
			}
		}
		e := lost(func(w *v1.RegisterWorkerResponse) {
			operator(w, "drain", `{"deadlineMs":1000}`)
			l.pass(time.Second)
		})
		same(t, "drain", fields(e, names...), `workerReason="DRAIN_DEADLINE" silentMs=3000 timeoutMs=30000 massExpiryHeld=absent`)
		e = lost(func(*v1.RegisterWorkerResponse) { l.pass(29 * time.Second) })
		same(t, "silent", fields(e, append(names, "sweeper", "detectionLagMs")...),
			`workerReason="HEARTBEAT_TIMEOUT" silentMs=31000 timeoutMs=30000 massExpiryHeld=absent sweeper="swp_test" detectionLagMs=1000`)
		e = lost(func(w *v1.RegisterWorkerResponse) {
			for range 3 {
				l.mine(w, "heartbeat", `{"tasks":[]}`).want(200)
			}
		})
		same(t, "not listed", fields(e, names...), `workerReason="NOT_IN_INVENTORY" silentMs=0 timeoutMs=0 massExpiryHeld=absent`)
	})
}

// A worker's error says whether it is retryable, also where the worker left that to the category; everything else in it stays as it was
// sent: in the task, in its history, and in the stored part of a long one.
func TestContractAnErrorStatesWhetherItIsRetryable(t *testing.T) {
	t.Parallel()
	contract(t, func(t *testing.T, l *live) {
		long := strings.Repeat("x", 5000)
		for i, c := range []struct{ sent, stored string }{
			{`{"category":"USER_CODE","z":[1,{"retryable":null}],"a":"b"}`,
				`{"category":"USER_CODE","z":[1,{"retryable":null}],"a":"b","retryable":true}`},
			{`{"category":"DATA_QUALITY","retryable":null,"message":"m"}`, `{"category":"DATA_QUALITY","message":"m","retryable":false}`},
			{`{"category":"CONFIGURATION","retryable":true}`, `{"category":"CONFIGURATION","retryable":true}`},
			{`{"category":"USER_CODE","retryable":false}`, `{"category":"USER_CODE","retryable":false}`},
			{` { "r\u0065tryable" : null , "category" : "TIMEOUT" } `, `{"category":"TIMEOUT","retryable":true}`},
			{`{"category":"INFRASTRUCTURE","stackTrace":"` + long + `"}`, `{"category":"INFRASTRUCTURE","stackTrace":"` + long +
				`","retryable":true}`},
		} {
			e := l.create(fmt.Sprintf(`{"taskId":"t%d"}`, i))
			l.call(e, "completed", `{"attempt":1,"outcome":"FAILED","error":`+c.sent+`}`).want(200)
			task := l.get(e.TaskID)
			if string(task.Error) != c.stored {
				t.Errorf("%s became %s", c.sent, task.Error)
			}
			var inHistory, whole struct{ Retryable *bool }
			if json.Unmarshal(task.History[0].Error, &inHistory) != nil || json.Unmarshal([]byte(c.stored), &whole) != nil ||
				inHistory.Retryable == nil ||
				*inHistory.Retryable != *whole.Retryable {
				t.Errorf("%s became %s in history", c.sent, task.History[0].Error)
			}
		}
	})
}

// Times that workers report are compared with the store's, whichever callback has them.
func TestContractSkewOfWorkersIsMeasured(t *testing.T) {
	t.Parallel()
	contract(t, func(t *testing.T, l *live) {
		at := func(ahead time.Duration) string { return l.now().Add(ahead).Format(time.RFC3339Nano) }
		e := l.create(short)
		l.call(e, "started", `{"attempt":1,"startedAt":"`+at(0)+`"}`).want(200)
		l.call(e, "heartbeat", `{"attempt":1,"heartbeatAt":"`+at(3*time.Second)+`"}`).want(200)
		l.call(e, "heartbeat", `{"attempt":1}`).want(200)
		item := `{"taskId":"` + e.TaskID + `","taskToken":"` + e.TaskToken + `","attempt":1,"heartbeatAt":"` + at(-40*time.Second) + `"}`
		l.do("POST", "/v1/heartbeats", "", `{"heartbeats":[`+item+`]}`).want(200)
		l.call(e, "completed", `{"attempt":1,"outcome":"SUCCEEDED","completedAt":"`+at(-30*24*time.Hour)+`"}`).want(200)
		families, err := l.reg.Gather()
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range families {
			if f.GetName() != "lubdub_worker_clock_skew_seconds" {
				continue
			}
			h := f.GetMetric()[0].GetHistogram()
			if h.GetSampleCount() != 4 || h.GetSampleSum() != 43+24*60*60 {
				t.Fatalf("%v", h)
			}
			for _, b := range h.GetBucket() {
				want := uint64(1)
				switch {
				case b.GetUpperBound() >= 60:
					want = 3
				case b.GetUpperBound() >= 10:
					want = 2
				}
				if b.GetCumulativeCount() != want {
					t.Errorf("%v: %d, want %d", b.GetUpperBound(), b.GetCumulativeCount(), want)
				}
			}
			return
		}
		t.Fatal("nothing is measured")
	})
}
