package api

import (
	"strings"
	"testing"
	"time"

	"github.com/lubdub-io/lubdub/api/httpapi"
	"github.com/lubdub-io/lubdub/api/token"
	"github.com/lubdub-io/lubdub/tracker/model"
	"github.com/lubdub-io/lubdub/tracker/workers"
)

// A request's token is verified once, whatever the route and the client, and not at all if it is in the cache.
func TestATokenIsVerifiedOnce(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	e.badItems = true // only the check of tokens matters, not the bodies
	e.fake.owns = true
	made := 0
	bearers := map[string]func() string{
		"task": func() string {
			return e.task(func(a *model.Attempt) { a.IssuedAt = fakeTime.Add(time.Duration(made) * time.Second) })
		},
		"worker": func() string {
			at := e.now().Add(time.Duration(made) * time.Second)
			text, _, err := httpapi.MintWorker(e.keys, testAttempt().Scope, &workers.Registered{WorkerID: fakeWorkerID, Queue: "default"}, at)
			if err != nil {
				t.Fatal(err)
			}
			return text
		},
	}
	for _, r := range token.Roles {
		bearers[string(r)] = func() string {
			return e.controlOf(token.Control{Role: r, TTL: time.Hour + time.Duration(made)*time.Second})
		}
	}
	paths := strings.NewReplacer("{taskId}", "task_1", "{workerId}", fakeWorkerID, "{queue}", "default", "{runId}", "run_1", "{machineId}",
		"host-7", "{scheduleId}", "s1")
	bodies := map[string]string{"": `{"attempt":1,"outcome":"SUCCEEDED"}`,
		opHeartbeats: `{"heartbeats":[{"taskId":"task_1","attempt":1},{"taskId":"task_1","attempt":1}]}`}
	for _, r := range routes {
		if r.Access == httpapi.ForAll {
			continue
		}
		body := bodies[r.Op]
		if body == "" && r.Method != "GET" && r.Method != "DELETE" {
			body = bodies[""]
		}
		for name, mint := range bearers {
			made++
			bearer := mint()
			for i, want := range []uint64{1, 0} {
				before := e.keys.Verifications()
				a := e.do(r.Method, paths.Replace(r.Pattern), bearer, body)
				if got := e.keys.Verifications() - before; got != want {
					t.Errorf("%s, request %d with the token of %s (answered %d): verified %d times, want %d", r, i+1, name, a.status, got, want)
				}
			}
		}
	}
}

// What the cache knows ends with its token, of every kind, and does not outlive the key that signed it.
func TestARememberedTokenEnds(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	e.fake.owns = true
	worker, _, err := httpapi.MintWorker(e.keys, testAttempt().Scope, &workers.Registered{WorkerID: fakeWorkerID, Queue: "default"}, e.now())
	if err != nil {
		t.Fatal(err)
	}
	admin := e.control(roleAdmin)
	task, _, err := httpapi.MintTask(e.keys, testAttempt(), time.Hour, false)
	if err != nil {
		t.Fatal(err)
	}
	calls := map[string]func(*env) *answer{
		"task":    func(e *env) *answer { return e.do("POST", "/v1/tasks/task_1/heartbeat", task, `{"attempt":1}`) },
		"worker":  func(e *env) *answer { return e.do("POST", "/v1/workers/"+fakeWorkerID+"/heartbeat", worker, "") },
		"control": func(e *env) *answer { return e.do("GET", "/v1/tasks/task_1", admin, "") },
	}
	rotated := newEnv(t, func(c *Config) {
		keys, err := token.NewKeyring(token.NewKey("k2"))
		if err != nil {
			t.Fatal(err)
		}
		c.Keys = keys
	})
	for name, call := range calls {
		for range 2 {
			call(e).want(200)
		}
		if a := call(rotated); a.status != 401 {
			t.Errorf("%s: without its key it is answered %d", name, a.status)
		}
	}
	e.advance(time.Hour - time.Millisecond)
	for name, call := range calls {
		if a := call(e); a.status != 200 {
			t.Errorf("%s: in its last millisecond it is answered %d", name, a.status)
		}
	}
	e.advance(time.Millisecond)
	for _, call := range calls {
		call(e).refused(401, "unauthorized")
	}
}
