package api

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/lubdub-io/lubdub/internal/testenv"
	"github.com/lubdub-io/lubdub/tracker/model"
)

const hostileMost = 8 // connections that the server takes

// fronts are the ways in which connections are served.
var fronts = map[string]func(*Config){
	"event loop": func(*Config) {},
	"goroutines": func(c *Config) { c.NoEventLoop = true },
	"TLS":        func(c *Config) { c.TLS = testTLS() },
}

func testTLS() *tls.Config {
	s := httptest.NewUnstartedServer(nil)
	s.StartTLS()
	defer s.Close()
	return &tls.Config{Certificates: s.TLS.Certificates}
}

// hostile are clients that hold connections.
var hostile = map[string]func(a *attacker){
	"silent":                                 func(a *attacker) { a.raw() },
	"TLS handshake stalls":                   func(a *attacker) { a.raw().send("\x16\x03\x01") },
	"half a request":                         func(a *attacker) { a.open().send("GET /li") },
	"drips":                                  func(a *attacker) { a.open().drip("GET /livez HTTP/1.1\nHost: x\nX: ") },
	"announces a body":                       func(a *attacker) { a.open().send(announced("")) },
	"announces a batch":                      func(a *attacker) { a.open().send(announced("/v1/heartbeats")) },
	"idle after an answer":                   func(a *attacker) { a.open().send(getLivez).answered() },
	"does not read small answers":            func(a *attacker) { a.open().neverRead(getLivez) },
	"silent, comes again":                    func(a *attacker) { a.again(func(a *attacker) { readStatus(a.in) }) },
	"does not read, comes again":             func(a *attacker) { a.again(func(a *attacker) { a.pipeline(getApp) }) },
	"pipelines":                              func(a *attacker) { a.again((*attacker).pipelineAndRead) },
	"does not read large answers":            func(a *attacker) { a.open().neverRead("GET /ui/app.js HTTP/1.1\nHost: x\n\n") },
	"one token, idle":                        func(a *attacker) { a.open().send(a.beat("task_1")).answered() },
	"one token, does not read":               func(a *attacker) { a.open().neverRead(a.beat("task_1")) },
	"one token, reads no pages":              func(a *attacker) { a.open().send(a.beat("task_1")).answered().neverRead(getApp) },
	"one token, announces a body":            func(a *attacker) { a.open().send(a.announced("task_1")) },
	"one token, half a request":              func(a *attacker) { a.open().send(a.beat("task_1")).answered().send("GET /li") },
	"one tenant, many tokens":                func(a *attacker) { a.open().send(a.beat(fmt.Sprint("task_", a.n))).answered() },
	"one tenant, many tokens, does not read": func(a *attacker) { a.open().neverRead(a.beat(fmt.Sprint("task_", a.n))) },
	"a token, then strangers' pages":         func(a *attacker) { a.open().send(a.beat("task_1")).answered().send(getLivez).answered() },
}

const (
	getLivez = "GET /livez HTTP/1.1\nHost: x\n\n"
	getApp   = "GET /ui/app.js HTTP/1.1\nHost: x\n\n"
)

func announced(path string) string {
	if path == "" {
		path = "/v1/tasks"
	}
	return "POST " + path + " HTTP/1.1\nHost: x\nContent-Length: 1000000\n\n" + strings.Repeat(" ", 100)
}

// attacker is one connection of a hostile client.
type attacker struct {
	e *hostileServer
	n int
	net.Conn
	in *bufio.Reader
}

func (a *attacker) raw() *attacker {
	a.Conn = dial(a.e.t, a.e.addr)
	_ = a.Conn.(*net.TCPConn).SetReadBuffer(1 << 10)
	return a
}

func (a *attacker) open() *attacker { return a.raw().secured() }

// secured has the connection speak TLS, where the server does.
func (a *attacker) secured() *attacker {
	if a.e.s.cfg.TLS != nil {
		c := tls.Client(a.Conn, &tls.Config{InsecureSkipVerify: true})
		_ = c.Handshake() // it may have to give way meanwhile
		a.Conn = c
	}
	a.in = bufio.NewReader(a.Conn)
	return a
}

// send sends something. The server may have had the connection give way already.
func (a *attacker) send(text string) *attacker {
	_, _ = io.WriteString(a.Conn, strings.ReplaceAll(text, "\n", "\r\n"))
	return a
}

func (a *attacker) answered() *attacker {
	readStatus(a.in)
	return a
}

func (a *attacker) drip(text string) {
	a.send(text)
	go func() {
		for _, err := io.WriteString(a.Conn, "1"); err == nil; _, err = io.WriteString(a.Conn, "1") {
			time.Sleep(5 * time.Millisecond) // the pace of the attack
		}
	}()
}

// again has the attacker come back as often as it is cut, until the test ends.
func (a *attacker) again(strike func(*attacker)) {
	ctx, ended := a.e.t.Context(), make(chan struct{})
	a.e.t.Cleanup(func() { <-ended })
	go func() {
		defer close(ended)
		for ctx.Err() == nil {
			c, err := net.Dial("tcp", a.e.addr)
			if err != nil {
				return
			}
			end := context.AfterFunc(ctx, func() { _ = c.Close() })
			strike((&attacker{e: a.e, Conn: c}).secured())
			_ = c.Close()
			end()
		}
	}()
}

