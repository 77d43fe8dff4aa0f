package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/lubdub-io/lubdub/internal/redistest"
	v1 "github.com/lubdub-io/lubdub/sdk/go/v1"
)

var withKey = []string{"LUBDUB_SIGNING_KEYS=" + testKey}

// anyPort are the flags that keep tests out of each other's way.
var anyPort = []string{"--listen", "127.0.0.1:0", "--admin-listen", "127.0.0.1:0"}

func serveEmbedded(t *testing.T, more ...string) *running {
	t.Helper()
	return launch(t, withKey, append(append([]string{"serve", "--redis", "embedded"}, anyPort...), more...)...)
}

func adminToken(t *testing.T) string {
	t.Helper()
	code, token, stderr := command(withKey, "token", "--role", "admin")
	if code != exitOK {
		t.Fatal(stderr)
	}
	return strings.TrimSpace(token)
}

// quickTask is soon dead, and not before a busy machine has started it.
const quickTask = `{"heartbeatIntervalMs":1000,"heartbeatTimeoutMs":3000}`

// createRunning creates a task and starts it; no worker will beat for it.
func createRunning(t *testing.T, base string, task ...string) v1.TaskEnvelope {
	t.Helper()
	status, body := request("POST", base+"/v1/tasks", adminToken(t), append(task, quickTask)[0])
	var e v1.TaskEnvelope
	if err := json.Unmarshal([]byte(body), &e); status != http.StatusCreated || err != nil {
		t.Fatal(status, body, err)
	}
	if status, body := request("POST", base+"/v1/tasks/"+e.TaskID+"/started", e.TaskToken, `{"attempt":1}`); status != http.StatusOK {
		t.Fatal(status, body)
	}
	return e
}

func state(t *testing.T, base, id string) v1.Task {
	t.Helper()
	var task v1.Task
	status, body := request("GET", base+"/v1/tasks/"+id, adminToken(t), "")
	if err := json.Unmarshal([]byte(body), &task); status != http.StatusOK || err != nil {
		t.Fatal(status, body, err)
	}
	return task
}

func TestServeAndStop(t *testing.T) {
	t.Parallel()
	r := serveEmbedded(t)
	line := r.line("listening")
	api, admin := apiPattern.FindStringSubmatch(line)[1], adminPattern.FindStringSubmatch(line)[1]
	if want := fmt.Sprintf("lubdub 1.2.3 listening on %s (admin %s, roles api,sweeper, redis embedded)", api, admin); line != want {
		t.Errorf("%q, want %q", line, want)
	}
	for _, page := range []string{api + "/readyz", admin + "/readyz", admin + "/livez"} {
		if status, body := request("GET", page, "", ""); status != http.StatusOK {
			t.Errorf("%s: %d %s", page, status, body)
		}
	}
	if code, stdout, stderr := command(nil, "health", "--url", admin+"/readyz"); code != exitOK || stdout != "ok\n" {
		t.Error(code, stdout, stderr)
	}
	for _, base := range []string{api, api + "/", admin, admin + "/healthz", api + "/livez"} {
		if code, stdout, stderr := command(nil, "health", "--url", base); code != exitOK || stdout != "ok\n" {
			t.Error(base, code, stdout, stderr)
		}
	}
	if code, _, stderr := command(nil, "health", "--url", api+"/v1"); code != exitFailed || !strings.Contains(stderr, api+"/v1/readyz: 404") {
		t.Error(code, stderr)
	}
	if code, stdout, stderr := command([]string{"LUBDUB_ADMIN_LISTEN=" + strings.TrimPrefix(admin, "http://")}, "health"); code != exitOK {
		t.Error(code, stdout, stderr)
	}
	if _, metrics := request("GET", admin+"/metrics", "", ""); !strings.Contains(metrics, "lubdub_") ||
		!strings.Contains(metrics, "go_goroutines") {
		t.Errorf("metrics: %.300s", metrics)
	}
	e := createRunning(t, api)
	if e.CallbackBaseURL != api {
		t.Errorf("envelopes carry %s, and it listens on %s", e.CallbackBaseURL, api)
	}
	until(t, "the silent task is failed", func() bool { return state(t, api, e.TaskID).State == v1.Failed })

	idle := half(t, api, quickTask) // a connection that is kept alive must not hold the stop up
	if _, err := io.WriteString(idle, quickTask[len(quickTask)-1:]); err != nil {
		t.Fatal(err)
	}
	if res, err := http.ReadResponse(bufio.NewReader(idle), nil); err != nil || res.StatusCode != http.StatusCreated {
		t.Fatalf("%+v %v", res, err)
	}
	r.signal(syscall.SIGTERM)
	if lines := r.rest(); r.code != exitOK || len(lines) != 0 {
		t.Errorf("it ended with %d and printed %q", r.code, lines)
	}
	for _, want := range []string{"embedded Redis: only to try Lubdub", "msg=stopping", "msg=stopped"} {
		if !strings.Contains(r.errs.String(), want) {
			t.Errorf("the log lacks %q:\n%s", want, r.errs)
		}
	}
}

