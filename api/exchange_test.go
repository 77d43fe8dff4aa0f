package api

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	v1 "github.com/lubdub-io/lubdub/sdk/go/v1"
	"github.com/lubdub-io/lubdub/tracker/holdings"
	"github.com/lubdub-io/lubdub/tracker/model"
	"github.com/lubdub-io/lubdub/tracker/queues"
	"github.com/lubdub-io/lubdub/tracker/workers"
)

// An exchange completes attempts as their own completions would, each with its result.
func TestContractExchangeOfCompletions(t *testing.T) {
	t.Parallel()
	contract(t, func(t *testing.T, l *live) {
		w, other := l.register(mailer), l.register(strings.Replace(mailer, "4711", "4712", 1))
		if !slices.Contains(w.Capabilities, "exchange") {
			t.Error("the registration does not offer it")
		}
		var all []v1.TaskEnvelope
		for _, id := range []string{"t1", "t2", "t3", "t4"} {
			l.queue(`,"taskId":"` + id + `"`)
		}
		until(t, func() bool { all = append(all, l.claim(w, `{"max":4,"start":true}`)...); return len(all) == 4 },
			func() string { return "its tasks are not claimed" })
		l.badItems = true
		body := `{"completed":[{"taskId":"t1","attempt":1,"outcome":"SUCCEEDED","output":{"n":1}},` +
			`{"taskId":"t2","attempt":1,"outcome":"FAILED","error":{"category":"INFRASTRUCTURE","message":"m"}},` +
			`{"taskId":"t3","attempt":1,"outcome":"FAILED"},{"taskId":"t3","attempt":2,"outcome":"SUCCEEDED"},` +
			`{"taskId":"none","attempt":1,"outcome":"SUCCEEDED"},7,{"taskId":"a b","attempt":1,"outcome":"SUCCEEDED"},` +
			`{"taskId":"t4","attempt":0,"outcome":"SUCCEEDED"}]}`
		for range 2 { // a repeat gets the same results
			var got v1.ExchangeResponse
			l.mine(w, "exchange", body).want(200).into(&got)
			want := []v1.CompletionResult{{TaskID: "t1", Status: 200, FinalState: v1.Succeeded}, {TaskID: "t2", Status: 200, FinalState: v1.Failed,
				WillRetry: true, NextAttempt: 2}, {TaskID: "t3", Status: 400, Field: "error.category"}, {TaskID: "t3", Status: 403},
				{TaskID: "none", Status: 403}, {Status: 400}, {Status: 400, Field: "taskId"},
				{TaskID: "t4", Status: 400, Field: "attempt"}}
			for i := range got.Completed {
				g := &got.Completed[i]
				if (g.Status == 200) != g.Acknowledged || (g.Status == 200) != !g.ServerTime.IsZero() || (g.Status != 200) != (g.Message != "") {
					t.Errorf("%+v", g)
				}
				g.Acknowledged, g.ServerTime, g.Error, g.Message = false, v1.Time{}, "", ""
			}
			if !slices.Equal(got.Completed, want) {
				t.Fatalf("%+v\nwant %+v", got.Completed, want)
			}
		}
		if one, two, three := l.get("t1"), l.get("t2"), l.get("t3"); one.State != v1.Succeeded || string(one.Output) != `{"n":1}` ||
			two.State != v1.Queued || three.State != v1.Running {
			t.Errorf("%+v\n%+v\n%+v", one, two, three)
		}
		l.mine(w, "exchange", `{"completed":[]}`).refused(400, v1.CodeInvalidRequest)
		l.mine(w, "exchange", `{}`).refused(400, v1.CodeInvalidRequest)
		last := `{"completed":[{"taskId":"t4","attempt":1,"outcome":"SUCCEEDED"}]}`
		result := func(w *v1.RegisterWorkerResponse, body string) (got v1.ExchangeResponse) {
			l.mine(w, "exchange", body).want(200).into(&got)
			return got
		}
		if got := result(other, last); got.Completed[0].Status != 403 {
			t.Errorf("%+v", got)
		}
		l.do("POST", "/v1/workers/"+w.WorkerID+"/exchange", other.WorkerToken, last).refused(403, v1.CodeForbidden)
		l.call(&all[3], "completed", `{"attempt":1,"outcome":"SUCCEEDED"}`).want(200)
		got := result(w, strings.Replace(last, "SUCCEEDED", "CANCELLED", 1))
		if r := got.Completed[0]; r.Status != 409 || r.Error != v1.CodeTaskAlreadyTerminal || r.State != v1.Succeeded {
			t.Errorf("%+v", got)
		}
	})
}

