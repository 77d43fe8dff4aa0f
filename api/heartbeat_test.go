package api

import (
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	v1 "github.com/lubdub-io/lubdub/sdk/go/v1"
	"github.com/lubdub-io/lubdub/tracker/beats"
	"github.com/lubdub-io/lubdub/tracker/model"
)

func TestNextHeartbeatIsAtMostHalfTheTimeout(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	for _, c := range []struct{ interval, timeout, want time.Duration }{
		{30 * time.Second, 90 * time.Second, 30 * time.Second}, {time.Second, 2 * time.Second, time.Second},
		{2 * time.Second, 3 * time.Second, 1500 * time.Millisecond}, {20 * time.Second, 0, 20 * time.Second},
	} {
		token := e.task(func(a *model.Attempt) { a.Interval, a.Timeout = c.interval, c.timeout })
		e.do("POST", "/v1/tasks/task_1/heartbeat", token, `{"attempt":1}`).want(200).contains(fmt.Sprintf(`{"nextHeartbeatMs":%d}`,
			c.want.Milliseconds()))
	}
}

// wantDelivered waits for so many deliveries: each is reported after its answer has been sent, when the client may already have it.
func wantDelivered(t *testing.T, e *env, want int) {
	t.Helper()
	until(t, func() bool { return e.fake.deliveredCount() == want }, func() string {
		return fmt.Sprintf("%d deliveries, want %d", e.fake.deliveredCount(), want)
	})
}

// The grace period begins with the first reply that included the cancel, so the Tracker must be notified: once for each such reply, after
// it was written, and never for one that could not be.
func TestDeliveredCancelsAreReported(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	var delivered atomic.Bool
	e.fake.beat = func(b *beats.Beat) { b.Cancel = &model.Cancel{Reason: "r", Delivered: delivered.Load()} }
	e.fake.start = func(*model.Attempt, model.Report) (model.Acknowledged, error) {
		return model.Acknowledged{At: fakeTime, Cancel: &model.Cancel{Reason: "r", Delivered: delivered.Load()}}, nil
	}
	e.do("POST", "/v1/tasks/task_1/heartbeat", e.task(), `{"attempt":1}`).want(200).contains(`{"shouldCancel":true,"cancelReason":"r"}`)
	wantDelivered(t, e, 1)
	if a := e.fake.delivered[0]; a.TaskID != "task_1" || a.Number != 1 {
		t.Errorf("delivered to %+v", a)
	}
	e.do("POST", "/v1/tasks/task_1/started", e.task(),
		`{"attempt":1}`).want(200).contains(`{"acknowledged":true,"shouldCancel":true,"cancelReason":"r"}`)
	wantDelivered(t, e, 2)
	two := e.task(func(a *model.Attempt) { a.TaskID = "task_2" })
	e.do("POST", "/v1/heartbeats", "", `{"heartbeats":[{"taskId":"task_1","attempt":1,`+
		`"taskToken":"`+e.task()+`"},{"taskId":"task_2","attempt":1,"taskToken":"`+two+`"}]}`).want(200)
	wantDelivered(t, e, 4)
	delivered.Store(true)
	e.do("POST", "/v1/tasks/task_1/heartbeat", e.task(), `{"attempt":1}`).want(200).contains(`{"shouldCancel":true}`)
	e.do("POST", "/v1/tasks/task_1/started", e.task(), `{"attempt":1}`).want(200).contains(`{"shouldCancel":true}`)
	if n := e.fake.deliveredCount(); n != 4 {
		t.Errorf("%d deliveries: an earlier delivery was reported again", n)
	}
}

