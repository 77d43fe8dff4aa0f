package api

import (
	"compress/gzip"
	"encoding/json"
	"io"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/lubdub-io/lubdub/api/internal/page"
	v1 "github.com/lubdub-io/lubdub/sdk/go/v1"
)

// visit sends a GET as a browser does, and follows no redirect.
func (e *env) visit(path string, headers ...string) (*http.Response, string) {
	e.t.Helper()
	req, err := http.NewRequest("GET", "http://lubdub"+path, nil)
	if err != nil {
		e.t.Fatal(err)
	}
	for i := 0; i < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	res, err := e.client.Transport.RoundTrip(req)
	if err != nil {
		e.t.Fatal(err)
	}
	defer res.Body.Close()
	body := io.Reader(res.Body)
	if res.Header.Get("Content-Encoding") == "gzip" {
		if body, err = gzip.NewReader(res.Body); err != nil {
			e.t.Fatal(err)
		}
	}
	text, err := io.ReadAll(body)
	if err != nil {
		e.t.Fatal(err)
	}
	return res, string(text)
}

func TestTheIndexListsLinksAndRedirectsBrowsers(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	var index v1.Index
	_, text := e.visit("/")
	if err := json.Unmarshal([]byte(text), &index); err != nil {
		t.Fatal(err)
	}
	e.do("GET", "/", "", "").want(200)
	want := v1.IndexLinks{API: "/v1/", OpenAPI: "/openapi.json", Docs: "/docs", Dashboard: "/ui/", Health: "/healthz", Version: "/version"}
	if index.Links != want || index.Version != "1.2.3" || !strings.Contains(index.Next, "lubdub token") {
		t.Errorf("%+v", index)
	}
	for from, to := range map[string]string{"/": "/ui/", "/ui": "/ui/", "/docs/": "/docs"} {
		res, _ := e.visit(from, "Accept", "text/html,application/xhtml+xml;q=0.9")
		if res.StatusCode != 302 || res.Header.Get("Location") != to {
			t.Errorf("%s is answered %d, to %q", from, res.StatusCode, res.Header.Get("Location"))
		}
	}
	e.do("POST", "/", "", "{}").refused(405, v1.CodeMethodNotAllowed)
}

var linkOrSource = regexp.MustCompile(`(?:href|src)="([^"]*)"`)

// Pages load nothing from other origins, and everything that they refer to exists, below any base path.
func TestPagesLinkToWhatIsThere(t *testing.T) {
	t.Parallel()
	e := newEnv(t, func(c *Config) { c.PublicURL = "https://api.arco.dev/apps/lubdub" })
	for _, base := range []string{"", "/apps/lubdub"} {
		for _, path := range []string{"/docs", "/ui/"} {
			res, text := e.visit(base + path)
			if res.StatusCode != 200 || res.Header.Get("Content-Security-Policy") != page.Policy("") {
				t.Fatalf("%s%s: %d %v", base, path, res.StatusCode, res.Header)
			}
			if strings.Contains(text, "<style") || strings.Contains(text, "style=") || regexp.MustCompile(`<script(>| [^s])`).MatchString(text) {
				t.Errorf("%s has what its policy forbids", path)
			}
			for _, m := range linkOrSource.FindAllStringSubmatch(text, -1) {
				if name, ok := strings.CutPrefix(m[1], "#"); ok {
					if !strings.Contains(text, `id="`+name+`"`) {
						t.Errorf("%s links to %s, which it does not have", path, m[1])
					}
					continue
				}
				at, err := res.Request.URL.Parse(m[1])
				if err != nil || at.Host != "lubdub" || !strings.HasPrefix(at.Path, base+"/") {
					t.Errorf("%s names %q", path, m[1])
					continue
				}
				if res, _ := e.visit(at.Path); res.StatusCode != 200 {
					t.Errorf("%s names %s, which is answered %d", path, at.Path, res.StatusCode)
				}
			}
		}
	}
}

func TestDocsHaveEveryOperation(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	_, text := e.visit("/docs")
	for _, r := range routes {
		if !strings.Contains(text, `<article id="`+r.Op+`">`) || !strings.Contains(text, "<code>"+r.Pattern+"</code>") {
			t.Errorf("%s is not documented", r)
		}
	}
	for _, want := range []string{
		"lastHeartbeatAgeMs", "Roles: viewer, operator, dispatcher, admin.", "Default: 3600000.", `href="#schema-TaskSelector"`,
	} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is missing", want)
		}
	}
}