// exchange sends an exchange of a worker, which must be accepted.
func (l *live) exchange(w *v1.RegisterWorkerResponse, body string) (got v1.ExchangeResponse) {
	l.t.Helper()
	l.mine(w, "exchange", body).want(200).into(&got)
	return got
}

// claimed claims tasks until it has n.
func (l *live) claimed(w *v1.RegisterWorkerResponse, n int) (all []v1.TaskEnvelope) {
	l.t.Helper()
	until(l.t, func() bool { all = append(all, l.claim(w, `{"max":4,"start":true}`)...); return len(all) == n },
		func() string { return "its tasks are not claimed" })
	return all
}

// With seq, an exchange is a heartbeat of the worker; a repeat adds nothing.
func TestContractExchangeIsAHeartbeat(t *testing.T) {
	t.Parallel()
	contract(t, func(t *testing.T, l *live) {
		w := l.register(mailer)
		for range 2 {
			got := l.exchange(w, `{"seq":1,"activeCount":3,"completedDelta":4,"failedDelta":2}`)
			h := got.Heartbeat
			if h == nil || !h.Accepted || h.ShouldDrain || h.HeartbeatIntervalMs != w.HeartbeatIntervalMs || h.ServerTime.IsZero() ||
				len(got.Completed)+len(got.Tasks) != 0 || got.ClaimError != nil {
				t.Errorf("%+v %+v", got, h)
			}
		}
		var view v1.Worker
		l.do("GET", "/v1/workers/"+w.WorkerID, l.control(roleViewer), "").want(200).into(&view)
		if view.ActiveCount != 3 || view.TotalCompleted != 4 || view.TotalFailed != 2 {
			t.Errorf("%+v", view)
		}
		l.pass(20 * time.Second)
		l.exchange(w, `{"seq":2}`)
		l.pass(20 * time.Second) // 40 s since the registration, but 20 since the exchange
		l.sweep()
		if got := l.exchange(w, `{"seq":3}`); got.Heartbeat.ShouldDrain {
			t.Errorf("%+v", got.Heartbeat)
		}
		l.pass(40 * time.Second)
		l.sweep()
		l.mine(w, "exchange", `{"seq":4}`).refused(410, v1.CodeWorkerOffline)
	})
}

