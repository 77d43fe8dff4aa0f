package api

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/lubdub-io/lubdub/api/httpapi"
	"github.com/lubdub-io/lubdub/api/internal/conn"
	"github.com/lubdub-io/lubdub/api/token"
	"github.com/lubdub-io/lubdub/tracker/model"
)

// hostileBodies are clients that announce large bodies and do not send them: the head of a request, and what follows it.
var hostileBodies = map[string]func(e *env, n int) string{
	"announces a task":        func(_ *env, n int) string { return announce("/v1/tasks", n, "") },
	"announces a batch":       func(_ *env, n int) string { return announce("/v1/heartbeats", n, "") },
	"announces a large batch": func(_ *env, n int) string { return announce("/v1/heartbeats", httpapi.LimitBatch, "") },
	"announces a chunk": func(*env, int) string {
		return "POST /v1/heartbeats HTTP/1.1\nHost: x\nTransfer-Encoding: chunked\n\nfff00\n{"
	},
	"expects to continue": func(_ *env, n int) string { return announce("/v1/heartbeats", n, "Expect: 100-continue\n") },
	"sends junk":          func(_ *env, n int) string { return announce("/v1/heartbeats", n, "") + strings.Repeat(" ", 20<<10) },
	"sends a token that is not valid": func(_ *env, n int) string {
		return announce("/v1/tasks", n, "Authorization: Bearer "+strings.Repeat("x", 300)+"\n")
	},
	"sends items that are not valid": func(_ *env, n int) string {
		return announce("/v1/heartbeats", n, "") + strings.Repeat(`{"taskToken":"`+strings.Repeat("x", 300)+`"},`, 80)
	},
	"one token": func(e *env, n int) string {
		return announce("/v1/heartbeats", n, "Authorization: Bearer "+e.task()+"\n")
	},
	"one item": func(e *env, n int) string { return announce("/v1/heartbeats", n, "") + item("task_1", e.task()) },
	"many tokens": func(e *env, n int) string {
		return announce("/v1/tasks", n, "Authorization: Bearer "+e.subject(n)+"\n")
	},
	"a worker's beat": func(e *env, n int) string {
		return announce("/v1/workers/w/heartbeat", n, "Authorization: Bearer "+e.task()+"\n")
	},
	"a single beat": func(e *env, n int) string {
		return announce("/v1/tasks/task_1/heartbeat", 200<<10, "Authorization: Bearer "+e.task()+"\n")
	},
}

func announce(path string, n int, header string) string {
	return fmt.Sprintf("POST %s HTTP/1.1\nHost: x\n%sContent-Length: %d\n\n{\"heartbeats\":[", path, header, n)
}

func item(task, text string) string {
	return `{"taskId":"` + task + `","attempt":1,"taskToken":"` + text + `"},`
}

func (e *env) subject(n int) string {
	return e.controlOf(token.Control{Role: roleAdmin, Subject: fmt.Sprint("s", n), TTL: time.Hour})
}

// batchOf is a batch of beats of a tenant, each with its own token, which is larger than a small body.
func (e *env) batchOf(tenant string) string {
	var items strings.Builder
	for i := range 60 {
		task := fmt.Sprint("task_", i)
		items.WriteString(item(task, e.task(func(a *model.Attempt) { a.Scope.Tenant, a.TaskID = tenant, task })))
	}
	body := `{"heartbeats":[` + strings.TrimSuffix(items.String(), ",") + `]}`
	if len(body) <= conn.SmallBody {
		e.t.Fatalf("a batch of %d bytes is small", len(body))
	}
	return fmt.Sprintf("POST /v1/heartbeats HTTP/1.1\nHost: x\nContent-Length: %d\n\n%s", len(body), body)
}

// However much hostile clients announce, another tenant's batches are taken, on connections that are new and such that are not.
func TestHostileBodiesDoNotBlockOtherTenants(t *testing.T) {
	t.Parallel()
	const bodies = 8 << 20
	for front, configure := range fronts {
		for kind, text := range hostileBodies {
			t.Run(front+"/"+kind, func(t *testing.T) {
				t.Parallel()
				e := newHostileServer(t, func(c *Config) {
					configure(c)
					c.MaxBodyBytes = bodies
				}, 300)
				there := &worker{(&attacker{e: e}).open(), e.batchOf("other")}
				for n := range 16 {
					(&attacker{e: e}).open().send(text(e.env, (25<<10)+n*64000))
				}
				until(t, func() bool { return e.open() == len(e.s.watch.Waiting()) }, func() string { // all have announced what they do
					return fmt.Sprintf("%d connections are open, %d wait", e.open(), len(e.s.watch.Waiting()))
				})
				for i := range 5 {
					newcomer := &worker{(&attacker{e: e}).open(), there.beats}
					if !there.accepted() || !newcomer.accepted() {
						t.Fatalf("batch %d is refused while %d bytes are held", i, e.s.bodies.Held())
					}
				}
			})
		}
	}
}

