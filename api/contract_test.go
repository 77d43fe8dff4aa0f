package api

import (
	"context"
	"flag"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/lubdub-io/lubdub/api/token"
	"github.com/lubdub-io/lubdub/internal/redistest"
	v1 "github.com/lubdub-io/lubdub/sdk/go/v1"
	"github.com/lubdub-io/lubdub/tracker"
	"github.com/lubdub-io/lubdub/tracker/beats"
	"github.com/lubdub-io/lubdub/tracker/sweep"
)

// The contract over HTTP, on every kind of store, with the clock in the test's hand.

func TestMain(m *testing.M) {
	// Most tests wait for Redis or for time to pass, so more of them than there are cores run at once: a third of the time on two cores.
	if err := flag.Set("test.parallel", "8"); err != nil { // -parallel replaces it
		panic(err)
	}
	redistest.Main(m)
}

// live is an env on a real Tracker.
type live struct {
	*env
	tr      *tracker.Tracker
	sweeper *sweep.Sweeper
	store   *redistest.Store
}

// contract runs a test with the event loop and without it.
func contract(t *testing.T, test func(t *testing.T, l *live), change ...func(*tracker.Options)) {
	t.Helper()
	t.Run("goroutines", func(t *testing.T) { inMemory(t, test, change...) })
	t.Run("loop", func(t *testing.T) {
		inMemory(t, func(t *testing.T, l *live) {
			l.onLoop()
			test(t, l)
		}, change...)
	})
}

// inMemory runs a test over connections whose buffers are small.
func inMemory(t *testing.T, test func(t *testing.T, l *live), change ...func(*tracker.Options)) {
	t.Helper()
	redistest.Each(t, func(t *testing.T, s *redistest.Store) {
		l := newLive(t, s, change)
		l.pass(0)
		test(t, l)
	})
}

func newLive(t *testing.T, s *redistest.Store, change []func(*tracker.Options)) *live {
	var tr *tracker.Tracker
	e := newEnv(t, func(c *Config) {
		var err error
		o := tracker.Options{RedisURL: s.URL, Scripts: s.Scripts, Shards: 4, Logger: c.Logger, RedisTimeout: 10 * time.Second}
		for _, f := range change {
			f(&o)
		}
		tr, err = tracker.Open(context.Background(), o)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = tr.Close(context.Background()) })
		c.Services, c.Now = ServicesOf(tr), s.Clock.Now
	})
	e.readClock = s.Clock.Now
	return &live{env: e, tr: tr, store: s, sweeper: sweep.NewSweeper(tr.Sweeper, sweep.SweeperOptions{ID: "swp_test"})}
}

// pass lets time pass while front ends are alive, so that shard time follows.
func (l *live) pass(d time.Duration) {
	l.t.Helper()
	for {
		step := min(d, 250*time.Millisecond)
		l.store.Clock.Advance(step)
		if err := l.tr.Beats.Tick(); err != nil {
			l.t.Fatal(err)
		}
		if d -= step; d <= 0 {
			return
		}
	}
}

func (l *live) sweep() {
	l.t.Helper()
	if _, err := l.sweeper.RunOnce(context.Background()); err != nil {
		l.t.Fatal(err)
	}
}

// create makes a pushed task and gives its envelope.
func (l *live) create(body string) *v1.TaskEnvelope {
	l.t.Helper()
	var e v1.TaskEnvelope
	l.do("POST", "/v1/tasks", l.control(roleDispatcher), body).want(201).into(&e)
	return &e
}

// call is a callback of an attempt.
func (l *live) call(e *v1.TaskEnvelope, op, body string) *answer {
	l.t.Helper()
	return l.do("POST", "/v1/tasks/"+e.TaskID+"/"+op, e.TaskToken, body)
}

func (l *live) get(id string) *v1.Task {
	l.t.Helper()
	var task v1.Task
	l.do("GET", "/v1/tasks/"+id, l.control(roleViewer), "").want(200).into(&task)
	return &task
}

// delivered returns when the delivery of a cancel is on record: the reply did not wait for that.
func (l *live) delivered(e *v1.TaskEnvelope) {
	l.t.Helper()
	who := l.s.api.Bearer([]byte(e.TaskToken), l.now())
	if who == nil {
		l.t.Fatal("the token is not valid")
	}
	for {
		b := beats.Beat{Attempt: who.Task()}
		if l.tr.Beats.Beat(&b); b.Err != nil || b.Cancel == nil {
			l.t.Fatalf("%v %v", b.Err, b.Cancel)
		}
		if b.Cancel.Delivered {
			return
		}
	}
}