// An exchange reports progress of some attempts, lists all of them, completes some, and claims: each part as its own call would.
func TestContractExchangeDoesAllInOrder(t *testing.T) {
	t.Parallel()
	contract(t, func(t *testing.T, l *live) {
		w := l.register(mailer)
		for _, id := range []string{"t1", "t2", "t3"} {
			l.queue(`,"taskId":"` + id + `"`)
		}
		l.claimed(w, 3)
		l.queue(`,"taskId":"t4","payload":{"n":4}`)
		l.do("POST", "/v1/tasks/t2/cancel", l.control(roleOperator), `{"reason":"why"}`).want(202)
		l.sweep()
		body := `{"seq":1,"progress":[{"taskId":"t2","attempt":1,"progressPct":20,"message":"on it","details":{"frame":7}}],` +
			`"inventory":[{"taskId":"t2","attempt":1},{"taskId":"t3","attempt":1,"progressPct":30}],` +
			`"completed":[{"taskId":"t1","attempt":1,"outcome":"SUCCEEDED","progress":{"progressPct":99}}],` +
			`"claim":{"max":2,"waitMs":5000,"claimId":"c1"}}`
		until(t, func() bool { return len(l.exchange(w, body).Tasks) > 0 }, func() string { return "no task is claimed" })
		for i := range 2 { // a repeat gets the same answers
			got := l.exchange(w, body)
			if c := got.Heartbeat.CancelTasks; len(c) != 1 || c[0].TaskID != "t2" || c[0].Reason == nil || *c[0].Reason != "why" {
				t.Errorf("%d: %+v", i, got.Heartbeat)
			}
			if c := got.Completed; len(c) != 1 || c[0].TaskID != "t1" || c[0].Status != 200 || c[0].FinalState != v1.Succeeded {
				t.Errorf("%d: %+v", i, got.Completed)
			}
			if len(got.Heartbeat.LostTasks) != 0 || got.ClaimID != "c1" || got.ClaimError != nil || len(got.Tasks) != 1 ||
				got.Tasks[0].TaskID != "t4" || string(got.Tasks[0].Payload) != `{"n":4}` || got.Tasks[0].TaskToken == "" {
				t.Errorf("%d: %+v", i, got)
			}
		}
		one, two, three := l.get("t1"), l.get("t2"), l.get("t3")
		if string(one.ProgressPct) != "99" || string(two.ProgressPct) != "20" || string(two.Message) != `"on it"` ||
			string(two.Details) != `{"frame":7}` || string(three.ProgressPct) != "30" {
			t.Errorf("%+v\n%+v\n%+v", one, two, three)
		}
	})
}

// Attempts that the inventories of exchanges miss are lost, but not those that are completed in the same exchange, or have progress.
func TestContractExchangeMissesNoCompletedAttempt(t *testing.T) {
	t.Parallel()
	contract(t, func(t *testing.T, l *live) {
		w := l.register(mailer)
		for _, id := range []string{"t1", "t2", "t3"} {
			l.queue(`,"taskId":"` + id + `"`)
		}
		l.claimed(w, 3)
		for seq := range 4 {
			l.pass(10 * time.Second) // the claims are over
			got := l.exchange(w, fmt.Sprintf(`{"seq":%d,"inventory":[],"progress":[{"taskId":"t2","attempt":1}],`+
				`"completed":[{"taskId":"t1","attempt":1,"outcome":"FAILED","progress":{"progressPct":5}}]}`, seq+1))
			for _, n := range got.Heartbeat.LostTasks {
				if n.TaskID != "t3" {
					t.Errorf("%+v", n)
				}
			}
		}
		if one, two, three := l.get("t1"), l.get("t2"), l.get("t3"); one.State != v1.Running || string(one.ProgressPct) != "null" ||
			two.State != v1.Running || three.State != v1.Queued || three.History[0].Outcome != "LOST" {
			t.Errorf("%+v\n%+v\n%+v", one, two, three)
		}
		l.exchange(w, `{"seq":9,"progress":[{"taskId":"t2","attempt":1}]}`) // without an inventory, nothing is missed
		l.exchange(w, `{"seq":10,"progress":[{"taskId":"t2","attempt":1}]}`)
		if one := l.get("t1"); one.State != v1.Running {
			t.Errorf("%+v", one)
		}
	})
}

