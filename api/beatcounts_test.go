package api

import (
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/lubdub-io/lubdub/api/httpapi"
	v1 "github.com/lubdub-io/lubdub/sdk/go/v1"
	"github.com/lubdub-io/lubdub/tracker/beats"
	"github.com/lubdub-io/lubdub/tracker/model"
	"github.com/lubdub-io/lubdub/tracker/workers"
)

// heartbeatRoute is a way in which heartbeats come.
type heartbeatRoute struct {
	kind  string
	times float64 // heartbeats in one request
	path  string
	token func(*env) string
	body  func(e *env, attempt string) string
}

func heartbeatRoutes(t *testing.T) map[string]heartbeatRoute {
	worker := func(e *env) string {
		text, _, err := httpapi.MintWorker(e.keys, testAttempt().Scope, &workers.Registered{WorkerID: fakeWorkerID, MachineID: "host-7",
			Queue: "default"}, e.now())
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	item := func(e *env, attempt string) string {
		return `{"taskId":"task_1","attempt":` + attempt + `,"taskToken":"` + e.task() + `"}`
	}
	return map[string]heartbeatRoute{
		"task": {httpapi.KindTask, 1, "/v1/tasks/task_1/heartbeat", func(e *env) string { return e.task() },
			func(_ *env, attempt string) string { return `{"attempt":` + attempt + `}` }},
		"task with an encoded id": {httpapi.KindTask, 1, "/v1/tasks/task%5F1/heartbeat", func(e *env) string { return e.task() },
			func(_ *env, attempt string) string { return `{"attempt":` + attempt + `}` }},
		"batch": {httpapi.KindTask, 2, "/v1/heartbeats", func(*env) string { return "" },
			func(e *env, attempt string) string {
				return `{"heartbeats":[` + item(e, attempt) + `,` + item(e, attempt) + `]}`
			}},
		"worker": {httpapi.KindWorker, 1, "/v1/workers/" + fakeWorkerID + "/heartbeat", worker,
			func(_ *env, attempt string) string {
				return `{"tasks":[{"taskId":"task_1","attempt":` + attempt + `}]}`
			}},
	}
}

// heartbeatResult is what comes of heartbeats, and how a client brings it about.
type heartbeatResult struct {
	code  string // "": accepted
	whole bool   // a batch is refused as one
	send  func(e *env, r heartbeatRoute)
}

func heartbeatResults() map[string]heartbeatResult {
	post := func(e *env, r heartbeatRoute) { e.do("POST", r.path, r.token(e), r.body(e, "1")) }
	failing := func(err *model.Error) func(e *env, r heartbeatRoute) {
		return func(e *env, r heartbeatRoute) {
			e.fake.beat = func(b *beats.Beat) { b.Err = err }
			e.fake.beatWorker = func() error { return err }
			post(e, r)
		}
	}
	return map[string]heartbeatResult{
		"accepted": {"", false, post},
		"400 a field": {"invalid_request", false, func(e *env, r heartbeatRoute) {
			e.do("POST", r.path, r.token(e), r.body(e, "-1"))
		}},
		"400 no JSON": {"invalid_json", true, func(e *env, r heartbeatRoute) { e.do("POST", r.path, r.token(e), "{").want(400) }},
		"400 a query": {"invalid_request", true, func(e *env, r heartbeatRoute) {
			e.do("POST", r.path+"?x=1", r.token(e), r.body(e, "1")).want(400)
		}},
		"401": {"unauthorized", false, func(e *env, r heartbeatRoute) {
			e.do("POST", r.path, "junk", strings.ReplaceAll(r.body(e, "1"), e.task(), "junk"))
		}},
		"410":             {"task_expired", false, failing(&model.Error{Code: model.Expired, Reason: model.HeartbeatTimeout})},
		"413":             {"body_too_large", true, tooLarge},
		"503 no store":    {"store_unavailable", false, failing(&model.Error{Code: model.Unavailable})},
		"503 an overload": {"overloaded", false, failing(&model.Error{Code: model.Overloaded})},
	}
}

// tooLarge announces a body that no route takes.
func tooLarge(e *env, r heartbeatRoute) {
	c, err := e.ln.Dial()
	if err != nil {
		e.t.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	head := fmt.Sprintf("POST %s HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\nContent-Length: %d\r\n\r\n",
		r.path, r.token(e), httpapi.LimitBatch+1)
	if _, err := io.WriteString(c, head); err != nil {
		e.t.Fatal(err)
	}
	if answer, err := io.ReadAll(c); err != nil || !strings.Contains(string(answer), " 413 ") {
		e.t.Errorf("%s %v", answer, err)
	}
}

// Heartbeats of every kind count under it, whichever way they come and whatever comes of them: once each, and a batch that is refused
// whole once.
func TestEveryKindOfHeartbeatIsCounted(t *testing.T) {
	t.Parallel()
	for way, r := range heartbeatRoutes(t) {
		for what, is := range heartbeatResults() {
			t.Run(way+"/"+what, func(t *testing.T) {
				t.Parallel()
				e := newEnv(t)
				e.badItems = true
				is.send(e, r)
				times := r.times
				if is.whole {
					times = 1
				}
				want := map[string]float64{"accepted " + r.kind: times}
				if is.code != "" {
					want = map[string]float64{"refused " + r.kind + " " + is.code: times}
				}
				if got := e.beatCounts(); fmt.Sprint(got) != fmt.Sprint(want) {
					t.Errorf("counted %v, want %v", got, want)
				}
			})
		}
	}
}

// The heartbeat in an exchange counts as one of a worker; an exchange without one counts as none.
func TestHeartbeatsInExchangesAreCounted(t *testing.T) {
	t.Parallel()
	e := newEnv(t, func(c *Config) { c.TenantBeats = 3 })
	e.asWorker("exchange", `{"seq":1}`).want(200)
	e.asWorker("exchange", `{"completed":[{"taskId":"task_1","attempt":1,"outcome":"SUCCEEDED"}]}`).want(200)
	e.fake.beatWorker = func() error { return &model.Error{Code: model.Unavailable} }
	e.asWorker("exchange", `{"seq":2}`).want(503)
	e.asWorker("exchange", `{"seq":3}`).refused(429, v1.CodeOverloaded)
	want := map[string]float64{"accepted worker": 1, "refused worker store_unavailable": 1, "refused worker overloaded": 1}
	if got := e.beatCounts(); fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("counted %v, want %v", got, want)
	}
}

// beatCounts returns the counters of heartbeats that are not 0.
func (e *env) beatCounts() map[string]float64 {
	e.t.Helper()
	families, err := e.reg.Gather()
	if err != nil {
		e.t.Fatal(err)
	}
	counts := map[string]float64{}
	for _, f := range families {
		name := map[string]string{"lubdub_http_beats_accepted_total": "accepted", "lubdub_http_beats_refused_total": "refused"}[f.GetName()]
		for _, m := range f.GetMetric() {
			labels := map[string]string{}
			for _, l := range m.GetLabel() {
				labels[l.GetName()] = l.GetValue()
			}
			if n := m.GetCounter().GetValue(); name != "" && n > 0 {
				counts[strings.TrimSpace(name+" "+labels["kind"]+" "+labels["code"])] += n
			}
		}
	}
	return counts
}