// While it drains it serves, and reports that it is not ready; a second signal ends it at once.
func TestDrainAndSecondSignal(t *testing.T) {
	r := serveEmbedded(t, "--drain-delay", "10m")
	api, admin := r.urls()
	r.signal(syscall.SIGINT)
	until(t, "readiness is off", func() bool {
		status, body := request("GET", api+"/readyz", "", "")
		return status == http.StatusServiceUnavailable && strings.Contains(body, "draining")
	})
	if status, _ := request("GET", admin+"/readyz", "", ""); status != http.StatusServiceUnavailable {
		t.Errorf("the admin listener returns %d", status)
	}
	if status, _ := request("GET", api+"/livez", "", ""); status != http.StatusOK {
		t.Errorf("it is not live any more: %d", status)
	}
	if code, _, stderr := command(nil, "health", "--url", admin+"/readyz"); code != exitFailed || !strings.Contains(stderr, "draining") {
		t.Error(code, stderr)
	}
	createRunning(t, api)
	r.signal(syscall.SIGINT)
	if code := r.wait(); code != exitFailed || !strings.Contains(r.errs.String(), "interrupt again: stopping at once") {
		t.Errorf("it ended with %d: %s", code, r.errs)
	}
}

// half sends a request but for the end of its body.
func half(t *testing.T, base, body string) net.Conn {
	t.Helper()
	u, err := url.Parse(base)
	if err != nil {
		t.Fatal(err)
	}
	c, err := net.Dial("tcp", u.Host)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	_, err = fmt.Fprintf(c, "POST /v1/tasks HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\nContent-Type: "+
		"application/json\r\nContent-Length: %d\r\n\r\n%s",
		adminToken(t), len(body), body[:len(body)-1])
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// A request that is under way when the signal comes gets its answer, and new ones are turned away.
func TestStopAnswersWhatIsUnderWay(t *testing.T) {
	r := serveEmbedded(t)
	api, _ := r.urls()
	c := half(t, api, quickTask)
	// The server must have begun with the request, else it would count as idle. These two came later and are answered.
	createRunning(t, api)
	r.signal(syscall.SIGTERM)
	until(t, "new connections are refused", func() bool { status, _ := request("GET", api+"/livez", "", ""); return status == 0 })
	if _, err := io.WriteString(c, quickTask[len(quickTask)-1:]); err != nil {
		t.Fatal(err)
	}
	res, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil || res.StatusCode != http.StatusCreated {
		t.Fatalf("%+v %v", res, err)
	}
	defer res.Body.Close()
	if code := r.wait(); code != exitOK {
		t.Errorf("it ended with %d: %s", code, r.errs)
	}
}

// If Redis hangs, requests and background work that wait for it are abandoned at the end.
func TestStopHasATimeout(t *testing.T) {
	t.Parallel()
	redis := redistest.StartServer(t)
	r := launch(t, withKey, append([]string{"serve", "--redis", redis.URL(), "--redis-timeout", "1m"}, anyPort...)...)
	api, admin := r.urls()
	token := adminToken(t)
	if err := redis.Freeze(); err != nil {
		t.Fatal(err)
	}
	go func() { _, _ = request("POST", api+"/v1/tasks", token, quickTask) }() // until the process ends
	until(t, "the request is under way", func() bool {
		_, page := request("GET", admin+"/metrics", "", "")
		return strings.Contains(page, "\nlubdub_http_requests_in_flight 1\n")
	})
	r.signal(syscall.SIGTERM)
	code := r.wait() // Redis stays frozen
	for _, held := range []string{"requests were still running 20s after the stop began", "had not ended within 20s"} {
		if code != exitFailed || !strings.Contains(r.errs.String(), held) {
			t.Errorf("it ended with %d, without logging that %s: %s", code, held, r.errs)
		}
	}
}

// One role in each process, and a Redis between them.
func TestRolesInSeparateProcesses(t *testing.T) {
	t.Parallel()
	redis := redistest.StartServer(t)
	u, _ := url.Parse(redis.URL())
	password, _ := u.User.Password()
	args := append([]string{"serve", "--redis", redis.URL(), "--shards", "2"}, anyPort...)

	front := launch(t, withKey, append(args, "--roles", "api", "--log-format", "json")...)
	api, _ := front.urls()
	e := createRunning(t, api)

	back := launch(t, nil, append(args, "--roles", "sweeper")...) // and it needs no key
	line := back.line("sweeping")
	if strings.Contains(line, password) || !strings.Contains(line, "redis://"+u.User.Username()+":xxxxx@") ||
		!strings.Contains(line, "roles sweeper,") || strings.Contains(line, "listening") {
		t.Errorf("%q", line)
	}
	admin := adminPattern.FindStringSubmatch(line)[1]
	for _, page := range []string{"/readyz", "/livez", "/metrics"} {
		if status, body := request("GET", admin+page, "", ""); status != http.StatusOK {
			t.Errorf("%s: %d %s", page, status, body)
		}
	}
	if status, _ := request("POST", admin+"/v1/tasks", adminToken(t), quickTask); status != http.StatusMethodNotAllowed &&
		status != http.StatusNotFound {
		t.Errorf("a sweeper answers the API: %d", status)
	}
	until(t, "the silent task is failed", func() bool { return state(t, api, e.TaskID).State == v1.Failed })

	for _, r := range []*running{back, front} {
		r.signal(syscall.SIGTERM)
		if code := r.wait(); code != exitOK {
			t.Errorf("it ended with %d: %s", code, r.errs)
		}
		if strings.Contains(r.errs.String(), password) {
			t.Errorf("the log shows the password: %s", r.errs)
		}
	}
	for l := range strings.Lines(front.errs.String()) {
		if !json.Valid([]byte(l)) {
			t.Errorf("not JSON: %s", l)
		}
	}

	other := launch(t, withKey, append(append([]string{"serve", "--redis", redis.URL(), "--shards", "3"}, anyPort...), "--roles",
		"sweeper")...)
	if code := other.wait(); code != exitFailed || !strings.Contains(other.errs.String(), "was first started with 2 shards") ||
		strings.Contains(other.errs.String(), password) {
		t.Errorf("it ended with %d: %s", code, other.errs)
	}
}

func TestRefusesToStart(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	for _, c := range []struct {
		name string
		args []string
		want string
	}{
		{"port in use", []string{"--redis", "embedded", "--listen", taken.Addr().String(), "--admin-listen", "127.0.0.1:0"},
			"is in use already: stop what listens there (another lubdub?), or choose another address with --listen, such as --listen 127.0.0.1:0"},
		{"admin port in use", []string{"--redis", "embedded", "--listen", "127.0.0.1:0", "--admin-listen", taken.Addr().String()},
			"choose another address with --admin-listen"},
		{"no such host", []string{"--redis", "embedded", "--listen", "nowhere.invalid:1", "--admin-listen", "127.0.0.1:0"},
			"--listen nowhere.invalid:1"},
		{"no Redis", append([]string{"--redis", "redis://bob:geheim@127.0.0.1:1/0"}, anyPort...), "redis://bob:***@127.0.0.1:1/0"},
		{"bad Redis URL", append([]string{"--redis", "redis://bob:ge%zzheim@127.0.0.1:1/0"}, anyPort...), "127.0.0.1:1/0"},
	} {
		t.Run(c.name, func(t *testing.T) {
			code, stdout, stderr := command(withKey, append([]string{"serve"}, c.args...)...)
			if code != exitFailed || stdout != "" || !strings.Contains(stderr, c.want) || strings.Contains(stderr, "heim") {
				t.Errorf("%d %q\n%s", code, stdout, stderr)
			}
		})
	}
}

func TestNothingOutlivesTheProcess(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent(), fasthttpCleaner, fasthttpClock)
	defer one.CloseIdleConnections()
	var log lockedBuffer
	cfg := loaded(t, append([]string{"LUBDUB_REDIS=embedded", "LUBDUB_LISTEN=127.0.0.1:0", "LUBDUB_ADMIN_LISTEN=127.0.0.1:0"}, withKey...))
	keys, err := keyring(cfg)
	if err != nil {
		t.Fatal(err)
	}
	p, err := open(context.Background(), cfg, keys, newLogger(&log, &cfg.Config))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), long)
	defer cancel()
	ready := make(chan struct{})
	ended := make(chan error, 1)
	go func() { ended <- p.run(ctx, func() { close(ready) }) }()
	<-ready
	createRunning(t, p.apiURL())
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if ctx.Err() == context.DeadlineExceeded {
		t.Error("too slow")
	}
}