// What is refused of an exchange: as a whole before anything changes, or only the part that it concerns.
func TestContractExchangeRefusals(t *testing.T) {
	t.Parallel()
	contract(t, func(t *testing.T, l *live) {
		w := l.register(mailer)
		l.queue(`,"taskId":"t1"`)
		l.queue(`,"taskId":"t2"`)
		l.claimed(w, 2)
		done := `"completed":[{"taskId":"t1","attempt":1,"outcome":"SUCCEEDED"}]`
		l.badItems = true
		for body, field := range map[string]string{
			`{}`: "seq", `{"completed":[]}`: "seq", `{"activeCount":1,` + done + `}`: "seq",
			`{"completedDelta":1,` + done + `}`: "seq", `{"inventory":[],` + done + `}`: "seq",
			`{"progress":[{"taskId":"t1","attempt":1}],` + done + `}`:                            "seq",
			`{"seq":-1,` + done + `}`:                                                            "seq",
			`{"seq":1,"activeCount":-1,` + done + `}`:                                            "activeCount",
			`{"seq":1,"progress":[{"taskId":"t1","attempt":1,"progressPct":101}],` + done + `}`:  "progress[0].progressPct",
			`{"seq":1,"inventory":[{"taskId":"t1"}],` + done + `}`:                               "inventory[0].attempt",
			`{"claim":{"max":0},` + done + `}`:                                                   "max",
			`{"claim":{"waitMs":60001},` + done + `}`:                                            "waitMs",
			`{"claim":{"claimId":"a b"},` + done + `}`:                                           "claimId",
			`{"claim":{"types":[]},` + done + `}`:                                                "types",
			`{"completed":[` + strings.TrimSuffix(strings.Repeat("7,", 101), ",") + `]}`:         "completed",
			`{"seq":1,"progress":[` + strings.TrimSuffix(strings.Repeat("7,", 1001), ",") + `]}`: "progress",
		} {
			if a := l.mine(w, "exchange", body).want(400); !strings.Contains(a.body, `"field":"`+field+`"`) {
				t.Errorf("%.200s: %s, want %s", body, a.body, field)
			}
		}
		if task := l.get("t1"); task.State != v1.Running {
			t.Errorf("a refused exchange has completed it: %+v", task)
		}
		for progress, field := range map[string]string{`7`: "progress", `{"progressPct":101}`: "progress.progressPct"} {
			got := l.exchange(w, `{"seq":1,"completed":[{"taskId":"t1","attempt":1,"outcome":"SUCCEEDED","progress":`+progress+`}]}`)
			if r := got.Completed[0]; r.Status != 400 || r.Field != field {
				t.Errorf("%+v", r)
			}
		}
		got := l.exchange(w, `{"completed":[{"taskId":"t1","attempt":1,"outcome":"SUCCEEDED","progress":{"progressPct":1}}]}`)
		if r := got.Completed[0]; r.Status != 400 || r.Field != "progress" || !strings.Contains(r.Message, "seq") || got.Heartbeat != nil {
			t.Errorf("%+v", got)
		}

		// A completion that is refused does not hide a cancel.
		l.do("POST", "/v1/tasks/t1/cancel", l.control(roleOperator), `{"reason":"why"}`).want(202)
		l.sweep()
		got = l.exchange(w, `{"seq":1,"completed":[{"taskId":"t1","attempt":1,"outcome":"FAILED"}],"claim":{"waitMs":60000}}`)
		if c := got.Heartbeat.CancelTasks; got.Completed[0].Status != 400 || len(c) != 1 || c[0].TaskID != "t1" {
			t.Errorf("%+v", got)
		}

		// A claim that is refused does not affect the rest.
		l.do("POST", "/v1/workers/"+w.WorkerID+"/drain", l.control(roleOperator), `{}`).want(200)
		got = l.exchange(w, `{"seq":2,`+done+`,"claim":{"claimId":"c1"}}`)
		if e := got.ClaimError; !got.Heartbeat.ShouldDrain || got.Completed[0].Status != 200 || len(got.Tasks) != 0 || got.ClaimID != "c1" ||
			e == nil || e.Status != 409 || e.Error != v1.CodeWorkerDraining || e.Message == "" {
			t.Errorf("%+v %+v", got, got.ClaimError)
		}
		if task := l.get("t1"); task.State != v1.Succeeded {
			t.Errorf("%+v", task)
		}

		// A heartbeat that is refused changes nothing.
		l.do("POST", "/v1/workers/"+w.WorkerID+"/offline", l.control(roleOperator), `{}`).want(200)
		l.mine(w, "exchange", `{"seq":3,"completed":[{"taskId":"t2","attempt":1,"outcome":"SUCCEEDED"}]}`).refused(410, v1.CodeWorkerOffline)
		if task := l.get("t2"); task.State != v1.Queued {
			t.Errorf("%+v", task)
		}
	})
}

