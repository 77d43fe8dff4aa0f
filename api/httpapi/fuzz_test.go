package httpapi

import (
	"bufio"
	"net/textproto"
	"strings"
	"testing"

	"github.com/lubdub-io/lubdub/tracker/model"
)

// What the scan of raw headers finds, a whole parser finds too.
func FuzzWire(f *testing.F) {
	for _, h := range []string{
		"Authorization: Bearer x\r\nX-Request-Id: 1", "authorization:x\r\nAUTHORIZATION: y", "Content-Length: 1\r\nTransfer-Encoding: chunked",
		"X-A: b\r\n folded", "\r\nAuthorization: x", "Transfer-Encoding : chunked",
	} {
		f.Add(h)
	}
	f.Fuzz(func(t *testing.T, head string) {
		var w Wire
		w.Scan([]byte(head + "\r\n\r\n")) // as fasthttp keeps them
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
		path, _, err := SplitTarget(target)
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

// A page token opens its own page only.
func FuzzPageToken(f *testing.F) {
	filter := model.TaskFilter{Scope: model.Scope{Tenant: "acme", Workspace: "prod"}}
	f.Add(PageToken(filter, "task_1"))
	f.Add("")
	f.Add("AAAAAAAAAAAA")
	f.Fuzz(func(t *testing.T, token string) {
		if after, err := AfterOf(filter, token); err == nil && PageToken(filter, after) != token {
			t.Fatalf("%q is taken for %q", token, after)
		}
	})
}