const short = `{"heartbeatIntervalMs":1000,"heartbeatTimeoutMs":2000,"cancelGracePeriodMs":1000}`

func TestContractWholeLife(t *testing.T) {
	t.Parallel()
	contract(t, func(t *testing.T, l *live) {
		e := l.create(`{"taskKey":"raw.events","assetId":"asset_1","labels":{"team":"x"},"payload":{"a":1},"resources":{"cpu":2}}`)
		if e.Attempt != 1 || e.State != v1.Dispatched || e.TaskToken == "" {
			t.Fatalf("got %+v", e)
		}
		if task := l.get(e.TaskID); task.State != v1.Dispatched || task.Labels["team"] != "x" || string(task.Payload) != `{"a":1}` {
			t.Errorf("got %+v", task)
		}
		l.call(e, "started", seedStarted).want(200)
		l.call(e, "started", seedStarted).want(200)
		l.call(e, "heartbeat", seedHeartbeat).want(200).contains(`{"acknowledged":true,"shouldCancel":false,"nextHeartbeatMs":30000}`)
		task := l.get(e.TaskID)
		if task.State != v1.Running || *task.WorkerID != "worker-abc123" || string(task.ProgressPct) != "45" ||
			string(task.Message) != `"Processing partition 5 of 10"` ||
			*task.Liveness != v1.LivenessFresh || !task.ReportedHeartbeatAt.Equal(time.Date(2025, 1, 15, 10, 5, 0, 0, time.UTC)) {
			t.Errorf("got %+v", task)
		}
		first := l.call(e, "completed", seedSucceeded).want(200).contains(`{"acknowledged":true,"finalState":"SUCCEEDED"}`)
		if again := l.call(e, "completed", seedSucceeded).want(200); again.body != first.body {
			t.Errorf("the same completion got %s, then %s", first.body, again.body)
		}
		l.call(e, "completed", seedFailed).refused(409, "task_already_terminal")
		l.call(e, "heartbeat", seedHeartbeat).want(409).contains(`{"error":"task_already_terminal","state":"SUCCEEDED"}`)
		task = l.get(e.TaskID)
		if task.State != v1.Succeeded || len(task.History) != 1 || task.History[0].Outcome != "SUCCEEDED" {
			t.Errorf("got %+v", task)
		}
		sameJSON(t, task.Output, field(t, seedSucceeded, "output"))
		sameJSON(t, task.Metrics, field(t, seedSucceeded, "metrics"))
	})
}

func TestContractCancel(t *testing.T) {
	t.Parallel()
	contract(t, func(t *testing.T, l *live) {
		e := l.create(short)
		l.call(e, "started", `{"attempt":1}`).want(200)
		l.do("POST", "/v1/tasks/"+e.TaskID+"/cancel", l.control(roleOperator),
			`{"reason":"user_requested"}`).want(202).contains(`{"cancelRequested":true,"cancelReason":"user_requested","state":"RUNNING"}`)
		l.do("POST", "/v1/tasks/"+e.TaskID+"/cancel", l.control(roleOperator), `{"reason":"user_requested"}`).want(202)
		l.call(e, "heartbeat", `{"attempt":1}`).want(200).contains(`{"shouldCancel":true,"cancelReason":"user_requested"}`)
		l.call(e, "completed", seedCancelled).want(200).contains(`{"finalState":"CANCELLED"}`)
		task := l.get(e.TaskID)
		if task.State != v1.Cancelled || task.CancelledDuringPhase != "processing" {
			t.Errorf("got %+v", task)
		}
		sameJSON(t, task.PartialProgress, field(t, seedCancelled, "partialProgress"))
		l.do("POST", "/v1/tasks/"+e.TaskID+"/cancel", l.control(roleOperator),
			"").want(202).contains(`{"state":"CANCELLED","cancelReason":"user_requested"}`)

		idle := l.create(short)
		l.do("POST", "/v1/tasks/"+idle.TaskID+"/cancel", l.control(roleOperator), "").want(202).contains(`{"state":"CANCELLED"}`)
		l.call(idle, "started", seedStarted).want(409).contains(seedStartedConflict)
	})
}

