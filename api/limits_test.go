package api

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/lubdub-io/lubdub/api/httpapi"
	"github.com/lubdub-io/lubdub/internal/testenv"
	v1 "github.com/lubdub-io/lubdub/sdk/go/v1"
	"github.com/lubdub-io/lubdub/tracker/holdings"
	"github.com/lubdub-io/lubdub/tracker/model"
	"github.com/lubdub-io/lubdub/tracker/workers"
)

func ofTenant(tenant string) func(*model.Attempt) {
	return func(a *model.Attempt) { a.Scope.Tenant = tenant }
}

// One tenant's flood is refused beyond its share, the others' beats are not touched, and the share refills.
func TestATenantThatBeatsTooMuchLeavesTheOthersAlone(t *testing.T) {
	t.Parallel()
	e := newEnv(t, func(c *Config) { c.TenantBeats = 5 })
	loud, quiet := e.task(ofTenant("loud")), e.task(ofTenant("quiet"))
	beat := func(token string) *answer { return e.do("POST", "/v1/tasks/task_1/heartbeat", token, `{"attempt":1}`) }
	for range 5 {
		beat(loud).want(200)
	}
	a := beat(loud)
	a.refused(429, "overloaded")
	if a.header.Get("Retry-After") != "1" || !contains(a.body, "5 heartbeats a second", "tenant-beats-per-second") {
		t.Errorf("Retry-After %q: %s", a.header.Get("Retry-After"), a.body)
	}
	for range 5 {
		beat(quiet).want(200)
	}
	e.advance(200 * time.Millisecond) // the time of one
	beat(loud).want(200)
	beat(loud).want(429)
	e.advance(30 * time.Minute) // and half an hour's rest is worth one second
	for range 5 {
		beat(loud).want(200)
	}
	beat(loud).want(429)
}

// Each callback counts as a beat, whichever token it has, and so does each beat of a batch.
func TestWhatCountsAsATenantsBeat(t *testing.T) {
	t.Parallel()
	for name, send := range map[string]func(*env) (status int){
		"started": func(e *env) int { return e.do("POST", "/v1/tasks/task_1/started", e.task(), `{"attempt":1}`).status },
		"completed": func(e *env) int {
			return e.do("POST", "/v1/tasks/task_1/completed", e.task(), `{"attempt":1,"outcome":"SUCCEEDED"}`).status
		},
		"beat with a query": func(e *env) int {
			return e.do("POST", "/v1/tasks/task_1/heartbeat?", e.task(), `{"attempt":1}`).status
		},
		"batch": func(e *env) int {
			var answer struct {
				Results []struct{ Status, RetryAfterMs int }
			}
			e.do("POST", "/v1/heartbeats", "", fmt.Sprintf(`{"heartbeats":[{"taskId":"task_1","attempt":1,"taskToken":%q}]}`,
				e.task())).want(200).into(&answer)
			if answer.Results[0].Status == 429 && answer.Results[0].RetryAfterMs == 0 {
				e.t.Error("a refused item without retryAfterMs")
			}
			return answer.Results[0].Status
		},
	} {
		t.Run(name, func(t *testing.T) {
			e := newEnv(t, func(c *Config) { c.TenantBeats, c.TenantCalls = 2, 1 })
			e.do("GET", "/v1/tasks/task_1", e.control(roleViewer), "").want(200)
			for i, want := range []int{200, 200, 429} {
				if got := send(e); got != want {
					t.Errorf("%d: %d, want %d", i, got, want)
				}
			}
			e.do("GET", "/v1/tasks/task_1", e.control(roleViewer), "").refused(429, "overloaded") // counted separately
		})
	}
}

// Each KiB of details counts as another beat, however they are sent.
func TestDetailsCountAsBeats(t *testing.T) {
	t.Parallel()
	details := strings.Repeat("1", 2<<10)
	for name, test := range map[string]struct {
		beats int // that the others count as
		send  func(e *env)
	}{
		"one": {1, func(e *env) {
			e.do("POST", "/v1/tasks/task_1/heartbeat", e.task(), `{"attempt":1,"details":`+details+`}`).want(200)
		}},
		"batch": {1, func(e *env) {
			e.do("POST", "/v1/heartbeats", "", fmt.Sprintf(
				`{"heartbeats":[{"taskId":"task_1","attempt":1,"taskToken":%q,"details":%s}]}`, e.task(), details)).want(200)
		}},
		"worker": {2, func(e *env) {
			e.asWorker("heartbeat", `{"tasks":[{"taskId":"task_1","attempt":1,"details":`+details+`}]}`).want(200)
		}},
		"exchange": {2, func(e *env) {
			e.asWorker("exchange", `{"seq":1,"progress":[{"taskId":"task_1","attempt":1,"details":`+details+`}]}`).want(200)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			e := newEnv(t, func(c *Config) { c.TenantBeats = test.beats + 2 + 1 })
			test.send(e)
			e.do("POST", "/v1/tasks/task_1/heartbeat", e.task(), `{"attempt":1}`).want(200)
			e.do("POST", "/v1/tasks/task_1/heartbeat", e.task(), `{"attempt":1}`).refused(429, "overloaded")
		})
	}
}

// asWorker sends a call of a worker.
func (e *env) asWorker(call, body string) *answer {
	e.t.Helper()
	token, _, err := httpapi.MintWorker(e.keys, testAttempt().Scope, &workers.Registered{WorkerID: fakeWorkerID, Queue: "default"}, e.now())
	if err != nil {
		e.t.Fatal(err)
	}
	return e.do("POST", "/v1/workers/"+fakeWorkerID+"/"+call, token, body)
}