// A signal can come before the servers have begun with their listeners.
func TestStopAtOnce(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent(), fasthttpCleaner, fasthttpClock)
	cfg := loaded(t, append([]string{"LUBDUB_REDIS=embedded", "LUBDUB_LISTEN=127.0.0.1:0", "LUBDUB_ADMIN_LISTEN=127.0.0.1:0"}, withKey...))
	keys, _ := keyring(cfg)
	for range 5 {
		p, err := open(context.Background(), cfg, keys, newLogger(io.Discard, &cfg.Config))
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		began := time.Now()
		if err := p.run(ctx, func() {}); err != nil {
			t.Error(err)
		}
		if time.Since(began) > shutdownTimeout {
			t.Error("the stop ran into its timeout")
		}
	}
}

// A sweeper that does not end takes no time from what has to reach Redis after it.
func TestASweeperThatHangsLosesNoHeartbeats(t *testing.T) {
	t.Parallel()
	cfg := loaded(t, append([]string{"LUBDUB_REDIS=embedded", "LUBDUB_LISTEN=127.0.0.1:0", "LUBDUB_ADMIN_LISTEN=127.0.0.1:0"},
		withKey...))
	keys, _ := keyring(cfg)
	p, err := open(t.Context(), cfg, keys, newLogger(io.Discard, &cfg.Config))
	if err != nil {
		t.Fatal(err)
	}
	p.shutdownTimeout = 2 * time.Second
	ends := func(limit context.Context) error { return limit.Err() }
	hangs := func(limit context.Context) error {
		<-limit.Done()
		return errors.New("the sweeper had not ended")
	}
	err = p.stop(t.Context(), &services{
		admin: ends, api: ends, keepTime: ends, revocations: ends, provider: ends, sweeper: hangs, stats: ends, tracker: ends,
	}, false)
	if err == nil || strings.Count(err.Error(), "\n") > 0 || !strings.Contains(err.Error(), "sweeper") {
		t.Errorf("it stopped with %v", err)
	}
}