// A cancel without a grace period ends the task at once, also one that is on its way.
func TestContractTerminate(t *testing.T) {
	t.Parallel()
	contract(t, func(t *testing.T, l *live) {
		op := l.control(roleOperator)
		e := l.create(short)
		path := "/v1/tasks/" + e.TaskID + "/cancel"
		l.call(e, "started", `{"attempt":1}`).want(200)
		for _, body := range []string{`{"gracePeriodMs":-1}`, `{"gracePeriodMs":86400001}`, `{"gracePeriodMs":1e300}`, `{"gracePeriodMs":"0"}`} {
			if r := l.do("POST", path, op, body).want(400); !contains(string(r.body), "gracePeriodMs") {
				t.Fatalf("%s", r.body)
			}
		}
		l.do("POST", path, op, `{"gracePeriodMs":5000}`).want(202).contains(`{"state":"RUNNING","cancelRequested":true}`)
		for range 2 {
			l.do("POST", path, op, `{"reason":"now","gracePeriodMs":0}`).want(202).contains(`{"state":"CANCELLED","reason":"TERMINATED"}`)
		}
		l.call(e, "heartbeat", `{"attempt":1}`).want(410).contains(`{"error":"task_expired","reason":"TERMINATED"}`)
		l.call(e, "completed", seedCancelled).want(409).contains(`{"error":"task_already_terminal","state":"CANCELLED"}`)
		l.call(e, "started", `{"attempt":1}`).want(409).contains(`{"error":"task_already_terminal","state":"CANCELLED"}`)
		if data := l.lastEvent("task.cancelled", e.TaskID); data["reason"] != "TERMINATED" {
			t.Fatalf("%v", data)
		}

		inRun := l.create(`{"runId":"r1"}`)
		l.call(inRun, "started", `{"attempt":1}`).want(200)
		l.do("POST", "/v1/runs/r1/cancel", op, `{"gracePeriodMs":0}`).want(202)
		if task := l.get(inRun.TaskID); task.State != v1.Cancelled || deref(task.Reason) != "TERMINATED" {
			t.Fatalf("%+v", task)
		}
	})
}

// The grace period runs from the first reply that carried the signal.
func TestContractCancelGrace(t *testing.T) {
	t.Parallel()
	contract(t, func(t *testing.T, l *live) {
		e := l.create(`{"heartbeatIntervalMs":20000,"heartbeatTimeoutMs":60000,"cancelGracePeriodMs":1000}`)
		l.call(e, "started", `{"attempt":1}`).want(200)
		l.do("POST", "/v1/tasks/"+e.TaskID+"/cancel", l.control(roleOperator), "").want(202)
		l.pass(5 * time.Second)
		l.sweep()
		if task := l.get(e.TaskID); task.State != v1.Running {
			t.Fatalf("%s before the worker could know", task.State)
		}
		l.call(e, "heartbeat", `{"attempt":1}`).want(200).contains(`{"shouldCancel":true}`)
		l.delivered(e)
		l.pass(500 * time.Millisecond)
		l.call(e, "heartbeat", `{"attempt":1}`).want(200).contains(`{"shouldCancel":true}`) // does not restart the grace period
		l.pass(750 * time.Millisecond)
		l.sweep()
		task := l.get(e.TaskID)
		if task.State != v1.Failed || *task.Reason != "CANCEL_TIMEOUT" {
			t.Fatalf("got %s %v", task.State, task.Reason)
		}
		l.call(e, "heartbeat", `{"attempt":1}`).want(410).contains(`{"error":"task_expired","reason":"CANCEL_TIMEOUT"}`)
		l.call(e, "completed", seedCancelled).want(409).contains(`{"error":"task_already_terminal","state":"FAILED"}`)
	})
}

