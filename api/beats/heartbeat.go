package beats

import (
	"bytes"
	"strconv"
	"sync"
	"time"
	"unsafe"

	"github.com/valyala/fasthttp"

	"github.com/lubdub-io/lubdub/api/httpapi"
	"github.com/lubdub-io/lubdub/api/internal/beatbody"
	"github.com/lubdub-io/lubdub/api/internal/conn"
	"github.com/lubdub-io/lubdub/api/internal/jsonscan"
	"github.com/lubdub-io/lubdub/tracker/beats"
	"github.com/lubdub-io/lubdub/tracker/model"
)

// operation is the name of a heartbeat in the log.
const operation = "heartbeat"

// oneBeat is a beat being processed. Nothing in it points into the request.
type oneBeat struct {
	beat       beats.Beat
	report     []byte // beat.Report points into it
	reportedMs int64  // when its client sent it, as reported; 0: not reported
	who        *httpapi.Principal
	now        time.Time // the time at which its token was checked
}

// beatRequest is the pooled state of one beat. Nothing in it outlives the handler.
type beatRequest struct {
	oneBeat
	body  beatbody.Body
	out   []byte
	stamp jsonscan.Stamp
	count *httpapi.Stripe
}

// newBeatRequests returns a server's pool of beatRequests.
func newBeatRequests(m *httpapi.Metrics) *sync.Pool {
	return &sync.Pool{New: func() any {
		return &beatRequest{oneBeat: oneBeat{report: make([]byte, 0, 2048)}, out: make([]byte, 0, 2048), count: m.Stripe()}
	}}
}

// Heartbeat answers POST /v1/tasks/{taskId}/heartbeat. It is the hot path: one look-up in the token cache, one pass over the body, one
// wait for the batcher, no allocation.
func (h *Handlers) Heartbeat(ctx *fasthttp.RequestCtx, w *httpapi.Wire, id []byte, start time.Time) (status int) {
	c := h.requests.Get().(*beatRequest)
	c.count.InFlight.Add(1)
	defer c.count.InFlight.Add(-1)
	status = fasthttp.StatusOK
	if r := h.beat(ctx, w, id, c); r != nil {
		status = r.Status
		h.api.Metrics.RefusedBeat(r)
		h.api.WriteRefusal(ctx, r)
	}
	c.count.Observe(status, time.Since(start))
	h.requests.Put(c) // not after a panic: the batcher may still use the beat
	return status
}

// heartbeat answers beats through the route table, for those that Target did not recognise, such as those with an encoded id.
func (h *Handlers) heartbeat(req *httpapi.Request) (int, any, error) {
	return h.Heartbeat(req.Ctx, &req.Wire, []byte(req.ID), req.Ctx.Time()), nil, nil
}

func (h *Handlers) beat(ctx *fasthttp.RequestCtx, w *httpapi.Wire, id []byte, c *beatRequest) *httpapi.Refusal {
	now := h.api.RedisTime(ctx)
	who, r := h.api.Authenticate(w.Bearer(), now, c.count)
	if r != nil {
		return r
	}
	conn.Known(ctx.Conn(), who.Holder())
	a := who.Task()
	if a != nil {
		if r := httpapi.CheckTask(a, id); r != nil {
			return r
		}
		if r := h.api.TakeBeat(who, a.Scope.Tenant, h.api.Local(ctx)); r != nil {
			return r
		}
	}
	if r := httpapi.CheckContentType(&ctx.Request.Header); r != nil {
		return r
	}
	if r := c.body.Read(ctx.Request.Body()); r != nil {
		return r
	}
	if a == nil { // possibly a worker's token, which can be checked now that the body has named the attempt
		if a, r = h.api.OwnAttempt(ctx, operation, who, string(id), c.body.Attempt); r != nil {
			return r
		}
	}
	if r := httpapi.CheckAttempt(a, c.body.Attempt); r != nil {
		return r
	}
	if n := beatbody.KiB(c.body.Details); n > 0 {
		h.api.ChargeBeats(a.Scope.Tenant, n, h.api.Local(ctx))
	}
	c.prepare(a, &c.body, ctx.Time())
	c.who, c.now = who, now
	h.beats.Beat(&c.beat)
	if c.out, r = h.appendResult(append(c.out[:0], '{'), &c.oneBeat, &c.stamp, c.count); r != nil {
		return r
	}
	c.out = append(c.out, '}')
	if c.firstCancel() {
		h.writeCancel(ctx, c.out, a)
		return nil
	}
	ctx.SetStatusCode(fasthttp.StatusOK)
	ctx.Response.Header.SetContentTypeBytes(httpapi.ContentTypeJSON)
	c.out = ctx.Response.SwapBody(c.out) // instead of a copy; the next beat reuses the old buffer
	return nil
}