// The first valid token of a batch is found wherever what has come so far ends.
func TestTheFirstTokenOfABatchIsFound(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		text string
		want bool
	}{
		{`{"heartbeats":[{"taskId":"a","taskToken":"good"}`, true},
		{`{"heartbeats":[{"taskToken" :  "bad"},{"taskToken": "good","x":1}`, true},
		{`{"taskToken":7,"taskToken":{},"taskToken":"","taskToken":"good"`, true},
		{`{"taskToken":"goo`, false},
		{`{"taskToken":"bad"}`, false},
		{`{"taskToken":"` + strings.Repeat("x", token.MaxBytes+10) + `","taskToken":"good"`, true},
		{strings.Repeat(`{"taskToken":"bad"}`, maxTried) + `{"taskToken":"good"}`, false},
	} {
		for step := 1; step <= len(c.text); step++ {
			tried := 0
			f := tokenFinder{opens: func(b []byte) *httpapi.Principal {
				if tried++; string(b) == "good" {
					return new(httpapi.Principal)
				}
				return nil
			}}
			for end := step; !f.find([]byte(c.text[:min(end, len(c.text))])) && end < len(c.text); end += step {
			}
			if found := f.who != nil; found != c.want || tried > maxTried {
				t.Fatalf("%.60s in steps of %d: found %v, tried %d", c.text, step, found, tried)
			}
		}
	}
}

// A large body without a valid token gets 401 before any of it is read; if each item has its own token, it is read.
func TestLargeBodiesWithoutAToken(t *testing.T) {
	t.Parallel()
	e := newHostileServer(t, fronts["event loop"], 300)
	for request, want := range map[string]int{
		announce("/v1/tasks", conn.SmallBody+1, ""):                                    401,
		announce("/v1/tasks", httpapi.LimitOther+1, ""):                                413,
		announce("/v1/tasks:batch", httpapi.LimitBatch, "Authorization: Bearer x\n"):   401,
		announce("/v1/tasks/task_1/heartbeat", httpapi.LimitCallback, ""):              401,
		announce("/v1/heartbeats", 20000, "") + strings.Repeat(" ", 19983) + "{}":      400,
		"POST /v1/tasks HTTP/1.1\nHost: x\nTransfer-Encoding: chunked\n\n10000\n  ":    401,
		"POST /v1/tasks HTTP/1.1\nHost: x\nTransfer-Encoding: chunked\n\n2\n{}\n0\n\n": 401,
	} {
		if got := readStatus((&attacker{e: e}).open().send(request).in); got != want {
			t.Errorf("%.100q: %d, want %d", request, got, want)
		}
	}
	if held := e.s.bodies.Held(); held != 0 {
		t.Errorf("%d bytes are held", held)
	}
}

// Tokens of the items of a batch may all have expired. Where its connection belongs to a tenant, that tenant is charged, and strangers
// who hold all that is theirs do not keep the batch out.
func TestABatchIsChargedToTheOwnerOfItsConnection(t *testing.T) {
	t.Parallel()
	for front, configure := range fronts {
		e := newHostileServer(t, func(c *Config) {
			configure(c)
			c.MaxBodyBytes = 1 << 20
		}, 300)
		w := e.worker("task_1")
		if !w.accepted() {
			t.Fatal("the worker's beat is refused")
		}
		stranger := (&attacker{e: e}).open()
		for range 8 {
			(&attacker{e: e}).open().send(announce("/v1/heartbeats", 100<<10, "") + strings.Repeat(" ", 20<<10))
		}
		until(t, func() bool { return e.s.bodies.Held() >= 100<<10 }, func() string { return "the strangers hold nothing" })
		expired := announce("/v1/heartbeats", 20000, "") + strings.Repeat(" ", 19983) + "]}"
		if got := readStatus(stranger.send(expired).in); got != 503 {
			t.Errorf("%s: the batch of a stranger is %d", front, got)
		}
		if got := readStatus(w.send(expired).in); got != 400 { // it has no items
			t.Errorf("%s: the batch of the worker's connection is %d", front, got)
		}
	}
}
