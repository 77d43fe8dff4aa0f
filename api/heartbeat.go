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
	"github.com/lubdub-io/lubdub/tracker"
)

// beatRequest is what one beat needs on its way, pooled. Nothing in it outlives the handler.
type beatRequest struct {
	body   beatBody
	beat   tracker.Beat
	report []byte // beat.Report borrows it
	out    []byte
	stamp  jsonscan.Stamp
	count  *hotStripe
}

// newBeatRequests returns a server's pool of them.
func newBeatRequests(m *hotMetrics) *sync.Pool {
	return &sync.Pool{New: func() any {
		return &beatRequest{report: make([]byte, 0, 2048), out: make([]byte, 0, 2048), count: m.stripe()}
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
		s.metrics.heartbeat.refuse(status)
		s.metrics.refused.WithLabelValues(r.body.Error).Inc()
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
	conn.Known(ctx.Conn())
	a := who.task()
	if a != nil {
		if r := checkTask(a, id); r != nil {
			return r
		}
		if r := s.tenantBeats.take(a.Scope.Tenant, &who.bucket, s.local(ctx)); r != nil {
			return r
		}
	}
	if r := c.read(ctx); r != nil {
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

	c.report = c.body.appendReport(c.report[:0])
	c.beat.Attempt, c.beat.Report, c.beat.Arrived = a, borrowed(c.report), ctx.Time()
	s.tracker.Beat(&c.beat)
	if c.beat.Err != nil {
		return refusalOf(opHeartbeat, c.beat.Err)
	}

	if c.body.reportedMs != 0 {
		c.count.skew.observeMs(c.body.reportedMs, c.beat.At)
	}
	c.out = append(c.out[:0], '{')
	c.out = s.appendBeat(c.out, &c.beat, who, now, &c.stamp)
	c.out = append(c.out, '}')
	if c.beat.Cancel != nil && !c.beat.Cancel.Delivered {
		s.writeDelivery(ctx, c.out, a)
		return nil
	}
	ctx.SetStatusCode(fasthttp.StatusOK)
	ctx.Response.Header.SetContentTypeBytes(contentTypeJSON)
	c.out = ctx.Response.SwapBody(c.out) // instead of a copy; the buffer that was there serves the next beat
	return nil
}

// read decodes the body and judges it.
func (c *beatRequest) read(ctx *fasthttp.RequestCtx) *refusal {
	if r := checkContentType(&ctx.Request.Header); r != nil {
		return r
	}
	body := ctx.Request.Body()
	if !utf8.Valid(body) {
		return errNotUTF8
	}
	if !decodeBeat(body, &c.body) {
		return syntaxOf(body)
	}
	return c.body.check()
}

func (b *beatBody) appendReport(dst []byte) []byte {
	return tracker.AppendReport(dst, b.reportedMs, b.worker, b.pct, b.message)
}

// borrowed returns b as a string that holds for as long as nobody writes to b.
func borrowed(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }

// appendBeat appends the fields of a beat's answer, as v1.HeartbeatResponse has them.
func (s *Server) appendBeat(dst []byte, b *tracker.Beat, who *principal, now time.Time, clock *jsonscan.Stamp) []byte {
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
func nextHeartbeat(a *tracker.Attempt) time.Duration {
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
