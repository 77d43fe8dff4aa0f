package system

import (
	"bytes"
	"io/fs"
	"path"
	"strings"

	"github.com/valyala/fasthttp"

	"github.com/lubdub-io/lubdub/api/httpapi"
	"github.com/lubdub-io/lubdub/api/internal/page"
	v1 "github.com/lubdub-io/lubdub/sdk/go/v1"
	"github.com/lubdub-io/lubdub/ui"
)

// The pages for people: the index, the documentation and the dashboard.

const (
	pathDocs = "/docs"
	pathUI   = "/ui/"
	// pathSignIn says how to sign in with an OpenID provider.
	pathSignIn = pathUI + "oidc.json"
)

// index answers GET /: programs get the links, browsers are redirected to the dashboard.
func (h *Handlers) index(req *httpapi.Request) (int, any, error) {
	req.Ctx.Response.Header.Set(fasthttp.HeaderVary, fasthttp.HeaderAccept)
	if bytes.Contains(bytes.ToLower(req.Ctx.Request.Header.Peek(fasthttp.HeaderAccept)), []byte("text/html")) {
		return h.redirect(req, pathUI)
	}
	at := func(path string) string { return h.BasePath + path }
	return fasthttp.StatusOK, &v1.Index{
		Name: "lubdub", Version: h.Version,
		Links: v1.IndexLinks{API: at("/v1/"), OpenAPI: at("/openapi.json"), Docs: at(pathDocs), Dashboard: at(pathUI), Health: at("/healthz"),
			Version: at("/version")},
		Next: "Every call below /v1/ needs a token: 'lubdub token --role viewer' prints one, signed with the server's keys. " + at(pathDocs) +
			" explains the calls, and " + at(pathUI) + " shows the deployment.",
	}, nil
}

// redirect redirects a client to another path of this server.
func (h *Handlers) redirect(req *httpapi.Request, to string) (int, any, error) {
	req.Ctx.Response.Header.Set(fasthttp.HeaderLocation, h.BasePath+to)
	req.Ctx.SetStatusCode(fasthttp.StatusFound)
	return fasthttp.StatusFound, nil, nil
}

// Page answers with a page if the path is a page's.
func (h *Handlers) Page(req *httpapi.Request, path string) (status int, ok bool, err error) {
	if first, _, _ := strings.Cut(path[1:], "/"); first != "ui" && first != "docs" {
		return 0, false, nil
	}
	found := h.pages()[path]
	switch {
	case path == pathSignIn && req.Ctx.IsGet():
		status, err := h.signIn(req)
		return status, true, err
	case path == pathSignIn:
		return 0, true, httpapi.MethodNotAllowed("GET")
	case found == nil && path != strings.TrimSuffix(pathUI, "/") && path != pathDocs+"/":
		return 0, true, httpapi.NewRefusal(fasthttp.StatusNotFound, v1.CodeNotFound, "There is no such page; see "+pathDocs+" and "+pathUI)
	case !req.Ctx.IsGet() && !req.Ctx.IsHead():
		return 0, true, httpapi.MethodNotAllowed("GET, HEAD")
	case found != nil:
		return found.Serve(req.Ctx, h.policy()), true, nil
	case path == pathDocs+"/":
		path = pathDocs
	default:
		path = pathUI
	}
	status, _, err = h.redirect(req, path)
	return status, true, err
}

// makePages returns all pages by path. They refer to each other by relative addresses, so that they are the same below any base path.
func makePages(openAPI []byte) map[string]*page.Page {
	all := map[string]*page.Page{pathDocs: page.New(htmlType, renderDocs(openAPI)), pathDocs + "/docs.css": page.New(cssType, docsStyle)}
	err := fs.WalkDir(ui.Files, "dist", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		body, err := ui.Files.ReadFile(name)
		at := pathUI + strings.TrimPrefix(name, "dist/")
		if path.Base(name) == "index.html" {
			at = strings.TrimSuffix(at, "index.html")
		}
		all[at] = page.New(contentTypes[path.Ext(name)], body)
		return err
	})
	if err != nil {
		panic(err) // they are part of the program
	}
	return all
}

const (
	htmlType = "text/html; charset=utf-8"
	cssType  = "text/css; charset=utf-8"
)

var contentTypes = map[string]string{
	".html": htmlType, ".css": cssType, ".js": "text/javascript; charset=utf-8", ".svg": "image/svg+xml", ".txt": "text/plain; charset=utf-8",
}
