package api

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/lubdub-io/lubdub/api/httpapi"
	"github.com/lubdub-io/lubdub/internal/faultproxy"
	"github.com/lubdub-io/lubdub/internal/redistest"
	"github.com/lubdub-io/lubdub/internal/testenv"
	v1 "github.com/lubdub-io/lubdub/sdk/go/v1"
	"github.com/lubdub-io/lubdub/tracker"
	"github.com/lubdub-io/lubdub/tracker/model"
)

const promptTimeout = time.Second // redis-timeout

// prompt is an API on a real Redis that can be made to hang or be slow, with a worker and tasks.
type prompt struct {
	*env
	server *redistest.Server
	proxy  *faultproxy.Proxy

	worker *v1.RegisterWorkerResponse
	task   *v1.TaskEnvelope
}

func newPrompt(t *testing.T) *prompt {
	t.Helper()
	p := &prompt{server: redistest.StartServer(t)}
	p.proxy = faultproxy.Start(t, p.server.Addr)
	p.open(t, p.server.Addr, time.Minute) // so that all is there, however busy the machine is
	p.do("POST", "/v1/workers", p.control(roleAdmin), `{"queue":"q","types":["t"],"machineId":"m1"}`).want(201).into(&p.worker)
	p.do("POST", "/v1/tasks", p.control(roleAdmin), `{"taskId":"t1","runId":"r1"}`).want(201).into(&p.task)
	p.do("POST", "/v1/schedules", p.control(roleAdmin), `{"scheduleId":"s1","cron":"0 0 0 1 1 *","task":{"queue":"q"}}`).want(201)
	for i := range 20 {
		p.do("POST", "/v1/tasks", p.control(roleAdmin), fmt.Sprintf(`{"taskId":"q%d","queue":"q","type":"t"}`, i)).want(201)
	}
	p.open(t, p.proxy.Addr, promptTimeout)
	ready := func() bool { return p.do("GET", "/v1/tasks/t1", p.control(roleAdmin), "").status == 200 }
	until(t, ready, func() string { return "it is not ready" })
	return p
}

// open opens the API on a tracker with this redis-timeout.
func (p *prompt) open(t *testing.T, redis string, timeout time.Duration) {
	t.Helper()
	p.env = newEnv(t, func(c *Config) {
		o := tracker.Options{RedisURL: "redis://" + redistest.As(redis) + "/0", Shards: 8, Logger: c.Logger, RedisTimeout: timeout,
			WebhookPoster: &outside{status: 200}}
		var tr *tracker.Tracker
		var err error
		until(t, func() bool {
			tr, err = tracker.Open(t.Context(), o)
			return err == nil || model.CodeOf(err) == ""
		}, func() string { return "the store does not answer" })
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = tr.Close(t.Context()) })
		c.Services = ServicesOf(tr)
	})
	p.readClock = time.Now
}

