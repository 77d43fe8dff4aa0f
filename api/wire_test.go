package api

import (
	"fmt"
	"strings"
	"testing"

	"github.com/lubdub-io/lubdub/tracker/beats"
)

// What fasthttp serves and a front end must not.
func TestAmbiguousRequestsAreRefusedAndTheConnectionClosed(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	e.fake.beat = func(*beats.Beat) { t.Error("an ambiguous request reached the domain") }
	auth := "Host: x\nAuthorization: Bearer " + e.task() + "\n"
	const path = "/v1/tasks/task_1/heartbeat"
	smuggled := "GET /livez HTTP/1.1\nHost: x\n\n"
	for name, c := range map[string]struct {
		request string
		status  string
	}{
		"length and chunked": {"POST " + path + " HTTP/1.1\n" + auth + "Content-Length: 6\nTransfer-Encoding: chunked\n\n0\n\n" +
			smuggled, "400"},
		"chunked and length": {"POST " + path + " HTTP/1.1\n" + auth + "Transfer-Encoding: chunked\nContent-Length: 6\n\n0\n\n" +
			smuggled, "400"},
		"identity": {"POST " + path + " HTTP/1.1\n" + auth + "Transfer-Encoding: identity\nContent-Length: 13\n\n{\"attempt\":1}" +
			smuggled, "400"},
		"two lengths": {"POST " + path + " HTTP/1.1\n" + auth + "Content-Length: 13\nContent-Length: 14\n\n{\"attempt\":1}" +
			smuggled, "400"},
		"folded header": {"POST " + path + " HTTP/1.1\n" + auth + "X-A: b\n c\nContent-Length: 13\n\n{\"attempt\":1}" + smuggled, "400"},
		"folded authorization": {"POST " + path + " HTTP/1.1\nHost: x\nAuthorization: Bearer\n " + e.task() +
			"\nContent-Length: 13\n\n{\"attempt\":1}" + smuggled, "400"},
		"absolute form":      {"POST http://evil/" + path + " HTTP/1.1\n" + auth + "Content-Length: 13\n\n{\"attempt\":1}" + smuggled, "400"},
		"no host":            {"GET /livez HTTP/1.1\n\n" + smuggled, "400"},
		"two hosts":          {"GET /livez HTTP/1.1\nHost: a\nHost: b\n\n" + smuggled, "400"},
		"space before colon": {"GET /livez HTTP/1.1\nHost: x\nX-A : b\n\n" + smuggled, "400"},
		"encoded slash":      {"GET /v1/tasks%2ftask_1 HTTP/1.1\n" + auth + "\n" + smuggled, "400"},
		"encoded slash in id": {"POST /v1/tasks/task_1%2Fheartbeat/heartbeat HTTP/1.1\n" + auth + "Content-Length: 13\n\n{\"attempt\":1}" +
			smuggled, "400"},
		"dot dot":               {"GET /v1/../livez HTTP/1.1\n" + auth + "\n" + smuggled, "400"},
		"encoded dot dot":       {"GET /v1/%2e%2e/livez HTTP/1.1\n" + auth + "\n" + smuggled, "400"},
		"dot":                   {"GET /./livez HTTP/1.1\n" + auth + "\n" + smuggled, "400"},
		"encoded null":          {"GET /livez%00 HTTP/1.1\n" + auth + "\n" + smuggled, "400"},
		"encoded percent":       {"GET /livez%252f HTTP/1.1\n" + auth + "\n" + smuggled, "400"},
		"backslash":             {"GET /v1\\tasks HTTP/1.1\n" + auth + "\n" + smuggled, "400"},
		"not HTTP":              {"hello\n\n", "400"},
		"chunk that is no size": {"POST " + path + " HTTP/1.1\n" + auth + "Transfer-Encoding: chunked\n\nzz\n\n" + smuggled, "400"},
	} {
		got := e.raw(c.request)
		if !strings.HasPrefix(got, "HTTP/1.1 "+c.status) || strings.Count(got, "HTTP/1.1 ") != 1 {
			t.Errorf("%s: %s", name, got)
		}
		if !contains(got, `{"error":"`, "X-Request-Id: ", "Connection: close", "Content-Type: application/json") {
			t.Errorf("%s: not a whole refusal: %s", name, got)
		}
	}
}

