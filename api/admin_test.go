package api

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"os"
	"runtime/pprof"
	"slices"
	"strings"
	"testing"

	"github.com/valyala/fasthttp/fasthttputil"

	v1 "github.com/lubdub-io/lubdub/sdk/go/v1"
)

// admin serves the operators' pages and gives a client for them.
func (e *env) admin() func(method, path, host string) (int, http.Header, string) {
	ln := fasthttputil.NewInmemoryListener()
	served := make(chan error, 1)
	go func() { served <- e.s.ServeAdmin(ln) }()
	client := &http.Client{Transport: &http.Transport{DialContext: func(context.Context, string, string) (net.Conn,
		error) {
		return ln.Dial()
	}}}
	e.t.Cleanup(func() {
		client.CloseIdleConnections()
		if err := e.s.admin.Shutdown(); err != nil {
			e.t.Error(err)
		}
		if err := <-served; err != nil {
			e.t.Error(err)
		}
	})
	return func(method, path, host string) (int, http.Header, string) {
		e.t.Helper()
		req, err := http.NewRequest(method, "http://"+host+path, nil)
		if err != nil {
			e.t.Fatal(err)
		}
		res, err := client.Do(req)
		if err != nil {
			e.t.Fatal(err)
		}
		defer res.Body.Close()
		b, err := io.ReadAll(res.Body)
		if err != nil || res.Header.Get("X-Request-Id") == "" {
			e.t.Errorf("%s: %v, X-Request-Id %q", path, err, res.Header.Get("X-Request-Id"))
		}
		return res.StatusCode, res.Header, string(b)
	}
}

func TestAdminPages(t *testing.T) {
	get := newEnv(t).admin()
	for path, part := range map[string]string{
		"/metrics": "lubdub_http_requests_in_flight", "/livez": `"ok"`, "/readyz": `"ok"`, "/healthz": `"ok"`, "/version": `"1.2.3"`,
		"/debug/pprof": "goroutine", "/debug/pprof/": "goroutine", "/debug/pprof/goroutine?debug=2": "goroutine", "/debug/pprof/heap": "",
	} {
		if status, _, body := get(http.MethodGet, path, "127.0.0.1:9090"); status != 200 || !strings.Contains(body, part) {
			t.Errorf("%s: %d %.200s", path, status, body)
		}
	}
	for _, path := range []string{"/v1/tasks", "/debug/pprof/none", "/debug/pprof/heap/", "/debug"} {
		if status, _, body := get(http.MethodGet, path, "localhost"); status != 404 || !json.Valid([]byte(body)) {
			t.Errorf("%s: %d %s", path, status, body)
		}
	}
	if status, header, _ := get(http.MethodPost, "/metrics", "localhost"); status != 405 || header.Get("Allow") == "" {
		t.Errorf("%d", status)
	}
}

// The command line may contain the password of Redis, and the pages need no token: none of them shows it.
func TestNoAdminPageShowsTheCommandLine(t *testing.T) {
	args := os.Args
	defer func() { os.Args = args }()
	os.Args = append(slices.Clone(args), "--redis", "redis://:geheim7@host:6379/0")
	get := newEnv(t).admin()
	paths := []string{
		"/metrics", "/version", "/healthz", "/debug/pprof", "/debug/pprof/", "/debug/pprof/symbol", "/debug/pprof/trace?seconds=0.01",
		"/debug/pprof/profile?seconds=1",
	}
	for _, p := range pprof.Profiles() {
		paths = append(paths, "/debug/pprof/"+p.Name(), "/debug/pprof/"+p.Name()+"?debug=1", "/debug/pprof/"+p.Name()+"?debug=2")
	}
	cmdline := []string{"/debug/pprof/cmdline", "/debug/pprof/cmdline/", "/debug/pprof/cmd%6cine", "/debug/pprof//cmdline",
		"/debug/./pprof/cmdline", "//debug/pprof/cmdline", "/debug/pprof/cmdline?debug=1"}
	for _, path := range append(paths, cmdline...) {
		status, _, body := get(http.MethodGet, path, "localhost:9090")
		if z, err := gzip.NewReader(strings.NewReader(body)); err == nil {
			plain, _ := io.ReadAll(z)
			body += string(plain)
		}
		if bytes.Contains([]byte(body), []byte("geheim7")) {
			t.Errorf("%s shows the password", path)
		}
		if want := slices.Contains(cmdline, path); (status == 404) != want || !want && status != 200 {
			t.Errorf("%s: %d", path, status)
		}
	}
}

// A page in an operator's browser could point its own host name at the listener's address (DNS rebinding) and read everything there.
// Requests for host names other than ours are refused.
func TestAdminPagesAreForOurNamesOnly(t *testing.T) {
	get := newEnv(t, func(c *Config) { c.AdminHosts = []string{"Metrics.internal", "lubdub"} }).admin()
	for _, host := range []string{
		"127.0.0.1", "127.0.0.1:9090", "10.1.2.3", "[::1]:9090", "[fe80::1]", "localhost", "localhost:9090", "LOCALHOST", "localhost.",
		"metrics.internal:9090", "METRICS.INTERNAL", "lubdub:1",
	} {
		if status, _, body := get(http.MethodGet, "/metrics", host); status != 200 {
			t.Errorf("%s: %d %.200s", host, status, body)
		}
	}
	for _, host := range []string{"evil.example", "evil.example:9090", "127.0.0.1.evil.example", "localhost.evil.example",
		"metrics.internal.evil.example", "xlubdub", "0x7f.1"} {
		for _, path := range []string{"/metrics", "/livez", "/debug/pprof/heap", "/none"} {
			status, _, body := get(http.MethodGet, path, host)
			var e v1.Error
			if json.Unmarshal([]byte(body), &e) != nil || status != 421 || e.Error != v1.CodeMisdirected ||
				!strings.Contains(e.Message, "admin-hosts") {
				t.Errorf("%s%s: %d %.200s", host, path, status, body)
			}
		}
	}
}