// request is one of every route, such that it needs the store.
func (p *prompt) request(r *httpapi.Route) (path, token, body string) {
	bodies := map[string]string{
		opStarted: `{"attempt":1,"workerId":"w"}`, opHeartbeat: `{"attempt":1}`, opCompleted: `{"attempt":1,"outcome":"SUCCEEDED"}`,
		opExchange:    `{"completed":[{"taskId":"q1","attempt":1,"outcome":"SUCCEEDED"}]}`,
		opHeartbeats:  `{"heartbeats":[{"taskId":"t1","attempt":1,"taskToken":"` + p.task.TaskToken + `"},{"taskId":"q1","attempt":1}]}`,
		opCreate:      `{"queue":"q","type":"t","placement":{"strategy":"leastLoaded"}}`,
		opWaitTasks:   `{"taskIds":["q1","q2"]}`,
		opCreateBatch: `{"tasks":[{"queue":"q","type":"t","idempotencyKey":"k1"},{"queue":"q","type":"t","placement":{"strategy":"random"}}]}`,
		opCancelTasks: `{"selector":{"queue":"q"},"dryRun":true}`, opRetryTasks: `{"selector":{"queue":"q"}}`,
		opNextAttempt: `{"fromAttempt":1}`, opRegister: `{"queue":"q","types":["t"],"hostname":"h","pid":7}`,
		opDrainWorkers: `{"selector":{"queue":"q"}}`, opSelectWorker: `{"queue":"q"}`, opRevoke: `{"subject":"ann"}`,
		opCordonWorkers: `{"selector":{"queue":"q"}}`, opUncordonWorkers: `{"selector":{"queue":"q"}}`,
		opResumeWorkers: `{"selector":{"queue":"q"}}`, opOfflineWorkers: `{"silentForMs":86400000}`,
		opCreateSchedule: `{"cron":"0 0 0 1 1 *","task":{"queue":"q"}}`, opPutSchedule: `{"cron":"0 0 0 1 1 *","task":{"queue":"q"}}`,
		opPatchSchedule: `{"maxCatchup":1}`, opBackfillSchedule: `{"from":"2025-01-01T00:00:00Z","to":"2025-01-02T00:00:00Z"}`,
		opCreateWebhook: `{"url":"https://example.com","events":["task.*"]}`,
		opUpdateWebhook: `{"url":"https://example.com","events":["task.*"]}`,
		opRedeliver:     `{"since":"2025-01-15T10:00:00Z"}`,
		opClaim:         `{"max":5,"waitMs":300,"claimId":"c1"}`, opWorkerHeartbeat: `{"tasks":[{"taskId":"q3","attempt":1}]}`,
	}
	ids := map[string]string{"taskId": "t1", "runId": "r1", "workerId": p.worker.WorkerID, "machineId": "m1", "queue": "q", "scheduleId": "s1",
		"webhookId": "w"}
	path, body = r.Pattern, bodies[r.Op]
	for name, id := range ids {
		path = strings.ReplaceAll(path, "{"+name+"}", id)
	}
	switch {
	case r.Op == opHeartbeats || r.Access == httpapi.ForWorker:
		token = p.worker.WorkerToken
	case r.Access == httpapi.ForTask || r.Access == httpapi.ForBeat || r.Access == httpapi.ForItems:
		token = p.task.TaskToken
	case r.Access == httpapi.ForControl:
		token = p.control(roleAdmin)
		switch r.Op {
		case opList:
			path += "?type=t"
		case opScopes:
			token = p.controlFor(roleAdmin, "acme", "*") // who sees one workspace only has nothing to list
		}
	}
	return path, token, body
}

// prompted is what was answered to a request, and how fast.
type prompted struct {
	status     int
	retryAfter string
	code       string // of a refusal
	took       time.Duration
}

// send sends a request and returns how long its answer took.
func (p *prompt) send(r *httpapi.Route) (a prompted, err error) {
	path, token, body := p.request(r)
	req, err := http.NewRequest(r.Method, "http://lubdub.test"+path, strings.NewReader(body))
	if err != nil {
		return a, err
	}
	req.Header.Set("Content-Type", "application/json")
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	start := time.Now()
	res, err := p.client.Do(req)
	if err != nil {
		return a, err
	}
	text, err := io.ReadAll(res.Body)
	_ = res.Body.Close()
	a = prompted{status: res.StatusCode, retryAfter: res.Header.Get("Retry-After"), took: time.Since(start)}
	var refused v1.Error
	if a.status >= http.StatusBadRequest && json.Unmarshal(text, &refused) == nil {
		a.code = refused.Error
	}
	return a, err
}

// everyRoute calls each route several times at once, and records which responses are late.
func (p *prompt) everyRoute(t *testing.T, when string, each int, late redistest.TooLong, check func(r *httpapi.Route, a prompted)) {
	t.Helper()
	var all sync.WaitGroup
	var mu sync.Mutex
	took := map[*httpapi.Route]time.Duration{}
	delay := redistest.OwnDelay()
	for _, r := range routes {
		for range each {
			all.Go(func() {
				a, err := p.send(r)
				mu.Lock()
				defer mu.Unlock()
				if err != nil {
					t.Errorf("%s: %v", r, err)
					return
				}
				took[r] = max(took[r], a.took)
				check(r, a)
			})
		}
	}
	all.Wait()
	own := delay()
	for r, d := range took {
		limit := promptTimeout*3/2 + 4*own // the proxy, the front end and the lane may each be late by that
		if r.Op == opClaim {
			limit += 300 * time.Millisecond
		}
		if d > limit {
			late[r.String()+when] = fmt.Sprintf("answered after %v; want %v, and this process was late by %v at a time itself", d,
				promptTimeout*3/2, own)
		}
	}
}

