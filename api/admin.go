package api

import (
	"strings"

	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/valyala/fasthttp"
	"github.com/valyala/fasthttp/fasthttpadaptor"
	"github.com/valyala/fasthttp/pprofhandler"

	v1 "github.com/lubdub-io/lubdub/api/v1"
)

// AdminHandler answers the pages for operators: metrics, profiles and health. It asks for no token, so it
// belongs on a listener that only operators reach.
func (s *Server) AdminHandler(ctx *fasthttp.RequestCtx) {
	defer s.recovered(ctx)
	s.setRequestID(ctx, ctx.Request.Header.Peek(headerRequestID))
	path := string(ctx.Path())
	if !ctx.IsGet() && !ctx.IsHead() {
		s.writeRefusal(ctx, methodNotAllowed("GET, HEAD"))
		return
	}
	switch {
	case path == "/metrics" && s.cfg.Gatherer != nil:
		fasthttpadaptor.NewFastHTTPHandler(promhttp.HandlerFor(s.cfg.Gatherer, promhttp.HandlerOpts{MaxRequestsInFlight: 4}))(ctx)
	case path == "/debug/pprof" || strings.HasPrefix(path, "/debug/pprof/"):
		if path == "/debug/pprof/" { // fasthttp's handler wants it without the slash
			ctx.Request.SetRequestURI("/debug/pprof")
		}
		pprofhandler.PprofHandler(ctx)
	case path == "/livez":
		writeJSON(ctx, fasthttp.StatusOK, v1.Health{Status: "ok"})
	case path == "/readyz" || path == "/healthz":
		status, health := s.health()
		writeJSON(ctx, status, health)
	case path == "/version":
		c := call{s: s, ctx: ctx}
		status, body, _ := c.version()
		writeJSON(ctx, status, body)
	default:
		s.writeRefusal(ctx, refuse(fasthttp.StatusNotFound, v1.CodeNotFound,
			"There is nothing at this path; there are /metrics, /debug/pprof/, /livez, /readyz, /healthz and /version"))
	}
}
