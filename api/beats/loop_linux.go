package beats

import (
	"bytes"
	"strconv"
	"sync"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/lubdub-io/lubdub/api/httpapi"
	"github.com/lubdub-io/lubdub/api/internal/beatbody"
	"github.com/lubdub-io/lubdub/api/internal/beatparse"
	"github.com/lubdub-io/lubdub/api/internal/evloop"
	"github.com/lubdub-io/lubdub/api/internal/jsonscan"
	"github.com/lubdub-io/lubdub/tracker/beats"
)

// beatLoop answers single beats on an event loop, if their format, token and body are unambiguous. It hands over everything else,
// including requests that are certain to be refused, before it has any effect, so that the answer is the same as without the loop. The
// beats of a turn are stored together, and the answers of a flush are written together.
//
// Only the loop uses the fields, except those that mu guards.
type beatLoop struct {
	h         *Handlers
	loop      *evloop.Loop
	count     *httpapi.Stripe
	parsed    beatparse.Request
	body      beatbody.Body
	turn      []*beats.Beat       // of this turn
	submitted []*beats.Beat       // the same, since Submit may change the other slice
	opened    int                 // tokens verified in this turn
	done      func([]*beats.Beat) // collect, allocated once
	spare     []*loopBeat
	text      []byte // buffer for a body
	out       []byte // buffer for an answer
	stamp     jsonscan.Stamp
	date      dateLine
	ctx       fasthttp.RequestCtx // for refusals
	refused   bytes.Buffer

	mu       sync.Mutex
	finished []*beats.Beat
	before   []*beats.Beat // beats that have been answered; their memory is reused
	posted   bool          // the loop is notified that some have results
}

// loopBeat is a beat on the loop, from the request to the answer.
type loopBeat struct {
	oneBeat
	conn  *evloop.Conn
	id    []byte // of the request
	start time.Time
}

// NewLoop returns the handler of an event loop's requests.
func (h *Handlers) NewLoop(l *evloop.Loop) evloop.Handler {
	b := &beatLoop{h: h, loop: l, count: h.api.Metrics.Stripe()}
	b.done = b.collect
	return b
}

// Read parses a beat.
func (l *beatLoop) Read(c *evloop.Conn, unread []byte) (int, evloop.Next) {
	p := &l.parsed
	switch v := beatparse.Parse(unread, httpapi.LimitCallback, p); {
	case v == beatparse.Doubt || p.Kind != beatparse.Task:
	case v == beatparse.Partial:
		return p.Total, evloop.More
	case l.begin(c):
		return p.Total, evloop.Begun
	}
	return 0, evloop.HandOff
}

// begin begins the parsed beat, unless there is a doubt. It has no effect before the last check.
func (l *beatLoop) begin(c *evloop.Conn) bool {
	api, p := l.h.api, &l.parsed
	local := l.local()
	now := api.RedisTimeAt(local)
	who, opened := l.principal(p.Token, now)
	if who == nil {
		return false
	}
	a := who.Task()
	if a == nil || httpapi.CheckTask(a, p.ID) != nil || l.body.Read(p.Body) != nil || httpapi.CheckAttempt(a, l.body.Attempt) != nil {
		return false
	}
	if l.body.Details != nil { // Submit does not take it
		return false
	}
	if opened == nil {
		l.count.CacheHits.Add(1)
	} else if !api.Remember(opened, now) {
		return false
	}
	if c.Stranger() {
		c.Known(who.Holder())
	}
	l.count.InFlight.Add(1)
	b := l.take()
	b.conn, b.start, b.who, b.now = c, l.loop.Now(), who, now
	b.id = api.AppendRequestID(b.id[:0], p.RequestID)
	if r := api.TakeBeat(who, a.Scope.Tenant, local); r != nil {
		l.refuse(b, r)
		return true
	}
	b.prepare(a, &l.body, b.start)
	l.turn = append(l.turn, &b.beat)
	return true
}

// maxOpened limits the time that a turn spends on tokens that are not in the cache. Further ones are handed over to goroutines, which
// delay the loop less.
const maxOpened = 16

// principal returns the principal of a token, and the verified token if it was not cached; nil: there is a doubt.
func (l *beatLoop) principal(bearer []byte, now time.Time) (*httpapi.Principal, *httpapi.OpenedToken) {
	if who := l.h.api.Cached(bearer, now); who != nil {
		return who, nil
	}
	if l.opened == maxOpened {
		return nil, nil
	}
	l.opened++
	o := l.h.api.Open(bearer, now)
	if o == nil {
		return nil, nil
	}
	return o.Principal(), o
}

// local returns this process's time at the beginning of the turn.
func (l *beatLoop) local() time.Time {
	return l.h.api.LocalAt(l.loop.Now())
}

// Turn stores the turn's beats.
func (l *beatLoop) Turn() {
	l.opened = 0
	if len(l.turn) == 0 {
		return
	}
	l.submitted = append(l.submitted[:0], l.turn...)
	defer func() {
		if p := recover(); p != nil {
			for _, b := range l.submitted {
				l.failed(b.Of.(*loopBeat), p)
			}
		}
		clear(l.turn)
		clear(l.submitted)
		l.turn = l.turn[:0]
	}()
	l.h.beats.Submit(l.turn, l.done)
}