// An exchange counts as its heartbeat, as each completion and as a call of its claim. A claim beyond the rate does not affect the rest.
func TestAnExchangeCountsAsItsParts(t *testing.T) {
	t.Parallel()
	e := newEnv(t, func(c *Config) { c.TenantBeats, c.TenantCalls = 3, 1 })
	done := `{"taskId":"task_1","attempt":1,"outcome":"SUCCEEDED"}`
	for _, refused := range []int{0, 429} {
		var got v1.ExchangeResponse
		body := `{"completed":[` + done + `],"claim":{}}`
		if refused == 0 {
			body = `{"seq":1,"completed":[` + done + `],"claim":{}}`
		}
		if e.asWorker("exchange", body).want(200).into(&got); got.Completed[0].Status != 403 || (got.ClaimError == nil) != (refused == 0) {
			t.Errorf("%+v %+v", got, got.ClaimError)
		}
		if e := got.ClaimError; e != nil && (e.Status != refused || e.RetryAfterMs == 0) {
			t.Errorf("%+v", e)
		}
	}
	e.asWorker("exchange", `{"seq":2,"completed":[`+done+`]}`).refused(429, v1.CodeOverloaded)
}

// Each creation of a batch counts, and what is refused is not created.
func TestCreationsOfABatchCountOneByOne(t *testing.T) {
	t.Parallel()
	e := newEnv(t, func(c *Config) { c.TenantCalls = 3 })
	var answer struct{ Results []struct{ Status int } }
	e.do("POST", "/v1/tasks:batch", e.controlFor(roleAdmin, "*", "*"),
		`{"tasks":[`+strings.TrimSuffix(strings.Repeat(`{"tenantId":"acme","workspaceId":"w"},`, 4)+`{"tenantId":"other","workspaceId":"w"},`,
			",")+`]}`).want(200).into(&answer)
	for i, want := range []int{201, 201, 201, 429, 201} {
		if got := answer.Results[i].Status; got != want {
			t.Errorf("%d: %d, want %d", i, got, want)
		}
	}
	if n := e.fake.createdCount(); n != 4 {
		t.Errorf("%d tasks were created", n)
	}
}

func TestALimitedBeatAllocatesNothing(t *testing.T) {
	if testenv.Race {
		return // the race detector allocates
	}
	h := singleBeat(t, func(c *Config) { c.TenantBeats = 10_000_000 })
	h.once(t)
	if n := testing.AllocsPerRun(1000, func() { h.once(t) }); n != 0 {
		t.Errorf("%v allocations for a beat under a limit", n)
	}
}

// lookups counts how often the domain looks up a worker's token.
type lookups struct {
	*fakeTracker
	names atomic.Int64
}

func (l *lookups) Owned(_ context.Context, _ model.Scope, _ string, names []holdings.OwnedAttempt) ([]*model.Attempt, error) {
	l.names.Add(int64(len(names)))
	return make([]*model.Attempt, len(names)), nil // none is the worker's
}

// lookupWorkers are its workers.
type lookupWorkers struct {
	fakeWorkers
	l *lookups
}

func (w lookupWorkers) Beat(ctx context.Context, s model.Scope, id string, b workers.WorkerBeat) (*holdings.WorkerBeatResponse, error) {
	w.l.names.Add(int64(len(b.Inventory)))
	return w.fakeWorkers.Beat(ctx, s, id, b)
}

// Every call with a worker's token counts before the look-up, whatever its result.
func TestLookupsCountBeforeTheyAreMade(t *testing.T) {
	t.Parallel()
	const perSecond, seconds, each = 10, 5, 100
	items := strings.TrimSuffix(strings.Repeat(`{"taskId":"none","attempt":1},`, each), ",")
	for name, c := range map[string]struct {
		path, body string
		atOnce     int64 // may go beyond what is allowed, since it is owed
	}{
		"beat":      {"/v1/tasks/none/heartbeat", `{"attempt":1}`, 0},
		"started":   {"/v1/tasks/none/started", `{"attempt":1}`, 0},
		"completed": {"/v1/tasks/none/completed", `{"attempt":1,"outcome":"SUCCEEDED"}`, 0},
		"batch":     {"/v1/heartbeats", `{"heartbeats":[` + items + `]}`, 0},
		"inventory": {"/v1/workers/" + fakeWorkerID + "/heartbeat", `{"tasks":[` + items + `]}`, each},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			domain := &lookups{}
			e := newEnv(t, func(c *Config) {
				c.TenantBeats = perSecond
				domain.fakeTracker = c.Services.Holdings.(*fakeTracker)
				c.Services.Holdings, c.Services.Workers = domain, lookupWorkers{fakeWorkers{domain.fakeTracker}, domain}
			})
			token, _, err := httpapi.MintWorker(e.keys, model.Scope{Tenant: "acme", Workspace: "prod"},
				&workers.Registered{WorkerID: fakeWorkerID, Queue: "q"}, e.now())
			if err != nil {
				t.Fatal(err)
			}
			refused := 0
			for range 10 * seconds {
				for range 5 {
					if a := e.do("POST", c.path, token, c.body); a.status == 429 || strings.Contains(a.body, `"status":429`) {
						refused++
					}
				}
				e.advance(100 * time.Millisecond)
			}
			allowed := int64(perSecond + perSecond*seconds)
			if got := domain.names.Load(); got > allowed+c.atOnce || got < perSecond || refused == 0 {
				t.Errorf("%d look-ups in %d s at %d a second, %d refusals", got, seconds, perSecond, refused)
			}
		})
	}
}