// Whatever the route: while Redis hangs or is down, the answer comes within one and a half redis-timeouts. If the store was needed it is
// 503 with a code that states why, and Retry-After, both in the first moment, before the outage is known, and later.
func TestEveryRouteAnswersInTimeWhileRedisIsAway(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(s *redistest.Server) error{
		"hangs":     (*redistest.Server).Freeze,
		"is killed": func(s *redistest.Server) error { s.Kill(); return nil },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			redistest.Measured(t, func(t *testing.T) redistest.TooLong { return answersWhileRedisIsAway(t, end) })
		})
	}
}

func answersWhileRedisIsAway(t *testing.T, end func(s *redistest.Server) error) (late redistest.TooLong) {
	late = redistest.TooLong{}
	away := []string{string(model.Unavailable), string(model.Overloaded)} // the latter waited behind others, and was not sent
	p := newPrompt(t)
	if err := end(p.server); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = p.server.Thaw() }()
	for _, when := range []string{", at first", ", later"} {
		p.everyRoute(t, when, 5, late, func(r *httpapi.Route, a prompted) {
			switch r.Op {
			case "index", "livez", "version", "openapi", opHeartbeats, opCreateBatch: // the last two answer for each item
				if a.status != 200 {
					t.Errorf("%s: %d", r, a.status)
				}
				return
			case opCreateToken: // which needs no store
				if a.status != 201 {
					t.Errorf("%s: %d", r, a.status)
				}
				return
			case "readyz", "healthz":
				return
			}
			if n, err := strconv.Atoi(a.retryAfter); a.status != 503 || !slices.Contains(away, a.code) || err != nil || n < 1 {
				t.Errorf("%s: %+v", r, a)
			}
		})
	}
	stream, err := http.NewRequest("GET", "http://lubdub.test/v1/events", nil)
	if err != nil {
		t.Fatal(err)
	}
	stream.Header.Set("Accept", "text/event-stream")
	stream.Header.Set("Authorization", "Bearer "+p.control(roleAdmin))
	res, err := p.client.Do(stream)
	if err != nil {
		t.Fatal(err)
	}
	if _ = res.Body.Close(); res.StatusCode != 503 || res.Header.Get("Retry-After") == "" {
		t.Errorf("a stream of events: %d, Retry-After %q", res.StatusCode, res.Header.Get("Retry-After"))
	}
	return late
}

// Operations that take several round trips to a Redis that takes long for each add them up, and are in time all the same;
// afterwards all is as ever.
func TestEveryRouteAnswersInTimeWhileRedisIsSlow(t *testing.T) {
	testenv.OnlyAll(t)
	t.Parallel()
	for _, delay := range []time.Duration{promptTimeout * 2 / 5, promptTimeout * 4 / 5} {
		t.Run(delay.String(), func(t *testing.T) {
			redistest.Measured(t, func(t *testing.T) redistest.TooLong {
				late := redistest.TooLong{}
				p := newPrompt(t)
				p.proxy.Delay(delay)
				p.everyRoute(t, "", 5, late, func(r *httpapi.Route, a prompted) {
					if a.status == 503 && a.retryAfter == "" && r.Op != "readyz" && r.Op != "healthz" {
						t.Errorf("%s: 503 without Retry-After", r)
					}
				})
				p.proxy.Delay(0)
				status := 0
				until(t, func() bool {
					status = p.do("GET", "/v1/tasks/q19", p.control(roleAdmin), "").status
					return status != 503
				}, func() string { return "a Redis that is quick again is still taken for slow" })
				if status != 200 {
					t.Errorf("when Redis is quick again: %d", status)
				}
				return late
			})
		})
	}
}
