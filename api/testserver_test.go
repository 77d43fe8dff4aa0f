package api

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/lubdub-io/lubdub/api/httpapi"
	"github.com/lubdub-io/lubdub/api/internal/conn"
	"github.com/lubdub-io/lubdub/internal/testenv"
	"github.com/lubdub-io/lubdub/tracker/beats"
	"github.com/lubdub-io/lubdub/tracker/model"
	"github.com/lubdub-io/lubdub/tracker/workers"
)

// client is one connection, held by the test.
type client struct {
	t *testing.T
	net.Conn
	in *bufio.Reader
}

// testServer is a server on a real socket.
type testServer struct {
	*env
	addr string
}

func newTestServer(t *testing.T, configure ...func(*Config)) *testServer {
	t.Helper()
	e := newEnv(t, configure...)
	return &testServer{e, e.listen()}
}

func (d *testServer) dial() *client {
	d.t.Helper()
	c := dial(d.t, d.addr)
	return &client{d.t, c, bufio.NewReader(c)}
}

func (c *client) send(text string) *client {
	c.t.Helper()
	if _, err := io.WriteString(c, strings.ReplaceAll(text, "\n", "\r\n")); err != nil {
		c.t.Fatal(err)
	}
	return c
}

// status reads an answer.
func (c *client) status() (int, string) {
	c.t.Helper()
	res, err := http.ReadResponse(c.in, nil)
	if err != nil {
		c.t.Fatal(err)
	}
	defer res.Body.Close()
	b, _ := io.ReadAll(res.Body)
	return res.StatusCode, string(b)
}

// over reports whether the server has answered or closed the connection without a request.
func (c *client) over() bool {
	c.t.Helper()
	if err := c.SetReadDeadline(time.Now().Add(time.Millisecond)); err != nil {
		c.t.Fatal(err)
	}
	_, err := c.in.Peek(1)
	if err := c.SetReadDeadline(time.Now().Add(patience)); err != nil {
		c.t.Fatal(err)
	}
	return !errors.Is(err, os.ErrDeadlineExceeded)
}

// ends waits until the server has closed the connection, and gives what came before.
func (c *client) ends() string {
	c.t.Helper()
	b, err := io.ReadAll(c.in)
	if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) && !errors.Is(err, net.ErrClosed) {
		c.t.Errorf("%v", err)
	}
	return string(b)
}

func (e *env) beatOf() string {
	return "POST /v1/tasks/task_1/heartbeat HTTP/1.1\nHost: x\nAuthorization: Bearer " + e.task() + "\nContent-Length: 13\n\n" +
		`{"attempt":1}`
}

const halfABeat = "POST /v1/tasks/task_1/heartbeat HTTP/1.1\nHost: x\nContent-Length: 13\n\n{"

// waiting waits until n connections wait for bytes.
func (e *env) waiting(n int) {
	e.t.Helper()
	e.waitingOf(e.s.watch, n)
}

func (e *env) waitingOf(w *conn.Watch, n int) {
	e.t.Helper()
	good := func() bool {
		for range 2 { // an event loop looks at all that had come at the first look before it answers the second
			if len(w.Waiting()) != n {
				return false
			}
		}
		return true
	}
	until(e.t, good, func() string {
		return fmt.Sprintf("%d connections wait for bytes, want %d", len(w.Waiting()), n)
	})
}

// taken waits until the server has taken a connection and waits for its bytes.
func (e *env) taken(c *client) {
	e.t.Helper()
	until(e.t, func() bool { return e.takenBy(e.s.watch, c) }, func() string { return "the server has not taken a connection" })
}

func (e *env) takenBy(w *conn.Watch, c *client) bool {
	return slices.ContainsFunc(w.Waiting(), func(a net.Addr) bool { return a.String() == c.LocalAddr().String() })
}

