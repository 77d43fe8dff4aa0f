package api

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/lubdub-io/lubdub/api/httpapi"
	"github.com/lubdub-io/lubdub/api/token"
	"github.com/lubdub-io/lubdub/tracker/beats"
	"github.com/lubdub-io/lubdub/tracker/model"
)

// traps are requests that fasthttp and golang-jwt handle badly by default, with the answer that they must get here; each is
// sent over a real socket. A trap that needs more than one request has its own test, next to its entry.
var traps = []struct {
	trap    string // as libraries have it
	request func(e *env) string
	status  string
	answer  string // part of it
}{
	// fasthttp
	{"length and chunked: the tail runs as a second request",
		callback("Content-Length: 6\nTransfer-Encoding: chunked\n\n0\n\nGET /livez HTTP/1.1\nHost: x\n\n"), "400", "framed ambiguously"},
	{"chunked and length, the other way round",
		callback("Transfer-Encoding: chunked\nContent-Length: 6\n\n0\n\nGET /livez HTTP/1.1\nHost: x\n\n"), "400", "framed ambiguously"},
	{"TE: identity is served", callback("Transfer-Encoding: identity\nContent-Length: 13\n\n{\"attempt\":1}"), "400", "framed ambiguously"},
	{"folded headers are served", callback("X-A: b\n c\nContent-Length: 13\n\n{\"attempt\":1}"), "400", "framed ambiguously"},
	{"absolute-form host is served", plain("GET http://evil/livez"), "400", "plain path"},
	{"%2f in paths is served", plain("GET /v1/tasks%2ftask_1"), "400", "plain path"},
	{".. in paths is served", plain("GET /v1/../livez"), "400", "plain path"},
	{"encoded .. in paths is served", plain("GET /v1/%2e%2e/livez"), "400", "plain path"},
	{"PRI * reaches the handler", plain("PRI *"), "405", "method_not_allowed"},
	{"get in small letters reaches the handler", plain("get /livez"), "405", "method_not_allowed"},
	{"of two Authorization headers one counts", callback("Authorization: Bearer x\nContent-Length: 13\n\n{\"attempt\":1}"), "401",
		"unauthorized"},
	{"oversize bodies answer 400", callback(fmt.Sprintf("Content-Length: %d\n\n", httpapi.LimitCallback+1)), "413", "body_too_large"},
	{"bodies default to 4 MiB", func(*env) string {
		return fmt.Sprintf("POST /v1/tasks HTTP/1.1\nHost: x\nContent-Length: %d\n\n", httpapi.LimitOther+1)
	}, "413", "body_too_large"},
	{"a panic of a handler ends the process", func(e *env) string {
		e.fake.beat = func(*beats.Beat) { panic("on purpose") }
		return callback("Content-Length: 13\n\n{\"attempt\":1}")(e)
	}, "500", "internal_error"},
	{"timeouts default to none: a request that never ends",
		func(e *env) string { return "POST /v1/tasks HTTP/1.1\nHost: x\nContent-Length: 9\n\n{" }, "408", "request_timeout"},
	{"timeouts default to none: a header that never ends", func(e *env) string { return "GET /livez HTTP/1.1\nHost: x\nX-A: " }, "408",
		"request_timeout"},

	// golang-jwt
	{"an empty key verifies what an empty key signed", forged(nil, map[string]any{"kid": "k9"}, nil), "401", "unauthorized"},
	{"the same with an empty kid", forged(nil, map[string]any{"kid": ""}, nil), "401", "unauthorized"},
	{"any method is taken: none", forged(nil, map[string]any{"alg": "none"}, nil), "401", "unauthorized"},
	{"any method is taken: HS512", forged(goodSecret, map[string]any{"alg": "HS512"}, nil), "401", "unauthorized"},
	{"a token without exp holds for ever", forged(goodSecret, nil, map[string]any{"exp": nil}), "401", "unauthorized"},
	{"any issuer is taken", forged(goodSecret, nil, map[string]any{"iss": "other"}), "401", "unauthorized"},
	{"any audience is taken", forged(goodSecret, nil, map[string]any{"aud": "other"}), "401", "unauthorized"},
	{"an altered last character passes", func(e *env) string {
		good := forge(e.t, jwtHeader(nil), goodClaims(fakeTime), goodSecret)
		last := strings.IndexByte(base64URL, good[len(good)-1])
		return beatWith(good[:len(good)-1] + base64URL[last^1:last^1+1]) // a bit that decoders ignore
	}, "401", "unauthorized"},
	{"crit is not enforced", forged(goodSecret, map[string]any{"crit": []string{"x"}}, nil), "401", "unauthorized"},
	{"a token of any length is parsed", func(e *env) string {
		return beatWith(forge(e.t, jwtHeader(map[string]any{"x": strings.Repeat("A", token.MaxBytes)}), goodClaims(fakeTime), goodSecret))
	}, "401", "unauthorized"},
	{"and a good token opens", forged(goodSecret, nil, nil), "200", "acknowledged"},
}