func TestMethodsThatAreNoneAre405(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	for _, line := range []string{"get /livez", "PRI *", "OPTIONS *", "BREW /livez", "DELETE /v1/tasks/task_1", "OPTIONS /v1/tasks",
		"CONNECT /livez", "TRACE /livez"} {
		got := e.raw(line + " HTTP/1.1\nHost: x\nConnection: close\n\n")
		if !contains(got, "HTTP/1.1 405", "Allow: ", `"error":"method_not_allowed"`) {
			t.Errorf("%s: %s", line, got)
		}
	}
}

func TestTooMuchIsRefusedBySize(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	auth := "Host: x\nAuthorization: Bearer " + e.task() + "\n"
	for path, limit := range map[string]int{
		"/v1/tasks/task_1/heartbeat": 256 << 10, "/v1/tasks/task_1/started": 256 << 10, "/v1/tasks/task_1/completed": 256 << 10,
		"/v1/heartbeats": 4 << 20, "/v1/tasks:batch": 4 << 20, "/v1/tasks": 1 << 20, "/v1/tasks/task_1/cancel": 1 << 20,
	} {
		// Judged by its length, before the body comes.
		got := e.raw(fmt.Sprintf("POST %s HTTP/1.1\n%sContent-Length: %d\n\n", path, auth, limit+1))
		if !contains(got, "HTTP/1.1 413", `"error":"body_too_large"`, fmt.Sprint(limit), "Connection: close") {
			t.Errorf("%s: %s", path, got)
		}
		// And by the bytes that arrive, if the request has no length.
		chunk := strings.Repeat(" ", 64<<10)
		var body strings.Builder
		for sent := 0; sent <= limit; sent += len(chunk) {
			fmt.Fprintf(&body, "%x\n%s\n", len(chunk), chunk)
		}
		if got := e.rawUntilRefused(fmt.Sprintf("POST %s HTTP/1.1\n%sTransfer-Encoding: chunked\n\n%s0\n\n", path, auth,
			body.String())); !contains(got, "HTTP/1.1 413") {
			t.Errorf("%s chunked: %s", path, got)
		}
	}
	if got := e.rawUntilRefused("GET /livez HTTP/1.1\nHost: x\nX-A: " + strings.Repeat("a", 9<<10) + "\n\n"); !contains(got, "HTTP/1.1 431",
		`"error":"headers_too_large"`) {
		t.Errorf("headers: %s", got)
	}
}

func TestBodiesUpToTheLimitAreTaken(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	body := `{"attempt":1}` + strings.Repeat(" ", 256<<10-13)
	e.do("POST", "/v1/tasks/task_1/heartbeat", e.task(), body).want(200)
}

func TestEncodedPathsThatMeanNoHarmWork(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	got := e.raw("POST /v1/tasks%3Abatch HTTP/1.1\nHost: x\nConnection: close\nAuthorization: Bearer " + e.control(roleAdmin) +
		"\nContent-Length: 14\n\n{\"tasks\":[{}]}")
	if !strings.HasPrefix(got, "HTTP/1.1 200") {
		t.Error(got)
	}
	got = e.raw("POST /v1/tasks/%74ask_1/heartbeat HTTP/1.1\nHost: x\nConnection: close\nAuthorization: Bearer " + e.task() +
		"\nContent-Length: 13\n\n{\"attempt\":1}")
	if !strings.HasPrefix(got, "HTTP/1.1 200") {
		t.Error(got)
	}
	e.do("POST", "/v1/tasks/task_1/heartbeat?x=1", e.task(), `{"attempt":1}`).refused(400, "invalid_request")
}

func TestRequestIDs(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	for own, echoed := range map[string]bool{
		"abc-123": true, "req:1/2=3": true, strings.Repeat("x", 128): true,
		strings.Repeat("x", 129): false, "a b": false, `a"b`: false, "<script>": false, "é": false, "": false,
	} {
		for _, path := range []string{"/livez", "/nowhere"} {
			got := e.do("GET", path, "", "", "X-Request-Id", own).header.Get("X-Request-Id")
			if got == "" || (got == own) != echoed {
				t.Errorf("%q became %q", own, got)
			}
		}
	}
	if a, b := e.do("GET", "/livez", "", "").header.Get("X-Request-Id"), e.do("GET", "/livez", "", "").header.Get("X-Request-Id"); a == b {
		t.Errorf("two requests with the id %s", a)
	}
}