// However strangers hold their connections, who comes with a token gets in; those who have shown one stay.
func TestStrangersCannotHoldAllConnections(t *testing.T) {
	testenv.OnlyAll(t)
	t.Parallel()
	const most = 8
	for name, hold := range map[string]func(*client){
		"silent":      func(*client) {},
		"half a line": func(c *client) { c.send("GET /li") },
		"half a body": func(c *client) { c.send(halfABeat) },
		"livez":       func(c *client) { c.send("GET /livez HTTP/1.1\nHost: x\n\n").status() },
		"bad token":   func(c *client) { c.send(strings.Replace(halfABeat, "{", `{"attempt":1}`, 1)).status() },
	} {
		t.Run(name, func(t *testing.T) {
			e := newTestServer(t, func(c *Config) { c.MaxConns, c.ReadTimeout, c.IdleTimeout = most, time.Hour, time.Hour })
			worker := e.dial()
			if status, body := worker.send(e.beatOf()).status(); status != 200 {
				t.Fatalf("%d %s", status, body)
			}
			var strangers []*client
			for range most - 1 {
				c := e.dial()
				hold(c)
				strangers = append(strangers, c)
			}
			e.waiting(most)
			for range 3 * most { // and each newcomer that shows nothing is the next to go, in its turn
				c := e.dial()
				hold(c)
				e.taken(c)
				e.waiting(most)
			}
			for _, c := range strangers {
				if got := c.ends(); strings.HasPrefix(name, "half") && !strings.HasPrefix(got, "HTTP/1.1 503 ") {
					t.Errorf("%q", got)
				}
				if t.Failed() {
					t.FailNow() // the others would be waited for as long
				}
			}
			newcomer := e.dial()
			if status, body := newcomer.send(e.beatOf()).status(); status != 200 {
				t.Errorf("a worker among strangers: %d %s", status, body)
			}
			if status, body := worker.send(e.beatOf()).status(); status != 200 {
				t.Errorf("a worker that was there: %d %s", status, body)
			}
		})
	}
}

// Every way of showing a token counts, and who has shown one does not give way.
func TestWhoHasShownATokenStays(t *testing.T) {
	t.Parallel()
	e := newTestServer(t)
	worker, _, err := httpapi.MintWorker(e.keys, model.Scope{Tenant: "acme", Workspace: "prod"},
		&workers.Registered{WorkerID: fakeWorkerID, Queue: "q"}, e.now())
	if err != nil {
		t.Fatal(err)
	}
	item := func(token string) string {
		return `{"heartbeats":[{"taskId":"task_1","attempt":1,"taskToken":"` + token + `"}]}`
	}
	requests := []struct{ path, token, body string }{
		{"POST /v1/tasks/task_1/heartbeat", e.task(), `{"attempt":1}`}, {"POST /v1/tasks/task_1/heartbeat?", e.task(), `{"attempt":1}`},
		{"POST /v1/tasks/task_1/heartbeat", worker, `{"attempt":1}`}, {"POST /v1/tasks/task_1/started", e.task(), `{"attempt":1}`},
		{"POST /v1/tasks/task_1/started", worker, `{"attempt":1}`}, {"POST /v1/heartbeats", "", item(e.task())},
		{"POST /v1/heartbeats", worker, `{"heartbeats":[{"taskId":"task_1","attempt":1}]}`},
		{"GET /v1/tasks/task_1", e.control(roleViewer), ""}, {"POST /v1/workers/" + fakeWorkerID + "/heartbeat", worker, `{}`},
	}
	e = newTestServer(t, func(c *Config) { c.MaxConns, c.ReadTimeout, c.IdleTimeout = len(requests), time.Hour, time.Hour })
	var conns []*client
	for _, r := range requests {
		head := r.path + " HTTP/1.1\nHost: x\n"
		if r.token != "" {
			head += "Authorization: Bearer " + r.token + "\n"
		}
		c := e.dial().send(fmt.Sprintf("%sContent-Length: %d\n\n%s", head, len(r.body), r.body))
		if status, body := c.status(); status == 401 {
			t.Errorf("%s: %s", r.path, body)
		}
		conns = append(conns, c)
	}
	e.waiting(len(requests))
	e.dial()
	for range 3 { // who comes without a token gives way to the next
		e.waiting(len(requests) + reserveOf(len(requests)))
		e.taken(e.dial())
	}
	for i, c := range conns {
		if status, body := c.send("GET /livez HTTP/1.1\nHost: x\n\n").status(); status != 200 {
			t.Errorf("%s lost its connection: %d %s", requests[i].path, status, body)
		}
	}
	if open, leaving := e.s.watch.Count(); open-leaving != len(conns)+1 {
		t.Errorf("%d are open, %d of them leave", open, leaving)
	}
}

