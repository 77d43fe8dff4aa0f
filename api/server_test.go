package api

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/lubdub-io/lubdub/tracker/beats"
)

func TestHealthPages(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	calls := 0
	e.fake.ready = func() error { calls++; return nil }
	e.do("GET", "/livez", "", "").want(200).contains(`{"status":"ok"}`)
	if calls != 0 {
		t.Error("the liveness endpoint queried the store")
	}
	e.do("GET", "/readyz", "", "").want(200).contains(`{"status":"ok"}`)
	e.do("GET", "/healthz", "", "").want(200)
	e.do("GET", "/version", "", "").want(200).contains(`{"name":"lubdub","version":"1.2.3"}`)
	var doc struct{ OpenAPI string }
	e.do("GET", "/openapi.json", "", "").want(200).into(&doc)
	if doc.OpenAPI != "3.1.0" {
		t.Errorf("got %+v", doc)
	}
	if a := e.do("HEAD", "/livez", "", "").want(200); a.body != "" {
		t.Errorf("a HEAD with the body %q", a.body)
	}
}

// All replicas share the store's trouble: a balancer that stopped sending traffic for it would cut off what still works.
func TestReadinessReportsTheStoreAndDoesNotFailForIt(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	e.fake.ready = func() error { return errors.New("dial tcp: secret") }
	for _, path := range []string{"/readyz", "/healthz"} {
		if a := e.do("GET", path, "", "").want(200).contains(`{"status":"degraded"}`); strings.Contains(a.body, "secret") ||
			!strings.Contains(a.body, `"next":"From this server's host, find out which Redis`) {
			t.Errorf("the response reveals the cause, or lacks the remedy: %s", a.body)
		}
	}
	e.do("GET", "/livez", "", "").want(200)
}

// A store that hangs does not make the health endpoints hang, and gets one check at a time, however many clients poll them.
func TestReadinessDoesNotWaitForAStoreThatHangs(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	thaw := make(chan struct{})
	var calls atomic.Int64
	e.fake.ready = func() error { calls.Add(1); <-thaw; return nil }
	var all sync.WaitGroup
	for range 20 {
		all.Go(func() { e.do("GET", "/readyz", "", "").want(200).contains(`{"status":"degraded"}`) })
	}
	answered := make(chan struct{})
	go func() { all.Wait(); close(answered) }()
	select {
	case <-answered:
	case <-time.After(patience):
		t.Error("the pages wait for as long as the store hangs")
	}
	if n := calls.Load(); n != 1 {
		t.Errorf("the store was checked %d times", n)
	}
	close(thaw)
	<-answered
}

func TestDrainingSwitchesReadinessOffOnly(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	e.s.SetDraining()
	if a := e.do("GET", "/readyz", "", "").want(503).contains(`{"status":"draining"}`); a.header.Get("Retry-After") != "1" {
		t.Errorf("Retry-After: %q", a.header.Get("Retry-After"))
	}
	e.do("GET", "/livez", "", "").want(200)
	e.do("POST", "/v1/tasks/task_1/heartbeat", e.task(), `{"attempt":1}`).want(200)
}

func TestShutdownLetsRequestsEnd(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	begun, finish := make(chan struct{}), make(chan struct{})
	e.fake.beat = func(*beats.Beat) { close(begun); <-finish }
	token := e.task()
	got := make(chan *answer, 1)
	go func() { got <- e.do("POST", "/v1/tasks/task_1/heartbeat", token, `{"attempt":1}`) }()
	<-begun
	stopped := make(chan error, 1)
	go func() { stopped <- e.s.Shutdown(context.Background()) }()
	select {
	case err := <-stopped:
		t.Fatalf("shut down with a request under way: %v", err)
	default:
	}
	close(finish)
	(<-got).want(200)
	if err := <-stopped; err != nil {
		t.Error(err)
	}
}

func TestShutdownReturnsWhenItsContextEnds(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	begun, finish := make(chan struct{}), make(chan struct{})
	e.fake.beat = func(*beats.Beat) { close(begun); <-finish }
	token := e.task()
	got := make(chan *answer, 1)
	go func() { got <- e.do("POST", "/v1/tasks/task_1/heartbeat", token, `{"attempt":1}`) }()
	<-begun
	over, cancel := context.WithCancel(context.Background())
	cancel()
	if err := e.s.Shutdown(over); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	close(finish)
	(<-got).want(200)
}

// Serve is not held up by requests for which the shutdown did not wait; they end as usual.
func TestServeReturnsWhenTheShutdownTimesOut(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	begun, finish := make(chan struct{}), make(chan struct{})
	e.fake.ready = func() error { close(begun); <-finish; return nil }
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- e.s.Serve(ln) }()
	c := &client{t, dial(t, ln.Addr().String()), nil}
	c.in = bufio.NewReader(c.Conn)
	c.send("GET /readyz HTTP/1.1\nHost: x\n\n")
	<-begun
	over, cancel := context.WithCancel(context.Background())
	cancel()
	if err := e.s.Shutdown(over); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	if err := <-served; err != nil {
		t.Error(err)
	}
	close(finish)
	if status, _ := c.status(); status == 0 {
		t.Error("no answer")
	}
}

