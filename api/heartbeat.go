package api

import (
	"bytes"
	"strconv"
	"sync"
	"time"
	"unsafe"

	"github.com/valyala/fasthttp"

	"github.com/lubdub-io/lubdub/api/internal/conn"
	"github.com/lubdub-io/lubdub/api/internal/jsonscan"
	"github.com/lubdub-io/lubdub/tracker/beats"
	"github.com/lubdub-io/lubdub/tracker/model"
)

// operation is the name of a heartbeat in the log.
const operation = "heartbeat"

// oneBeat is a beat on its way. Nothing in it borrows the request.
type oneBeat struct {
	beat       beats.Beat
	report     []byte // beat.Report borrows it
	reportedMs int64  // when its client says that it was sent; 0: it does not
	who        *principal
	now        time.Time // by which its token was judged
}

// beatRequest is what one beat needs on its way, pooled. Nothing in it outlives the handler.
type beatRequest struct {
	oneBeat
	body  beatBody
	out   []byte
	stamp jsonscan.Stamp
	count *hotStripe
}

// newBeatRequests returns a server's pool of them.
func newBeatRequests(m *Metrics) *sync.Pool {
	return &sync.Pool{New: func() any {
		return &beatRequest{oneBeat: oneBeat{report: make([]byte, 0, 2048)}, out: make([]byte, 0, 2048), count: m.Stripe()}
	}}
}

// Heartbeat answers POST /v1/tasks/{taskId}/heartbeat. It is the hot path: one look into the token cache, one
// pass over the body, one wait for the batcher, no allocation.
func (h *beatHandlers) Heartbeat(ctx *fasthttp.RequestCtx, w *wire, id []byte, start time.Time) (status int) {
	c := h.requests.Get().(*beatRequest)
	c.count.inFlight.Add(1)
	defer c.count.inFlight.Add(-1)
	status = fasthttp.StatusOK
	if r := h.beat(ctx, w, id, c); r != nil {
		status = r.status
		h.api.Metrics.refusedBeat(r)
		h.api.writeRefusal(ctx, r)
	}
	c.count.observe(status, time.Since(start))
	h.requests.Put(c) // not after a panic: the batcher may hold the beat
	return status
}

// heartbeat is the way of the route table for beats that Target did not recognise, such as those
// with an encoded id.
func (h *beatHandlers) heartbeat(req *request) (int, any, error) {
	return h.Heartbeat(req.ctx, &req.wire, []byte(req.id), req.ctx.Time()), nil, nil
}

func (h *beatHandlers) beat(ctx *fasthttp.RequestCtx, w *wire, id []byte, c *beatRequest) *refusal {
	now := h.api.NowOf(ctx)
	who, r := h.api.authenticate(w.bearer(), now, c.count)
	if r != nil {
		return r
	}
	conn.Known(ctx.Conn(), who.holder())
	a := who.task()
	if a != nil {
		if r := checkTask(a, id); r != nil {
			return r
		}
		if r := h.api.TakeBeat(who, a.Scope.Tenant, h.api.Local(ctx)); r != nil {
			return r
		}
	}
	if r := checkContentType(&ctx.Request.Header); r != nil {
		return r
	}
	if r := c.body.read(ctx.Request.Body()); r != nil {
		return r
	}
	if a == nil { // a worker's token, perhaps, now that the body has named the attempt
		if a, r = h.api.ownAttempt(ctx, operation, who, string(id), c.body.attempt); r != nil {
			return r
		}
	}
	if r := checkAttempt(a, c.body.attempt); r != nil {
		return r
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
	ctx.Response.Header.SetContentTypeBytes(contentTypeJSON)
	c.out = ctx.Response.SwapBody(c.out) // instead of a copy; the buffer that was there serves the next beat
	return nil
}

// writeCancel answers 200 with a body that includes cancels of the attempts. The body is copied.
func (h *beatHandlers) writeCancel(ctx *fasthttp.RequestCtx, body []byte, attempts ...*model.Attempt) {
	writeNotified(ctx, body, func() {
		for _, a := range attempts {
			h.beats.CancelDelivered(a)
		}
	})
}

// prepare makes the beat of an attempt from a body.
func (o *oneBeat) prepare(a *model.Attempt, b *beatBody, arrived time.Time) {
	o.report = b.appendReport(o.report[:0])
	o.reportedMs = b.reportedMs
	o.beat.Attempt, o.beat.Report, o.beat.Arrived = a, borrowed(o.report), arrived
}

// firstCancel reports whether the answer to the beat is the first to include a cancel, so that its arrival is to be recorded.
func (o *oneBeat) firstCancel() bool { return o.beat.Cancel != nil && !o.beat.Cancel.Delivered }

// appendResult appends the answer to a beat that has its result, or returns its refusal.
func (h *beatHandlers) appendResult(dst []byte, o *oneBeat, clock *jsonscan.Stamp, count *hotStripe) ([]byte, *refusal) {
	if o.beat.Err != nil {
		return dst, refusalOf(operation, o.beat.Err)
	}
	if o.reportedMs != 0 {
		count.skew.observeMs(o.reportedMs, o.beat.At)
	}
	return h.appendBeat(dst, &o.beat, o.who, o.now, clock), nil
}

// borrowed returns b as a string that holds for as long as nobody writes to b.
func borrowed(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }

// appendBeat appends the fields of a beat's answer, as v1.HeartbeatResponse has them.
func (h *beatHandlers) appendBeat(dst []byte, b *beats.Beat, who *principal, now time.Time, clock *jsonscan.Stamp) []byte {
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
	if f := who.renewed(h.api.Keys, now); f != nil {
		dst = append(dst, `,"taskToken":"`...) // base64url and dots need no escape
		dst = append(dst, f.text...)
		dst = append(dst, `","tokenExpiresAt":`...)
		dst = clock.Append(dst, f.expires)
	}
	return dst
}

// nextHeartbeat returns when an attempt's next beat should come: in time for one that is lost on the way.
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

// heartbeatTarget returns the task id when the request is a plain POST /v1/tasks/{taskId}/heartbeat, nil
// otherwise. The id is borrowed and not checked, but that it is one segment.
func heartbeatTarget(ctx *fasthttp.RequestCtx) []byte {
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
