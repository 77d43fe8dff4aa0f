package api

import (
	"fmt"
	"strings"
	"testing"
	"time"

	v1 "github.com/lubdub-io/lubdub/sdk/go/v1"
)

// schedule reads one.
func (l *live) schedule(id string) (s v1.Schedule) {
	l.t.Helper()
	l.do("GET", "/v1/schedules/"+id, l.control(roleViewer), "").want(200).into(&s)
	return s
}

// holds compares a part of the answer as it is written.
func (a *answer) holds(text string) *answer {
	a.t.Helper()
	if !strings.Contains(a.body, text) {
		a.t.Fatalf("%s is not in %s", text, a.body)
	}
	return a
}

// A schedule's whole life over the wire.
func TestContractSchedules(t *testing.T) {
	t.Parallel()
	contract(t, func(t *testing.T, l *live) {
		l.store.Clock.Set(time.Date(2026, 1, 15, 10, 0, 0, int(300*time.Millisecond), time.UTC))
		operator := l.control(roleOperator)
		sweep := func(d time.Duration) {
			t.Helper()
			l.pass(d)
			if _, err := l.sweeper.RunOnce(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		l.do("POST", "/v1/schedules", operator, `{"scheduleId":"s1","cron":"0 * * * * *","overlap":"skip","maxCatchup":5,"task":{"queue":"q",
			"type":"mail","payload":{"a":1},"resources":{"cpu":1},"labels":{"l":"v"},"heartbeatIntervalMs":1000,"heartbeatTimeoutMs":5000,
			"placement":{"strategy":"leastLoaded"},"retry":{"maxAttempts":2}}}`).want(201).
			holds(`"scheduleId":"s1","tenantId":"acme","workspaceId":"prod","cron":"0 * * * * *","overlap":"skip","maxCatchup":5`).
			holds(`"payload":{"a":1},"resources":{"cpu":1},"labels":{"l":"v"}`).
			holds(`"strategy":"leastLoaded"`).
			holds(`"heartbeatTimeoutMs":5000`).
			holds(`"paused":false,"pausedAt":null`).
			holds(`"last":"2026-01-15T10:00:00.300Z","next":"2026-01-15T10:01:00.000Z"`).
			holds(`"fires":[]`)
		l.do("POST", "/v1/schedules", operator, `{"scheduleId":"s1","cron":"* * * * * *","task":{"queue":"q"}}`).
			refused(409, v1.CodeScheduleExists)
		l.do("PATCH", "/v1/schedules/s1", operator, `{"overlap":"allow","task":{"queue":"q","type":"mail","payload":{"a":2}}}`).want(200).
			holds(`"overlap":"allow","maxCatchup":5`).
			holds(`"payload":{"a":2}`)
		sweep(0)
		sweep(time.Minute)
		s := l.schedule("s1")
		if len(s.Fires) != 1 || s.Fires[0].Outcome != "CREATED" || s.Fires[0].State != v1.Queued || s.Fires[0].Kind != "schedule" ||
			s.Fired != 1 {
			t.Fatalf("%+v", s)
		}
		l.do("GET", "/v1/tasks/"+s.Fires[0].TaskID, operator, "").want(200).
			holds(`"queue":"q","type":"mail"`).
			holds(`"payload":{"a":2}`).
			holds(`"scheduleId":"s1"`)
		l.do("POST", "/v1/tasks", l.control(roleDispatcher), `{"taskId":"t1","queue":"q"}`).want(201)
		for schedule, want := range map[string]int{"s1": 1, "s2": 0} {
			var list v1.TaskList
			l.do("GET", "/v1/tasks?scheduleId="+schedule, operator, "").want(200).into(&list)
			var acted v1.ActOnTasksResponse
			l.do("POST", "/v1/tasks:cancel", operator, `{"selector":{"scheduleId":"`+schedule+`"},"dryRun":true}`).want(200).into(&acted)
			if len(list.Tasks) != want || acted.Matched != want {
				t.Errorf("tasks of %s: listed %+v, selected %+v, want %d", schedule, list.Tasks, acted, want)
			}
		}
		l.do("PUT", "/v1/schedules/s1", operator, `{"cron":"0 0 * * * *","task":{"queue":"q2"}}`).want(200).
			holds(`"overlap":"allow","maxCatchup":100,"task":{"queue":"q2"`).
			holds(`"next":"2026-01-15T11:00:00.000Z"`)
		l.do("PATCH", "/v1/schedules/s1", operator, `{"cron":"0 * * * *"}`).want(200).holds(`"cron":"0 0 * * * *"`)
		l.do("GET", "/v1/schedules/s1/next?count=2", operator, "").want(200).
			holds(`{"scheduleId":"s1","next":["2026-01-15T11:00:00.000Z","2026-01-15T12:00:00.000Z"]}`)
		for _, id := range []string{"s1", "never-created"} {
			l.do("GET", "/v1/schedules/"+id+"/next?count=2&cron=30+9+*+*+*", operator, "").want(200).
				holds(`{"scheduleId":"` + id + `","next":["2026-01-16T09:30:00.000Z","2026-01-17T09:30:00.000Z"]}`)
		}
		l.do("POST", "/v1/schedules/s1/pause", operator, "").want(200).
			holds(`"paused":true`).
			holds(`"next":null`)
		sweep(5 * time.Second) // a fire in the second of one by time is that one
		var fired v1.FiredResponse
		l.do("POST", "/v1/schedules/s1/fire", operator, "").want(202).into(&fired)
		l.do("GET", "/v1/tasks/"+fired.TaskID, operator, "").want(200)
		l.do("POST", "/v1/schedules/s1/backfill", operator, `{"from":"2026-01-14T00:00:00Z","to":"2026-01-14T02:00:00Z"}`).want(202).
			holds(`"fires":[{"fireAt":"2026-01-14T01:00:00.000Z"`).
			holds(`{"fireAt":"2026-01-14T02:00:00.000Z"`).
			holds(`"skipped":0`)
		sweep(0)
		l.do("POST", "/v1/schedules/s1/resume", operator, "{}").want(200).
			holds(`"paused":false`)
		if s := l.schedule("s1"); len(s.Fires) != 4 || s.Fires[0].Kind != "backfill" || s.Fires[2].Kind != "manual" {
			t.Errorf("%+v", s.Fires)
		}
		for i := range 3 {
			l.do("POST", "/v1/schedules", operator, fmt.Sprintf(`{"scheduleId":"x%d","cron":"0 0 0 1 1 ?","task":{"queue":"q"}}`, i)).want(201)
		}
		var page v1.ScheduleList
		l.do("GET", "/v1/schedules?pageSize=3&order=desc", operator, "").want(200).into(&page)
		if page.TotalCount != 4 || len(page.Schedules) != 3 || page.Schedules[0].ScheduleID != "x2" || page.NextPageToken == "" {
			t.Errorf("%+v", page)
		}
		l.do("GET", "/v1/schedules?order=desc&pageToken="+page.NextPageToken, operator, "").want(200).
			holds(`"scheduleId":"s1"`)
		l.do("DELETE", "/v1/schedules/s1", operator, "").want(200).
			holds(`{"scheduleId":"s1","deleted":true}`)
		for _, call := range [][2]string{
			{"GET", ""}, {"DELETE", ""}, {"GET", "/next"}, {"POST", "/fire"}, {"POST", "/pause"}, {"POST", "/resume"},
		} {
			l.do(call[0], "/v1/schedules/s1"+call[1], operator, "").refused(404, v1.CodeScheduleNotFound)
		}
		l.do("PATCH", "/v1/schedules/s1", operator, "{}").refused(404, v1.CodeScheduleNotFound)
		l.do("POST", "/v1/schedules/s1/backfill", operator, `{"from":"2026-01-14T00:00:00Z","to":"2026-01-14T02:00:00Z"}`).
			refused(404, v1.CodeScheduleNotFound)
	})
}

// The error for invalid input names the field, states what is wrong and what would be valid; nothing changes.
func TestSchedulesRefuseBadInput(t *testing.T) {
	t.Parallel()
	contract(t, func(t *testing.T, l *live) {
		operator := l.control(roleOperator)
		l.do("POST", "/v1/schedules", operator, `{"scheduleId":"s1","cron":"0 0 0 1 1 *","task":{"queue":"q"}}`).want(201)
		before := l.schedule("s1")
		for body, want := range map[string][3]string{
			`{"task":{"queue":"q"}}`: {v1.CodeInvalidRequest, "cron", "for example"},
			`{"cron":"0 0 0 1 1 *"}`: {v1.CodeInvalidRequest, "task", "is missing"},
			`{"cron":"0 0 9 * * 0","task":{"queue":"q"}}`: {v1.CodeInvalidRequest, "cron",
				`cron has "0" as day of week, its 6th field: 0 is not within 1–7; 1 is SUN and 7 is SAT; for example "MON-FRI"`},
			`{"cron":"0 0 0 30 2 *","task":{"queue":"q"}}`: {
				v1.CodeInvalidRequest, "cron", "never fires",
			},
			`{"cron":"9 * * *","task":{"queue":"q"}}`: {
				v1.CodeInvalidRequest, "cron", "has 4 fields",
			},
			`{"cron":"0 9 * * 1-5","task":{"queue":"q"}}`: {
				v1.CodeInvalidRequest, "cron", "in five fields days are names",
			},
			`{"cron":"* * * * * *","maxCatchup":1001,"task":{"queue":"q"}}`: {
				v1.CodeInvalidRequest, "maxCatchup", "use 0 to 1000",
			},
			`{"cron":"* * * * * *","maxCatchup":-1,"task":{"queue":"q"}}`: {
				v1.CodeInvalidRequest, "maxCatchup", "use 0 to 1000",
			},
			`{"cron":"* * * * * *","maxCatchup":1.5,"task":{"queue":"q"}}`: {
				v1.CodeInvalidRequest, "maxCatchup", "an integer",
			},
			`{"cron":"* * * * * *","overlap":"buffer","task":{"queue":"q"}}`: {
				v1.CodeInvalidRequest, "overlap", "use allow or skip",
			},
			`{"cron":"* * * * * *","task":{"queue":"q","traceparent":"00-1-1-01"}}`: {v1.CodeInvalidRequest, "task.traceparent", "omit it"},
			`{"cron":"* * * * * *","task":{}}`: {
				v1.CodeInvalidRequest, "task.queue", "is missing",
			},
			`{"cron":"* * * * * *","task":{"queue":"q","taskId":"t"}}`: {
				v1.CodeInvalidRequest, "task.taskId", "omit it",
			},
			`{"cron":"* * * * * *","task":{"queue":"q","deadline":"2099-01-01T00:00:00Z"}}`: {
				v1.CodeInvalidRequest, "task.deadline", "omit it",
			},
			`{"cron":"* * * * * *","task":{"queue":"q","tenantId":"other"}}`: {
				v1.CodeInvalidRequest, "task.tenantId", "leave them out",
			},
			`{"cron":"* * * * * *","task":{"queue":"q","startTimeoutMs":0}}`: {
				v1.CodeInvalidRequest, "task.startTimeoutMs", "task.startTimeoutMs is 0",
			},
			`{"cron":"* * * * * *","task":{"queue":"q","heartbeatTimeoutMs":1000}}`: {
				v1.CodeInvalidRequest, "task.heartbeatTimeoutMs", "task.heartbeatTimeoutMs is 1000",
			},
			`{"cron":"* * * * * *","task":{"queue":"q","retry":{"maxAttempts":0}}}`: {
				v1.CodeInvalidRequest, "task.retry.maxAttempts", "use 1 to",
			},
			`{"cron":"* * * * * *","task":{"queue":"q","placement":{}}}`: {
				v1.CodeInvalidRequest, "task.placement.strategy", "is missing",
			},
			`{"cron":"* * * * * *","task":{"queue":"q","bogus":1}}`: {
				v1.CodeUnknownField, "task.bogus", "",
			},
			`{"cron":"* * * * * *","bogus":1,"task":{"queue":"q"}}`: {
				v1.CodeUnknownField, "bogus", "",
			},
			`{"cron":7,"task":{"queue":"q"}}`: {
				v1.CodeInvalidRequest, "cron", "a string",
			},
		} {
			create := `{"scheduleId":"new",` + strings.TrimPrefix(body, "{")
			for _, call := range [][3]string{{"POST", "/v1/schedules", create}, {"PUT", "/v1/schedules/s1", body}} {
				l.badItems = true
				r := l.do(call[0], call[1], operator, call[2]).refused(400, want[0])
				if r.Field != want[1] || !strings.Contains(r.Message, want[2]) {
					t.Errorf("%s %s: %s: %s; want %q about %s", call[0], call[2], r.Field, r.Message, want[2], want[1])
				}
			}
		}
		l.do("POST", "/v1/schedules", operator, `{"scheduleId":"a/b","cron":"* * * * * *","task":{"queue":"q"}}`).refused(400, v1.CodeInvalidID)
		l.do("PATCH", "/v1/schedules/s1", operator, `{"cron":""}`).refused(400, v1.CodeInvalidRequest)
		for _, count := range []string{"0", "101", "x", ""} {
			l.do("GET", "/v1/schedules/s1/next?count="+count, operator, "").refused(400, v1.CodeInvalidRequest)
		}
		for expression, want := range map[string]string{"": "", "61+*+*+*+*": "61", "0+0+0+30+2+?": "never fires", "0+0+0+1+1+?+2020": "again"} {
			r := l.do("GET", "/v1/schedules/s1/next?cron="+expression, operator, "").refused(400, v1.CodeInvalidRequest)
			if r.Field != "cron" || !strings.Contains(r.Message, want) {
				t.Errorf("%q: %s: %s", expression, r.Field, r.Message)
			}
		}
		for _, body := range []string{`{}`, `{"from":"2025-01-01T00:00:00Z"}`, `{"from":"2025-01-02T00:00:00Z","to":"2025-01-01T00:00:00Z"}`,
			`{"from":"2025-01-02T00:00:00Z","to":"2099-01-01T00:00:00Z"}`, `{"from":"yesterday","to":"2025-01-01T00:00:00Z"}`} {
			l.do("POST", "/v1/schedules/s1/backfill", operator, body).refused(400, v1.CodeInvalidRequest)
		}
		if after := l.schedule("s1"); after.UpdatedAt != before.UpdatedAt || after.Cron != before.Cron || after.Pending != 0 {
			t.Errorf("it has changed: %+v", after)
		}
		l.do("GET", "/v1/schedules/new", operator, "").refused(404, v1.CodeScheduleNotFound)
	})
}

// Of several fields that are missing always the same one is named.
func TestABackfillNamesTheFirstMissingField(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	for range 20 {
		for body, field := range map[string]string{
			`{}`: "from", `{"to":"2026-01-14T00:00:00Z"}`: "from", `{"from":"2026-01-14T00:00:00Z"}`: "to",
		} {
			r := e.do("POST", "/v1/schedules/s1/backfill", e.control(roleOperator), body).refused(400, v1.CodeInvalidRequest)
			if r.Field != field {
				t.Fatalf("%s: the field is %q, want %q", body, r.Field, field)
			}
		}
	}
}
