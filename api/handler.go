package api

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"runtime/debug"

	"github.com/valyala/fasthttp"

	v1 "github.com/lubdub-io/lubdub/sdk/go/v1"
)

// Handler answers one request of the API.
func (s *Server) Handler(ctx *fasthttp.RequestCtx) {
	defer s.recovered(ctx)
	start := ctx.Time()
	var w wire
	w.scan(ctx.Request.Header.RawHeaders())
	s.setRequestID(ctx, w.requestID)
	if r := s.checkWire(ctx, &w); r != nil {
		s.metrics.unrouted.observe(r.status, start)
		s.metrics.refuseOther(s.kindOfBeat(ctx), r)
		s.writeRefusal(ctx, r)
		return
	}
	s.leaveBase(ctx)
	if id := heartbeatTarget(ctx); id != nil {
		s.heartbeat(ctx, &w, id, start)
		return
	}
	s.inFlight.Add(1)
	defer s.inFlight.Add(-1)
	m, status := s.route(ctx, w)
	m.observe(status, start)
}

// checkWire refuses what other hops may read differently.
func (s *Server) checkWire(ctx *fasthttp.RequestCtx, w *wire) *refusal {
	switch {
	case w.ambiguous():
		return errAmbiguous
	case len(ctx.Request.Header.Host()) == 0 && ctx.Request.Header.IsHTTP11():
		return errHost
	}
	return nil
}

var (
	prefixTasks     = []byte("/v1/tasks/")
	prefixWorkers   = []byte("/v1/workers/")
	suffixHeartbeat = []byte("/heartbeat")
)

// heartbeatTarget returns the task id when the request is a plain POST /v1/tasks/{taskId}/heartbeat, nil
// otherwise. The id is borrowed and not checked, but that it is one segment.
func heartbeatTarget(ctx *fasthttp.RequestCtx) []byte {
	if !ctx.Request.Header.IsPost() {
		return nil
	}
	uri := ctx.Request.Header.RequestURI()
	if len(uri) <= len(prefixTasks)+len(suffixHeartbeat) || !bytes.HasPrefix(uri, prefixTasks) || !bytes.HasSuffix(uri, suffixHeartbeat) {
		return nil
	}
	id := uri[len(prefixTasks) : len(uri)-len(suffixHeartbeat)]
	for _, c := range id {
		if c == '/' || c == '?' || c == '%' {
			return nil
		}
	}
	return id
}

// kindOfBeat returns which kind of heartbeat a request is by its method and path, "" when it is none.
func (s *Server) kindOfBeat(ctx *fasthttp.RequestCtx) string {
	if !ctx.Request.Header.IsPost() {
		return ""
	}
	path, _, _ := bytes.Cut(s.underBase(ctx.Request.Header.RequestURI()), []byte("?"))
	switch {
	case string(path) == "/v1/heartbeats":
		return kindTask
	case !bytes.HasSuffix(path, suffixHeartbeat):
		return ""
	case bytes.HasPrefix(path, prefixTasks):
		return kindTask
	case bytes.HasPrefix(path, prefixWorkers):
		return kindWorker
	}
	return ""
}

// recovered answers for a handler that panicked: fasthttp would let that end the process. It must be deferred
// itself.
func (s *Server) recovered(ctx *fasthttp.RequestCtx) {
	p := recover()
	if p == nil {
		return
	}
	requestID := string(ctx.Response.Header.Peek(headerRequestID))
	r := s.panicked(p, requestID, string(ctx.Method()), string(ctx.Path()))
	ctx.Response.Reset()
	s.setRequestID(ctx, []byte(requestID))
	s.writeRefusal(ctx, r)
}

// panicked logs what a handler panicked with, on the goroutine that recovers, and returns what the client is told.
func (s *Server) panicked(p any, requestID, method, path string) *refusal {
	s.metrics.panics.Inc()
	s.log.LogAttrs(context.Background(), slog.LevelError, "panic in a handler",
		slog.String("requestId", requestID), slog.String("method", method), slog.String("path", path),
		slog.Any("panic", p), slog.String("stack", string(debug.Stack())))
	return refusalOf("handler", &refusal{status: fasthttp.StatusInternalServerError, body: v1.Error{
		Error: v1.CodeInternal, Message: "Something went wrong here that is not your fault; please report it with the request id",
	}})
}

// route answers everything but the plain beat of one task.
func (s *Server) route(ctx *fasthttp.RequestCtx, w wire) (*routeMetrics, int) {
	req := request{s: s, ctx: ctx, wire: w, now: s.now(ctx)}
	status, body, err := req.dispatch()
	m := &s.metrics.unrouted
	op := "route"
	if req.route != nil {
		m, op = &s.metrics.routes[req.route.index], req.route.op
	}
	var r *refusal
	if err != nil {
		r = refusalOf(op, err)
	}
	if r != nil {
		if op == opHeartbeat {
			s.metrics.refusedBeat(r)
		} else {
			s.metrics.refuseOther(s.kindOfBeat(ctx), r)
		}
		s.writeRefusal(ctx, r)
		return m, r.status
	}
	if op == opWorkerHeartbeat {
		s.metrics.accepted.Inc()
	}
	if body != nil {
		ctx.Response.Header.Set(fasthttp.HeaderCacheControl, "no-store")
		writeJSON(ctx, status, body)
	}
	return m, status
}

// dispatch finds the route and judges in the order of the contract: path and method, token, scope and role,
// body.
func (req *request) dispatch() (status int, body any, err error) {
	target := req.ctx.Request.Header.RequestURI()
	if string(target) == "*" {
		return 0, nil, methodNotAllowed("GET, HEAD, POST")
	}
	path, query, err := splitTarget(target)
	if err != nil {
		return 0, nil, err
	}
	if status, ok, err := req.servePage(path); ok {
		return status, nil, err
	}
	if req.route, req.id, err = findRoute(string(req.ctx.Method()), path); err != nil {
		return 0, nil, err
	}
	yields := req.route.yields()
	if yields {
		if r := req.s.control.full(); r != nil {
			return 0, nil, r
		}
	}
	if err := req.authorize(); err != nil {
		return 0, nil, err
	}
	if yields {
		if r := req.s.control.enter(req.who); r != nil {
			return 0, nil, r
		}
		defer req.s.control.leave(req.who)
	}
	if err := req.parseQuery(query); err != nil {
		return 0, nil, err
	}
	status, body, err = req.route.handle(req)
	if err == nil {
		req.logAct()
	}
	return status, body, err
}

func methodNotAllowed(allow string) *refusal {
	r := refuse(fasthttp.StatusMethodNotAllowed, v1.CodeMethodNotAllowed,
		fmt.Sprintf("This path does not take this method; use %s", allow))
	r.allow = allow
	return r
}