// Of several items of an attempt in an exchange, one that reports something counts, and that of its completion first.
func TestContractExchangeKeepsProgressOfAttemptsThatAreNamedTwice(t *testing.T) {
	t.Parallel()
	contract(t, func(t *testing.T, l *live) {
		w := l.register(mailer)
		for _, id := range []string{"t1", "t2", "t3"} {
			l.queue(`,"taskId":"` + id + `"`)
		}
		l.claimed(w, 3)
		l.exchange(w, `{"seq":1,"inventory":[{"taskId":"t1","attempt":1,"details":{"frame":7}},{"taskId":"t2","attempt":1,"progressPct":20},`+
			`{"taskId":"t3","attempt":1,"progressPct":30}],"progress":[{"taskId":"t2","attempt":1},{"taskId":"t3","attempt":1,"progressPct":31}],`+
			`"completed":[{"taskId":"t1","attempt":1,"outcome":"FAILED","error":{"category":"TIMEOUT"}},`+
			`{"taskId":"t3","attempt":1,"outcome":"SUCCEEDED","progress":{"progressPct":32}}]}`)
		one, two, three := l.get("t1"), l.get("t2"), l.get("t3")
		if string(one.Details) != `{"frame":7}` || one.State != v1.Queued || string(two.ProgressPct) != "20" ||
			string(three.ProgressPct) != "32" {
			t.Errorf("%+v\n%+v\n%+v", one, two, three)
		}
	})
}

// answeringWorkers answers heartbeats.
type answeringWorkers struct {
	fakeWorkers
	answer *holdings.WorkerBeatResponse
}

func (w answeringWorkers) Beat(context.Context, model.Scope, string, workers.WorkerBeat) (*holdings.WorkerBeatResponse, error) {
	return w.answer, nil
}

// notingQueues notes how long claims may wait.
type notingQueues struct {
	fakeQueues
	waits *time.Duration
}

func (q notingQueues) Claim(_ context.Context, r queues.ClaimRequest) ([]*model.Envelope, error) {
	*q.waits = r.Wait
	return nil, nil
}

// The claim of an exchange waits until the next heartbeat is due, and not at all where the worker must know something, or with a large
// body.
func TestTheClaimOfAnExchangeDoesNotDelayWhatTheWorkerMustKnow(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		body   string
		answer holdings.WorkerBeatResponse
		want   time.Duration
	}{
		"without a heartbeat": {`"completed":[]`, holdings.WorkerBeatResponse{}, time.Minute},
		"heartbeat":           {`"seq":1`, holdings.WorkerBeatResponse{}, 10 * time.Second},
		"drain":               {`"seq":1`, holdings.WorkerBeatResponse{ShouldDrain: true}, 0},
		"cancel":              {`"seq":1`, holdings.WorkerBeatResponse{Cancels: []holdings.TaskNotice{{TaskID: "t1", Attempt: 1}}}, 0},
		"loss":                {`"seq":1`, holdings.WorkerBeatResponse{Lost: []holdings.TaskNotice{{TaskID: "t1", Attempt: 1}}}, 0},
		"large":               {`"seq":1,"x":"` + strings.Repeat("x", 16<<10) + `"`, holdings.WorkerBeatResponse{}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			c.answer.At, c.answer.Interval = fakeTime, 10*time.Second
			var waits time.Duration
			e := newEnv(t, func(cfg *Config) {
				f := cfg.Services.Beats.(*fakeTracker)
				cfg.Services.Workers = answeringWorkers{fakeWorkers{f}, &c.answer}
				cfg.Services.Queues = notingQueues{fakeQueues{f}, &waits}
			})
			e.asWorker("exchange", `{`+c.body+`,"claim":{"waitMs":60000}}`).want(200)
			if waits != c.want {
				t.Errorf("the claim waits for %v, want %v", waits, c.want)
			}
		})
	}
}
