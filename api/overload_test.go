package api

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/lubdub-io/lubdub/api/token"
	"github.com/lubdub-io/lubdub/tracker/model"
)

// While the control plane is full, its requests are refused immediately, before token and body cost anything, and workers' requests
// are served.
func TestTheControlPlaneYieldsToHeartbeats(t *testing.T) {
	t.Parallel()
	e := newEnv(t, func(c *Config) { c.MaxControl = 2 })
	begun, finish := make(chan struct{}), make(chan struct{})
	e.fake.create = func(n model.NewTask) (*model.Created, error) {
		begun <- struct{}{}
		<-finish
		return fakeCreated(n, 1), nil
	}
	admin := e.control(roleAdmin)
	var wg sync.WaitGroup
	for _, tenant := range []string{"acme", "other"} {
		wg.Go(func() { e.do("POST", "/v1/tasks", e.controlFor(roleAdmin, tenant, "prod"), `{}`).want(201) })
		<-begun
	}
	for _, r := range []struct{ method, path, token, body string }{
		{"POST", "/v1/tasks", admin, `{}`}, {"POST", "/v1/tasks:batch", admin, `{"tasks":[{}]}`}, {"GET", "/v1/tasks", admin, ""},
		{"GET", "/v1/workers", admin, ""},
		{"POST", "/v1/tasks", "junk", `{`}, // neither token nor body has been read
	} {
		a := e.do(r.method, r.path, r.token, r.body)
		a.refused(503, "overloaded")
		if a.header.Get("Retry-After") != "1" || !contains(a.body, "max-connections") {
			t.Errorf("%s %s: Retry-After %q, %s", r.method, r.path, a.header.Get("Retry-After"), a.body)
		}
	}
	e.do("POST", "/v1/tasks/task_1/heartbeat", e.task(), `{"attempt":1}`).want(200)
	e.do("POST", "/v1/tasks/task_1/started", e.task(), `{"attempt":1}`).want(200)
	e.do("POST", "/v1/tasks/task_1/completed", e.task(), `{"attempt":1,"outcome":"SUCCEEDED"}`).want(200)
	e.do("GET", "/readyz", "", "").want(200)
	close(finish)
	wg.Wait()
	e.do("GET", "/v1/tasks", admin, "").want(200)
}

func TestOnlyHeartbeatsCallbacksAndPagesDoNotYield(t *testing.T) {
	t.Parallel()
	var firm []string
	for _, r := range routes {
		if !r.Yields() {
			firm = append(firm, r.Op)
		}
	}
	if got, want := strings.Join(firm, " "),
		"heartbeat heartbeats started completed workerHeartbeat exchange claimTasks index livez readyz healthz version openapi"; got != want {
		t.Errorf("%s\nwant %s", got, want)
	}
}

// dialAndAnnounce opens a connection and announces a batch that does not come.
func (e *env) dialAndAnnounce(header string) net.Conn {
	e.t.Helper()
	c, err := e.ln.Dial()
	if err != nil {
		e.t.Fatal(err)
	}
	e.t.Cleanup(func() { _ = c.Close() }) // before the server's Shutdown waits for it
	if _, err := io.WriteString(c, "POST /v1/heartbeats HTTP/1.1\r\nHost: x\r\n"+header); err != nil {
		e.t.Fatal(err)
	}
	return c
}

func (e *env) bodiesHeld(want int64) {
	e.t.Helper()
	until(e.t, func() bool { return e.s.bodies.Held() == want }, func() string {
		return fmt.Sprintf("bodies hold %d, want %d", e.s.bodies.Held(), want)
	})
}

// bearer returns the header of a new control token.
func (e *env) bearer(subject string) string {
	e.t.Helper()
	return "Authorization: Bearer " + e.controlOf(token.Control{Role: roleAdmin, Subject: subject, TTL: time.Hour}) + "\r\n"
}

// Bodies that are announced and not sent take the memory that they may, and one more is refused; beats are not. However
// a request ends, what it held is given back.
func TestAnnouncedBodiesAreBounded(t *testing.T) {
	t.Parallel()
	const size = 1 << 20
	for name, header := range map[string]string{
		"length":  fmt.Sprintf("Content-Length: %d\r\n\r\n", size),
		"expect":  fmt.Sprintf("Expect: 100-continue\r\nContent-Length: %d\r\n\r\n", size),
		"chunked": fmt.Sprintf("Transfer-Encoding: chunked\r\n\r\n%x\r\n", size-2),
	} {
		t.Run(name, func(t *testing.T) {
			e := newEnv(t, func(c *Config) { c.MaxBodyBytes = 4 * size })
			var conns []net.Conn
			for i := range 4 {
				conns = append(conns, e.dialAndAnnounce(e.bearer(fmt.Sprint("s", i))+header))
				e.bodiesHeld(int64(i+1) * size)
			}
			over := e.dialAndAnnounce(e.bearer("another") + header)
			answers := bufio.NewReader(over)
			res, err := http.ReadResponse(answers, nil)
			if err == nil && res.StatusCode == http.StatusContinue {
				res, err = http.ReadResponse(answers, nil)
			}
			if err != nil || res.StatusCode != 503 || res.Header.Get("Retry-After") != "1" || !res.Close {
				t.Fatalf("%+v %v", res, err)
			}
			if b, _ := io.ReadAll(res.Body); !contains(string(b), `"error":"overloaded"`, "request bodies") {
				t.Errorf("%s", b)
			}
			e.do("POST", "/v1/tasks/task_1/heartbeat", e.task(), `{"attempt":1}`).want(200)
			e.bodiesHeld(4 * size)
			for _, c := range conns {
				_ = c.Close()
			}
			e.bodiesHeld(0)
		})
	}
}

// What a large body has reserved is given back.
func TestLargeRequestsAreReserved(t *testing.T) {
	t.Parallel()
	e := newEnv(t, func(c *Config) { c.MaxBodyBytes = 4 << 20 })
	pad := strings.Repeat(" ", 1<<20)
	for range 10 { // on one connection that is kept alive
		e.do("POST", "/v1/heartbeats", e.control(roleAdmin), `{"heartbeats":[{"taskId":"task_1","attempt":1}]}`+pad).want(200)
		e.do("POST", "/v1/heartbeats", e.control(roleAdmin), `{"heartbeats":`+pad).want(400)
	}
	e.bodiesHeld(0)
}

// A client that goes between two chunks gets no answer, with which what it held would be given back.
func TestAnAbandonedBodyReleasesItsReservation(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	const size = 1 << 20
	c := e.dialAndAnnounce(e.bearer("s") + fmt.Sprintf("Transfer-Encoding: chunked\r\n\r\n%x\r\n", size-2))
	e.bodiesHeld(size)
	if _, err := io.WriteString(c, strings.Repeat(" ", size-2)+"\r\n"); err != nil {
		t.Fatal(err)
	}
	_ = c.Close()
	e.bodiesHeld(0)
}
