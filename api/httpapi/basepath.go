package httpapi

import (
	"bytes"

	"github.com/valyala/fasthttp"
)

// A proxy may show the server below a path of its own, Config.BasePath. Whether it takes that path away before it passes a request
// on or not, the request is answered alike; the path is needed for the links of answers.

// UnderBase returns a request target as it is without the base path.
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

// LeaveBase takes the base path out of a request.
func (a *API) LeaveBase(ctx *fasthttp.RequestCtx) {
	if a.cfg.BasePath == "" {
		return
	}
	if target := ctx.Request.Header.RequestURI(); bytes.HasPrefix(target, []byte(a.cfg.BasePath)) {
		ctx.Request.Header.SetRequestURIBytes(bytes.Clone(a.UnderBase(target)))
	}
}