const base64URL = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"

var goodSecret = []byte(strings.Repeat("1", token.MinKeyBytes))

func plain(line string) func(*env) string {
	return func(*env) string { return line + " HTTP/1.1\nHost: x\nConnection: close\n\n" }
}

// callback is a beat with a good token and the rest of its head and body.
func callback(rest string) func(*env) string {
	return func(e *env) string {
		return "POST /v1/tasks/task_1/heartbeat HTTP/1.1\nHost: x\nAuthorization: Bearer " + e.task() + "\n" + rest
	}
}

func beatWith(token string) string {
	return "POST /v1/tasks/task_1/heartbeat HTTP/1.1\nHost: x\nConnection: close\nAuthorization: Bearer " + token +
		"\nContent-Length: 13\n\n{\"attempt\":1}"
}

func jwtHeader(change map[string]any) map[string]any {
	return changed(map[string]any{"alg": "HS256", "typ": "JWT", "kid": "k1"}, change)
}

// changed sets entries of m; nil takes one away.
func changed(m, change map[string]any) map[string]any {
	for k, v := range change {
		if m[k] = v; v == nil {
			delete(m, k)
		}
	}
	return m
}

func forged(secret []byte, header, claims map[string]any) func(*env) string {
	return func(e *env) string {
		return beatWith(forge(e.t, jwtHeader(header), changed(goodClaims(fakeTime), claims), secret))
	}
}

func TestTrapsOfTheLibraries(t *testing.T) {
	t.Parallel()
	for _, c := range traps {
		t.Run(c.trap, func(t *testing.T) {
			t.Parallel()
			e := newEnv(t, impatient)
			addr := e.listen()
			got := send(t, addr, c.request(e))
			if !strings.HasPrefix(got, "HTTP/1.1 "+c.status+" ") || strings.Count(got, "HTTP/1.1 ") != 1 ||
				!contains(got, c.answer, "X-Request-Id: ") {
				t.Errorf("want one %s with %q: %s", c.status, c.answer, got)
			}
			if got := send(t, addr, plain("GET /livez")(e)); !strings.HasPrefix(got, "HTTP/1.1 200") {
				t.Errorf("and then it does not live: %s", got)
			}
		})
	}
}

// impatient is a server that soon gives up on clients which send nothing, and not on those which a busy machine keeps waiting.
func impatient(c *Config) {
	c.ReadTimeout, c.WriteTimeout, c.IdleTimeout = 2*time.Second, 2*time.Second, time.Second
}

// listen serves on a real socket too.
func (e *env) listen() string {
	e.t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		e.t.Fatal(err)
	}
	go func() { _ = e.s.Serve(ln) }() // until the server's Shutdown
	return ln.Addr().String()
}

// open counts the connections.
func (e *env) open() int {
	n, _ := e.s.watch.Count()
	return n
}

// send sends bytes on a new connection and returns everything received until the server closes it.
func send(t *testing.T, addr, request string) string {
	t.Helper()
	c := dial(t, addr)
	if _, err := io.WriteString(c, strings.ReplaceAll(request, "\n", "\r\n")); err != nil {
		t.Fatal(err)
	}
	b, _ := io.ReadAll(c) // a server that closes before it has read all resets
	return string(b)
}

// patience is more than any answer here takes; it is only waited for when something is broken.
const patience = 2 * time.Minute

