package api

import (
	"github.com/valyala/fasthttp"

	"github.com/lubdub-io/lubdub/api/beats"
	"github.com/lubdub-io/lubdub/api/httpapi"
)

// Handler answers one request of the API.
func (s *Server) Handler(ctx *fasthttp.RequestCtx) {
	defer s.api.Recovered(ctx)
	start := ctx.Time()
	var w httpapi.Wire
	w.Scan(ctx.Request.Header.RawHeaders())
	s.api.SetRequestID(ctx, w.RequestID)
	if r := w.Check(ctx); r != nil {
		s.api.RefuseUnrouted(ctx, r, start)
		return
	}
	s.api.LeaveBase(ctx)
	if id := beats.Target(ctx); id != nil {
		s.beats.Heartbeat(ctx, &w, id, start)
		return
	}
	s.api.Serve(ctx, w, start)
}