func TestContractZombie(t *testing.T) {
	t.Parallel()
	contract(t, func(t *testing.T, l *live) {
		e := l.create(short)
		l.call(e, "started", `{"attempt":1,"workerId":"w1"}`).want(200)
		l.pass(time.Second)
		l.call(e, "heartbeat", `{"attempt":1,"progressPct":30,"message":"one third"}`).want(200)
		l.pass(2 * time.Second)
		l.sweep()
		if task := l.get(e.TaskID); task.State != v1.Running {
			t.Fatalf("%s at exactly its timeout", task.State)
		}
		l.pass(250 * time.Millisecond)
		l.sweep()
		task := l.get(e.TaskID)
		if task.State != v1.Failed || *task.Reason != "HEARTBEAT_TIMEOUT" || len(task.History) != 1 {
			t.Fatalf("got %+v", task)
		}
		h := task.History[0]
		if h.Outcome != "ZOMBIE" || h.Evidence == nil || h.Evidence.TimeoutMs != 2000 || h.Evidence.SilentMs < 2000 ||
			h.Evidence.Sweeper != "swp_test" || string(h.LastProgress.ProgressPct) != "30" {
			t.Errorf("got %+v %+v", h, h.Evidence)
		}
		l.call(e, "heartbeat", `{"attempt":1}`).want(410).contains(seedHeartbeatExpired)
		l.call(e, "started", `{"attempt":1}`).want(409).contains(`{"error":"task_already_terminal","state":"FAILED"}`)
		l.call(e, "completed", seedSucceeded).want(409).contains(`{"error":"task_already_terminal","state":"FAILED"}`)

		var next v1.TaskEnvelope
		l.do("POST", "/v1/tasks/"+e.TaskID+"/attempts", l.control(roleDispatcher), `{"fromAttempt":1}`).want(201).into(&next)
		if next.Attempt != 2 || next.LastProgress == nil || string(next.LastProgress.Message) != `"one third"` || next.TaskToken == e.TaskToken {
			t.Fatalf("got %+v", next)
		}
		var again v1.TaskEnvelope
		l.do("POST", "/v1/tasks/"+e.TaskID+"/attempts", l.control(roleDispatcher), `{"fromAttempt":1}`).want(201).into(&again)
		if again.TaskToken != next.TaskToken {
			t.Error("the same fromAttempt got another token")
		}
		l.call(e, "heartbeat", `{"attempt":1}`).want(409).contains(`{"error":"attempt_mismatch","expectedAttempt":2,"receivedAttempt":1}`)
		l.call(&next, "heartbeat", `{"attempt":2}`).want(200)
		l.call(&next, "completed", strings.Replace(seedSucceeded, `"attempt": 1`, `"attempt": 2`, 1)).want(200)
		l.call(e, "completed", seedSucceeded).want(409).contains(`{"error":"attempt_mismatch","expectedAttempt":2,"receivedAttempt":1}`)
		l.do("POST", "/v1/tasks/"+e.TaskID+"/attempts", l.control(roleDispatcher), `{"fromAttempt":2}`).refused(409, "task_already_terminal")
	})
}

func TestContractMismatchBeforeTheNextEnds(t *testing.T) {
	t.Parallel()
	contract(t, func(t *testing.T, l *live) {
		e := l.create(short)
		l.call(e, "started", `{"attempt":1}`).want(200)
		l.do("POST", "/v1/tasks/"+e.TaskID+"/attempts", l.control(roleDispatcher), `{"fromAttempt":1}`).want(201)
		for op, body := range map[string]string{"started": seedStarted, "heartbeat": seedHeartbeat, "completed": seedSucceeded} {
			l.call(e, op, body).want(409).contains(`{"error":"attempt_mismatch","expectedAttempt":2,"receivedAttempt":1}`)
		}
		l.do("POST", "/v1/tasks/"+e.TaskID+"/attempts", l.control(roleDispatcher), `{"fromAttempt":7}`).refused(409, "attempt_mismatch")
		l.do("POST", "/v1/tasks/none/attempts", l.control(roleDispatcher), `{"fromAttempt":1}`).refused(404, "task_not_found")
	})
}

func TestContractIdempotency(t *testing.T) {
	t.Parallel()
	contract(t, func(t *testing.T, l *live) {
		deadline := l.now().Add(90 * time.Minute).Format(time.RFC3339)
		body := `{"taskKey":"k","deadline":"` + deadline + `"}`
		first := l.do("POST", "/v1/tasks", l.control(roleDispatcher), body, "Idempotency-Key", "one").want(201)
		l.pass(time.Second)
		if again := l.do("POST", "/v1/tasks", l.control(roleDispatcher), body, "Idempotency-Key", "one").want(201); again.body != first.body {
			t.Errorf("a repeat got\n%s\nwant\n%s", again.body, first.body)
		}
		l.do("POST", "/v1/tasks", l.control(roleDispatcher), `{"taskKey":"other"}`, "Idempotency-Key", "one").refused(409, "idempotency_mismatch")
		l.do("POST", "/v1/tasks", l.control(roleDispatcher), `{"taskId":"mine"}`).want(201)
		before := l.store.Dump(t)
		l.do("POST", "/v1/tasks", l.control(roleDispatcher), `{"taskId":"mine"}`).refused(409, "task_exists")
		if after := l.store.Dump(t); fmt.Sprint(after) != fmt.Sprint(before) {
			t.Error("a refused creation changed the store")
		}
		l.do("POST", "/v1/tasks?workspaceId=test", l.controlFor(roleDispatcher, "acme", token.Wildcard), `{"taskId":"mine"}`).want(201)

		queued := l.do("POST", "/v1/tasks", l.control(roleDispatcher), `{"queue":"q"}`, "Idempotency-Key",
			"two").want(201).contains(`{"state":"QUEUED","attempt":0}`)
		if again := l.do("POST", "/v1/tasks", l.control(roleDispatcher), `{"queue":"q"}`, "Idempotency-Key",
			"two").want(201); again.body != queued.body {
			t.Errorf("a repeat got\n%s\nwant\n%s", again.body, queued.body)
		}
	})
}
