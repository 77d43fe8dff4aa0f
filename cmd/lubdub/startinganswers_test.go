package main

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/lubdub-io/lubdub/internal/redistest"
)

// startAnswers are what the clients of a server that starts have got. Each connects, repeatedly, and sends one request when it
// could.
type startAnswers struct {
	stop    context.CancelFunc
	running sync.WaitGroup
	lifted  atomic.Bool // the trouble is over

	mu      sync.Mutex
	clients []*startClient
	n       int
	slowest time.Duration
	late    redistest.TooLong
	slow    []string
}

type startClient struct {
	method, path, token, body string
	revoked, cut              bool // its token is; its server is the one in trouble
	answers, last             int  // how many it got, and the status of the last
}

// startClients has clients beat for all tasks, and read them, and one use a revoked token.
func (s *startStage) startClients(t *testing.T, listen string, at int) *startAnswers {
	ctx, stop := context.WithCancel(t.Context())
	a := &startAnswers{stop: stop, late: redistest.TooLong{}}
	admin := adminToken(t)
	for _, task := range s.tasks {
		path, cut := "/v1/tasks/"+task.id, task.on == at
		a.clients = append(a.clients, &startClient{method: "POST", path: path + "/heartbeat", token: task.token, body: `{"attempt":1}`, cut: cut},
			&startClient{method: "GET", path: path, token: admin, cut: cut})
	}
	a.clients = append(a.clients, &startClient{method: "GET", path: "/v1/tasks/" + s.tasks[0].id, token: s.revoked, revoked: true})
	for _, c := range a.clients {
		a.running.Go(func() {
			for ctx.Err() == nil {
				a.once(t, c, listen)
				time.Sleep(10 * time.Millisecond) // the pace of this client
			}
		})
	}
	return a
}

func (a *startAnswers) once(t *testing.T, c *startClient, listen string) {
	conn, err := net.Dial("tcp", listen)
	if err != nil {
		return // it does not listen yet
	}
	defer conn.Close()
	connected := time.Now()
	fmt.Fprintf(conn, "%s %s HTTP/1.1\r\nHost: lubdub\r\nConnection: close\r\nAuthorization: Bearer %s\r\nContent-Type: application/json\r\n"+
		"Content-Length: %d\r\n\r\n%s", c.method, c.path, c.token, len(c.body), c.body)
	res, err := http.ReadResponse(bufio.NewReader(conn), nil)
	took := time.Since(connected)
	lifted := a.lifted.Load()
	a.mu.Lock()
	defer a.mu.Unlock()
	a.slowest = max(a.slowest, took)
	if err != nil {
		return // it was killed, or only tried its address
	}
	_ = res.Body.Close()
	a.n++
	c.answers++
	c.last = res.StatusCode
	what := fmt.Sprintf("%s, its server in trouble: %v", c.method, c.cut)
	if took > startTimeout*5/4 {
		a.slow = append(a.slow, fmt.Sprintf("%s: %d after %v", what, res.StatusCode, took))
	}
	switch status := res.StatusCode; {
	case c.revoked && status != http.StatusUnauthorized:
		t.Errorf("a revoked token was answered %d", status)
	case c.revoked:
	case status == http.StatusServiceUnavailable && res.Header.Get("Retry-After") == "":
		t.Errorf("%s: 503 without Retry-After", what)
	case status == http.StatusOK && (!c.cut || lifted), status == http.StatusServiceUnavailable && c.cut:
	default:
		a.late[what] = fmt.Sprintf("answered %d", status)
	}
}

// all reports whether every client has n answers.
func (a *startAnswers) all(n int) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, c := range a.clients {
		if c.answers < n {
			return false
		}
	}
	return true
}

// good reports whether the last answers were.
func (a *startAnswers) good() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, c := range a.clients {
		if !c.revoked && c.last != http.StatusOK {
			return false
		}
	}
	return true
}

// forget counts answers from here on.
func (a *startAnswers) forget() {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, c := range a.clients {
		c.answers = 0
	}
}

func (a *startAnswers) end(t *testing.T, own func() time.Duration) redistest.TooLong {
	a.stop()
	a.running.Wait()
	limit := startTimeout*5/4 + own()
	t.Logf("%d answers, the slowest after %v, %d after more than %v", a.n, a.slowest, len(a.slow), startTimeout*5/4)
	if a.slowest > limit {
		a.late["answers"] = fmt.Sprintf("the slowest took %v; want %v: %s", a.slowest, limit, strings.Join(a.slow[:min(3, len(a.slow))], "; "))
	}
	return a.late
}