func TestPagesAreCompressedAndCached(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	plain, text := e.visit("/docs")
	zipped, same := e.visit("/docs", "Accept-Encoding", "br, gzip;q=0.8")
	if zipped.Header.Get("Content-Encoding") != "gzip" || same != text || zipped.ContentLength >= plain.ContentLength/3 {
		t.Errorf("%d bytes, and zipped %d: %v", plain.ContentLength, zipped.ContentLength, zipped.Header)
	}
	if res, same := e.visit("/docs", "Accept-Encoding", "gzip;q=0"); res.Header.Get("Content-Encoding") != "" || same != text {
		t.Error("who does not take gzip gets it")
	}
	if plain.Header.Get("ETag") == zipped.Header.Get("ETag") {
		t.Error("different bytes have the same ETag")
	}
	for _, accept := range []string{"gzip", ""} {
		first, _ := e.visit("/docs", "Accept-Encoding", accept)
		again, body := e.visit("/docs", "Accept-Encoding", accept, "If-None-Match", `"other", W/`+first.Header.Get("ETag"))
		if again.StatusCode != 304 || body != "" {
			t.Errorf("a page that the browser has is answered %d, %d bytes", again.StatusCode, len(body))
		}
	}
	if res, _ := e.visit("/docs", "If-None-Match", `"other"`); res.StatusCode != 200 {
		t.Errorf("%d", res.StatusCode)
	}
	e.do("GET", "/ui/nothing.js", "", "").refused(404, v1.CodeNotFound)
	e.do("GET", "/docs/..%2fx", "", "").refused(400, v1.CodeInvalidRequest)
	e.do("POST", "/ui/", "", "").refused(405, v1.CodeMethodNotAllowed)
}

// Below a base path everything is answered as without it, whether the proxy takes the path away or not.
func TestBasePath(t *testing.T) {
	t.Parallel()
	e := newEnv(t, func(c *Config) { c.PublicURL = "https://api.arco.dev/apps/lubdub" })
	for _, base := range []string{"", "/apps/lubdub"} {
		res, _ := e.visit(base+"/", "Accept", "text/html")
		if to := res.Header.Get("Location"); res.StatusCode != 302 || to != "/apps/lubdub/ui/" {
			t.Errorf("a browser at %s/ is sent to %q", base, to)
		}
		_, text := e.visit(base + "/openapi.json")
		var doc struct{ Servers []struct{ URL string } }
		if err := json.Unmarshal([]byte(text), &doc); err != nil || len(doc.Servers) != 1 || doc.Servers[0].URL != "/apps/lubdub" {
			t.Errorf("%+v %v", doc, err)
		}
		for path, want := range map[string]int{"/livez": 200, "/livez?": 200, "/v1/tasks": 401, "/nothing": 404} {
			if res, body := e.visit(base + path); res.StatusCode != want {
				t.Errorf("%s%s is answered %d, %s", base, path, res.StatusCode, body)
			}
		}
		res, err := e.client.Post("http://lubdub.test"+base+"/v1/heartbeats", "application/json", strings.NewReader(strings.Repeat(" ", 2<<20)))
		if err != nil || res.StatusCode != 400 {
			t.Fatalf("a batch of 2 MiB below %q: %v %v", base, res, err)
		}
		_ = res.Body.Close()
	}
	for _, path := range []string{"/apps/lubdub", "/apps/lubdub?x=1"} {
		if res, body := e.visit(path); res.StatusCode != 200 && res.StatusCode != 400 || !strings.Contains(body, `{`) {
			t.Errorf("%s: %d %s", path, res.StatusCode, body)
		}
	}
	for _, path := range []string{"/apps/lubdubs/livez", "/apps/livez", "/apps/lubdub/apps/lubdub/livez"} {
		if res, _ := e.visit(path); res.StatusCode != 404 {
			t.Errorf("%s is answered %d", path, res.StatusCode)
		}
	}
	for _, base := range []string{"", "/apps/lubdub"} {
		req, err := http.NewRequest("POST", "http://lubdub.test"+base+"/v1/tasks/task_1/heartbeat", strings.NewReader(`{"attempt":1}`))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Authorization", "Bearer "+e.task())
		res, err := e.client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		if text, _ := io.ReadAll(res.Body); res.StatusCode != 200 {
			t.Errorf("a beat below %q is answered %d, %s", base, res.StatusCode, text)
		}
		_ = res.Body.Close()
	}
}