func dial(t *testing.T, addr string) net.Conn {
	t.Helper()
	c, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	if err := c.SetDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	return c
}

// Trap: RequestCtx and every slice of it die with the handler. A remembered token must not change with the next request
// of its connection: another user's door would open.
func TestAKeptTokenDoesNotChangeWithTheNextRequest(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	addr := e.listen()
	c := dial(t, addr)
	r := bufio.NewReader(c)
	mine, other := e.task(), e.task(func(a *model.Attempt) { a.TaskID = "task_2" })
	beat := func(task, token string) int {
		t.Helper()
		if _, err := fmt.Fprintf(c, "POST /v1/tasks/%s/heartbeat HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\nContent-Length: "+
			"13\r\n\r\n{\"attempt\":1}", task, token); err != nil {
			t.Fatal(err)
		}
		res, err := http.ReadResponse(r, nil)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		_, _ = io.Copy(io.Discard, res.Body)
		return res.StatusCode
	}
	for range 3 {
		for _, q := range []struct {
			task, token string
			want        int
		}{{"task_1", mine, 200}, {"task_2", other, 200}, {"task_1", other, 403}, {"task_2", mine, 403}} {
			if got := beat(q.task, q.token); got != q.want {
				t.Errorf("%s: %d, want %d", q.task, got, q.want)
			}
		}
	}
}

// Trap: Shutdown waits for ever, ctx.Done() does not fire when the client goes. Here it is bounded by its context, closes
// idle connections, and a client that has gone leaves nothing behind.
func TestADisconnectedClientLeavesNothingBehind(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	addr := e.listen()
	begun, finish := make(chan struct{}), make(chan struct{})
	e.fake.beat = func(*beats.Beat) { close(begun); <-finish }
	leaver := dial(t, addr)
	if _, err := io.WriteString(leaver, strings.ReplaceAll(beatWith(e.task()), "\n", "\r\n")); err != nil {
		t.Fatal(err)
	}
	<-begun
	_ = leaver.Close()
	close(finish)
	until(t, func() bool { return e.open() == 0 && e.s.api.InFlight() == 0 }, func() string {
		return fmt.Sprintf("%d connections, %d requests under way", e.open(), e.s.api.InFlight())
	})
	if !e.s.http.CloseOnShutdown || e.s.http.IdleTimeout == 0 || e.s.http.ReadTimeout == 0 || e.s.http.WriteTimeout == 0 ||
		e.s.admin.ReadTimeout == 0 || e.s.admin.IdleTimeout == 0 {
		t.Error("a timeout is none")
	}
}

// Slow and silent connections end by their timeouts in every case, and heartbeats on other connections continue.
func TestConnectionsThatDawdleAreCutOff(t *testing.T) {
	t.Parallel()
	for name, dawdle := range map[string]func(t *testing.T, c net.Conn){
		"nothing is sent": func(t *testing.T, c net.Conn) {},
		"idle after a request": func(t *testing.T, c net.Conn) {
			_, _ = io.WriteString(c, "GET /livez HTTP/1.1\r\nHost: x\r\n\r\n")
		},
		"a header in drops": drip("GET /livez HTTP/1.1\r\nHost: x\r\n"),
		"a body in drops":   drip("POST /v1/heartbeats HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000\r\n\r\n{"),
		"chunks in drops":   drip("POST /v1/heartbeats HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := newEnv(t, impatient)
			addr := e.listen()
			for range 20 {
				dawdle(t, dial(t, addr))
			}
			for range 20 {
				e.do("POST", "/v1/tasks/task_1/heartbeat", e.task(), `{"attempt":1}`).want(200)
			}
			e.client.CloseIdleConnections()
			until(t, func() bool { return e.open() == 0 }, func() string {
				return fmt.Sprintf("%d connections are still open", e.open())
			})
		})
	}
}

// drip sends the beginning of a request, then a byte at a time, more often than the timeout, for as long as it is let.
func drip(begin string) func(t *testing.T, c net.Conn) {
	return func(t *testing.T, c net.Conn) {
		go func() {
			for _, err := io.WriteString(c, begin); err == nil; _, err = io.WriteString(c, "1") {
				time.Sleep(50 * time.Millisecond) // the pace of the attack
			}
		}()
	}
}