// A connection is refused with an explanation when no other gives way.
func TestTooManyConnectionsAreRefused(t *testing.T) {
	t.Parallel()
	e := newEnv(t, func(c *Config) { c.MaxConns = 1 })
	begun, finish := make(chan struct{}, 2), make(chan struct{})
	defer close(finish)
	e.fake.beat = func(*beats.Beat) { begun <- struct{}{}; <-finish }
	dial := func() net.Conn {
		c, err := e.ln.Dial()
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close() })
		return c
	}
	for range 2 { // one that may stay, and one in the reserve
		if _, err := io.WriteString(dial(), strings.ReplaceAll(e.beatOf(), "\n", "\r\n")); err != nil {
			t.Fatal(err)
		}
		<-begun
	}
	b, err := io.ReadAll(dial())
	if err != nil {
		t.Fatal(err)
	}
	if got := string(b); !contains(got, "HTTP/1.1 503", "Retry-After: 1", `"error":"overloaded"`, "X-Request-Id: ", "Connection: close") {
		t.Errorf("got %s", got)
	}
}

func TestMetricsHaveNoIDs(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	e.do("POST", "/v1/tasks/task_1/heartbeat", e.task(), `{"attempt":1}`).want(200)
	e.do("POST", "/v1/tasks/task_1/heartbeat", e.task(), `{"attempt":1}`).want(200)
	e.do("POST", "/v1/tasks/task_1/heartbeat", e.task(), `{}`).want(400)
	e.do("POST", "/v1/heartbeats", "", `{"heartbeats":[{"taskId":"task_1","attempt":1}]}`).want(200)
	e.do("GET", "/v1/tasks/task_1", e.control(roleViewer), "").want(200)
	e.do("GET", "/nowhere/task_1", "", "").want(404)
	for name, want := range map[string]float64{
		"lubdub_http_beats_accepted_total": 2, "lubdub_http_tokens_refused_total": 1,
		"lubdub_http_token_cache_hits_total": 2, "lubdub_http_token_cache_misses_total": 2, "lubdub_http_token_cache_entries": 2,
	} {
		if got := e.metric(name); got != want {
			t.Errorf("%s is %v, want %v", name, got, want)
		}
	}
	want := `
# HELP lubdub_http_beats_refused_total Heartbeats refused, by kind (task: alone or in batches, where a batch that is refused whole counts as one; worker) and error code.
# TYPE lubdub_http_beats_refused_total counter
lubdub_http_beats_refused_total{code="invalid_request",kind="task"} 1
lubdub_http_beats_refused_total{code="overloaded",kind="task"} 0
lubdub_http_beats_refused_total{code="overloaded",kind="worker"} 0
lubdub_http_beats_refused_total{code="store_unavailable",kind="task"} 0
lubdub_http_beats_refused_total{code="store_unavailable",kind="worker"} 0
lubdub_http_beats_refused_total{code="unauthorized",kind="task"} 1
`
	if err := testutil.GatherAndCompare(e.reg, strings.NewReader(want), "lubdub_http_beats_refused_total"); err != nil {
		t.Error(err)
	}
	families, err := e.reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		for _, m := range f.Metric {
			for _, l := range m.Label {
				if strings.Contains(l.GetValue(), "task_1") {
					t.Errorf("%s has the label %s=%s", f.GetName(), l.GetName(), l.GetValue())
				}
			}
		}
	}
	if problems, err := testutil.GatherAndLint(e.reg); err != nil || len(problems) > 0 {
		t.Errorf("%v %v", problems, err)
	}
}

// metric returns the value of a counter or gauge without labels.
func (e *env) metric(name string) float64 {
	e.t.Helper()
	families, err := e.reg.Gather()
	if err != nil {
		e.t.Fatal(err)
	}
	for _, f := range families {
		if f.GetName() == name {
			sum := 0.0
			for _, m := range f.Metric {
				sum += m.GetCounter().GetValue() + m.GetGauge().GetValue()
			}
			return sum
		}
	}
	e.t.Fatalf("no metric %s", name)
	return 0
}

func TestConfigIsChecked(t *testing.T) {
	t.Parallel()
	good := Config{Services: (&fakeTracker{}).services(), Keys: testKeys(t), PublicURL: "http://127.0.0.1:8080/",
		TokenCacheSize: 1024, MaxConns: 1600}
	s, err := New(good)
	if err != nil {
		t.Fatal(err)
	}
	if s.cfg.PublicURL != "http://127.0.0.1:8080" || s.cfg.MaxControl != 100 || s.cfg.MaxStreams != 800 || s.cfg.ReadTimeout == 0 ||
		s.cfg.IdleTimeout == 0 || s.http.MaxRequestBodySize == 0 {
		t.Errorf("defaults are missing: %+v", s.cfg)
	}
	for name, change := range map[string]func(*Config){
		"services": func(c *Config) { c.Services = Services{} }, "keys": func(c *Config) { c.Keys = nil },
		"url":   func(c *Config) { c.PublicURL = "127.0.0.1:8080" },
		"query": func(c *Config) { c.PublicURL = "http://x?y" },
		"conns": func(c *Config) { c.MaxConns = 0 }, "streams": func(c *Config) { c.MaxStreams = -1 },
		"timeout": func(c *Config) { c.ReadTimeout = -1 },
	} {
		c := good
		change(&c)
		if _, err := New(c); err == nil {
			t.Errorf("%s: taken", name)
		}
	}
}

// A server that is stopped before it has begun to serve does not begin then: its caller would wait for ever.
func TestAStoppedServerDoesNotServe(t *testing.T) {
	e := newEnv(t) // not parallel to tests that could listen on the same port just then
	if err := e.s.Shutdown(context.Background()); err != nil {
		t.Fatal(err)
	}
	for name, serve := range map[string]func(net.Listener) error{"Serve": e.s.Serve, "ServeAdmin": e.s.ServeAdmin} {
		ln, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		if err := serve(ln); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if c, err := net.Dial("tcp", ln.Addr().String()); err == nil {
			_ = c.Close()
			t.Errorf("%s: it still listens", name)
		}
	}
}
