package api

import (
	"strings"
	"testing"
	"time"

	v1 "github.com/lubdub-io/lubdub/sdk/go/v1"
)

// A registration is repeatable by the header and by the field: the same answer, token included, and no worker is superseded.
func TestContractARepeatedRegistration(t *testing.T) {
	t.Parallel()
	contract(t, func(t *testing.T, l *live) {
		enroll := l.control(roleEnroll)
		withID := strings.Replace(mailer, `{`, `{"registrationId":"r-1",`, 1)
		first := l.do("POST", "/v1/workers", enroll, withID).want(201)
		var w v1.RegisterWorkerResponse
		first.into(&w)
		l.pass(20 * time.Second)
		l.mine(&w, "heartbeat", "").want(200)
		for what, a := range map[string]*answer{
			"by the field":  l.do("POST", "/v1/workers", enroll, withID),
			"by the header": l.do("POST", "/v1/workers", enroll, mailer, "Idempotency-Key", "r-1"),
			"by both":       l.do("POST", "/v1/workers", enroll, withID, "Idempotency-Key", "r-1"),
		} {
			if a.want(201).body != first.body {
				t.Errorf("%s:\n%s, want\n%s", what, a.body, first.body)
			}
		}
		l.mine(&w, "heartbeat", "").want(200)

		next := l.do("POST", "/v1/workers", enroll, mailer, "Idempotency-Key",
			"any printable: ~").want(201).contains(`{"superseded":"` + w.WorkerID + `"}`)
		if a := l.do("POST", "/v1/workers", enroll, withID).want(201); a.body != first.body {
			t.Errorf("after its end:\n%s, want\n%s", a.body, first.body)
		}
		var now v1.RegisterWorkerResponse
		next.into(&now)
		l.mine(&now, "heartbeat", "").want(200)
		e := l.mine(&w, "heartbeat", "").refused(410, v1.CodeWorkerOffline)
		if e.Reason != "SUPERSEDED" || !contains(e.Message, "unique name, machineId or hostname") {
			t.Errorf("%+v", e)
		}

		before := l.store.Dump(t)
		for body, header := range map[string]string{
			strings.Replace(withID, "4711", "4712", 1):                    "",
			strings.Replace(mailer, `"default"`, `"other"`, 1):            "r-1",
			strings.Replace(mailer, `"hostname":"host-7"`, `"pid":1`, 1):  "r-1",
			strings.Replace(withID, `"maxConcurrent":10,`, ``, 1):         "r-1",
			strings.Replace(mailer, `{"region":"us-east-1"}`, `{}`, 1):    "r-1",
			strings.Replace(mailer, `["send_email"]`, `["send_fax"]`, 1):  "r-1",
			`{"queue":"default","types":["send_email"],"machineId":"m2"}`: "r-1",
		} {
			if strings.Count(body, `"pid"`) > 1 {
				body = strings.Replace(body, `"pid":1,`, ``, 1)
			}
			l.do("POST", "/v1/workers", enroll, body, "Idempotency-Key", header).refused(409, v1.CodeIdempotencyMismatch)
		}
		for _, c := range []struct{ body, header, field string }{
			{withID, "r-2", "registrationId"},
			{strings.Replace(mailer, `{`, `{"registrationId":"a b",`, 1), "", "registrationId"},
			{strings.Replace(mailer, `{`, `{"registrationId":"",`, 1), "", "registrationId"},
			{strings.Replace(mailer, `{`, `{"registrationId":7,`, 1), "", "registrationId"},
			{mailer, strings.Repeat("x", 256), "Idempotency-Key"},
			{mailer, "ü", "Idempotency-Key"},
		} {
			var e v1.Error
			if l.do("POST", "/v1/workers", enroll, c.body, "Idempotency-Key", c.header).want(400).into(&e); e.Field != c.field {
				t.Errorf("%q %s: field %q, want %q", c.header, c.body, e.Field, c.field)
			}
		}
		if after := l.store.Dump(t); len(after) != len(before) {
			t.Error("what was refused changed the store")
		}
		// A task's key is another thing.
		l.do("POST", "/v1/tasks", l.control(roleSubmitter), `{"queue":"default","type":"x"}`, "Idempotency-Key", "r-1").want(201)
	})
}
