package api

import (
	"context"
	"encoding/json"
	"strconv"
	"strings"
	"testing"
	"time"

	v1 "github.com/lubdub-io/lubdub/sdk/go/v1"
)

// Returns the data of the last event of a type about a subject.
func (l *live) lastEvent(event, subject string) map[string]any {
	l.t.Helper()
	var data map[string]any
	for shard := range l.tr.Store.Shards() {
		entries, err := l.store.Client.XRange(context.Background(), "lubdub:{"+strconv.Itoa(shard)+"}:events", "-", "+").Result()
		if err != nil {
			l.t.Fatal(err)
		}
		for _, e := range entries {
			if e.Values["type"] == event && e.Values["subject"] == subject {
				data = nil
				if err := json.Unmarshal([]byte(e.Values["data"].(string)), &data); err != nil {
					l.t.Fatal(err)
				}
			}
		}
	}
	return data
}

// Every call that changes what a worker may do accepts a reason, shows it with the worker, and includes it in the event.
func TestContractReasons(t *testing.T) {
	t.Parallel()
	contract(t, func(t *testing.T, l *live) {
		const reason = `its "disk" is 90 % full, ünd`
		body := `{"reason":` + strconv.Quote(reason) + `}`
		op := l.control(roleOperator)
		for call, c := range map[string]struct{ status, statusReason, endReason, event, key string }{
			"drain":      {"DRAINING", reason, "", "worker.draining", "reason"},
			"resume":     {"ONLINE", "", "", "worker.resumed", "reason"},
			"offline":    {"OFFLINE", reason, "FORCED_OFFLINE", "worker.offline", "givenReason"},
			"deregister": {"OFFLINE", reason, "DEREGISTERED", "worker.offline", "givenReason"},
		} {
			w := l.register(`{"queue":"default","types":["x"]}`)
			path := "/v1/workers/" + w.WorkerID
			if call == "resume" {
				l.do("POST", path+"/drain", op, "").want(200)
			}
			l.do("POST", path+"/"+call, op, body).want(200)
			var got v1.Worker
			l.do("GET", path, op, "").want(200).into(&got)
			if string(got.Status) != c.status || deref(got.StatusReason) != c.statusReason || deref(got.EndReason) != c.endReason {
				t.Errorf("%s: %s %q %q", call, got.Status, deref(got.StatusReason), deref(got.EndReason))
			}
			if data := l.lastEvent(c.event, w.WorkerID); data[c.key] != reason {
				t.Errorf("%s: %v has the data %v", call, c.event, data)
			}
			for _, bad := range []string{`{"reason":"a\nb"}`, `{"reason":"` + strings.Repeat("x", 513) + `"}`, `{"reason":7}`} {
				if e := l.do("POST", path+"/"+call, op, bad).refused(400, v1.CodeInvalidRequest); e.Field != "reason" {
					t.Errorf("%s %s: field %q", call, bad, e.Field)
				}
			}
			l.do("POST", path+"/"+call, op, `{"because":"x"}`).refused(400, v1.CodeUnknownField)
		}

		// Without a reason the code of the end is used.
		w := l.register(`{"queue":"default","types":["x"]}`)
		l.do("POST", "/v1/workers/"+w.WorkerID+"/offline", op,
			"").want(200).contains(`{"statusReason":"FORCED_OFFLINE","endReason":"FORCED_OFFLINE"}`)
		if data := l.lastEvent("worker.offline", w.WorkerID); data["reason"] != "FORCED_OFFLINE" || data["givenReason"] != nil {
			t.Errorf("%v", data)
		}
		// The worker itself may give a reason for leaving, with and without a drain.
		w = l.register(`{"queue":"default","types":["x"]}`)
		l.mine(w, "deregister", `{"drain":true,"reason":"scaled down"}`).want(200).contains(`{"status":"DRAINING","statusReason":"scaled ` +
			`down","endReason":null}`)
		l.mine(w, "deregister", `{"reason":"at once"}`).want(200).contains(`{"status":"OFFLINE","statusReason":"at ` +
			`once","endReason":"DEREGISTERED"}`)
		// A refusal contains the code, whatever reason was given.
		if e := l.mine(w, "heartbeat", "").refused(410, v1.CodeWorkerOffline); e.Reason != "DEREGISTERED" {
			t.Errorf("%+v", e)
		}
	})
}

// The reason given for a drain stays when the drain has ended, in each way in which it may; an end of another kind, and a drain that was
// cancelled, are reported with their own reason.
func TestContractTheReasonOfADrainStays(t *testing.T) {
	t.Parallel()
	contract(t, func(t *testing.T, l *live) {
		op := l.control(roleOperator)
		for end, want := range map[string]string{
			"DRAINED": "upgrade", "DRAIN_DEADLINE": "upgrade", "DEREGISTERED": "upgrade", "FORCED_OFFLINE": "FORCED_OFFLINE", "resumed": "DRAINED",
		} {
			w := l.register(`{"queue":"default","types":["x"]}`)
			path := "/v1/workers/" + w.WorkerID
			body := `{"reason":"upgrade"}`
			if end == "DRAIN_DEADLINE" {
				body = `{"reason":"upgrade","deadlineMs":500}`
			}
			l.do("POST", path+"/drain", op, body).want(200).contains(`{"statusReason":"upgrade","endReason":null}`)
			code := end
			switch end {
			case "DEREGISTERED":
				l.mine(w, "deregister", "").want(200)
			case "FORCED_OFFLINE":
				l.do("POST", path+"/offline", op, "").want(200)
			case "resumed":
				code = "DRAINED"
				l.do("POST", path+"/resume", op, "").want(200)
				l.do("POST", path+"/drain", op, "").want(200)
				l.pass(2 * time.Second)
			default:
				l.pass(2 * time.Second)
			}
			l.sweep()
			l.do("GET", path, op, "").want(200).contains(`{"status":"OFFLINE","statusReason":"` + want + `","endReason":"` + code + `"}`)
		}
	})
}

func deref(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}
