package api

import (
	"net"
	"runtime/pprof"
	"strconv"
	"strings"

	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/valyala/fasthttp"
	"github.com/valyala/fasthttp/fasthttpadaptor"
	"github.com/valyala/fasthttp/pprofhandler"

	"github.com/lubdub-io/lubdub/api/httpapi"
	v1 "github.com/lubdub-io/lubdub/sdk/go/v1"
)

// AdminHandler answers the pages for operators: metrics, profiles and health. It requires no token, so only operators must be able to
// reach its listener.
func (s *Server) AdminHandler(ctx *fasthttp.RequestCtx) {
	defer s.api.Recovered(ctx)
	s.api.SetRequestID(ctx, ctx.Request.Header.Peek(httpapi.HeaderRequestID))
	if r := s.checkAdminHost(ctx.Request.Header.Host()); r != nil {
		s.api.WriteRefusal(ctx, r)
		return
	}
	path := string(ctx.Path())
	if !ctx.IsGet() && !ctx.IsHead() {
		s.api.WriteRefusal(ctx, httpapi.MethodNotAllowed("GET, HEAD"))
		return
	}
	switch {
	case path == "/metrics" && s.cfg.Gatherer != nil:
		fasthttpadaptor.NewFastHTTPHandler(promhttp.HandlerFor(s.cfg.Gatherer, promhttp.HandlerOpts{MaxRequestsInFlight: 4}))(ctx)
	case isProfile(path):
		if path == "/debug/pprof/" { // fasthttp's handler expects it without the slash
			ctx.Request.SetRequestURI("/debug/pprof")
		}
		pprofhandler.PprofHandler(ctx)
	case path == "/livez":
		httpapi.WriteJSON(ctx, fasthttp.StatusOK, v1.Health{Status: "ok"})
	case path == "/readyz" || path == "/healthz":
		status, health := s.system.Health(&ctx.Response.Header)
		httpapi.WriteJSON(ctx, status, health)
	case path == "/version":
		httpapi.WriteJSON(ctx, fasthttp.StatusOK, s.system.Build())
	default:
		s.api.WriteRefusal(ctx, httpapi.NewRefusal(fasthttp.StatusNotFound, v1.CodeNotFound,
			"No resource at this path; the paths are /metrics, /debug/pprof/, /livez, /readyz, /healthz and /version"))
	}
}

// isProfile reports whether a path is one of the profiler's pages that are served. The command line is not: it may contain passwords.
func isProfile(path string) bool {
	page, ok := strings.CutPrefix(path, "/debug/pprof/")
	switch {
	case path == "/debug/pprof":
		return true
	case !ok:
		return false
	case page == "" || page == "profile" || page == "symbol" || page == "trace":
		return true
	}
	return pprof.Lookup(page) != nil
}

// checkAdminHost refuses a Host that is neither an address, nor localhost, nor in Config.AdminHosts. Otherwise a page in an operator's
// browser could point its own host name at this listener (DNS rebinding) and read the answers.
func (s *Server) checkAdminHost(host []byte) *httpapi.Refusal {
	name := string(host)
	if h, _, err := net.SplitHostPort(name); err == nil {
		name = h
	}
	name = strings.TrimSuffix(strings.Trim(name, "[]"), ".")
	if name == "" || net.ParseIP(name) != nil || strings.EqualFold(name, "localhost") {
		return nil
	}
	for _, own := range s.cfg.AdminHosts {
		if strings.EqualFold(name, own) {
			return nil
		}
	}
	return httpapi.NewRefusal(fasthttp.StatusMisdirectedRequest, v1.CodeMisdirected,
		"This listener does not accept the host name "+strconv.Quote(httpapi.Clip(name))+"; use its address, or add the name to admin-hosts")
}
