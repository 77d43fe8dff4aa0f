package api

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net"
	"net/http"
	"reflect"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/getkin/kin-openapi/openapi3filter"
	"github.com/getkin/kin-openapi/routers"
	"github.com/getkin/kin-openapi/routers/gorillamux"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/valyala/fasthttp/fasthttputil"

	"github.com/lubdub-io/lubdub/api/httpapi"
	"github.com/lubdub-io/lubdub/api/token"
	v1 "github.com/lubdub-io/lubdub/sdk/go/v1"
	"github.com/lubdub-io/lubdub/tracker/model"
)

// env is a server on a listener in memory with a client, a fake Tracker and a clock in the test's hand. Every
// exchange through do is held against openapi.json.
type env struct {
	t      *testing.T
	s      *Server
	fake   *fakeTracker
	keys   *token.Keyring
	ln     *fasthttputil.InmemoryListener
	client *http.Client
	log    *syncBuffer
	reg    *prometheus.Registry

	readClock func() time.Time // nil: clock

	badItems bool // do not hold requests that were taken against openapi.json, whose validator cannot see why they were

	mu    sync.Mutex
	clock time.Time
}

func newEnv(t *testing.T, configure ...func(*Config)) *env {
	t.Helper()
	e := &env{t: t, fake: &fakeTracker{}, keys: testKeys(t), ln: fasthttputil.NewInmemoryListener(), log: &syncBuffer{},
		reg: prometheus.NewRegistry(), clock: fakeTime}
	cfg := Config{
		Services: e.fake.services(), Keys: e.keys, PublicURL: "https://api.arco.dev", Version: "1.2.3",
		Logger: slog.New(slog.NewTextHandler(e.log, nil)), Registerer: e.reg, TokenCacheSize: 1024, MaxConns: 1 << 14, Now: e.now,
		// A deadline that passes is a data race in connections in memory.
		ReadTimeout: time.Hour, WriteTimeout: time.Hour, IdleTimeout: time.Hour,
	}
	for _, f := range configure {
		f(&cfg)
	}
	var err error
	if e.s, err = New(cfg); err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- e.s.Serve(e.ln) }()
	e.client = &http.Client{
		Transport: &http.Transport{
			DialContext:        func(context.Context, string, string) (net.Conn, error) { return e.ln.Dial() },
			DisableCompression: true,
		},
	}
	t.Cleanup(func() {
		e.hangUp()
		if err := e.s.Shutdown(context.Background()); err != nil {
			t.Error(err)
		}
		if err := <-served; err != nil {
			t.Error(err)
		}
	})
	return e
}

// onLoop has the client talk to a real socket from here on, whose beats an event loop serves.
func (e *env) onLoop() {
	addr := e.listen()
	e.client.CloseIdleConnections()
	e.client.Transport.(*http.Transport).DialContext = func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "tcp", addr)
	}
}

// hangUp closes the client's connections and lets the server see it: whom Shutdown finds it waits for in steps of 100 ms.
func (e *env) hangUp() {
	e.client.CloseIdleConnections()
	for range 1000 {
		if e.s.http.GetOpenConnectionsCount() <= 0 {
			return
		}
		runtime.Gosched()
	}
}