// writeCancel answers 200 with a copy of body, which includes cancels of the attempts.
func (h *Handlers) writeCancel(ctx *fasthttp.RequestCtx, body []byte, attempts ...*model.Attempt) {
	httpapi.WriteNotified(ctx, body, func() {
		for _, a := range attempts {
			h.beats.CancelDelivered(a)
		}
	})
}

// prepare creates the beat of an attempt from a body.
func (o *oneBeat) prepare(a *model.Attempt, b *beatbody.Body, arrived time.Time) {
	o.report = b.AppendReport(o.report[:0])
	o.reportedMs = b.ReportedMs
	o.beat.Attempt, o.beat.Report, o.beat.Details, o.beat.Arrived = a, borrowed(o.report), borrowed(b.Details), arrived
}

// firstCancel reports whether the answer to the beat is the first to include a cancel, so that its delivery must be recorded.
func (o *oneBeat) firstCancel() bool { return o.beat.Cancel != nil && !o.beat.Cancel.Delivered }

// appendResult appends the answer to a beat that has its result, or returns its refusal.
func (h *Handlers) appendResult(dst []byte, o *oneBeat, clock *jsonscan.Stamp, count *httpapi.Stripe) ([]byte, *httpapi.Refusal) {
	if o.beat.Err != nil {
		return dst, httpapi.RefusalOf(operation, o.beat.Err)
	}
	if o.reportedMs != 0 {
		count.Skew.ObserveMs(o.reportedMs, o.beat.At)
	}
	return h.appendBeat(dst, &o.beat, o.who, o.now, clock), nil
}

// borrowed returns b as a string, which is valid until b is written to.
func borrowed(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }

// appendBeat appends the fields of a beat's answer, as in v1.HeartbeatResponse.
func (h *Handlers) appendBeat(dst []byte, b *beats.Beat, who *httpapi.Principal, now time.Time, clock *jsonscan.Stamp) []byte {
	if b.Cancel == nil {
		dst = append(dst, `"acknowledged":true,"shouldCancel":false,"serverTime":`...)
	} else {
		dst = append(dst, `"acknowledged":true,"shouldCancel":true,`...)
		if b.Cancel.Reason != "" {
			dst = append(dst, `"cancelReason":`...)
			dst = jsonscan.AppendString(dst, b.Cancel.Reason)
			dst = append(dst, ',')
		}
		dst = append(dst, `"serverTime":`...)
	}
	dst = clock.Append(dst, b.At)
	dst = append(dst, `,"nextHeartbeatMs":`...)
	dst = strconv.AppendInt(dst, nextHeartbeat(b.Attempt).Milliseconds(), 10)
	if f := who.Renewed(h.api.Keys, now); f != nil {
		dst = append(dst, `,"taskToken":"`...) // base64url and dots need no escaping
		dst = append(dst, f.Text...)
		dst = append(dst, `","tokenExpiresAt":`...)
		dst = clock.Append(dst, f.Expires)
	}
	return dst
}

// nextHeartbeat returns when an attempt's next beat should be sent: early enough for one to be lost.
func nextHeartbeat(a *model.Attempt) time.Duration {
	if a.Timeout > 0 {
		return min(a.Interval, a.Timeout/2)
	}
	return a.Interval
}

var (
	pathPrefix = []byte("/v1/tasks/")
	pathSuffix = []byte("/heartbeat")
)

// Target returns the task id if the request is a plain POST /v1/tasks/{taskId}/heartbeat, else nil. The id points into the request, and
// is only checked to be one path segment.
func Target(ctx *fasthttp.RequestCtx) []byte {
	if !ctx.Request.Header.IsPost() {
		return nil
	}
	uri := ctx.Request.Header.RequestURI()
	if len(uri) <= len(pathPrefix)+len(pathSuffix) || !bytes.HasPrefix(uri, pathPrefix) || !bytes.HasSuffix(uri, pathSuffix) {
		return nil
	}
	id := uri[len(pathPrefix) : len(uri)-len(pathSuffix)]
	for _, c := range id {
		if c == '/' || c == '?' || c == '%' {
			return nil
		}
	}
	return id
}