// A request of a client without a token is not cut. A new connection waits, and takes its place after the answer.
func TestARequestUnderWayKeepsItsPlace(t *testing.T) {
	t.Parallel()
	e := newTestServer(t, func(c *Config) { c.MaxConns = 2 })
	begun, finish := make(chan struct{}, 2), make(chan struct{})
	e.fake.ready = func() error { begun <- struct{}{}; <-finish; return nil }
	a, b := e.dial().send("GET /readyz HTTP/1.1\nHost: x\n\n"), e.dial().send("GET /readyz HTTP/1.1\nHost: x\n\n")
	<-begun
	e.waitingOf(e.s.watch, 0)
	next := e.dial()
	close(finish)
	for _, c := range []*client{a, b} {
		if status, body := c.status(); status != 200 {
			t.Errorf("%d %s", status, body)
		}
	}
	if status, body := next.send("GET /livez HTTP/1.1\nHost: x\n\n").status(); status != 200 {
		t.Errorf("%d %s", status, body)
	}
}

// The operators' listener is bounded too: who is idle longest gives way.
func TestTheAdminListenerIsBounded(t *testing.T) {
	t.Parallel()
	env := newEnv(t, func(c *Config) { c.ReadTimeout, c.IdleTimeout = time.Hour, time.Hour })
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go func() { _ = env.s.ServeAdmin(ln) }() // until the server's Shutdown
	e := &testServer{env, ln.Addr().String()}
	var conns []*client
	for range maxAdminConns {
		conns = append(conns, e.dial())
	}
	e.waitingOf(e.s.adminWatch, maxAdminConns)
	for _, c := range conns {
		until(t, func() bool { // a new connection may find none to cut just then, and is the one that is closed
			newcomer := e.dial()
			until(t, func() bool { return newcomer.over() || e.takenBy(e.s.adminWatch, newcomer) },
				func() string { return "a newcomer is neither taken nor refused" })
			return c.over()
		}, func() string { return "who is idle longest does not give way" })
		c.ends()
	}
	e.waitingOf(e.s.adminWatch, maxAdminConns)
	until(t, func() bool { // a walk that has just found no connection is not repeated at once
		status, _ := e.dial().send("GET /metrics HTTP/1.1\nHost: localhost\n\n").status()
		return status == 200
	}, func() string { return "an operator does not get in" })
	if open, leaving := e.s.adminWatch.Count(); open > maxAdminConns+leaving {
		t.Errorf("%d connections are open, %d of them leave", open, leaving)
	}
}

// A client may hold a connection that it has not used yet, and use it just when the server gives up on it. It must not take a message for
// the response to its request, so the server sends nothing.
func TestUnusedConnectionsAreClosedInSilence(t *testing.T) {
	t.Parallel()
	for _, without := range []bool{false, true} {
		e := newTestServer(t, func(c *Config) { c.ReadTimeout, c.NoEventLoop = 2*time.Second, without })
		silent, half := e.dial(), e.dial().send("GET /livez HTTP/1.1\nHo")
		if got := silent.ends(); got != "" {
			t.Errorf("without the event loop %v: %q", without, got)
		}
		if got := half.ends(); !strings.HasPrefix(got, "HTTP/1.1 408 ") {
			t.Errorf("without the event loop %v, half a request: %q", without, got)
		}
	}
}

