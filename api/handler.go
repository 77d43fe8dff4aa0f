package api

import (
	"github.com/valyala/fasthttp"
)

// Handler answers one request of the API.
func (s *Server) Handler(ctx *fasthttp.RequestCtx) {
	defer s.api.recovered(ctx)
	start := ctx.Time()
	var w wire
	w.scan(ctx.Request.Header.RawHeaders())
	s.api.setRequestID(ctx, w.requestID)
	if r := w.check(ctx); r != nil {
		s.api.refuseUnrouted(ctx, r, start)
		return
	}
	s.api.leaveBase(ctx)
	if id := heartbeatTarget(ctx); id != nil {
		s.beats.Heartbeat(ctx, &w, id, start)
		return
	}
	s.api.Serve(ctx, w, start)
}
