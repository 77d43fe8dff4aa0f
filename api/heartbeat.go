package api

import (
	"strconv"
	"sync"
	"time"
	"unicode/utf8"
	"unsafe"

	"github.com/valyala/fasthttp"

	"github.com/lubdub-io/lubdub/api/internal/conn"
	"github.com/lubdub-io/lubdub/api/internal/jsonscan"
	"github.com/lubdub-io/lubdub/tracker/beats"
	"github.com/lubdub-io/lubdub/tracker/model"
	"github.com/lubdub-io/lubdub/tracker/schema"
)

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
func newBeatRequests(m *hotMetrics) *sync.Pool {
	return &sync.Pool{New: func() any {
		return &beatRequest{oneBeat: oneBeat{report: make([]byte, 0, 2048)}, out: make([]byte, 0, 2048), count: m.stripe()}
	}}
}

// heartbeat answers POST /v1/tasks/{taskId}/heartbeat. It is the hot path: one look into the token cache, one
// pass over the body, one wait for the batcher, no allocation.
func (s *Server) heartbeat(ctx *fasthttp.RequestCtx, w *wire, id []byte, start time.Time) (status int) {
	c := s.beatRequests.Get().(*beatRequest)
	c.count.inFlight.Add(1)
	defer c.count.inFlight.Add(-1)
	status = fasthttp.StatusOK
	if r := s.beat(ctx, w, id, c); r != nil {
		status = r.status
		s.metrics.refusedBeat(r)
		s.writeRefusal(ctx, r)
	}
	c.count.observe(status, time.Since(start))
	s.beatRequests.Put(c) // not after a panic: the batcher may hold the beat
	return status
}

// heartbeat is the way of the route table for beats that heartbeatTarget did not recognise, such as those
// with an encoded id.
func (req *request) heartbeat() (int, any, error) {
	return req.s.heartbeat(req.ctx, &req.wire, []byte(req.id), req.ctx.Time()), nil, nil
}

func (s *Server) beat(ctx *fasthttp.RequestCtx, w *wire, id []byte, c *beatRequest) *refusal {
	now := s.now(ctx)
	who, r := s.authenticate(w.bearer(), now, c.count)
	if r != nil {
		return r
	}
	conn.Known(ctx.Conn(), who.holder())
	a := who.task()
	if a != nil {
		if r := checkTask(a, id); r != nil {
			return r
		}
		if r := s.tenantBeats.take(a.Scope.Tenant, &who.bucket, s.local(ctx)); r != nil {
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
		if a, r = s.ownAttempt(ctx, opHeartbeat, who, string(id), c.body.attempt); r != nil {
			return r
		}
	}
	if r := checkAttempt(a, c.body.attempt); r != nil {
		return r
	}
	c.prepare(a, &c.body, ctx.Time())
	c.who, c.now = who, now
	s.services.Beats.Beat(&c.beat)
	if c.out, r = s.appendLanded(append(c.out[:0], '{'), &c.oneBeat, &c.stamp, c.count); r != nil {
		return r
	}
	c.out = append(c.out, '}')
	if c.tells() {
		s.writeDelivery(ctx, c.out, a)
		return nil
	}
	ctx.SetStatusCode(fasthttp.StatusOK)
	ctx.Response.Header.SetContentTypeBytes(contentTypeJSON)
	c.out = ctx.Response.SwapBody(c.out) // instead of a copy; the buffer that was there serves the next beat
	return nil
}

// read decodes the body of a single beat and judges it.
func (b *beatBody) read(body []byte) *refusal {
	if !utf8.Valid(body) {
		return errNotUTF8
	}
	if !decodeBeat(body, b) {
		return syntaxOf(body)
	}
	return b.check()
}

// prepare makes the beat of an attempt from a body.
func (o *oneBeat) prepare(a *model.Attempt, b *beatBody, arrived time.Time) {
	o.report = b.appendReport(o.report[:0])
	o.reportedMs = b.reportedMs
	o.beat.Attempt, o.beat.Report, o.beat.Arrived = a, borrowed(o.report), arrived
}

// tells reports whether the answer to the beat is the first to tell of a cancel, so that it is to be recorded that it has arrived.
func (o *oneBeat) tells() bool { return o.beat.Cancel != nil && !o.beat.Cancel.Delivered }

// appendLanded appends the answer to a beat that has its fate, or returns its refusal.
func (s *Server) appendLanded(dst []byte, o *oneBeat, clock *jsonscan.Stamp, count *hotStripe) ([]byte, *refusal) {
	if o.beat.Err != nil {
		return dst, refusalOf(opHeartbeat, o.beat.Err)
	}
	if o.reportedMs != 0 {
		count.skew.observeMs(o.reportedMs, o.beat.At)
	}
	return s.appendBeat(dst, &o.beat, o.who, o.now, clock), nil
}

func (b *beatBody) appendReport(dst []byte) []byte {
	return schema.AppendReport(dst, b.reportedMs, b.worker, b.pct, b.message)
}

// borrowed returns b as a string that holds for as long as nobody writes to b.
func borrowed(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }

// appendBeat appends the fields of a beat's answer, as v1.HeartbeatResponse has them.
func (s *Server) appendBeat(dst []byte, b *beats.Beat, who *principal, now time.Time, clock *jsonscan.Stamp) []byte {
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
	if f := renewedTask(s.keys, who, now); f != nil {
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

// syntaxOf explains why a body did not decode.
func syntaxOf(body []byte) *refusal {
	if err := checkJSON(body); err != nil {
		return err.(*refusal)
	}
	return errNotObject // decodeBeat and checkJSON agree; a fuzz test holds that
}
