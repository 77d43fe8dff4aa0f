package api

import (
	"bufio"
	"bytes"
	"encoding/json"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/lubdub-io/lubdub/api/httpapi"
	"github.com/lubdub-io/lubdub/api/token"
	v1 "github.com/lubdub-io/lubdub/sdk/go/v1"
	"github.com/lubdub-io/lubdub/tracker/model"
)

func fuzzServer(f *testing.F, fake *fakeTracker) *Server {
	f.Helper()
	s, err := New(Config{
		Services: quietServices(fake), Keys: testKeys(f), PublicURL: "http://x", Logger: slog.New(slog.DiscardHandler),
		TokenCacheSize: 1024, MaxConns: 1 << 14, Now: func() time.Time { return fakeTime },
	})
	if err != nil {
		f.Fatal(err)
	}
	return s
}

// Whatever bytes come, the answer is one of ours and never a bug; nothing that another hop may read differently gets
// through.
func FuzzRequest(f *testing.F) {
	s := fuzzServer(f, &fakeTracker{})
	beats, _, err := httpapi.MintTask(s.cfg.Keys, testAttempt(), time.Hour, true)
	if err != nil {
		f.Fatal(err)
	}
	admin, _, err := s.cfg.Keys.MintControl(token.Control{Role: roleAdmin, Tenant: "acme", Workspace: "prod", TTL: time.Hour}, fakeTime)
	if err != nil {
		f.Fatal(err)
	}
	for _, c := range []struct{ request, body string }{
		{"POST /v1/tasks/task_1/heartbeat HTTP/1.1\nHost: x\nAuthorization: Bearer " + beats, seedHeartbeat},
		{"POST /v1/tasks/task_1/started HTTP/1.1\nHost: x\nAuthorization: Bearer " + beats, seedStarted},
		{"POST /v1/tasks/task_1/completed HTTP/1.1\nHost: x\nAuthorization: Bearer " + beats, seedFailed},
		{"POST /v1/tasks HTTP/1.1\nHost: x\nAuthorization: Bearer " + admin, `{"taskId":"t","retry":{"maxAttempts":2},"queue":"q"}`},
		{"POST /v1/tasks:batch HTTP/1.1\nHost: x\nAuthorization: Bearer " + admin, `{"tasks":[{"taskId":"t"},{},[]]}`},
		{"GET /v1/tasks?state=RUNNING&label=a%3Db&pageSize=5 HTTP/1.1\nHost: x\nAuthorization: Bearer " + admin, ""},
		{"POST /v1/heartbeats HTTP/1.1\nHost: x\nX-A: b\n c\nTransfer-Encoding: chunked", "0\n\n"},
		{"PRI * HTTP/2.0\n", ""},
	} {
		f.Add([]byte(strings.ReplaceAll(c.request, "\n", "\r\n")), []byte(c.body))
	}
	f.Fuzz(func(t *testing.T, head, body []byte) {
		raw := append(append(bytes.Clone(head), "\r\n\r\n"...), body...)
		var ctx fasthttp.RequestCtx
		r := bufio.NewReaderSize(bytes.NewReader(raw), 8<<10)
		if ctx.Request.Header.Read(r) != nil {
			return
		}
		if ctx.Request.ContinueReadBody(r, httpapi.LimitOther, false) != nil {
			return
		}
		if strings.HasPrefix(string(ctx.Path()), "/v1/") { // some need more of a tracker than a fake one
			for _, method := range []string{"GET", "POST", "PUT", "PATCH", "DELETE"} {
				if route, _, err := s.api.Find(method, string(ctx.Path())); err == nil && !fakeable[route.Op] {
					return
				}
			}
		}
		s.Handler(&ctx)
		status := ctx.Response.StatusCode()
		if status == http.StatusInternalServerError {
			t.Fatalf("a bug: %s\n%q", ctx.Response.Body(), raw)
		}
		if status != 200 && status != 201 && status != 202 {
			var e v1.Error
			if err := json.Unmarshal(ctx.Response.Body(), &e); err != nil || e.Error == "" || e.Message == "" {
				t.Fatalf("%d without a refusal: %s\n%q", status, ctx.Response.Body(), raw)
			}
			return
		}
		if ctx.Request.Header.ContentLength() == -1 && len(ctx.Request.Header.Peek("Content-Length")) > 0 {
			t.Fatalf("two framings were served: %q", raw)
		}
	})
}

// fakeable are the operations that the fake tracker answers.
var fakeable = map[string]bool{
	opStarted: true, opHeartbeat: true, opCompleted: true, opExchange: true, opHeartbeats: true,
	opCreate: true, opCreateBatch: true, opList: true, opGet: true,
	opCancel: true, opNextAttempt: true, opGetRun: true, opCancelRun: true,
}

// Queries become filters or refusals that name a parameter.
func FuzzQuery(f *testing.F) {
	fake := &fakeTracker{}
	var got model.TaskFilter
	fake.list = func(filter model.TaskFilter) (*model.TaskPage, error) {
		got = filter
		return &model.TaskPage{}, nil
	}
	s := fuzzServer(f, fake)
	viewer, _, err := s.cfg.Keys.MintControl(token.Control{Role: roleViewer, Tenant: "acme", Workspace: "prod", TTL: time.Hour}, fakeTime)
	if err != nil {
		f.Fatal(err)
	}
	for _, q := range []string{"state=RUNNING&pageSize=9", "label=a=b&label=c%3Dd", "pageToken=AAAA", "pageSize=-99999999999999999999",
		"x=%zz", "tenantId=a&tenantId=b", ";", "liveness=LATE&schedulable=true"} {
		f.Add(q)
	}
	f.Fuzz(func(t *testing.T, raw string) {
		for _, list := range []string{"/v1/tasks", "/v1/workers"} {
			var ctx fasthttp.RequestCtx
			head := "GET " + list + "?" + raw + " HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer " + viewer + "\r\n\r\n"
			if strings.ContainsAny(raw, " #\r\n") || ctx.Request.Header.Read(bufio.NewReaderSize(strings.NewReader(head), 64<<10)) != nil {
				return // it is no query
			}
			s.Handler(&ctx)
			switch ctx.Response.StatusCode() {
			case 200:
				if list == "/v1/tasks" && (got.PageSize < 1 || got.PageSize > 100 || !model.ValidID(got.Scope.Tenant) || got.After != "" &&
					!model.ValidID(got.After)) {
					t.Fatalf("%q became %+v", raw, got)
				}
			case 400:
				var e v1.Error
				if err := json.Unmarshal(ctx.Response.Body(), &e); err != nil || e.Field == "" {
					t.Fatalf("%q: %s", raw, ctx.Response.Body())
				}
			case 403: // another scope
			default:
				t.Fatalf("%q: %d %s", raw, ctx.Response.StatusCode(), ctx.Response.Body())
			}
		}
	})
}
