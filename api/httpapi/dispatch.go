package httpapi

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"runtime/debug"
	"time"

	"github.com/valyala/fasthttp"

	v1 "github.com/lubdub-io/lubdub/sdk/go/v1"
)

// Serve answers all requests except the plain heartbeat of one task.
func (a *API) Serve(ctx *fasthttp.RequestCtx, w Wire, start time.Time) {
	a.inFlight.Add(1)
	defer a.inFlight.Add(-1)
	m, status := a.route(ctx, w)
	m.observe(status, start)
}

// InFlight returns how many requests are being processed.
func (a *API) InFlight() int64 { return a.inFlight.Load() + a.Metrics.hot.inFlight() }

// RefuseUnrouted answers a request that is refused before routing.
func (a *API) RefuseUnrouted(ctx *fasthttp.RequestCtx, r *Refusal, start time.Time) {
	a.Metrics.unrouted.observe(r.Status, start)
	a.Refuse(ctx, r)
}

// Refuse answers with a refusal, and counts it if the request is a heartbeat.
func (a *API) Refuse(ctx *fasthttp.RequestCtx, r *Refusal) {
	a.Metrics.refuseOther(a.kindOfBeat(ctx), r)
	a.WriteRefusal(ctx, r)
}

// kindOfBeat returns the kind of heartbeat of a request by its method and path, or "" if it is none.
func (a *API) kindOfBeat(ctx *fasthttp.RequestCtx) string {
	if !ctx.Request.Header.IsPost() {
		return ""
	}
	path, _, _ := bytes.Cut(a.UnderBase(ctx.Request.Header.RequestURI()), []byte("?"))
	for _, r := range a.routes {
		if r.Beats != "" && r.resembles(path) {
			return r.Beats
		}
	}
	return ""
}

// Recovered answers for a handler that panicked, which would otherwise end the process. It must be deferred directly.
func (a *API) Recovered(ctx *fasthttp.RequestCtx) {
	p := recover()
	if p == nil {
		return
	}
	requestID := string(ctx.Response.Header.Peek(HeaderRequestID))
	r := a.Panicked(p, requestID, string(ctx.Method()), string(ctx.Path()))
	ctx.Response.Reset()
	a.SetRequestID(ctx, []byte(requestID))
	a.WriteRefusal(ctx, r)
}

// Panicked logs a panic value, on the goroutine that recovers, and returns the refusal for the client.
func (a *API) Panicked(p any, requestID, method, path string) *Refusal {
	a.Metrics.Panics.Inc()
	a.Logger.LogAttrs(context.Background(), slog.LevelError, "panic in a handler",
		slog.String("requestId", requestID), slog.String("method", method), slog.String("path", path),
		slog.Any("panic", p), slog.String("stack", string(debug.Stack())))
	return RefusalOf("handler", &Refusal{Status: fasthttp.StatusInternalServerError, Body: v1.Error{
		Error: v1.CodeInternal, Message: "Something went wrong here that is not your fault; please report it with the request id",
	}})
}

// route answers all requests except the plain heartbeat of one task.
func (a *API) route(ctx *fasthttp.RequestCtx, w Wire) (*routeMetrics, int) {
	req := Request{API: a, Ctx: ctx, Wire: w, Now: a.RedisTime(ctx)}
	status, body, err := req.dispatch()
	m := &a.Metrics.unrouted
	op := "route"
	if req.Route != nil {
		m, op = &a.Metrics.routes[req.Route.index], req.Route.Op
	}
	var r *Refusal
	if err != nil {
		r = RefusalOf(op, err)
	}
	if r != nil {
		if req.Route != nil && req.Route.Access == ForBeat {
			a.Metrics.RefusedBeat(r)
			a.WriteRefusal(ctx, r)
		} else {
			a.Refuse(ctx, r)
		}
		return m, r.Status
	}
	if body != nil {
		ctx.Response.Header.Set(fasthttp.HeaderCacheControl, "no-store")
		WriteJSON(ctx, status, body)
	}
	return m, status
}

// dispatch finds the route and checks in the order of the contract: path and method, token, scope and role, body.
func (req *Request) dispatch() (status int, body any, err error) {
	target := req.Ctx.Request.Header.RequestURI()
	if string(target) == "*" {
		return 0, nil, MethodNotAllowed("GET, HEAD, POST")
	}
	path, query, err := SplitTarget(target)
	if err != nil {
		return 0, nil, err
	}
	if status, ok, err := req.API.pages(req, path); ok {
		return status, nil, err
	}
	if req.Route, req.ID, err = req.API.Find(string(req.Ctx.Method()), path); err != nil {
		return 0, nil, err
	}
	yields := req.Route.Yields()
	if yields {
		if r := req.API.Control.full(); r != nil {
			return 0, nil, r
		}
	}
	if err := req.authorize(); err != nil {
		return 0, nil, err
	}
	if yields {
		if r := req.enterControl(); r != nil {
			return 0, nil, r
		}
		defer req.leaveControl()
	}
	if err := req.parseQuery(query); err != nil {
		return 0, nil, err
	}
	status, body, err = req.Route.Handle(req)
	if err == nil {
		req.logAct()
	}
	return status, body, err
}

// MethodNotAllowed refuses a method that the path does not support.
func MethodNotAllowed(allow string) *Refusal {
	r := NewRefusal(fasthttp.StatusMethodNotAllowed, v1.CodeMethodNotAllowed,
		fmt.Sprintf("This path does not support this method; use %s", allow))
	r.allow = allow
	return r
}