func testKeys(t testing.TB) *token.Keyring {
	t.Helper()
	k, err := token.NewKeyring(token.Key{ID: "k1", Secret: []byte(strings.Repeat("1", token.MinKeyBytes))})
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func (e *env) now() time.Time {
	if e.readClock != nil {
		return e.readClock()
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.clock
}

func (e *env) advance(d time.Duration) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.clock = e.clock.Add(d)
}

// The roles, for tests that call a token `token`.
const (
	roleViewer     = token.RoleViewer
	roleSubmitter  = token.RoleSubmitter
	roleOperator   = token.RoleOperator
	roleDispatcher = token.RoleDispatcher
	roleEnroll     = token.RoleEnroll
	roleAdmin      = token.RoleAdmin
)

// control makes a control token of the scope acme/prod.
func (e *env) control(role token.Role) string { return e.controlFor(role, "acme", "prod") }

func (e *env) controlFor(role token.Role, tenant, workspace string) string {
	e.t.Helper()
	return e.controlOf(token.Control{Role: role, Tenant: tenant, Workspace: workspace, TTL: time.Hour})
}

// controlOf creates a control token, for the scope acme/prod unless it names another.
func (e *env) controlOf(c token.Control) string {
	e.t.Helper()
	c.Tenant, c.Workspace = cmp.Or(c.Tenant, "acme"), cmp.Or(c.Workspace, "prod")
	text, _, err := e.keys.MintControl(c, e.now())
	if err != nil {
		e.t.Fatal(err)
	}
	return text
}

func testAttempt() *model.Attempt {
	return &model.Attempt{
		Scope: model.Scope{Tenant: "acme", Workspace: "prod"}, TaskID: "task_1", RunID: "run_1", Number: 1, Fence: "f3nc",
		Timeout: 90 * time.Second, Interval: 30 * time.Second, IssuedAt: fakeTime,
	}
}

// task makes the task token of attempt 1 of acme/prod/task_1, as changed.
func (e *env) task(change ...func(*model.Attempt)) string {
	e.t.Helper()
	a := testAttempt()
	for _, f := range change {
		f(a)
	}
	token, _, err := httpapi.MintTask(e.keys, a, time.Hour, true)
	if err != nil {
		e.t.Fatal(err)
	}
	return token
}

type answer struct {
	t      *testing.T
	status int
	header http.Header
	body   string
}

// do sends a request. token "" sends no Authorization header.
func (e *env) do(method, path, token, body string, headers ...string) *answer {
	e.t.Helper()
	req, err := http.NewRequest(method, "http://lubdub.test"+path, strings.NewReader(body))
	if err != nil {
		e.t.Fatal(err)
	}
	if body == "" {
		req.Body = nil
		req.ContentLength = 0
	} else {
		req.Header.Set("Content-Type", "application/json")
	}
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	for i := 0; i+1 < len(headers); i += 2 {
		if headers[i+1] == "" {
			req.Header.Del(headers[i])
		} else {
			req.Header.Set(headers[i], headers[i+1])
		}
	}
	res, err := e.client.Do(req)
	if err != nil {
		e.t.Fatal(err)
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		e.t.Fatal(err)
	}
	a := &answer{t: e.t, status: res.StatusCode, header: res.Header, body: string(b)}
	checkExchange(e.t, req, body, a, e.badItems)
	return a
}

var openAPIRouter = sync.OnceValues(func() (routers.Router, error) {
	doc, err := loadDoc()
	if err != nil {
		return nil, err
	}
	return gorillamux.NewRouter(doc)
})

// checkExchange holds an exchange against openapi.json: the answer always, the request when it was taken.
func checkExchange(t *testing.T, req *http.Request, body string, a *answer, badItems bool) {
	t.Helper()
	if a.header.Get("X-Request-Id") == "" {
		t.Errorf("%s %s: no X-Request-Id", req.Method, req.URL)
	}
	if got := a.header.Get("Content-Type"); got != "application/json" {
		t.Errorf("%s %s: Content-Type %q", req.Method, req.URL, got)
	}
	if after, _ := strconv.Atoi(a.header.Get("Retry-After")); (a.status == http.StatusServiceUnavailable ||
		a.status == http.StatusTooManyRequests) && after < 1 {
		t.Errorf("%s %s: %d with Retry-After %q", req.Method, req.URL, a.status, a.header.Get("Retry-After"))
	}
	router, err := openAPIRouter()
	if err != nil {
		t.Fatal(err)
	}
	again := req.Clone(context.Background())
	again.Body = io.NopCloser(strings.NewReader(body))
	route, params, err := router.FindRoute(again)
	if err != nil {
		if req.Method != http.MethodHead && a.status != http.StatusNotFound && a.status != http.StatusMethodNotAllowed &&
			a.status != http.StatusBadRequest {
			t.Errorf("%s %s: %d, but openapi.json has no such path", req.Method, req.URL, a.status)
		}
		return
	}
	input := &openapi3filter.RequestValidationInput{
		Request: again, PathParams: params, Route: route,
		Options: &openapi3filter.Options{AuthenticationFunc: openapi3filter.NoopAuthenticationFunc, IncludeResponseStatus: true,
			MultiError: true, ExcludeRequestBody: true, ExcludeResponseBody: true}, // bodies: checkBody, which is ten times as fast
	}
	if a.status < 300 && !badItems {
		err := openapi3filter.ValidateRequest(context.Background(), input)
		if err == nil && body != "" && route.Operation.RequestBody != nil {
			err = checkBody(placeOf(route.Path, req.Method, "requestBody"), body)
		}
		if err != nil {
			t.Errorf("%s %s was taken, but openapi.json refuses it: %v", req.Method, req.URL, err)
		}
	}
	if req.Method == http.MethodHead {
		return
	}
	err = openapi3filter.ValidateResponse(context.Background(), &openapi3filter.ResponseValidationInput{
		RequestValidationInput: input, Status: a.status, Header: a.header, Options: input.Options,
	})
	if err == nil {
		err = checkBody(placeOfAnswer(route.Path, req.Method, a.status, route.Operation.Responses), a.body)
	}
	if err != nil {
		t.Errorf("%s %s answered %d against openapi.json: %v\n%s", req.Method, req.URL, a.status, err, a.body)
	}
}

// want fails the test unless the answer has the status.
func (a *answer) want(status int) *answer {
	a.t.Helper()
	if a.status != status {
		a.t.Fatalf("status %d, want %d: %s", a.status, status, a.body)
	}
	return a
}

// refused fails the test unless the answer is that refusal with a message.
func (a *answer) refused(status int, code string) *v1.Error {
	a.t.Helper()
	a.want(status)
	var e v1.Error
	if err := json.Unmarshal([]byte(a.body), &e); err != nil {
		a.t.Fatal(err)
	}
	if e.Error != code || e.Message == "" {
		a.t.Fatalf("got %s, want the code %s and a message", a.body, code)
	}
	return &e
}

// contains fails the test unless the answer has every field of the JSON object with its value.
func (a *answer) contains(object string) *answer {
	a.t.Helper()
	var got, want map[string]any
	if err := json.Unmarshal([]byte(a.body), &got); err != nil {
		a.t.Fatalf("%v: %s", err, a.body)
	}
	if err := json.Unmarshal([]byte(object), &want); err != nil {
		a.t.Fatal(err)
	}
	for k, v := range want {
		g, there := got[k]
		if at, err := time.Parse(time.RFC3339, asString(v)); err == nil {
			if gt, err := time.Parse(time.RFC3339, asString(g)); err == nil && gt.Equal(at) {
				continue
			}
		}
		if !there || !reflect.DeepEqual(g, v) {
			a.t.Errorf("%s is %v, want %v in %s", k, g, v, a.body)
		}
	}
	return a
}

func asString(v any) string {
	s, _ := v.(string)
	return s
}

func (a *answer) into(v any) {
	a.t.Helper()
	if err := json.Unmarshal([]byte(a.body), v); err != nil {
		a.t.Fatalf("%v: %s", err, a.body)
	}
}

// raw sends bytes on a new connection and returns everything received until the server closes it.
func (e *env) raw(request string) string {
	e.t.Helper()
	c, err := e.ln.Dial()
	if err != nil {
		e.t.Fatal(err)
	}
	defer c.Close()
	if _, err := io.WriteString(c, strings.ReplaceAll(request, "\n", "\r\n")); err != nil {
		e.t.Fatal(err)
	}
	b, err := io.ReadAll(c)
	if err != nil {
		e.t.Fatal(err)
	}
	return string(b)
}

type syncBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *syncBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *syncBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

func contains(s string, parts ...string) bool {
	for _, p := range parts {
		if !strings.Contains(s, p) {
			return false
		}
	}
	return true
}

// rawUntilRefused is raw for a request that the server need not read to its end.
func (e *env) rawUntilRefused(request string) string {
	e.t.Helper()
	c, err := e.ln.Dial()
	if err != nil {
		e.t.Fatal(err)
	}
	defer c.Close()
	go func() { _, _ = io.WriteString(c, strings.ReplaceAll(request, "\n", "\r\n")) }() // ends when c is closed
	b, _ := io.ReadAll(c)
	return string(b)
}

// until waits for the effect of another goroutine; what describes the current state.
func until(t *testing.T, good func() bool, what func() string) {
	t.Helper()
	for deadline := time.Now().Add(patience); !good(); runtime.Gosched() {
		if time.Now().After(deadline) {
			t.Fatal(what())
		}
	}
}

// testAPI is the API of a server that serves nothing, and routes are its routes.
var (
	testAPI = func() *httpapi.API {
		k, err := token.NewKeyring(token.Key{ID: "k1", Secret: []byte(strings.Repeat("1", token.MinKeyBytes))})
		if err != nil {
			panic(err)
		}
		s, err := New(Config{Services: (&fakeTracker{}).services(), Keys: k, PublicURL: "http://x", TokenCacheSize: 1, MaxConns: 1})
		if err != nil {
			panic(err)
		}
		return s.api
	}()
	routes = testAPI.Routes()
)