// An incomplete request needs no response: it does not delay the server's shutdown. A complete request is answered. On a connection without
// any data nothing is sent.
func TestHalfARequestDoesNotDelayTheEnd(t *testing.T) {
	t.Parallel()
	for _, without := range []bool{false, true} {
		t.Run(fmt.Sprint("without the event loop ", without), func(t *testing.T) { endsWithHalves(t, without) })
	}
}

func endsWithHalves(t *testing.T, withoutLoop bool) {
	t.Parallel()
	e := newTestServer(t, func(c *Config) { c.ReadTimeout, c.IdleTimeout, c.NoEventLoop = time.Hour, time.Hour, withoutLoop })
	begun, finish := make(chan struct{}), make(chan struct{})
	end := sync.OnceFunc(func() { close(finish) })
	t.Cleanup(end)
	e.fake.beat = func(*beats.Beat) { close(begun); <-finish }
	whole := e.dial().send(e.beatOf())
	<-begun
	halves := map[string]*client{
		"silent": e.dial(), "half a line": e.dial().send("POST /v"), "half a body": e.dial().send(halfABeat),
		"half of a second one": e.dial().send("GET /livez HTTP/1.1\nHost: x\n\n"),
	}
	halves["half of a second one"].status()
	halves["half of a second one"].send("POST /v1/tasks HTTP/1.1\nHost: x\nAuthorization: Bearer " + e.control(roleAdmin) +
		"\nContent-Length: 1000000\n\n")
	e.bodiesHeld(1000000) // it has begun
	e.waiting(len(halves))
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	ended := make(chan error, 1)
	go func() { ended <- e.s.Shutdown(ctx) }()
	for name, c := range halves {
		got := c.ends()
		refused := strings.HasPrefix(got, "HTTP/1.1 503 ") && strings.Contains(got, "Retry-After: 1")
		if name == "silent" && got != "" || name != "silent" && !refused {
			t.Errorf("%s: %q", name, got)
		}
	}
	end()
	if status, body := whole.status(); status != 200 {
		t.Errorf("%d %s", status, body)
	}
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// starvedListener lacks file descriptors now and then.
type starvedListener struct {
	net.Listener
	lack atomic.Int64
	err  error
}

func (l *starvedListener) Accept() (net.Conn, error) {
	if l.lack.Add(-1) >= 0 {
		return nil, &net.OpError{Op: "accept", Net: "tcp", Err: os.NewSyscallError("accept4", l.err)}
	}
	return l.Listener.Accept()
}

// A lack of file descriptors passes: neither listener ends of it.
func TestALackOfFilesEndsNoListener(t *testing.T) {
	t.Parallel()
	for _, lack := range []error{syscall.EMFILE, syscall.ENFILE, syscall.ENOBUFS, syscall.ENOMEM} {
		t.Run(lack.Error(), func(t *testing.T) {
			e := newEnv(t)
			for name, serve := range map[string]func(net.Listener) error{"api": e.s.Serve, "admin": e.s.ServeAdmin} {
				inner, err := net.Listen("tcp", "127.0.0.1:0")
				if err != nil {
					t.Fatal(err)
				}
				ln := &starvedListener{Listener: inner, err: lack}
				ln.lack.Store(3)
				served, answered := make(chan error, 1), make(chan int, 1)
				go func() { served <- serve(ln) }()
				c := dial(t, inner.Addr().String())
				go func() {
					_, _ = io.WriteString(c, "GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n")
					status := 0
					if res, err := http.ReadResponse(bufio.NewReader(c), nil); err == nil {
						status = res.StatusCode
					}
					answered <- status
				}()
				select {
				case err := <-served:
					t.Fatalf("%s: ended: %v", name, err)
				case status := <-answered:
					if status != 200 {
						t.Errorf("%s: %d", name, status)
					}
				}
			}
			if got := e.metric("lubdub_http_accepts_starved_total"); got != 6 || !strings.Contains(e.log.String(), "ulimit -n") {
				t.Errorf("%v, %s", got, e.log.String())
			}
			if err := e.s.admin.ShutdownWithContext(context.Background()); err != nil {
				t.Error(err)
			}
		})
	}
}