// pipeline sends a request repeatedly until the connection is cut.
func (a *attacker) pipeline(request string) {
	request = strings.Repeat(strings.ReplaceAll(request, "\n", "\r\n"), 10)
	for err := error(nil); err == nil; {
		_, err = io.WriteString(a.Conn, request)
	}
}

func (a *attacker) pipelineAndRead() {
	go func() { _, _ = io.Copy(io.Discard, a.Conn) }()
	a.pipeline(getLivez)
}

// neverRead repeats a request, and reads nothing, until the server accepts no more.
func (a *attacker) neverRead(request string) {
	request = strings.Repeat(strings.ReplaceAll(request, "\n", "\r\n"), 10)
	for {
		_ = a.SetWriteDeadline(time.Now().Add(100 * time.Millisecond))
		if _, err := io.WriteString(a.Conn, request); err != nil {
			return
		}
	}
}

func (a *attacker) beat(task string) string { return a.e.beatAs("acme", task) }

func (a *attacker) announced(task string) string {
	return strings.Replace(strings.Replace(a.beat(task), "Length: 13", "Length: 100000", 1), "}", "", 1)
}

// hostileServer is a server whose connections fill their buffers soon.
type hostileServer struct{ *testServer }

func (e *env) beatAs(tenant, task string) string {
	return fmt.Sprintf("POST /v1/tasks/%s/heartbeat HTTP/1.1\nHost: x\nAuthorization: Bearer %s\nContent-Length: 13\n\n{\"attempt\":1}",
		task, e.task(func(a *model.Attempt) { a.Scope.Tenant, a.TaskID = tenant, task }))
}

func newHostileServer(t *testing.T, front func(*Config), most int) *hostileServer {
	e := newEnv(t, front, func(c *Config) {
		c.MaxConns, c.ReadTimeout, c.WriteTimeout, c.IdleTimeout = most, time.Hour, time.Hour, time.Hour
	})
	small := net.ListenConfig{Control: func(_, _ string, c syscall.RawConn) (err error) {
		set := func(fd uintptr) { err = syscall.SetsockoptInt(int(fd), syscall.SOL_SOCKET, syscall.SO_SNDBUF, 4<<10) }
		return errors.Join(c.Control(set), err)
	}}
	ln, err := small.Listen(context.Background(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go func() { _ = e.s.Serve(ln) }() // until the server's Shutdown
	return &hostileServer{&testServer{e, ln.Addr().String()}}
}

// worker is a connection of a worker of another tenant.
type worker struct {
	*attacker
	beats string
}

func (e *hostileServer) worker(task string) *worker {
	return &worker{(&attacker{e: e}).open(), e.beatAs("other", task)}
}

// accepted reports whether the worker's beat is answered 200, rather than refused, or the connection closed.
func (w *worker) accepted() bool { return readStatus(w.send(w.beats).in) == 200 }

// However hostile clients keep connections open, workers of other tenants can connect and stay connected, and existing ones still beat.
func TestHostileClientsDoNotBlockOtherTenants(t *testing.T) {
	testenv.OnlyAll(t)
	t.Parallel()
	var running sync.WaitGroup
	defer running.Wait()
	slots := make(chan struct{}, 4) // they mostly wait
	for front, configure := range fronts {
		for kind, strike := range hostile {
			play := func(t *testing.T) {
				e := newHostileServer(t, configure, hostileMost)
				there := e.worker("there")
				if !there.accepted() {
					t.Fatal("the first worker does not get in")
				}
				for n := range 2 * hostileMost {
					strike(&attacker{e: e, n: n})
				}
				// A client that does not read counts as one after a while; a worker that comes before is accepted, and gives way to the next.
				until(t, func() bool { return e.staying(3) == 3 }, func() string { return "workers do not stay" })
				if !there.accepted() {
					t.Error("the worker that was there has lost its connection")
				}
				if open, leaving := e.s.watch.Count(); open > hostileMost+1+leaving {
					t.Errorf("%d connections are open, %d of them leave", open, leaving)
				}
			}
			running.Go(func() {
				slots <- struct{}{}
				defer func() { <-slots }()
				t.Run(front+"/"+kind, play)
			})
		}
	}
}

// staying has n workers come, and returns how many of them get in and keep their connection.
func (e *hostileServer) staying(n int) (stay int) {
	var workers []*worker
	for i := range n {
		w := e.worker(fmt.Sprint("new_", i))
		if workers = append(workers, w); !w.accepted() {
			break // all have begun something just then
		}
	}
	for _, w := range workers {
		if w.accepted() {
			stay++
		}
	}
	if stay < n {
		for _, w := range workers {
			_ = w.Close()
		}
	}
	return stay
}

// readStatus reads a response and returns its status, or 0 without one.
func readStatus(in *bufio.Reader) int {
	line, err := in.ReadString('\n')
	if err != nil {
		return 0
	}
	status, length := 0, 0
	_, _ = fmt.Sscanf(line, "HTTP/1.1 %d", &status)
	for err == nil && line != "\r\n" {
		line, err = in.ReadString('\n')
		_, _ = fmt.Sscanf(line, "Content-Length: %d", &length)
	}
	if _, err := in.Discard(length); err != nil && !errors.Is(err, os.ErrDeadlineExceeded) {
		return 0
	}
	return status
}
