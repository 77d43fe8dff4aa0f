package api

import (
	"bufio"
	"bytes"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/textproto"
	"net/url"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/lubdub-io/lubdub/api/token"
	v1 "github.com/lubdub-io/lubdub/sdk/go/v1"
	"github.com/lubdub-io/lubdub/tracker/model"
)

func fuzzServer(f *testing.F) *Server {
	f.Helper()
	s, err := New(Config{
		Services: quietServices(&fakeTracker{}), Keys: testKeys(f), PublicURL: "http://x", Logger: slog.New(slog.DiscardHandler),
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
	s := fuzzServer(f)
	beats, _, err := mintTask(s.cfg.Keys, testAttempt(), time.Hour, true)
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
		if ctx.Request.ContinueReadBody(r, limitOther, false) != nil {
			return
		}
		for _, route := range routes { // these need more of a tracker than a fake one
			if route.handle != nil && strings.HasPrefix(string(ctx.Path()), "/v1/") && !fakeable[route.op] {
				if _, ok := route.match(strings.Split(string(ctx.Path())[1:], "/")); ok {
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
	opStarted: true, opHeartbeat: true, opCompleted: true, opHeartbeats: true, opCreate: true, opCreateBatch: true, opList: true, opGet: true,
	opCancel: true, opNextAttempt: true, opGetRun: true, opCancelRun: true,
}

// What the scan of raw headers finds, a whole parser finds too.
func FuzzWire(f *testing.F) {
	for _, h := range []string{
		"Authorization: Bearer x\r\nX-Request-Id: 1", "authorization:x\r\nAUTHORIZATION: y", "Content-Length: 1\r\nTransfer-Encoding: chunked",
		"X-A: b\r\n folded", "\r\nAuthorization: x", "Transfer-Encoding : chunked",
	} {
		f.Add(h)
	}
	f.Fuzz(func(t *testing.T, head string) {
		var w wire
		w.scan([]byte(head + "\r\n\r\n")) // as fasthttp keeps them
		want, err := textproto.NewReader(bufio.NewReader(strings.NewReader(head + "\r\n\r\n"))).ReadMIMEHeader()
		if err != nil || w.folded || strings.Contains(head, "\r\r") || strings.ContainsAny(head, "\n\r") &&
			strings.Count(head, "\r\n") != strings.Count(head, "\n") {
			return // refused elsewhere
		}
		if got := len(want["Authorization"]); w.authorized != got {
			t.Fatalf("%d Authorization headers, want %d: %q", w.authorized, got, head)
		}
		if w.authorized == 1 && strings.Trim(string(w.authorization), " \t") != strings.Trim(want.Get("Authorization"), " \t") {
			t.Fatalf("%q, want %q", w.authorization, want.Get("Authorization"))
		}
		if w.lengths != len(want["Content-Length"]) || w.encodings != len(want["Transfer-Encoding"]) {
			t.Fatalf("%d lengths and %d encodings: %q", w.lengths, w.encodings, head)
		}
	})
}

// A target that is taken hides nothing: no host, no dot segment, no encoded slash, no control byte.
func FuzzTarget(f *testing.F) {
	for _, target := range []string{"/v1/tasks", "/v1/%2e%2e/x", "/a%2fb", "/a%252fb", "//evil/x", "/a?b=c#d", "/\\x", "http://evil/", "*",
		"/%00", "/tasks%3Abatch?x"} {
		f.Add([]byte(target))
	}
	f.Fuzz(func(t *testing.T, target []byte) {
		path, _, err := splitTarget(target)
		if err != nil {
			return
		}
		if path == "" || path[0] != '/' || strings.ContainsAny(path, "\\%?#") && !strings.Contains(string(target), "%3F") &&
			!strings.Contains(string(target), "%3f") && !strings.Contains(string(target), "%23") {
			t.Fatalf("%q became %q", target, path)
		}
		if n := strings.Count(strings.SplitN(string(target), "?", 2)[0], "/"); n != strings.Count(path, "/") {
			t.Fatalf("%q became %q: another number of segments", target, path)
		}
		for _, seg := range strings.Split(path, "/") {
			if seg == "." || seg == ".." {
				t.Fatalf("%q became %q", target, path)
			}
		}
	})
}

// Queries become filters or refusals that name a parameter.
func FuzzQuery(f *testing.F) {
	s := fuzzServer(f)
	for _, q := range []string{"state=RUNNING&pageSize=9", "label=a=b&label=c%3Dd", "pageToken=AAAA", "pageSize=-99999999999999999999",
		"x=%zz", "tenantId=a&tenantId=b", ";", "liveness=LATE&schedulable=true"} {
		f.Add(q)
	}
	f.Fuzz(func(t *testing.T, raw string) {
		for _, op := range []string{opList, opListWorkers} {
			req := request{api: s.api, now: fakeTime, who: &principal{claims: &token.Claims{Tenant: "acme", Workspace: "prod"}}}
			for _, r := range routes {
				if r.op == op {
					req.route = r
				}
			}
			err := req.parseQuery(raw)
			p := parameters{Values: req.query}
			if err == nil && op == opList {
				var got model.TaskFilter
				if got, err = taskFilter(&req, &p); err == nil {
					got.PageSize, got.After = p.page(got)
					err = p.err
				}
				if err == nil && (got.PageSize < 1 || got.PageSize > maxPageSize || !model.ValidID(got.Scope.Tenant) || got.After != "" &&
					!model.ValidID(got.After)) {
					t.Fatalf("%q became %+v", raw, got)
				}
			} else if err == nil {
				_, err = workerFilter(&req, &p)
			}
			if r, ok := err.(*refusal); err != nil && (!ok || r.body.Field == "" && r.status == 400) {
				t.Fatalf("%q: %v", raw, err)
			}
		}
	})
}

// A page token opens its own page only.
func FuzzPageToken(f *testing.F) {
	filter := model.TaskFilter{Scope: model.Scope{Tenant: "acme", Workspace: "prod"}}
	f.Add(pageToken(filter, "task_1"))
	f.Add("")
	f.Add("AAAAAAAAAAAA")
	f.Fuzz(func(t *testing.T, token string) {
		if after, err := afterOf(filter, token); err == nil && pageToken(filter, after) != token {
			t.Fatalf("%q is taken for %q", token, after)
		}
	})
}

// A creation that is taken says what encoding/json reads in it, and names no field that there is not.
func FuzzCreateBody(f *testing.F) {
	for _, body := range []string{`{"taskId":"t","deadline":"2025-01-15T11:00:00Z"}`, `{"TaskID":"t"}`, `{"retry":{"x":1}}`,
		`{"labels":{"a":"b"},"payload":[1,{}]}`, `[]`, `{"taskId":""}`, "{\"\\u0074askId\":\"a\"}", `{"taskId":1}`} {
		f.Add([]byte(body))
	}
	s := fuzzServer(f)
	f.Fuzz(func(t *testing.T, body []byte) {
		var got v1.CreateTaskRequest
		if decodeStrict(body, &got) != nil {
			return
		}
		var want v1.CreateTaskRequest
		d := json.NewDecoder(bytes.NewReader(body))
		d.DisallowUnknownFields()
		if err := d.Decode(&want); err != nil || !reflect.DeepEqual(got, want) {
			t.Fatalf("%q became %+v; encoding/json: %+v %v", body, got, want, err)
		}
		req := request{api: s.api, now: fakeTime, who: &principal{claims: &token.Claims{Tenant: "acme", Workspace: "prod"}},
			route: &route{op: opCreate}, query: url.Values{}}
		n, err := newTask(&req, &got, "", headerIdempotencyKey)
		if err == nil && (n.HeartbeatInterval <= 0 || n.Queue == "" && n.HeartbeatTimeout < model.MinTimeout ||
			n.HeartbeatTimeout > model.MaxTimeout || !model.ValidID(n.Scope.Tenant)) {
			t.Fatalf("%q became %+v", body, n)
		}
	})
}

// An inventory is read entry by entry as a beat is.
func FuzzInventory(f *testing.F) {
	for _, entry := range []string{`{"taskId":"a","attempt":1}`, `{"taskId":"a","attempt":1,"progressPct":50,"message":"x\ty"}`, `null`, `{}`,
		`{"attempt":0,"taskId":"-"}`} {
		f.Add([]byte(entry))
	}
	f.Fuzz(func(t *testing.T, entry []byte) {
		if !json.Valid(entry) {
			return // the body was read as JSON before
		}
		items, err := inventory([]json.RawMessage{entry})
		if err == nil && (len(items) != 1 || !model.ValidID(items[0].TaskID) || items[0].Number < 1 ||
			strings.Count(items[0].Report, "\t") != 0 && strings.Count(items[0].Report, "\t") != 3) {
			t.Fatalf("%q became %+v", entry, items)
		}
	})
}
