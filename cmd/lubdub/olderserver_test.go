package main

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"testing"

	"github.com/lubdub-io/lubdub/api/token"
	"github.com/lubdub-io/lubdub/internal/cli/exit"
)

// older answers as a server does that knows neither findings nor tokens made of tokens.
type older struct{ behind http.Handler }

func (o older) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path == "/v1/tokens" {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusNotFound)
		_, _ = w.Write([]byte(`{"error":"not_found","message":"No resource at this path"}`))
		return
	}
	if r.URL.Path != "/v1/system" {
		o.behind.ServeHTTP(w, r)
		return
	}
	r.Header.Del("Accept-Encoding")
	got := httptest.NewRecorder()
	o.behind.ServeHTTP(got, r)
	var system map[string]json.RawMessage
	_ = json.Unmarshal(got.Body.Bytes(), &system)
	delete(system, "findings")
	delete(system, "summary")
	_ = json.NewEncoder(w).Encode(system)
}

// The CLI does not evaluate in place of a server that cannot, and opens its page with the context's own token: both are reported.
func TestAnOlderServerIsReportedAsOlder(t *testing.T) {
	t.Parallel()
	d := newDesk(t, token.RoleViewer)
	at, err := url.Parse(d.api)
	if err != nil {
		t.Fatal(err)
	}
	s := httptest.NewServer(older{httputil.NewSingleHostReverseProxy(at)})
	t.Cleanup(s.Close)
	d.environ = append(d.environ, "LUBDUB_URL="+s.URL, "LUBDUB_TOKEN="+adminToken(t))
	scope := []string{"--tenant", "default", "--workspace", "default"}
	run := func(args ...string) answer { return d.run(append(args, scope...)...) }
	d.is(run("status"), exit.Failed, "UNHEALTHY (1 failure", "The server is older than this command", "upgrade the server")
	d.is(run("doctor"), exit.Failed, "The server is older than this command", "ok   token")
	a := d.is(run("ui", "--print"), exit.OK, "makes no shorter token", "holds until 20")
	if signIn, err := url.ParseQuery(a.out[strings.Index(a.out, "#")+1 : len(a.out)-1]); err != nil || signIn.Get("token") == "" {
		t.Errorf("%s %v", a.out, err)
	}
	if a := d.is(run("ui", "--print", "--role", "viewer"), exit.Failed, "cannot have the role viewer"); strings.Contains(a.out, "#") {
		t.Error("the page gets a token of another role than it should")
	}
}