// collect receives, on any goroutine, beats that have their result.
func (l *beatLoop) collect(beats []*beats.Beat) {
	l.mu.Lock()
	l.finished = append(l.finished, beats...)
	first := !l.posted
	l.posted = true
	l.mu.Unlock()
	if first {
		l.loop.Post(nil)
	}
}

// Receive answers the beats that have their result.
func (l *beatLoop) Receive(any) {
	l.mu.Lock()
	finished := l.finished
	l.finished, l.posted = l.before[:0], false
	l.mu.Unlock()
	now := time.Now()
	for _, b := range finished {
		l.answer(b.Of.(*loopBeat), now)
	}
	clear(finished)
	l.before = finished
}

// answer answers a beat that has its result.
func (l *beatLoop) answer(b *loopBeat, now time.Time) {
	defer func() {
		if p := recover(); p != nil {
			l.failed(b, p)
		}
	}()
	if b.conn == nil {
		return // it was answered after a panic
	}
	body, r := l.h.appendResult(append(l.text[:0], '{'), &b.oneBeat, &l.stamp, l.count)
	l.text = body
	if r != nil {
		l.refuse(b, r)
		return
	}
	l.text = append(body, '}')
	l.out = l.appendOK(l.out[:0], b.id, l.text)
	var sent func()
	if b.firstCancel() {
		a := b.beat.Attempt
		sent = func() { l.h.beats.CancelDelivered(a) }
	}
	l.count.Observe(fasthttp.StatusOK, now.Sub(b.start))
	b.conn.AnswerThen(l.out, l.loop.Stopping(), sent)
	l.over(b)
}

// appendOK appends a complete answer, as fasthttp writes it.
func (l *beatLoop) appendOK(dst, id, body []byte) []byte {
	dst = append(dst, "HTTP/1.1 200 OK\r\nDate: "...)
	dst = l.date.append(dst, l.loop.Now())
	dst = append(dst, "\r\nContent-Type: application/json\r\nContent-Length: "...)
	dst = strconv.AppendInt(dst, int64(len(body)), 10)
	dst = append(dst, "\r\nX-Request-Id: "...)
	dst = append(dst, id...)
	if l.loop.Stopping() {
		dst = append(dst, "\r\nConnection: close"...)
	}
	dst = append(dst, "\r\n\r\n"...)
	return append(dst, body...)
}

// refuse answers a beat with a refusal.
func (l *beatLoop) refuse(b *loopBeat, r *httpapi.Refusal) {
	l.h.api.Metrics.RefusedBeat(r)
	l.count.Observe(r.Status, time.Since(b.start))
	b.conn.Answer(l.refusal(b, r))
	l.over(b)
}

// refusal returns a complete refusal, and whether the connection ends with it.
func (l *beatLoop) refusal(b *loopBeat, r *httpapi.Refusal) (answer []byte, last bool) {
	ctx := &l.ctx
	ctx.Response.Reset()
	ctx.Response.Header.SetCanonical(httpapi.HeaderRequestIDBytes, b.id)
	l.h.api.WriteRefusal(ctx, r)
	if l.loop.Stopping() {
		ctx.SetConnectionClose()
	}
	l.refused.Reset()
	_, _ = ctx.Response.WriteTo(&l.refused) // writing to memory does not fail
	return l.refused.Bytes(), ctx.Response.ConnectionClose()
}

// maxSpareBeats limits the memory that is kept after a burst.
const maxSpareBeats = 4096

func (l *beatLoop) take() *loopBeat {
	if n := len(l.spare); n > 0 {
		b := l.spare[n-1]
		l.spare = l.spare[:n-1]
		return b
	}
	b := new(loopBeat)
	b.beat.Of = b
	return b
}

// over ends a beat that has been answered.
func (l *beatLoop) over(b *loopBeat) {
	l.count.InFlight.Add(-1)
	b.conn, b.who, b.beat.Attempt = nil, nil, nil // these must not be kept alive
	if len(l.spare) < maxSpareBeats {
		l.spare = append(l.spare, b)
	}
}

// failed answers a beat whose processing panicked. Other goroutines may still use the beat.
func (l *beatLoop) failed(b *loopBeat, p any) {
	if b.conn == nil {
		return // it has been answered
	}
	r := l.h.api.Panicked(p, string(b.id), fasthttp.MethodPost, "/v1/tasks/{taskId}/heartbeat")
	b.conn.Answer(l.refusal(b, r))
	l.count.InFlight.Add(-1)
	b.conn = nil
}

// dateLine is the Date header of answers, which changes once a second.
type dateLine struct {
	second int64
	text   []byte
}

func (d *dateLine) append(dst []byte, now time.Time) []byte {
	if s := now.Unix(); s != d.second {
		d.second, d.text = s, fasthttp.AppendHTTPDate(d.text[:0], now)
	}
	return append(dst, d.text...)
}
