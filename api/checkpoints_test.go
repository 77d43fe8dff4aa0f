package api

import (
	"fmt"
	"strings"
	"testing"

	v1 "github.com/lubdub-io/lubdub/sdk/go/v1"
	"github.com/lubdub-io/lubdub/tracker/model"
)

// Details of every kind of heartbeat are kept for the next attempts; the latest count, those of an attempt that is not current do not.
func TestContractCheckpoints(t *testing.T) {
	t.Parallel()
	contract(t, func(t *testing.T, l *live) {
		w := l.register(mailer)
		l.do("POST", "/v1/tasks", l.control(roleDispatcher),
			`{"queue":"default","type":"send_email","taskId":"t1","retry":{"maxAttempts":9,"initialBackoffMs":0}}`).want(201)
		next := func(want string) *v1.TaskEnvelope {
			t.Helper()
			got := l.claim(w, "")
			if len(got) != 1 {
				t.Fatalf("%d tasks are claimed", len(got))
			}
			e := &got[0]
			switch last := e.LastProgress; {
			case want == "" && last != nil || want != "" && (last == nil || string(last.Details) != want):
				t.Errorf("attempt %d begins with %+v, want the details %s", e.Attempt, last, want)
			}
			l.call(e, "started", fmt.Sprintf(`{"attempt":%d}`, e.Attempt)).want(200)
			return e
		}
		fail := func(e *v1.TaskEnvelope) {
			t.Helper()
			l.call(e, "completed", fmt.Sprintf(`{"attempt":%d,"outcome":"FAILED","error":{"category":"TIMEOUT"}}`, e.Attempt)).want(200)
		}
		shows := func(want string) {
			t.Helper()
			if got := l.get("t1"); string(got.Details) != want {
				t.Errorf("the task has the details %s, want %s", got.Details, want)
			}
		}
		batch := func(e *v1.TaskEnvelope, details string) *answer {
			t.Helper()
			return l.do("POST", "/v1/heartbeats", w.WorkerToken, fmt.Sprintf(
				`{"heartbeats":[{"taskId":"t1","attempt":%d,"details":%s,"message":"m"},{"taskId":"unknown","attempt":1}]}`, e.Attempt, details)).want(200)
		}
		first := next("")
		shows("")
		l.call(first, "heartbeat", `{"attempt":1,"progressPct":3,"details":{"frame": 7320, "a":[ 1 ]}}`).want(200).
			contains(`{"acknowledged":true}`)
		shows(`{"frame":7320,"a":[1]}`)
		l.call(first, "heartbeat", `{"attempt":1,"progressPct":4}`).want(200)
		l.call(first, "heartbeat", `{"attempt":1,"details":null}`).want(200)
		shows(`{"frame":7320,"a":[1]}`)
		if got := l.get("t1"); string(got.ProgressPct) != "4" || got.History == nil {
			t.Errorf("%+v", got)
		}
		batch(first, `"b"`)
		shows(`"b"`)
		if got := l.get("t1"); string(got.Message) != `"m"` {
			t.Errorf("%s", got.Message)
		}
		l.mine(w, "heartbeat", `{"tasks":[{"taskId":"t1","attempt":1,"details":"w","progressPct":5}]}`).want(200)
		shows(`"w"`)
		var list v1.TaskList
		l.do("GET", "/v1/tasks", l.control(roleViewer), "").want(200).into(&list)
		if len(list.Tasks) != 1 || list.Tasks[0].Details != nil {
			t.Errorf("the list has %+v", list.Tasks)
		}
		fail(first)
		shows(`"w"`)
		second := next(`"w"`)
		if string(second.LastProgress.ProgressPct) != "5" {
			t.Errorf("%+v", second.LastProgress)
		}
		l.call(first, "heartbeat", `{"attempt":1,"details":"late"}`).refused(409, "attempt_mismatch")
		batch(first, `"late"`).holds(`"taskId":"t1","status":409`)
		shows(`"w"`)
		fail(second)
		third := next(`"w"`) // of the first attempt
		l.call(third, "heartbeat", `{"attempt":3,"details":[0]}`).want(200)
		fail(third)
		l.call(next(`[0]`), "completed", `{"attempt":4,"outcome":"SUCCEEDED"}`).want(200)
		l.call(third, "heartbeat", `{"attempt":3,"details":[1]}`).refused(409, "attempt_mismatch")
		shows(`[0]`)

		pushed := l.create(short) // its first heartbeat starts it
		l.call(pushed, "heartbeat", `{"attempt":1,"details":1e3}`).want(200)
		var again v1.TaskEnvelope
		l.do("POST", "/v1/tasks/"+pushed.TaskID+"/attempts", l.control(roleDispatcher), `{"fromAttempt":1}`).want(201).into(&again)
		if again.LastProgress == nil || string(again.LastProgress.Details) != "1e3" {
			t.Errorf("%+v", again.LastProgress)
		}
	})
}

// Details have a limit, of their text without whitespace.
func TestContractDetailsAreBounded(t *testing.T) {
	t.Parallel()
	contract(t, func(t *testing.T, l *live) {
		w := l.register(mailer)
		l.do("POST", "/v1/tasks", l.control(roleDispatcher), `{"queue":"default","type":"send_email","taskId":"t1"}`).want(201)
		e := &l.claim(w, "")[0]
		most := `["` + strings.Repeat("x", model.MaxDetailsBytes-4) + `"]`
		for _, c := range []struct {
			details string
			taken   bool
		}{{nested(100), true}, {nested(101), false}, {most, true}, {"[ \n " + most[1:], true}, {`["x` + most[2:], false}} {
			kept := string(l.get("t1").Details)
			one := l.call(e, "heartbeat", `{"attempt":1,"details":`+c.details+`}`)
			batch := l.do("POST", "/v1/heartbeats", w.WorkerToken,
				`{"heartbeats":[{"taskId":"t1","attempt":1,"details":`+c.details+`}]}`).want(200)
			mine := l.mine(w, "heartbeat", `{"tasks":[{"taskId":"t1","attempt":1,"details":`+c.details+`}]}`)
			if c.taken {
				one.want(200)
				batch.holds(`"status":200`)
				mine.want(200)
				kept = strings.ReplaceAll(c.details, " \n ", "")
			} else {
				if field := one.refused(400, "invalid_request").Field; field != "details" {
					t.Errorf("the field is %s", field)
				}
				batch.holds(`"status":400`).holds(`"field":"details"`)
				if field := mine.refused(400, "invalid_request").Field; field != "tasks[0].details" {
					t.Errorf("the field is %s", field)
				}
			}
			if got := string(l.get("t1").Details); got != kept {
				t.Errorf("%d bytes are kept, want %d", len(got), len(kept))
			}
		}
	})
}
