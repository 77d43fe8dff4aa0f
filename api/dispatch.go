package api

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

// Serve answers everything but the plain beat of one task.
func (a *API) Serve(ctx *fasthttp.RequestCtx, w wire, start time.Time) {
	a.inFlight.Add(1)
	defer a.inFlight.Add(-1)
	m, status := a.route(ctx, w)
	m.observe(status, start)
}

// InFlight returns how many requests wait for their answer.
func (a *API) InFlight() int64 { return a.inFlight.Load() + a.Metrics.hot.inFlight() }

// refuseUnrouted answers what is refused before routing.
func (a *API) refuseUnrouted(ctx *fasthttp.RequestCtx, r *refusal, start time.Time) {
	a.Metrics.unrouted.observe(r.status, start)
	a.refuse(ctx, r)
}

// refuse answers with a refusal, and counts it where the request is a heartbeat.
func (a *API) refuse(ctx *fasthttp.RequestCtx, r *refusal) {
	a.Metrics.refuseOther(a.kindOfBeat(ctx), r)
	a.writeRefusal(ctx, r)
}

// kindOfBeat returns which kind of heartbeat a request is by its method and path, "" when it is none.
func (a *API) kindOfBeat(ctx *fasthttp.RequestCtx) string {
	if !ctx.Request.Header.IsPost() {
		return ""
	}
	path, _, _ := bytes.Cut(a.underBase(ctx.Request.Header.RequestURI()), []byte("?"))
	for _, r := range a.routes {
		if r.beats != "" && r.resembles(path) {
			return r.beats
		}
	}
	return ""
}

// recovered answers for a handler that panicked: fasthttp would let that end the process. It must be deferred
// itself.
func (a *API) recovered(ctx *fasthttp.RequestCtx) {
	p := recover()
	if p == nil {
		return
	}
	requestID := string(ctx.Response.Header.Peek(headerRequestID))
	r := a.panicked(p, requestID, string(ctx.Method()), string(ctx.Path()))
	ctx.Response.Reset()
	a.setRequestID(ctx, []byte(requestID))
	a.writeRefusal(ctx, r)
}

// panicked logs what a handler panicked with, on the goroutine that recovers, and returns what the client is told.
func (a *API) panicked(p any, requestID, method, path string) *refusal {
	a.Metrics.panics.Inc()
	a.Log.LogAttrs(context.Background(), slog.LevelError, "panic in a handler",
		slog.String("requestId", requestID), slog.String("method", method), slog.String("path", path),
		slog.Any("panic", p), slog.String("stack", string(debug.Stack())))
	return refusalOf("handler", &refusal{status: fasthttp.StatusInternalServerError, body: v1.Error{
		Error: v1.CodeInternal, Message: "Something went wrong here that is not your fault; please report it with the request id",
	}})
}

// route answers everything but the plain beat of one task.
func (a *API) route(ctx *fasthttp.RequestCtx, w wire) (*routeMetrics, int) {
	req := request{api: a, ctx: ctx, wire: w, now: a.NowOf(ctx)}
	status, body, err := req.dispatch()
	m := &a.Metrics.unrouted
	op := "route"
	if req.route != nil {
		m, op = &a.Metrics.routes[req.route.index], req.route.op
	}
	var r *refusal
	if err != nil {
		r = refusalOf(op, err)
	}
	if r != nil {
		if req.route != nil && req.route.access == forBeat {
			a.Metrics.refusedBeat(r)
			a.writeRefusal(ctx, r)
		} else {
			a.refuse(ctx, r)
		}
		return m, r.status
	}
	if req.route != nil && req.route.beats == kindWorker {
		a.Metrics.accepted.Inc()
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
	if status, ok, err := req.api.pages(req, path); ok {
		return status, nil, err
	}
	if req.route, req.id, err = req.api.Find(string(req.ctx.Method()), path); err != nil {
		return 0, nil, err
	}
	yields := req.route.yields()
	if yields {
		if r := req.api.Control.full(); r != nil {
			return 0, nil, r
		}
	}
	if err := req.authorize(); err != nil {
		return 0, nil, err
	}
	if yields {
		if r := req.api.Control.enter(req.who); r != nil {
			return 0, nil, r
		}
		defer req.api.Control.leave(req.who)
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