func TestManyBeatsInOneRequest(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	e.badItems = true
	var reports []string
	e.fake.beat = func(b *beats.Beat) {
		reports = append(reports, strings.Clone(b.Report))
		switch b.Attempt.TaskID {
		case "zombie":
			b.Err = &model.Error{Code: model.Expired, Reason: model.HeartbeatTimeout}
		case "old":
			b.Err = &model.Error{Code: model.AttemptMismatch, Expected: 2, Received: 1, Message: "m"}
		case "busy":
			b.Err = &model.Error{Code: model.Overloaded, RetryAfter: 1500 * time.Millisecond, Message: "m"}
		}
	}
	item := func(id, rest string) string {
		return fmt.Sprintf(`{"taskId":%q,"attempt":1,"taskToken":%q%s}`, id, e.task(func(a *model.Attempt) { a.TaskID = id }), rest)
	}
	items := []string{
		item("good", `,"progressPct":12.5,"message":"\u00fc","workerId":"w1","heartbeatAt":"2025-01-15T10:05:00.5Z"`),
		item("zombie", ""), item("old", ""), item("busy", ""),
		`{"taskId":"none","attempt":1}`,
		`{"taskId":"bad","attempt":1,"taskToken":"x"}`,
		strings.Replace(item("mine", ""), `"taskId":"mine"`, `"taskId":"yours"`, 1),
		strings.Replace(item("late", ""), `"attempt":1`, `"attempt":2`, 1),
		item("wrong", `,"progressPct":101`),
		strings.Replace(item("noattempt", ""), `"attempt":1,`, ``, 1),
		strings.Replace(item("noid", ""), `"taskId":"noid",`, ``, 1),
		`{"taskId":"token","attempt":1,"taskToken":5}`,
		`{"taskId":"ctl","attempt":1,"taskToken":"` + e.control(roleAdmin) + `"}`,
		item("last", ""),
	}
	want := []struct {
		id     string
		status int
		code   string
	}{
		{"good", 200, ""}, {"zombie", 410, "task_expired"}, {"old", 409, "attempt_mismatch"}, {"busy", 503, "overloaded"},
		{"none", 401, "unauthorized"}, {"bad", 401, "unauthorized"},
		{"yours", 403, "forbidden"}, {"late", 403, "forbidden"}, {"wrong", 400, "invalid_request"}, {"noattempt", 400, "invalid_request"},
		{"", 400, "invalid_request"}, {"token", 400, "invalid_request"},
		{"ctl", 403, "forbidden"}, {"last", 200, ""},
	}
	for range 2 { // the second time out of the pool
		reports = nil
		var got v1.HeartbeatsResponse
		e.do("POST", "/v1/heartbeats", "", `{"x":1,"heartbeats":[`+strings.Join(items, ",")+`]}`).want(200).into(&got)
		if len(got.Results) != len(want) || !got.ServerTime.Equal(fakeTime) {
			t.Fatalf("got %+v", got)
		}
		for i, w := range want {
			r := got.Results[i]
			if r.TaskID != w.id || r.Status != w.status || r.Error != w.code || r.Acknowledged != (w.status == 200) ||
				(w.status != 200 && r.Message == "") {
				t.Errorf("%d: got %+v, want %+v", i, r, w)
			}
		}
		if r := got.Results[0]; r.ShouldCancel == nil || *r.ShouldCancel || r.NextHeartbeatMs != 30000 || !r.ServerTime.Equal(fakeTime) {
			t.Errorf("got %+v", r)
		}
		if r := got.Results[1]; r.Message != "Task exceeded heartbeat timeout" || r.Reason != "HEARTBEAT_TIMEOUT" {
			t.Errorf("got %+v", r)
		}
		if r := got.Results[2]; r.ExpectedAttempt != 2 || r.ReceivedAttempt != 1 {
			t.Errorf("got %+v", r)
		}
		if r := got.Results[3]; r.RetryAfterMs != 1500 {
			t.Errorf("got %+v", r)
		}
		if len(reports) != 5 || reports[0] != "1736935500500\tw1\t12.5\t\"\\u00fc\"" || reports[4] != "" {
			t.Errorf("reports %q", reports)
		}
	}
	// An Authorization header opens nothing here: 401 when it does not hold, 403 when it is another kind.
	var got v1.HeartbeatsResponse
	e.do("POST", "/v1/heartbeats", e.control(roleAdmin), `{"heartbeats":[`+items[4]+`,`+items[0]+`]}`).want(200).into(&got)
	if got.Results[0].Status != 403 || got.Results[1].Status != 200 {
		t.Errorf("got %+v", got)
	}
}

func TestAFullBatchIsTaken(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	var n atomic.Int64
	e.fake.beat = func(*beats.Beat) { n.Add(1) }
	var body strings.Builder
	body.WriteString(`{"heartbeats":[`)
	for i := range 1000 {
		if i > 0 {
			body.WriteByte(',')
		}
		id := fmt.Sprintf("task_%d", i)
		fmt.Fprintf(&body, `{"taskId":%q,"attempt":1,"taskToken":%q,"message":"%s"}`, id, e.task(func(a *model.Attempt) { a.TaskID = id }),
			strings.Repeat("x", 100))
	}
	body.WriteString(`]}`)
	var got v1.HeartbeatsResponse
	e.do("POST", "/v1/heartbeats", "", body.String()).want(200).into(&got)
	if len(got.Results) != 1000 || n.Load() != 1000 {
		t.Fatalf("%d results of %d beats", len(got.Results), n.Load())
	}
	for i, r := range got.Results {
		if r.Status != 200 || r.TaskID != fmt.Sprintf("task_%d", i) {
			t.Fatalf("%d: %+v", i, r)
		}
	}
}
