package httpapi

import (
	"bytes"

	"github.com/valyala/fasthttp"
)

// A proxy may expose the server under a path, Config.BasePath. Requests are answered in the same way whether the proxy strips that path or
// not; the path is needed for links in answers.

// UnderBase returns a request target without the base path.
func (a *API) UnderBase(target []byte) []byte {
	rest, ok := bytes.CutPrefix(target, []byte(a.cfg.BasePath))
	switch {
	case !ok || a.cfg.BasePath == "":
		return target
	case len(rest) == 0 || rest[0] == '?':
		return append([]byte("/"), rest...)
	case rest[0] != '/':
		return target
	}
	return rest
}

// LeaveBase removes the base path from a request.
func (a *API) LeaveBase(ctx *fasthttp.RequestCtx) {
	if a.cfg.BasePath == "" {
		return
	}
	if target := ctx.Request.Header.RequestURI(); bytes.HasPrefix(target, []byte(a.cfg.BasePath)) {
		ctx.Request.Header.SetRequestURIBytes(bytes.Clone(a.UnderBase(target)))
	}
}
